"""Runs an index: which traces, in which order, words first, then vectors in the background's order.

Text before tool calls before tool results, newest session first, sub-agents last. Every step may
be killed: rows are queued in transactions, moved to the dataset append-first, and found again.
"""

import logging
import time
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from funes_ls.indexer import excluded
from funes_ls.indexer.calls.rebuild import rebuild_steps
from funes_ls.indexer.catalog import Catalog
from funes_ls.indexer.clean import as_stored
from funes_ls.indexer.crash_marks import NO_MARKS, CrashMarks
from funes_ls.indexer.embedding_tokens import PROSE, encoded
from funes_ls.indexer.errors import BackendError, FunesError, ScannerError
from funes_ls.indexer.exclude import KEEP_ALL, Exclusion
from funes_ls.indexer.excluded import Folders
from funes_ls.indexer.ingest import (
    Ingested,
    Steps,
    at_once,
    ingest_steps,
    is_current,
    resume_state,
)
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.model import TIERS, Chunk, Problem, path_text
from funes_ls.indexer.progress import Cancelled, IndexEvent, Meter, Progress, never
from funes_ls.indexer.readahead import ReadAhead, reading_ahead
from funes_ls.indexer.redaction import record
from funes_ls.indexer.redaction.base import Redaction
from funes_ls.indexer.token_work import TokenWork
from funes_ls.indexer.traces.base import TraceSource, Unit

if TYPE_CHECKING:
    import numpy as np

    from funes_ls.indexer.embedding import Embedder

_log = logging.getLogger(__name__)

_BATCH_CHUNKS = 512
_CACHED_TEXTS = 20_000
#: Traces whose rows are queued in one change, at most, and their bytes in all.
_GROUP_UNITS = 50
_GROUP_BYTES = 4 << 20
#: How long the process that reads ahead is waited for before somebody else may have a turn.
_READY_S = 0.05
#: Kinds of error that say our own storage failed, and not a trace.
OWN_FAILURES = frozenset({"disk", "locked", "damaged"})


class Task(Struct, frozen=True, kw_only=True):
    """A trace that is due to be read, and its reader."""

    unit: Unit
    source: TraceSource


class WordsReport(Struct, kw_only=True):
    """What reading traces did.

    Attributes:
        sessions: Traces read now.
        current: Traces that had not changed.
        failed: Traces that could not be read at all; tried again next time.
        troubled: Lines skipped of each trace, by path; 0 when it could not be read at all.
        changed: Sessions whose rows came or went, in order; who watches may empty it.
        redacted: How often each rule found a secret in what was read.
        excluded: Traces that are kept out.
    """

    sessions: int = 0
    current: int = 0
    failed: int = 0
    new: int = 0
    removed: int = 0
    troubled: dict[str, int] = {}
    changed: list[str] = []
    redacted: dict[str, int] = {}
    excluded: int = 0


def list_units(
    places: Sequence[tuple[TraceSource, Path]], *, strict: bool = True
) -> Iterator[tuple[TraceSource, Unit | Problem]]:
    """Yield what every place holds; one that cannot be listed is a problem.

    Raises:
        FunesError: `strict` is set and no place can be listed; why the first one cannot.
    """
    failures: list[FunesError] = []
    for source, root in places:
        try:
            for unit in source.units(root):
                yield source, unit
        except (FunesError, OSError) as exc:
            error = exc if isinstance(exc, FunesError) else _unlistable(root, exc)
            failures.append(error)
            yield source, Problem(path=path_text(root), kind="bad_source", message=error.message)
    if strict and failures and len(failures) == len(places):
        raise failures[0]


def _unlistable(root: Path, exc: OSError) -> BackendError:
    return BackendError(f"{root} cannot be read ({exc.strerror or exc}).", kind="bad_source")


