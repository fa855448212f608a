"""What is asked of the live index, and what it tells."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.pipeline import VectorsReport, WordsReport
from funes_ls.indexer.progress import Progress, ignore_progress
from funes_ls.indexer.traces.base import TraceSource

if TYPE_CHECKING:
    from funes_ls.indexer.memory_held import Moved

#: More sessions than this changed at once are told as `()`: many.
MOST_SESSIONS = 200


class Changed(Struct, frozen=True, kw_only=True):
    """A step that changed the memory; what it tells is committed.

    Attributes:
        generation: Of the memory after it.
        sessions: Ids whose rows came, moved or went; () when there are many.
        moved: What went into the dataset, for readers that keep vectors.
    """

    generation: int
    sessions: tuple[str, ...] = ()
    moved: "Moved | None" = None


class LiveState(Struct, frozen=True, kw_only=True):
    """What the live index is doing.

    Attributes:
        phase: `scan`, `words`, `model`, `vectors`, `tidy`, `waiting` (for another writer) or "".
        touched: Changed traces not read yet.
        words_only: Rows without vector when last counted.
        jobs: Requests under way or waiting.
        holds_lock: Whether this process is the memory's writer.
        note: What a person should know, "" when all is well.
    """

    phase: str = ""
    done: int = 0
    total: int = 0
    eta_s: float | None = None
    touched: int = 0
    words_only: int = 0
    problems: int = 0
    jobs: int = 0
    generation: int = 0
    holds_lock: bool = False
    note: str = ""

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is left to do now."""
        return not (self.phase or self.touched or self.jobs)


class Job(Struct, frozen=True, kw_only=True):
    """An explicit request to index.

    Attributes:
        places: Readers and roots, or files.
        limit: Newest sessions taken of each reader, None for all.
        words_only: Done when everything is findable by words.
        finish: Done only when everything is embedded; else after `budget_s` of embedding.
        thinking: Whether thinking blocks are stored, None as the live index has it.
        wait_s: How long to wait for another writer before failing.
        check: Looks at the opened memory first and raises what refuses the job.
    """

    places: Sequence[tuple[TraceSource, Path]]
    limit: int | None = None
    words_only: bool = False
    finish: bool = True
    budget_s: float = 0.0
    thinking: bool | None = None
    wait_s: float = 15.0
    progress: Progress = ignore_progress
    check: Callable[[Any], None] | None = None


class JobReport(Struct, kw_only=True):
    """What a job did; filled as it goes.

    Attributes:
        stopped: Why it did not do all: `cancelled`, `budget`, `no_model`, `words_only` or "".
        left: Rows that still have words only.
        model: Stamp of the memory, "" without vectors.
        note: What a person should know.
    """

    words: WordsReport
    vectors: VectorsReport
    stopped: str = ""
    left: int = 0
    problems: int = 0
    model: str = ""
    note: str = ""
    seconds: float = 0.0


class JobHandle:
    """A job under way, seen from any thread."""

    def __init__(self, job: Job) -> None:
        """Wrap a job that has not begun."""
        self.job = job
        self.report = JobReport(words=WordsReport(), vectors=VectorsReport())
        self._asked_s = time.monotonic()
        self._cancelled = threading.Event()
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._then: list[Callable[[JobHandle], None]] = []
        self._lock = threading.Lock()

    def cancel(self) -> None:
        """Ask it to end after the step under way; the memory stays consistent."""
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        """Return whether it was asked to end."""
        return self._cancelled.is_set()

    def patience_s(self) -> float:
        """Return how long it still wants to wait for another writer."""
        return self._asked_s + self.job.wait_s - time.monotonic()

    @property
    def is_done(self) -> bool:
        """Return whether it has ended, one way or another."""
        return self._done.is_set()

    def on_done(self, then: "Callable[[JobHandle], None]") -> None:
        """Have something called once it has ended, at once if it has; on another thread."""
        with self._lock:
            if not self._done.is_set():
                self._then.append(then)
                return
        then(self)

    def result(self, timeout_s: float | None = None) -> JobReport:
        """Return what it did once it has ended; after `cancel`, what it did until then.

        Raises:
            TimeoutError: it takes longer.
            FunesError: it failed.
        """
        if not self._done.wait(timeout_s):
            raise TimeoutError("the index request is still under way")
        if self._error is not None:
            raise self._error
        return self.report

    def finish(self, error: BaseException | None = None) -> None:
        """Note that it has ended; for the live index alone."""
        with self._lock:
            if self._done.is_set():
                return
            # What native code panics with would end the thread of who waits.
            is_odd = error is not None and not isinstance(error, Exception)
            self._error = RuntimeError(type(error).__name__) if is_odd else error
            self._done.set()
            then, self._then = self._then, []
        for call in then:
            call(self)


def stopped_error() -> FunesError:
    """Return why a request ends when the process does."""
    return FunesError(
        "The engine is stopping.", hint="Run the command again.", kind="engine_stopping"
    )
