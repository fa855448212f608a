"""Changes to the local memory that want it to themselves: made here, or by an engine's writer."""

import time
from collections.abc import Callable, Generator
from typing import Any

from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.lock import writer_lock
from funes_ls.indexer.memory import Memory, open_memory
from funes_ls.indexer.progress import Cancelled, IndexEvent, Progress, never
from funes_ls.indexer.settings import Settings

#: A change in steps; each yields the seconds it would rather wait.
Change = Callable[[Memory, Cancelled], Generator[float, None, Any]]
#: Makes a change and returns what it comes to.
Writer = Callable[[Change], Any]
#: Where each part of writing a memory anew begins in a hundred, and how much of it it takes.
_SHARES = {"vectors": (0, 50), "words": (50, 45), "catalog": (95, 0)}


def in_this_process(settings: Settings) -> Writer:
    """Return what makes a change to a home's memory, opened for it.

    Raises (the returned one):
        MemoryStateError: another process is writing.
    """

    def make(change: Change) -> Any:
        with (
            writer_lock(settings.home),
            open_memory(
                settings.memory_dir, derived=settings.home / "derived", writable=True
            ) as memory,
        ):
            steps = change(memory, never)
            while True:
                try:
                    wait_s = next(steps)
                except StopIteration as end:
                    return end.value
                if wait_s:
                    time.sleep(wait_s)

    return make


def rewriting(progress: Progress, cancelled: Cancelled) -> Callable[[str, int, int], None]:
    """Return what is told how the writing anew goes on; it ends it when that is asked for."""

    def told(part: str, done: int, total: int) -> None:
        stop_if(cancelled)
        if part == "scrub":
            progress(IndexEvent(phase="scrub", done=done, total=total))
            return
        start, share = _SHARES[part]
        at = start + (share * done // total if total else 0)
        progress(IndexEvent(phase="rewrite", done=at, total=100))

    return told


def stop_if(cancelled: Cancelled) -> None:
    """Raise when nobody wants the work to go on.

    Raises:
        FunesError: kind `cancelled`.
    """
    if cancelled():
        raise FunesError(
            "It was stopped. What was taken out stays out; the rest of it is removed later.",
            kind="cancelled",
        )
