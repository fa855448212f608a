"""Work that goes before all else and suffers nothing beside it: sessions to forget, a scrub."""

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from funes_ls.indexer import purge
from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.memory import Memory

Steps = Generator[float, None, Any]


class LiveTask:
    """A task that waits for the writing thread, or is under way there; for any thread.

    Attributes:
        sessions: Whose rows it changes, () for many; told once it is over.
        outcome: What the steps come to, or why they failed.
    """

    def __init__(self, make: "Callable[[Memory, LiveTask], Steps]") -> None:
        """Prepare; `make` gives the steps for the open memory once it is this task's turn."""
        self._make = make
        self._cancelled = threading.Event()
        self.sessions: tuple[str, ...] = ()
        self.outcome: Future[Any] = Future()

    def cancel(self) -> None:
        """Ask it to end; the steps look at `is_cancelled`."""
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        """Return whether it was asked to end."""
        return self._cancelled.is_set()

    # The writing thread

    def begin(self, memory: Memory) -> Steps | None:
        """Return the steps, None when nobody wants them any more."""
        if not self.outcome.set_running_or_notify_cancel():
            return None
        return self._make(memory, self)

    def finish(self, value: Any, error: BaseException | None = None) -> None:
        """Tell who waits."""
        if self.outcome.done():
            return
        if error is None:
            self.outcome.set_result(value)
        elif isinstance(error, Exception):
            self.outcome.set_exception(error)
        else:  # what native code panics with would end the thread of who waits
            self.outcome.set_exception(RuntimeError(type(error).__name__))


def nothing() -> Steps:
    """Return no steps."""
    yield from ()


def forgetting(session_ids: Sequence[str]) -> LiveTask:
    """Return the task of taking sessions out for good; it comes to how many rows that were."""

    def steps(memory: Memory, _task: LiveTask) -> Steps:
        yield 0.0
        return memory.forget_sessions(session_ids)

    task = LiveTask(steps)
    task.sessions = tuple(session_ids)
    return task


def purging(home: Path) -> LiveTask:
    """Return the task of removing what is left in the files of rows that were taken out."""

    def steps(memory: Memory, task: LiveTask) -> Steps:
        def told(_part: str, _done: int, _total: int) -> None:
            if task.is_cancelled:
                raise FunesError("The engine is stopping.", kind="engine_stopping")

        return purge.purge_steps(memory, home, told=told)

    return LiveTask(steps)