def plan(
    found: Iterable[tuple[TraceSource, Unit | Problem]],
    memory: Memory,
    *,
    limit: int | None = None,
    exclusion: Exclusion = KEEP_ALL,
    redaction: Redaction | None = None,
) -> tuple[list[Task], WordsReport]:
    """Return the traces that are due, newest first and sub-agents last, and what was passed over.

    Args:
        found: Units and problems as the readers list them.
        memory: Tells what was read before.
        limit: Newest units taken of each source.
        exclusion: What is kept out by now, though it may be stored.
        redaction: Takes secrets out of what is said of problems.
    """
    folders = Folders(memory.catalog, exclusion)
    report = WordsReport()
    units: dict[str, list[Task]] = {}
    for source, unit in found:
        if isinstance(unit, Problem):
            put_problem(memory.catalog, unit, redaction)
            report.troubled[unit.path] = 0
            report.failed += unit.kind == "bad_source"
        else:
            stored = as_stored(unit, memory.catalog)
            units.setdefault(source.harness, []).append(Task(unit=stored, source=source))
    tasks = []
    for group in units.values():
        group.sort(key=_newest_first)
        for task in group[:limit]:
            known = memory.catalog.source(task.unit.key)
            noted = excluded.known(memory.catalog, task.unit.key)
            if known is None or not is_current(task.unit, known):
                tasks.append(task)
            elif noted is not None:
                if excluded.stays_out(task.unit, noted, exclusion, memory.catalog):
                    report.excluded += 1
                else:
                    tasks.append(task)
            elif folders.reason(task.unit, known.session_id):
                tasks.append(task)
            else:
                report.current += 1
    return sorted(tasks, key=_newest_first), report


def put_problem(catalog: Catalog, problem: Problem, redaction: Redaction | None) -> None:
    """Write what is wrong with a trace, in place of what was, without secrets."""
    if redaction is not None:
        path, message = redaction.text(problem.path).text, redaction.text(problem.message).text
        problem = replace(problem, path=path, message=message)
    catalog.put_problems(problem.path, [problem])


def _newest_first(task: Task) -> tuple[bool, int]:
    return task.unit.subagent, -task.unit.mtime_ns


def run_words(
    tasks: Sequence[Task],
    memory: Memory,
    *,
    report: WordsReport,
    progress: Progress,
    thinking: bool = True,
    marks: CrashMarks = NO_MARKS,
    redaction: Redaction | None = None,
    exclusion: Exclusion = KEEP_ALL,
) -> None:
    """Read traces into the queue and make them findable by words, committing every few seconds.

    Fills `report` as it goes, so that an interrupted run can still be told about.
    """
    steps = words_steps(
        tasks,
        memory,
        report=report,
        progress=progress,
        thinking=thinking,
        marks=marks,
        redaction=redaction,
        exclusion=exclusion,
    )
    try:
        for _ in steps:
            memory.commit_words(only_if_due=True)
    finally:
        steps.close()
        memory.commit_words()
    for _ in rebuild_steps(memory, clean=record.cleaner(memory.catalog, redaction)):
        pass
    progress(IndexEvent(phase="words", done=len(tasks), total=len(tasks), chunks=report.new))


def words_steps(
    tasks: Sequence[Task],
    memory: Memory,
    *,
    report: WordsReport,
    progress: Progress,
    thinking: bool = True,
    marks: CrashMarks = NO_MARKS,
    redaction: Redaction | None = None,
    exclusion: Exclusion = KEEP_ALL,
    slice_s: float = float("inf"),
    interrupted: Cancelled = never,
) -> Generator[Task | None, None, None]:
    """Do what `run_words` does in steps; words are committed by who takes them.

    Yields the big trace that is half read, None between traces. Other traces may be read between
    two steps; one of the tasks that was is passed over. Closed early, the rest is not read.

    Args:
        tasks: In the order to read them.
        memory: Where they go.
        report: Filled as it goes.
        progress: Told before each trace.
        thinking: Whether thinking blocks are stored.
        marks: Tells which traces killed the process that read them.
        redaction: Takes secrets out of what is read; None stores them.
        exclusion: What is kept out.
        slice_s: How long a step may take, about.
        interrupted: Asked within a step whether to end it at once.

    Raises:
        ScannerError: nobody can tell what is a secret; nothing more was stored.
    """
    meter = Meter(len(tasks), clock=time.monotonic)
    wanted = [(task.unit, task.source, resume_state(task.unit, memory)) for task in tasks]
    planned = {unit.key: resume for unit, _, resume in wanted}
    reader = _Reader(
        memory, report, thinking=thinking, marks=marks, redaction=redaction, exclusion=exclusion
    )
    with reading_ahead(wanted, redaction=redaction) as ahead:
        done = 0
        for group in _groups(tasks):
            left = deque(group)
            while left:
                while not ahead.is_ready(left[0].unit, wait_s=_READY_S):
                    yield None
                began = time.monotonic()
                big = left[0].unit.size > _GROUP_BYTES
                with nullcontext() if big else memory.one_change():
                    is_over = False
                    while left and not is_over:
                        task = left.popleft()
                        progress(_words_event(task, done, len(tasks), meter, report))
                        if resume_state(task.unit, memory) != planned[task.unit.key]:
                            report.current += 1  # it was read meanwhile
                        elif big:
                            steps = reader.steps(task, ahead)
                            yield from _sliced(steps, task, slice_s, interrupted)
                        else:
                            at_once(reader.steps(task, ahead))
                        done += 1
                        meter.advance(done)
                        is_over = time.monotonic() - began >= slice_s or interrupted()
                yield None


