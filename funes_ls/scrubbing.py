"""`funes scrub`: takes secrets out of the local memory that were stored before they were known."""

from collections.abc import Generator
from typing import Any

from funes_ls.forgetting import held_elsewhere
from funes_ls.hub.receipts import drop_copies
from funes_ls.indexer.errors import ScannerError
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.progress import Cancelled, IndexEvent, Progress, ignore_progress, never
from funes_ls.indexer.redaction import record
from funes_ls.indexer.redaction.base import LocalRedaction
from funes_ls.indexer.scrub import Scanner, ScrubReport, look_steps, scrub_steps
from funes_ls.indexer.settings import Settings
from funes_ls.memories import Memories
from funes_ls.protocol_secrets import ScrubAnswer, ScrubParams
from funes_ls.writing import Writer, in_this_process, rewriting, stop_if

_TRACES_STAY = (
    "The traces themselves were not touched and hold what was found: change those secrets where "
    "they are used, then delete the traces or clean them."
)
#: How a scanner's error begins where it keeps sessions from being indexed.
_OF_INDEX = "Nothing is indexed: "
_NOT_PURE = (
    "Another process is still reading the memory as it was; what is left on the disk is removed by "
    "the next command that writes to it."
)


def scrub(
    params: ScrubParams,
    memories: Memories,
    *,
    scanner: Scanner | None = None,
    write: Writer | None = None,
    cancelled: Cancelled = never,
    progress: Progress = ignore_progress,
) -> ScrubAnswer:
    """Take secrets out of the local memory, or only say how many there are.

    Args:
        params: Whether it is a dry run.
        memories: Of the home.
        scanner: What finds secrets; by default it is loaded into this process.
        write: Makes the change; by default the memory is opened for it.
        cancelled: Asked between steps.
        progress: Told how it goes on.

    Raises:
        ScannerError: the scanner does not work; nothing was changed, or no more is.
        MemoryStateError: there is no memory, or another process is writing.
        FunesError: kind `cancelled`.
    """
    try:
        return _scrubbed(
            params,
            memories,
            scanner=scanner,
            write=write or in_this_process(memories.settings),
            cancelled=cancelled,
            progress=progress,
        )
    except ScannerError as exc:
        raise _refused(exc) from exc


def _refused(exc: ScannerError) -> ScannerError:
    """Return why nothing is taken out, or no more is: nobody can tell what is a secret."""
    reason = exc.message.removeprefix(_OF_INDEX)
    return ScannerError(
        f"The memory is not scrubbed: {reason[:1].lower()}{reason[1:]}",
        hint="Install funes-ls anew, then run `funes scrub` again.",
        kind=exc.kind,
    )


def _scrubbed(
    params: ScrubParams,
    memories: Memories,
    *,
    scanner: Scanner | None,
    write: Writer,
    cancelled: Cancelled,
    progress: Progress,
) -> ScrubAnswer:
    settings = memories.settings
    report = ScrubReport()
    is_due = False
    with memories.reading("local") as memory, memory.snapshot() as view:
        is_empty = not (view.embedded_count() or view.catalog.pending_count())
        is_empty = is_empty and not view.catalog.session_count()
        if not is_empty:
            scanner = scanner or _loaded(settings)
            is_due = record.is_scrub_due(view.catalog, scanner.stamp)
            if params.dry_run:
                for total in look_steps(view, settings.home, scanner, report):
                    stop_if(cancelled)
                    progress(IndexEvent(phase="scrub", done=report.sessions, total=total))
    if is_empty or scanner is None:
        return _answer("empty", report, stamp="", settings=settings)
    using = scanner
    if not params.dry_run:

        def change(memory: Memory, stopped: Cancelled) -> Generator[float, None, Any]:
            told = rewriting(progress, stopped)
            return scrub_steps(memory, settings.home, using, report, told=told)

        write(change)
        if report.found or is_due:  # one that was killed may have found what is clean by now
            drop_copies(settings.home, ())
    found = "found" if params.dry_run else "scrubbed"
    state = found if report.found else "clean"
    return _answer(state, report, stamp=scanner.stamp, settings=settings)


def _loaded(settings: Settings) -> Scanner:
    redaction = LocalRedaction(settings.rules_dir)
    redaction.load()
    return redaction


def _answer(state: str, report: ScrubReport, *, stamp: str, settings: Settings) -> ScrubAnswer:
    notes = [_TRACES_STAY] if report.found else []
    if state == "scrubbed" and not report.pure:
        notes.append(_NOT_PURE)
    return ScrubAnswer(
        state=state,
        sessions=report.sessions,
        blocks=report.blocks,
        redacted=report.redacted,
        dropped=report.dropped,
        details=report.details,
        requeued=report.requeued,
        counts=dict(sorted(report.counts.items())),
        stamp=stamp,
        pure=report.pure,
        published=held_elsewhere((), settings) if report.found else (),
        note=" ".join(notes),
    )
