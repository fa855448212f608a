"""What an index run decides: what to read, with which model, and when to stop and ask."""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from funes_ls.indexer import purge
from funes_ls.indexer.crash_marks import CrashMarks
from funes_ls.indexer.errors import BackendError, MemoryStateError, UsageError
from funes_ls.indexer.exclude import Exclusion
from funes_ls.indexer.home import expanded
from funes_ls.indexer.lock import writer_lock
from funes_ls.indexer.memory import Memory, open_memory
from funes_ls.indexer.model import HARNESSES
from funes_ls.indexer.pipeline import (
    VectorsReport,
    WordsReport,
    list_units,
    plan,
    run_vectors,
    run_words,
)
from funes_ls.indexer.progress import IndexEvent, Progress, ignore_progress
from funes_ls.indexer.redaction.base import LocalRedaction, Redaction
from funes_ls.indexer.settings import Settings, check_whole
from funes_ls.indexer.traces import TraceSource, detect, source_for, sources
from funes_ls.indexer.traces.fetched import FetchedSource

if TYPE_CHECKING:
    from funes_ls.indexer.embedding import Embedder

#: Asked when the budget of a run is used up: chunks left, seconds they may take; True goes on.
AskMore = Callable[[int, float], bool]
_LOCK_WAIT_S = 15.0


class IndexRequest(Struct, frozen=True, kw_only=True):
    """What to index and how far.

    Attributes:
        target: A path; "" for every known place.
        origin: Where what lies at `target` was fetched from, "" when it is the user's own.
        harness: A harness to read alone, or how to read `target`; "" to find out.
        limit: Newest sessions taken of each source, None for all.
        words_only: Stop when everything is findable by words.
        finish: Embed everything without asking (an explicit path implies it).
        wait: Wait a while for another writer instead of failing at once.
    """

    target: str = ""
    origin: str = ""
    harness: str = ""
    limit: int | None = None
    words_only: bool = False
    finish: bool = False
    wait: bool = False
    thinking: bool = True


class IndexReport(Struct, kw_only=True):
    """What a run did; `funes index --json` prints it.

    Attributes:
        memory: Where the memory is.
        model: Stamp of the memory's model, "" while there are no vectors.
        sessions: Traces read now; `current` had not changed, `failed` could not be read.
        chunks: New chunks, findable by words.
        embedded: Chunks that got their vector in this run.
        words_only: Chunks that still wait for theirs.
        stopped: Why vectors are not complete: `budget`, `background` (the engine goes on with
            them), `no_model`, `words_only` or "".
        troubled: Lines skipped of this run's traces, by path; 0 for one not read at all.
        redacted: Secrets taken out of what was read, by rule; never what they were.
        excluded: Traces that are kept out, by the settings or for what is said in them.
        note: What a person should know or do next.
    """

    memory: str
    model: str = ""
    sessions: int = 0
    current: int = 0
    failed: int = 0
    chunks: int = 0
    removed: int = 0
    embedded: int = 0
    words_only: int = 0
    problems: int = 0
    troubled: dict[str, int] = {}
    redacted: dict[str, int] = {}
    excluded: int = 0
    stopped: str = ""
    note: str = ""
    seconds: float = 0.0
    embedded_per_s: float = 0.0


def run_index(
    request: IndexRequest,
    settings: Settings,
    *,
    env: Mapping[str, str],
    progress: Progress = ignore_progress,
    ask_more: AskMore = lambda _left, _eta: False,
) -> IndexReport:
    """Index traces into the local memory: words first, then vectors.

    Raises:
        UsageError: unknown harness, or a path that does not exist.
        MemoryStateError: another writer, another model, a newer format.
        BackendError: the disk is full or read-only.
        ScannerError: secrets cannot be looked for.
    """
    started = time.monotonic()
    check_whole(settings)
    places = places_of(request, env)
    report = IndexReport(memory=str(settings.memory_dir))
    redaction = _redaction(settings, progress)
    with writer_lock(settings.home, wait_s=_LOCK_WAIT_S if request.wait else 0.0):
        memory = open_memory(settings.memory_dir, derived=settings.home / "derived", writable=True)
        try:
            check_model(settings, memory)
            with closing(CrashMarks(settings.home / "run")) as marks:
                _words(
                    places,
                    request,
                    memory,
                    report=report,
                    progress=progress,
                    marks=marks,
                    redaction=redaction,
                    exclusion=Exclusion(settings.exclude),
                )
            if not request.words_only:
                _vectors(request, settings, memory, report=report, progress=progress, ask=ask_more)
            if purge.is_due(memory):
                purge.purge(memory, settings.home, told=lambda *_: None)
            memory.count_turns()
            report.words_only = memory.catalog.pending_count()
            report.problems = memory.catalog.problem_count()
        finally:
            memory.close()
    if request.words_only and report.words_only:
        report.stopped = "words_only"
    report.seconds = time.monotonic() - started
    return report


