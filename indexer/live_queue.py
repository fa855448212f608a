"""What waits for the writing thread: changed traces, by how long they are quiet, and requests."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct

from funes_ls.indexer.live_state import Job, JobHandle
from funes_ls.indexer.live_task import LiveTask
from funes_ls.indexer.traces import hermes, opencode
from funes_ls.indexer.traces.sqlitedb import database_of

#: A trace is read when nothing was written to it for so long, or when so much has passed since
#: the first write: an agent that writes all the time is followed all the same.
QUIET_S = 0.06
LONGEST_S = 0.4
#: More changed paths than this are as good as a look at every root.
_MOST_TOUCHED = 4_000

Clock = Callable[[], float]


class _Touch(Struct):
    first_s: float
    last_s: float

    @property
    def due_s(self) -> float:
        return min(self.last_s + QUIET_S, self.first_s + LONGEST_S)


class LiveQueue:
    """Safe to fill from any thread; one thread takes from it."""

    def __init__(self, *, clock: Clock = time.monotonic) -> None:
        """Make an empty queue; `clock` gives seconds."""
        self._clock = clock
        self._changed = threading.Condition()
        self._touched: dict[Path, _Touch] = {}
        self._jobs: deque[JobHandle] = deque()
        self._tasks: deque[LiveTask] = deque()
        self._sweep = False
        self._awake = False
        self.is_stopped = False

    # Any thread

    def touch(self, paths: Iterable[Path]) -> None:
        """Note that traces changed; what is beside a database counts as the database."""
        now = self._clock()
        with self._changed:
            for path in paths:
                path = database_of(path, hermes.DB_NAME, opencode.DB_NAME)
                touch = self._touched.get(path)
                if touch is not None:
                    touch.last_s = now
                elif len(self._touched) < _MOST_TOUCHED:
                    self._touched[path] = _Touch(now, now)
                else:
                    self._sweep = True
            self._notify()

    def sweep(self) -> None:
        """Ask for a look at every root."""
        with self._changed:
            self._sweep = True
            self._notify()

    def add_job(self, job: Job) -> JobHandle:
        """Queue a request and return its handle."""
        handle = JobHandle(job)
        with self._changed:
            self._jobs.append(handle)
            self._notify()
        return handle

    def add_task(self, task: LiveTask) -> None:
        """Queue what goes before all else."""
        with self._changed:
            self._tasks.append(task)
            self._notify()

    def stop(self) -> None:
        """Tell the taking thread to end."""
        with self._changed:
            self.is_stopped = True
            self._notify()

    def wake(self) -> None:
        """Have the taking thread look again: something it waits for may have happened."""
        with self._changed:
            self._notify()

    def _notify(self) -> None:
        self._awake = True
        self._changed.notify_all()

    @property
    def touched_count(self) -> int:
        """Return how many changed traces wait."""
        return len(self._touched)

    @property
    def job_count(self) -> int:
        """Return how many requests wait."""
        return len(self._jobs)

    # The thread that takes

    def due(self) -> list[Path]:
        """Take the changed traces that have been quiet long enough, in the order they changed."""
        now = self._clock()
        with self._changed:
            paths = [path for path, touch in self._touched.items() if touch.due_s <= now]
            for path in paths:
                del self._touched[path]
        return paths

    def put_back(self, path: Path) -> None:
        """Have a trace that cannot be read just now come again a little later."""
        now = self._clock()
        with self._changed:
            self._touched.setdefault(path, _Touch(now, now))

    def next_task(self) -> LiveTask | None:
        """Take what goes before all else."""
        with self._changed:
            return self._tasks.popleft() if self._tasks else None

    def next_job(self) -> JobHandle | None:
        """Take the request that waits longest."""
        with self._changed:
            return self._jobs.popleft() if self._jobs else None

    def waiting_jobs(self) -> list[JobHandle]:
        """Return the requests that wait, and leave them."""
        with self._changed:
            return list(self._jobs)

    def drop_job(self, handle: JobHandle) -> None:
        """Take one request out."""
        with self._changed:
            if handle in self._jobs:
                self._jobs.remove(handle)

    def take_sweep(self) -> bool:
        """Return whether every root is to be looked at, and note that it is seen to."""
        with self._changed:
            wanted, self._sweep = self._sweep, False
            return wanted

    def clear_touched(self) -> None:
        """Drop what changed and the wish to look at every root."""
        with self._changed:
            self._touched.clear()
            self._sweep = False

    @property
    def wants_sweep(self) -> bool:
        """Return whether every root is to be looked at."""
        return self._sweep

    @property
    def has_tasks(self) -> bool:
        """Return whether something waits that goes before all else."""
        return bool(self._tasks)

    @property
    def has_work(self) -> bool:
        """Return whether there is anything to do now or soon."""
        return bool(self._touched or self._jobs or self._tasks or self._sweep)

    @property
    def is_urgent(self) -> bool:
        """Return whether something is due that goes before all else."""
        if self.is_stopped or self._tasks:
            return True
        now = self._clock()
        with self._changed:
            return any(touch.due_s <= now for touch in self._touched.values())

    def wait(self, most_s: float | None, *, for_touched: bool = True) -> None:
        """Return when something is due, comes in, or the time is over.

        Args:
            most_s: Seconds; None for as long as it takes.
            for_touched: False leaves touched traces out: there is nothing to write them to yet.
        """
        with self._changed:
            touched = self._touched.values() if for_touched else ()
            left = [touch.due_s - self._clock() for touch in touched]
            if most_s is not None:
                left.append(most_s)
            if not self._awake and (not left or min(left) > 0):
                self._changed.wait(min(left, default=None))
            self._awake = False
