"""Reports how far a download is by watching the folder it fills.

Works the same for every downloader and every version of it, with or without progress of its own.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

_POLL_S = 0.1

_T = TypeVar("_T")


class Progress(Protocol):
    """Told often, and always from the thread that called `install`."""

    def __call__(self, done_bytes: int, total_bytes: int | None, what: str) -> None:
        """Take note that `done_bytes` of `total_bytes` (None: not known) of `what` are done."""
        ...


def silent(done_bytes: int, total_bytes: int | None, what: str) -> None:
    """Report nothing."""


def folder_bytes(folder: Path) -> int:
    """Return the bytes of all files below `folder`, as far as they can be seen."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size if path.is_file() else 0
        except OSError:  # it was renamed under us
            continue
    return total


def watched(
    work: Callable[[], _T], folder: Path, *, total_bytes: int, what: str, progress: Progress
) -> _T:
    """Return what `work` returns, or raise what it raises; it runs in a thread of its own."""
    results: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as exc:
            errors.append(exc)

    thread = threading.Thread(target=run, name="download", daemon=True)
    thread.start()
    while thread.is_alive():
        progress(min(folder_bytes(folder), total_bytes), total_bytes, what)
        thread.join(_POLL_S)
    if errors:
        raise errors[0]
    progress(total_bytes, total_bytes, what)
    return results[0]