def _redaction(settings: Settings, progress: Progress) -> Redaction | None:
    """Return what takes secrets out, rules compiled; None when the settings want none of it.

    Raises:
        ScannerError: it does not work, which is better known before anything is read.
    """
    if settings.redaction == "off":
        return None
    redaction = LocalRedaction(settings.rules_dir)
    if not redaction.is_prepared:  # else it is loaded by whoever reads first, here or ahead
        progress(IndexEvent(phase="rules"))
        redaction.load()
    return redaction


def known_places(env: Mapping[str, str]) -> list[tuple[TraceSource, Path]]:
    """Return where each harness keeps sessions on this machine, existing places only."""
    home = Path(env.get("HOME") or Path.home())
    found = [(source, root) for source in sources() for root in source.roots(home, env)]
    return [(source, root) for source, root in found if root.exists()]


def places_of(request: IndexRequest, env: Mapping[str, str]) -> list[tuple[TraceSource, Path]]:
    """Return the readers and places that a request is about.

    Raises:
        UsageError: unknown harness, a path that does not exist, or nothing in any known place.
    """
    if request.harness:
        source_for(request.harness)  # an unknown name is refused before anything else
    if request.target:
        return _target_places(request)
    places = known_places(env)
    if request.harness:
        facet = HARNESSES.get(request.harness, request.harness)
        places = [(source, root) for source, root in places if source.harness == facet]
        if not places:
            raise UsageError(
                f"No sessions of {request.harness} on this machine.",
                hint="Name a path: `funes index PATH`.",
                kind="no_source",
            )
    if not places:
        raise UsageError(
            "No agent has left sessions in a known place on this machine.",
            hint="Name a path: `funes index PATH`.",
            kind="no_source",
        )
    return places


def _target_places(request: IndexRequest) -> list[tuple[TraceSource, Path]]:
    path = expanded(request.target).absolute()
    if not path.exists():
        raise UsageError(f"No such path: {path}", kind="no_such_path")
    if request.origin:
        source = source_for(request.harness) if request.harness else detect(path)
        return [(FetchedSource(source, path, request.origin), path)]
    if request.harness:
        return [(source_for(request.harness), path)]
    # A copied or synced home directory is read as what it is: every agent's place in it.
    nested = [(source, root) for source in sources() for root in source.roots(path, {})]
    nested = [(source, root) for source, root in nested if root.exists()]
    return nested or [(detect(path), path)]


def _words(
    places: list[tuple[TraceSource, Path]],
    request: IndexRequest,
    memory: Memory,
    *,
    report: IndexReport,
    progress: Progress,
    marks: CrashMarks,
    redaction: Redaction | None,
    exclusion: Exclusion,
) -> None:
    progress(IndexEvent(phase="scan"))
    tasks, words = plan(
        list_units(places), memory, limit=request.limit, exclusion=exclusion, redaction=redaction
    )
    if words.failed and not (tasks or words.current or words.excluded):
        raise _nothing_left(memory, next(iter(words.troubled)))
    try:
        run_words(
            tasks,
            memory,
            report=words,
            progress=progress,
            thinking=request.thinking,
            marks=marks,
            redaction=redaction,
            exclusion=exclusion,
        )
    finally:
        _note_words(report, words)


def _note_words(report: IndexReport, words: WordsReport) -> None:
    report.sessions, report.current, report.failed = words.sessions, words.current, words.failed
    report.chunks, report.removed = words.new, words.removed
    report.troubled, report.redacted = words.troubled, words.redacted
    report.excluded = words.excluded


