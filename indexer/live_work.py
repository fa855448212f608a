"""What the writing thread does, in steps of a fraction of a second each.

A step leaves the memory whole, so that between two of them something more urgent may be done: a
trace that an agent is writing to goes before everything else.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from funes_ls.indexer.clean import as_stored
from funes_ls.indexer.crash_marks import CrashMarks
from funes_ls.indexer.dataset import reading_order
from funes_ls.indexer.exclude import Exclusion
from funes_ls.indexer.ingest import is_current
from funes_ls.indexer.live_state import MOST_SESSIONS, Changed
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.pipeline import (
    Task,
    WordsReport,
    list_units,
    plan,
    read_one,
    words_steps,
)
from funes_ls.indexer.progress import Cancelled, IndexEvent, Progress, never
from funes_ls.indexer.redaction.base import Redaction
from funes_ls.indexer.traces import TraceSource, Unit, units_of

if TYPE_CHECKING:
    from funes_ls.indexer.memory_held import Moved

_log = logging.getLogger(__name__)

Places = Sequence[tuple[TraceSource, Path]]
#: Work in steps; each yields the seconds it would rather wait, 0 to go on.
Work = Generator[float, None, None]
Told = Callable[[Changed], None]
Made = TypeVar("Made")

#: How long a step takes, about.
STEP_S = 0.12
#: How often the words of a long run become searchable.
_COMMIT_S = 2.0
#: Waiting for something on another thread.
_POLL_S = 0.05
#: A pass waits so long for queries before it takes another step all the same.
_MOST_BUSY_S, _BUSY_POLL_S = 0.5, 0.01
#: More changed traces at once, or more new bytes in one, are read like those of a whole root.
_MOST_UNITS = 40
_MOST_BYTES = 8 << 20
_MOST_ROWS = 2_000
#: Rows of a session that is being written, though a look at its root came first; and how long
#: ago its last turn was, at most.
_MOST_TAKEN_OVER = 200
_LIVE_US = 60_000_000


class WordsWork:
    """Reads traces into one open memory and says what changed."""

    def __init__(
        self,
        memory: Memory,
        *,
        marks: CrashMarks,
        thinking: bool,
        told: Told,
        queued: "Queued",
        redaction: Callable[[], Redaction | None],
        exclusion: Callable[[], Exclusion],
        busy: Cancelled = never,
    ) -> None:
        """Write to `memory`; `queued` gets the ids of rows of touched traces.

        While `busy` says that a query is answered, whole roots wait, but not for long.
        """
        self._memory = memory
        self._marks = marks
        self._thinking = thinking
        self._told = told
        self._queued = queued
        self._redaction = redaction
        self._exclusion = exclusion
        self._busy = busy
        self._half_read: Task | None = None
        self._read_apart: set[str] = set()
        self._committed_s = time.monotonic()

    # Traces that were touched

    def read_touched(self, paths: Iterable[Path], places: Places) -> tuple[list[Path], bool]:
        """Read what is new of changed traces and make it searchable by words.

        Returns: paths that cannot be read just now, and whether there is so much to read that
        the roots are to be looked at instead.
        """
        later: list[Path] = []
        due: list[Task] = []
        exclusion = self._exclusion()
        for path in paths:
            for source, found in units_of(path, places):
                unit = as_stored(found, self._memory.catalog)
                known = self._memory.catalog.source(unit.key)
                if self._is_in_hand(unit):
                    later.append(path)
                elif not is_current(unit, known):
                    due.append(Task(unit=unit, source=source))
                elif known is not None:
                    self._take_over(known.session_id)
        much = len(due) > _MOST_UNITS
        report = WordsReport()
        before = self._memory.catalog.last_number()
        try:
            for task in due[:_MOST_UNITS]:
                if self._is_long(task.unit):
                    much = True
                else:
                    self._read(task, report, exclusion)
        finally:
            if report.new:
                self._queued(self._ids_after(before))
        if report.new or report.removed:
            self.commit(report)
        return later, much

    def _read(self, task: Task, report: WordsReport, exclusion: Exclusion) -> None:
        read_one(
            task,
            self._memory,
            report=report,
            thinking=self._thinking,
            marks=self._marks,
            redaction=self._redaction(),
            exclusion=exclusion,
        )

    def _ids_after(self, number: int) -> list[str]:
        """Return the latest rows queued after a number, at most `_MOST_ROWS`."""
        ids: deque[str] = deque(maxlen=_MOST_ROWS)
        while True:
            rows, number = self._memory.catalog.pending_after(number, _MOST_ROWS)
            ids.extend(row.id for row in rows)
            if len(rows) < _MOST_ROWS:
                return list(ids)

    def _take_over(self, session_id: str) -> None:
        """Put the latest rows first of a session that a look at its root has read just before."""
        if session_id not in self._read_apart:
            return
        self._read_apart.discard(session_id)
        session = self._memory.catalog.session(session_id)
        if session is None or (session.ended_us or 0) < time.time() * 1e6 - _LIVE_US:
            return  # one of many in a database, say, of which another one is being written
        rows = sorted(self._memory.catalog.pending_session(session_id), key=reading_order)
        self._queued([row.id for row in rows[-_MOST_TAKEN_OVER:]])

    def _is_in_hand(self, unit: Unit) -> bool:
        """Tell whether a trace, or one that may hold the same session, is half read already."""
        task = self._half_read
        return task is not None and _stem(task.unit) == _stem(unit)

    def _is_long(self, unit: Unit) -> bool:
        if unit.container:
            return False
        known = self._memory.catalog.source(unit.key)
        return unit.size - (known.size if known and known.size <= unit.size else 0) > _MOST_BYTES

    # Whole roots

    def read_places(
        self,
        places: Places,
        *,
        report: WordsReport,
        progress: Progress,
        limit: int | None = None,
        thinking: bool | None = None,
        strict: bool = False,
        cancelled: Cancelled,
    ) -> Work:
        """Read everything under some roots that is due.

        Raises:
            FunesError: `strict` is set and no root can be listed; or our own storage failed.
        """
        progress(IndexEvent(phase="scan"))
        self._read_apart.clear()
        listing = run_apart(lambda: list(list_units(places, strict=strict)))
        while not listing.done():
            yield _POLL_S
        exclusion = self._exclusion()
        tasks, found = plan(
            listing.result(),
            self._memory,
            limit=limit,
            exclusion=exclusion,
            redaction=self._redaction(),
        )
        report.current, report.failed = found.current, found.failed
        report.excluded = found.excluded
        report.troubled = found.troubled
        yield 0.0
        if tasks:
            yield from self._scanner_ready(progress, cancelled)
        is_owed = False
        steps = words_steps(
            tasks,
            self._memory,
            report=report,
            progress=progress,
            thinking=self._thinking if thinking is None else thinking,
            marks=self._marks,
            redaction=self._redaction(),
            exclusion=exclusion,
            slice_s=STEP_S,
            interrupted=lambda: self._busy() and not is_owed,
        )
        try:
            with closing(steps):
                for self._half_read in steps:
                    self._read_apart.update(report.changed)
                    if time.monotonic() - self._committed_s >= _COMMIT_S:
                        self.commit(report)
                    if cancelled():
                        break
                    yield 0.0
                    ends = time.monotonic() + _MOST_BUSY_S
                    while self._busy() and not cancelled() and time.monotonic() < ends:
                        yield _BUSY_POLL_S
                    is_owed = self._busy()  # queries have had all the time until now
        finally:
            self._half_read = None
            self._read_apart.update(report.changed)
            self.commit(report)

    def _scanner_ready(self, progress: Progress, cancelled: Cancelled) -> Work:
        """Wait until secrets can be taken out: rules may have to be compiled first."""
        redaction = self._redaction()
        if redaction is None:
            return
        redaction.prepare()
        while not (redaction.is_ready or cancelled()):
            progress(IndexEvent(phase="rules"))
            yield _POLL_S

    @property
    def is_half_read(self) -> bool:
        """Return whether a trace is half read: what changes the memory must wait."""
        return self._half_read is not None

    def commit(self, report: WordsReport) -> None:
        """Make what was read searchable and say so."""
        self._memory.commit_words()
        self._committed_s = time.monotonic()
        changed = list(dict.fromkeys(report.changed))
        report.changed.clear()
        if changed:
            self.tell(changed)

    def tell(self, sessions: Sequence[str], moved: "Moved | None" = None) -> None:
        """Say that the rows of sessions changed."""
        named = tuple(sessions) if len(sessions) <= MOST_SESSIONS else ()
        self._told(Changed(generation=self._memory.generation, sessions=named, moved=moved))


Queued = Callable[[Sequence[str]], None]


def run_apart(make: Callable[[], Made]) -> "Future[Made]":
    """Return what will be made on a thread of its own, which nobody waits for at the end."""
    made: Future[Made] = Future()

    def run() -> None:
        try:
            made.set_result(make())
        except BaseException as exc:
            made.set_exception(exc)

    threading.Thread(target=run, name="funes-apart", daemon=True).start()
    return made


def _stem(unit: Unit) -> str:
    """Return what the session id of a trace is mostly made of."""
    return unit.key if unit.container else Path(unit.key).name.partition(".")[0]
