"""`funes pull`: carries a memory from elsewhere to this machine, where it goes on."""

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from funes_ls.hub.reading import told_in
from funes_ls.hub.spec import parse_spec
from funes_ls.index_run import wanted_stamp
from funes_ls.indexer.errors import MemoryStateError
from funes_ls.indexer.memory import Memory, Pinned
from funes_ls.indexer.memory_pinned import open_pinned
from funes_ls.indexer.merge import MergeReport, merge_steps, shares_rows, stamp_of
from funes_ls.indexer.progress import Cancelled, IndexEvent, Progress, ignore_progress, never
from funes_ls.indexer.redaction import record
from funes_ls.indexer.settings import Settings
from funes_ls.memories import Memories
from funes_ls.protocol_pull import PullAnswer, PullParams
from funes_ls.writing import Writer, in_this_process, stop_if


def pull(
    params: PullParams,
    memories: Memories,
    *,
    write: Writer | None = None,
    cancelled: Cancelled = never,
    progress: Progress = ignore_progress,
) -> PullAnswer:
    """Take the rows of a memory into the local one: those that it lacks, with their vectors.

    Args:
        params: Which memory.
        memories: Of the home.
        write: Makes the change; by default the memory is opened for it.
        cancelled: Asked between steps.
        progress: Told how it goes on.

    Raises:
        MemoryStateError: it is of another model, or another process is writing.
        BackendError: the disk failed.
        FunesError: kind `cancelled`; what came stays.
    """
    settings = memories.settings
    pinned = pinned_of(params, settings)
    source = open_pinned(pinned)
    _check_settings(settings, stamp_of(source), params.memory)
    if not params.accept and not _is_related(memories, pinned):
        return PullAnswer(memory=params.memory, state="strange", model=stamp_of(source))
    report = MergeReport()
    notes: list[str] = []

    def told(done: int, total: int) -> None:
        stop_if(cancelled)
        progress(IndexEvent(phase="words", done=done, total=total, chunks=report.chunks))

    def change(memory: Memory, stopped: Cancelled) -> Generator[float, None, Any]:
        yield from merge_steps(memory, pinned, report, told=told)
        if record.wants_scrub(memory.catalog):
            notes.append("Nobody has looked for secrets in it here: `funes scrub` does.")

    (write or in_this_process(settings))(change)
    return PullAnswer(
        memory=params.memory,
        state="pulled" if report.chunks else "up_to_date",
        sessions=report.sessions,
        chunks=report.chunks,
        known=report.known,
        forgotten=report.forgotten,
        odd=report.odd,
        model=report.stamp,
        note=" ".join(notes),
    )


def pinned_of(params: PullParams, settings: Settings) -> Pinned:
    """Return the copy that a request names."""
    base = Path(params.base)
    return Pinned(
        base=base,
        place=settings.home / "derived" / "-",  # nothing is derived from it
        revision=params.revision,
        version=params.version,
        told=lambda: told_in(base),
    )


def fetched(
    name: str, settings: Settings, env: Mapping[str, str], progress: Progress
) -> PullParams:
    """Return what is asked of `pull`, after the newest state of a memory was fetched.

    Raises:
        UsageError: there is no such memory.
        MemoryStateError: it cannot be read; see `funes_ls.hub.remote`.
    """
    from funes_ls.hub.reading import RemoteMemory

    spec = parse_spec(name, settings)
    if spec.kind == "local":
        raise MemoryStateError(
            "That is the local memory itself.", hint="Name another one.", kind="same_memory"
        )
    if spec.path is not None:
        if spec.path.resolve() == settings.memory_dir.resolve():
            return fetched("local", settings, env, progress)
        return PullParams(memory=spec.text, base=str(spec.path.resolve()))

    def told(done: int, total: int | None) -> None:
        progress(IndexEvent(phase="fetch", done=done, total=total or 0))

    pinned = RemoteMemory(spec, env, settings.home).look(progress=told)
    return PullParams(
        memory=spec.text,
        base=str(pinned.base),
        revision=pinned.revision,
        version=pinned.version,
    )


def _is_related(memories: Memories, pinned: Pinned) -> bool:
    """Return whether the local memory is empty or has a row of the other one."""
    try:
        with memories.reading("local", whole=True) as memory, memory.snapshot() as view:
            return shares_rows(view, open_pinned(pinned))
    except MemoryStateError as exc:
        if exc.kind != "missing":
            raise
        return True


def _check_settings(settings: Settings, stamp: str, name: str) -> None:
    """Refuse a memory that the settings would not let anything be added to.

    Raises:
        MemoryStateError: kind `wrong_model`.
    """
    wanted = wanted_stamp(settings)
    if wanted not in ("", stamp):
        raise MemoryStateError(
            f"{name} was embedded with {stamp}, and the settings want {wanted}.",
            hint="Set `model` back to auto, or pull into another FUNES_HOME.",
            kind="wrong_model",
        )
