"""Remembers which trace was being read when the process died, so that it is not for ever.

A mark is a few bytes in a file of the home's `run` folder, written before a trace is read and taken
away after: a mark that is still there when the memory is next opened for writing is a trace during
whose reading the process was killed. Twice in a row, and the trace is passed over until it changes.
"""

import hashlib
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from funes_ls.indexer.home import make_private
from funes_ls.indexer.traces.base import Unit

_MARK = "reading"
_COUNTS = "crashed.json"
_FATAL = 2
_MOST = 100


class _Mark(Struct, frozen=True):
    """A trace as it was when it was read.

    Attributes:
        key: Hash of its key: a path may hold what is to be kept nowhere.
    """

    key: str
    size: int
    mtime_ns: int


class _Crash(Struct, frozen=True):
    mark: _Mark
    count: int


class CrashMarks:
    """The marks of one home; used by the holder of its writer lock."""

    def __init__(self, run_dir: Path | None) -> None:
        """Count what an earlier process left; None marks nothing."""
        self._run_dir = run_dir
        self._fd = -1
        self._under_way: list[_Mark] = []
        self._crashes: dict[str, _Crash] = {}
        if run_dir is not None:
            with suppress(OSError):  # a full disk is told of by what needs it more
                self._open(run_dir)

    def close(self) -> None:
        """Let the file go."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def is_fatal(self, unit: Unit) -> bool:
        """Return whether a trace, as it is now, ended the process that read it twice in a row."""
        crash = self._crashes.get(_name(unit.key))
        return crash is not None and crash.count >= _FATAL and crash.mark == _mark_of(unit)

    @contextmanager
    def reading(self, unit: Unit) -> Iterator[None]:
        """Mark a trace while it is read; several may be, one within the other."""
        mark = _mark_of(unit)
        self._under_way.append(mark)
        self._write()
        try:
            yield
        finally:
            self._under_way.remove(mark)
            self._write()
            if self._crashes.pop(mark.key, None) is not None:
                self._save()

    def _open(self, run_dir: Path) -> None:
        make_private(run_dir)
        with suppress(FileNotFoundError, msgspec.MsgspecError):
            data = (run_dir / _COUNTS).read_bytes()
            crashes = msgspec.json.decode(data, type=list[_Crash])
            self._crashes = {crash.mark.key: crash for crash in crashes}
        self._fd = os.open(run_dir / _MARK, os.O_RDWR | os.O_CREAT, 0o600)
        left = (
            os.pread(self._fd, 1 << 16, 0) if hasattr(os, "pread") else os.read(self._fd, 1 << 16)
        )
        with suppress(msgspec.MsgspecError):
            if left:
                self._count(msgspec.json.decode(left, type=list[_Mark]))
        self._write()

    def _count(self, left: list[_Mark]) -> None:
        for mark in left[-1:]:  # the innermost is what was really being read
            before = self._crashes.get(mark.key)
            again = before is not None and before.mark == mark
            self._crashes[mark.key] = _Crash(mark, before.count + 1 if again and before else 1)
        self._save()

    def _write(self) -> None:
        if self._fd < 0:
            return
        data = msgspec.json.encode(self._under_way) if self._under_way else b""
        with suppress(OSError):
            os.ftruncate(self._fd, 0)
            os.lseek(self._fd, 0, os.SEEK_SET)
            os.write(self._fd, data)

    def _save(self) -> None:
        if self._run_dir is None:
            return
        latest = list(self._crashes.values())[-_MOST:]
        path = self._run_dir / _COUNTS
        with suppress(OSError):
            fresh = path.with_suffix(".new")
            fresh.write_bytes(msgspec.json.encode(latest))
            fresh.replace(path)


def drop_marks(run_dir: Path, keys: Collection[str]) -> None:
    """Let nothing be kept of some traces; a writer of this home may be open."""
    path = run_dir / _COUNTS
    with suppress(OSError, msgspec.MsgspecError):
        crashes = msgspec.json.decode(path.read_bytes(), type=list[_Crash])
        names = {_name(key) for key in keys}.union(keys)
        left = [crash for crash in crashes if crash.mark.key not in names]
        if len(left) < len(crashes):
            path.write_bytes(msgspec.json.encode(left))


def _mark_of(unit: Unit) -> _Mark:
    return _Mark(_name(unit.key), unit.size, unit.mtime_ns)


def _name(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:16]


#: Marks nothing.
NO_MARKS = CrashMarks(None)
