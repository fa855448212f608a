"""The writer's place: the lock, the memory opened for writing, and the patience to get them."""

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from funes_ls.indexer import dataset
from funes_ls.indexer.crash_marks import NO_MARKS, CrashMarks
from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.lock import writer_lock
from funes_ls.indexer.memory import CATALOG, Memory, open_memory

_log = logging.getLogger(__name__)
_FIRST_RETRY_S = 0.5
_LAST_RETRY_S = 15.0


class WritableMemory:
    """Takes the writer lock when it is first needed and keeps it; used by one thread.

    Attributes:
        memory: The open memory, None while it is not taken.
        marks: Tells which traces are being read.
        error: Why it cannot be taken now.
    """

    def __init__(
        self, home: Path, base: Path, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Be ready to open the memory at `base` of a home; nothing is touched yet."""
        self._home = home
        self._base = base
        self._clock = clock
        self._held = ExitStack()
        self._retry_s = 0.0
        self._retry_at = float("-inf")
        self._taken: tuple[int, int] | None = None
        self.memory: Memory | None = None
        self.marks: CrashMarks = NO_MARKS
        self.error: FunesError | None = None

    @property
    def has_memory(self) -> bool:
        """Return whether there is a memory, opened or not."""
        there = self.memory is not None or (self._base / CATALOG).exists()
        return there or dataset.is_there(self._base)

    @property
    def retry_in_s(self) -> float:
        """Return the seconds until it is tried again, 0 when it may be."""
        return max(0.0, self._retry_at - self._clock())

    def take(self) -> Memory | None:
        """Return the memory opened for writing; None while another process has it, or it fails."""
        if self.memory is not None and self._mark() != self._taken:
            _log.warning("the files of the memory are gone; what is open is let go")
            self.leave()
        if self.memory is not None or self.retry_in_s:
            return self.memory
        try:
            self._open()
        except FunesError as exc:
            self._held.close()
            self.error = exc
            self._retry_s = min(max(2 * self._retry_s, _FIRST_RETRY_S), _LAST_RETRY_S)
            self._retry_at = self._clock() + self._retry_s
            _log.info("the memory is not written to now: %s", exc.kind)
        else:
            self.error, self._retry_s, self._retry_at = None, 0.0, float("-inf")
        return self.memory

    def leave(self, *, pause_s: float = 0.0) -> None:
        """Close the memory and free the lock; not taken again before `pause_s` are over."""
        self.memory, self.marks = None, NO_MARKS
        self._retry_at = self._clock() + pause_s
        self._held.close()

    def _open(self) -> None:
        self._held.enter_context(writer_lock(self._home))
        memory = open_memory(self._base, derived=self._home / "derived", writable=True)
        self._held.callback(memory.close)
        marks = CrashMarks(self._home / "run")
        self._held.callback(marks.close)
        self.memory, self.marks = memory, marks
        self._taken = self._mark()

    def _mark(self) -> tuple[int, int] | None:
        """Return what tells these files from others at the same place, None when they are gone."""
        try:
            found = (self._base / CATALOG).stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino
