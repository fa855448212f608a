"""The one-writer rule: whoever changes a home's memory holds this lock."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from funes_ls.indexer.errors import BackendError, MemoryStateError
from funes_ls.indexer.home import make_private

LOCK_NAME = "writer.lock"


@contextmanager
def writer_lock(home: Path, *, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the writer lock of a home; the system frees it when the process dies.

    Args:
        home: A funes home, or any directory that has one writer.
        wait_s: How long to wait for another writer to finish.

    Raises:
        MemoryStateError: kind `locked`: another process is writing.
        BackendError: kind `disk`: the lock file cannot be made.
    """
    from filelock import FileLock, Timeout

    run = home / "run"
    path = run / LOCK_NAME
    try:
        make_private(run)
        lock = FileLock(path, timeout=wait_s)
        lock.acquire()
    except Timeout as exc:
        raise _held(path) from exc
    except OSError as exc:
        raise BackendError(
            f"Cannot write under {home} ({exc.strerror or exc}).",
            hint="Make it writable, or set FUNES_HOME to a directory that is.",
            kind="disk",
        ) from exc
    try:
        _note_owner(path)
        yield
    finally:
        lock.release()


def lock_owner(home: Path) -> int | None:
    """Return the process id that last took the writer lock, None when unknown."""
    try:
        return int(_owner_path(home / "run" / LOCK_NAME).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _owner_path(path: Path) -> Path:
    # Beside the lock, since the lock file itself cannot be read on Windows while it is held.
    return path.with_suffix(".pid")


def _note_owner(path: Path) -> None:
    try:
        _owner_path(path).write_text(str(os.getpid()), encoding="ascii")
    except OSError:
        return  # the lock holds all the same; only the message to others is poorer


def _held(path: Path) -> MemoryStateError:
    pid = lock_owner(path.parent.parent)
    who = f"process {pid}" if pid else "another process"
    return MemoryStateError(
        f"The memory at {path.parent.parent} is being written by {who}.",
        hint="Wait for it to finish; an engine ends with `funes engine stop`.",
        kind="locked",
    )