def where(exc: BaseException) -> str:
    """Return the type of an error and the line it came from: its text may be of a session."""
    trace = exc.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(exc).__name__
    file = Path(trace.tb_frame.f_code.co_filename).name
    return f"{type(exc).__name__} at {file}:{trace.tb_lineno}"


def _sliced(
    steps: Steps[Ingested], task: Task, slice_s: float, interrupted: Cancelled
) -> Generator[Task, None, None]:
    """Take steps and yield the task whenever a slice of time is over."""
    with closing(steps):
        began = time.monotonic()
        for _ in steps:
            if time.monotonic() - began >= slice_s or interrupted():
                yield task
                began = time.monotonic()


def _groups(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Yield tasks in order, small ones together: a change of the catalog each costs too much."""
    group: list[Task] = []
    size = 0
    for task in tasks:
        if group and (len(group) == _GROUP_UNITS or size + task.unit.size > _GROUP_BYTES):
            yield group
            group, size = [], 0
        group.append(task)
        size += task.unit.size
    if group:
        yield group


def _words_event(
    task: Task, done: int, total: int, meter: Meter, report: WordsReport
) -> IndexEvent:
    return IndexEvent(
        phase="words",
        done=done,
        total=total,
        chunks=report.new,
        rate=meter.rate,
        eta_s=meter.eta_s(),
        label=task.unit.path.parent.name,
    )


def read_one(
    task: Task,
    memory: Memory,
    *,
    report: WordsReport,
    thinking: bool = True,
    marks: CrashMarks = NO_MARKS,
    redaction: Redaction | None = None,
    exclusion: Exclusion = KEEP_ALL,
) -> Ingested:
    """Read one trace into the queue; what is wrong with it becomes a problem.

    Raises:
        FunesError: our own storage failed, or the scanner for secrets, not the trace.
    """
    reader = _Reader(
        memory, report, thinking=thinking, marks=marks, redaction=redaction, exclusion=exclusion
    )
    return at_once(reader.steps(task, None))


class _Reader:
    """Reads traces one by one and keeps count of what came of each."""

    def __init__(
        self,
        memory: Memory,
        report: WordsReport,
        *,
        thinking: bool,
        marks: CrashMarks,
        redaction: Redaction | None,
        exclusion: Exclusion,
    ) -> None:
        self._memory = memory
        self._report = report
        self._thinking = thinking
        self._marks = marks
        self._redaction = redaction
        self._exclusion = exclusion

    def steps(self, task: Task, ahead: ReadAhead | None) -> Steps[Ingested]:
        unit = task.unit
        if self._marks.is_fatal(unit):
            done = self._given_up(unit, "crashed", "Reading it ended the program twice.")
        else:
            with self._marks.reading(unit):
                done = yield from self._guarded(task, ahead)
        self._count(unit, done)
        return done

    def _guarded(self, task: Task, ahead: ReadAhead | None) -> Steps[Ingested]:
        steps = ingest_steps(
            task.unit,
            task.source,
            self._memory,
            thinking=self._thinking,
            ahead=ahead,
            redaction=self._redaction,
            exclusion=self._exclusion,
        )
        try:
            return (yield from steps)
        except ScannerError:
            raise
        except (FunesError, OSError) as exc:
            if isinstance(exc, FunesError) and exc.kind in OWN_FAILURES:
                raise
            reason = exc.message if isinstance(exc, FunesError) else (exc.strerror or str(exc))
            return self._given_up(task.unit, "unreadable", reason)
        except Exception as exc:  # one trace that a reader was not made for is no end of all
            _log.error("reading a trace of %s failed: %s", task.unit.harness, where(exc))
            return self._given_up(task.unit, "failed", f"Reading it failed ({where(exc)}).")

    def _given_up(self, unit: Unit, kind: str, message: str) -> Ingested:
        problem = Problem(path=unit.key, kind=kind, message=message)
        put_problem(self._memory.catalog, problem, self._redaction)
        return Ingested(problems=(problem,), failed=True)

    def _count(self, unit: Unit, done: Ingested) -> None:
        report = self._report
        report.sessions += not (done.failed or done.excluded)
        report.excluded += bool(done.excluded)
        report.failed += done.failed
        report.new += done.new
        report.removed += done.removed
        report.redacted = dict(Counter(report.redacted) + Counter(done.redacted))
        if done.new or done.removed:
            report.changed.append(done.session_id)
        if done.problems:
            lines = sum(one.count for one in done.problems)
            report.troubled[unit.key] = 0 if done.failed else lines


class VectorsReport(Struct, kw_only=True):
    """What embedding did; `left` chunks are still findable by words only."""

    embedded: int = 0
    left: int = 0
    seconds: float = 0.0


def run_vectors(
    memory: Memory,
    embedder: "Embedder",
    *,
    report: VectorsReport,
    progress: Progress,
    budget_s: float | None = None,
    cancelled: Cancelled = lambda: False,
    tokens: bool = False,
) -> None:
    """Embed queued chunks in the queue's order and move them to the dataset, batch by batch.

    Stops at the end of the queue, of the budget, or when cancelled; a batch once begun is
    finished. Identical texts are embedded once. `tokens` False keeps no token vectors.
    """
    work = TokenWork(is_on=lambda: tokens)
    started = time.monotonic()
    total = report.left = memory.catalog.pending_count()
    meter = Meter(total, clock=time.monotonic)
    known: dict[str, np.ndarray] = {}
    while report.left and not cancelled():
        if budget_s is not None and time.monotonic() - started >= budget_s:
            break
        batch = memory.catalog.next_pending(_BATCH_CHUNKS)
        if not batch:
            break
        for done in _vectors(batch, memory, embedder, known, work):
            meter.advance(report.embedded + done)
            progress(_vector_event(report.embedded + done, total, meter, batch))
        kept = work.of(batch, memory, embedder.stamp)
        memory.move(batch, _stacked(batch, known), stamp=embedder.stamp, tokens=kept)
        work.tidy()
        report.embedded += len(batch)
        report.left = memory.catalog.pending_count()
        if len(known) > _CACHED_TEXTS:
            known.clear()
    report.seconds += time.monotonic() - started
    if report.embedded:
        progress(IndexEvent(phase="tidy"))
        memory.tidy()


def _vectors(
    batch: Sequence[Chunk],
    memory: Memory,
    embedder: "Embedder",
    known: "dict[str, np.ndarray]",
    work: TokenWork,
) -> Iterator[int]:
    """Embed the texts not known yet and yield how many chunks of the batch are done."""
    with_tokens = work.begin(memory, embedder)
    prose = {chunk.text for chunk in batch if with_tokens and chunk.block_type in PROSE}
    lacking = {text for text in prose if not work.has(text)}
    texts = list(
        dict.fromkeys(
            chunk.text for chunk in batch if chunk.text not in known or chunk.text in lacking
        )
    )
    ready = len(batch) - len(texts)
    vectors = encoded(embedder, texts, [text in lacking for text in texts])
    for count, (position, vector, tokens) in enumerate(vectors, start=1):
        known[texts[position]] = vector
        work.take(texts[position], tokens, memory, embedder.stamp)
        yield ready + count


def _stacked(batch: Sequence[Chunk], known: "dict[str, np.ndarray]") -> "np.ndarray":
    import numpy as np

    return np.stack([known[chunk.text] for chunk in batch])


def _vector_event(done: int, total: int, meter: Meter, batch: Sequence[Chunk]) -> IndexEvent:
    return IndexEvent(
        phase="vectors",
        done=done,
        total=total,
        rate=meter.rate,
        eta_s=meter.eta_s(),
        tier=TIERS.get(batch[0].block_type, 1),
    )
