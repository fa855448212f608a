"""A request to index and a look at every root, as work in steps."""

import time

from funes_ls.indexer.errors import BackendError
from funes_ls.indexer.live_state import JobHandle
from funes_ls.indexer.live_work import Work, run_apart
from funes_ls.indexer.live_writer import Writer
from funes_ls.indexer.pipeline import WordsReport
from funes_ls.indexer.progress import IndexEvent, Meter, never

_POLL_S = 0.05


def sweep_steps(writer: Writer) -> Work:
    """Read what was missed under every root."""
    places = writer.roots()
    if places:
        yield from writer.words.read_places(
            places, report=WordsReport(), progress=writer.on_event, cancelled=never
        )
    writer.scanner_works()


def job_steps(handle: JobHandle, writer: Writer) -> Work:
    """Do what a request asks for, and fill its report.

    Raises:
        FunesError: nothing of what was asked for can be read, or the memory refuses.
    """
    job, report = handle.job, handle.report
    started, before = time.monotonic(), writer.vectors.embedded
    try:
        if job.check is not None:
            job.check(writer.memory)
        yield from _words(handle, writer)
        if handle.is_cancelled:
            report.stopped = "cancelled"
        elif job.words_only:
            report.stopped = "words_only" if writer.count(now=True) else ""
        else:
            yield from _vectors(handle, writer)
        yield from _counted(handle, writer)
    finally:
        if not job.words_only:  # also what was embedded beside it, as its traces were written to
            report.vectors.embedded = writer.vectors.embedded - before
        report.left = writer.count(now=True)
        report.problems = writer.problems
        report.model = writer.memory.dataset.stamp if writer.memory.dataset else report.model
        report.seconds = time.monotonic() - started


def _words(handle: JobHandle, writer: Writer) -> Work:
    job, report = handle.job, handle.report.words
    yield from writer.words.read_places(
        job.places,
        report=report,
        progress=lambda event: _tell(handle, writer, event),
        limit=job.limit,
        thinking=job.thinking,
        strict=True,
        cancelled=lambda: handle.is_cancelled,
    )
    writer.scanner_works()
    if report.failed and not (report.sessions or report.current):
        raise _nothing_read(writer, next(iter(report.troubled)))
    done = report.sessions + report.failed
    _tell(handle, writer, IndexEvent(phase="words", done=done, total=done, chunks=report.new))


def _nothing_read(writer: Writer, path: str) -> BackendError:
    """Return why a request fails: there was only what cannot be read."""
    reasons = [one.message for one in writer.memory.catalog.problems() if one.path == path]
    return BackendError(
        f"{path} cannot be read: {' '.join(reasons)}",
        hint="Run `funes parse PATH` to look at it.",
        kind="bad_source",
    )


def _vectors(handle: JobHandle, writer: Writer) -> Work:
    job, report = handle.job, handle.report
    total = writer.count(now=True)
    if not total:
        return
    before = writer.vectors.embedded
    for _ in range(2):  # a load under way may be one that fetches nothing
        if writer.embedder(now=True) is None:
            yield from _loaded(handle, writer)
    started = time.monotonic()
    meter = Meter(total, clock=time.monotonic)
    while not handle.is_cancelled and writer.count():
        if not job.finish and time.monotonic() - started >= job.budget_s:
            report.stopped = "budget"
            break
        wait_s = writer.background()
        if wait_s != 0 and writer.embedder() is None:
            report.stopped, report.note = "no_model", writer.note
            break
        vectors = report.vectors
        vectors.embedded = writer.vectors.embedded - before
        vectors.seconds = time.monotonic() - started
        done = min(total, vectors.embedded + writer.vectors.unmoved)
        meter.advance(done)
        event = IndexEvent(
            phase="vectors",
            done=done,
            total=max(total, vectors.embedded + writer.count()),
            rate=meter.rate,
            eta_s=meter.eta_s(),
            tier=writer.vectors.tier,
        )
        _tell(handle, writer, event)
        yield wait_s or 0.0
    if handle.is_cancelled:
        report.stopped = "cancelled"
    report.vectors.embedded = writer.vectors.embedded - before
    report.vectors.seconds = time.monotonic() - started
    report.vectors.left = writer.count(now=True)


def _loaded(handle: JobHandle, writer: Writer) -> Work:
    while writer.loader.is_loading and not handle.is_cancelled:
        writer.phase = "model"
        yield _POLL_S


def _counted(handle: JobHandle, writer: Writer) -> Work:
    """Count turns, which reads the whole dataset, beside the other work."""
    counting = run_apart(writer.memory.count_turns)
    while not counting.done() and not handle.is_cancelled:
        yield _POLL_S
    if counting.done():
        counting.result()


def _tell(handle: JobHandle, writer: Writer, event: IndexEvent) -> None:
    writer.on_event(event)
    handle.job.progress(event)