def _nothing_left(memory: Memory, path: str) -> BackendError:
    """Return why a run fails: there was one thing to read, and it cannot be."""
    reasons = [one.message for one in memory.catalog.problems() if one.path == path]
    return BackendError(
        f"{path} cannot be read: {' '.join(reasons)}",
        hint="Run `funes parse PATH` to look at it.",
        kind="bad_source",
    )


def _vectors(
    request: IndexRequest,
    settings: Settings,
    memory: Memory,
    *,
    report: IndexReport,
    progress: Progress,
    ask: AskMore,
) -> None:
    left = memory.catalog.pending_count()
    report.model = memory.state().stamp
    if not left:
        return
    try:
        embedder = load_model(settings, memory, progress)
    except BackendError as exc:
        report.stopped, report.note = "no_model", str(exc)
        return
    report.model = embedder.stamp
    unlimited = request.finish or bool(request.target)
    vectors = VectorsReport()
    while True:
        run_vectors(
            memory,
            embedder,
            report=vectors,
            progress=progress,
            budget_s=None if unlimited else settings.budget_s,
            tokens=settings.keeps_tokens,
        )
        report.embedded = vectors.embedded
        if vectors.seconds > 0:
            report.embedded_per_s = vectors.embedded / vectors.seconds
        if not vectors.left:
            return
        eta_s = vectors.left / report.embedded_per_s if report.embedded_per_s else 0.0
        if not ask(vectors.left, eta_s):
            report.stopped = "budget"
            return


def load_model(settings: Settings, memory: Memory, progress: Progress) -> "Embedder":
    """Return the model the memory is stamped with, or settle which one a new memory gets.

    Raises:
        BackendError: kind `no_model` or `offline`: none is here and none can be had now.
    """
    from funes_ls.indexer import embedding
    from funes_ls.models import acquire

    def watch(done_bytes: int, total_bytes: int | None, what: str) -> None:
        progress(IndexEvent(phase="model", done=done_bytes, total=total_bytes or 0, label=what))

    ref = model_ref(settings, memory.state().stamp)
    if ref == "auto":
        ref = acquire(settings.models_dir, progress=watch).stamp
    return embedding.load(ref, settings.models_dir, threads=settings.threads)


def load_installed(settings: Settings, memory: Memory) -> "Embedder":
    """Return the memory's model, or the one a new memory gets, if it is on this machine.

    Raises:
        BackendError: kind `no_model`: it is not here; nothing is fetched.
    """
    from funes_ls.indexer import embedding

    ref = model_ref(settings, memory.state().stamp)
    if ref == "auto":
        ref = embedding.resolve_auto(settings.models_dir) or ""
    if not ref:
        raise BackendError(
            "No model is installed: new rows are found by words only.",
            hint="Run `funes index`, or see `funes model install`.",
            kind="no_model",
        )
    return embedding.load(ref, settings.models_dir, threads=settings.threads)


def model_ref(settings: Settings, stamp: str) -> str:
    """Return what to load for a memory: the model it is stamped with, wherever that lies.

    A new memory (no stamp) gets what the settings say. A stamped one is of its own model; that
    model may be a directory that only the settings name.
    """
    if not stamp or stamp == _stamp_of_directory(settings.model):
        return settings.model
    return stamp


def check_model(settings: Settings, memory: Memory) -> None:
    """Refuse to add another model's vectors to a memory.

    Raises:
        MemoryStateError: kind `wrong_model`: the settings name a model that is not the memory's.
    """
    stamp, wanted = memory.state().stamp, wanted_stamp(settings)
    if stamp and wanted not in ("", stamp):
        raise MemoryStateError(
            f"The memory at {memory.base} was embedded with {stamp}, not {wanted}.",
            hint="Set `model` back to auto, or index into another FUNES_HOME.",
            kind="wrong_model",
        )


def wanted_stamp(settings: Settings) -> str:
    """Return the stamp of the model that the settings name, "" where any will do."""
    from funes_ls.models import known_model

    if settings.model == "auto":
        return ""
    stamp = _stamp_of_directory(settings.model)
    if stamp:
        return stamp
    try:
        return known_model(settings.model).card.stamp
    except UsageError:
        return settings.model


def _stamp_of_directory(ref: str) -> str:
    from funes_ls.indexer.embedding import CARD_FILE, read_card

    directory = expanded(ref)
    return read_card(directory).stamp if (directory / CARD_FILE).is_file() else ""
