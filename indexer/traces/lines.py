"""Lines of a JSONL trace in bounded memory, and what each of them is worth."""

import errno
import io
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from funes_ls.indexer.chunk import WHITESPACE
from funes_ls.indexer.traces import jsonvalue, zst

#: Longer lines are passed over without being held.
MAX_LINE_BYTES = 128 << 20
_STEP = 1 << 20
#: Most traces are smaller than a step: a buffer of that size is slower to get than to fill.
_BUFFER = 1 << 18
_NULS = re.compile("\0+")
_RECORD_START = re.compile(r'\{\s*"(?:type|parentUuid|timestamp|ordinal|id|uuid|sessionId)"')
#: Places of one line at which no record could be read before the rest is given up.
_MAX_RESYNCS = 16
_MAX_RECORDS = 1 << 20


def _read_errors() -> tuple[type[Exception], ...]:
    try:
        from zstandard import ZstdError
    except ImportError:  # pragma: no cover - the package requires it
        return (OSError, EOFError)
    return (OSError, EOFError, ZstdError)


#: What reading a trace may raise.
READ_ERRORS = _read_errors()


class Line(Struct, frozen=True):
    """One line of a file.

    Attributes:
        raw: Its bytes with the line feed; empty when it was too long to hold.
        end: Offset just behind it.
        whole: Whether it ends in a line feed.
        too_long: Whether it was passed over.
    """

    raw: bytes | bytearray
    end: int
    whole: bool
    too_long: bool = False


class Content(Struct, frozen=True):
    """What a line holds.

    Attributes:
        records: Values in order; one for an ordinary line.
        compat: Whether the compat profile takes the line.
        lost: Whether part of the line could not be read.
    """

    records: tuple[Any, ...]
    compat: bool
    lost: bool


def open_regular(path: Path) -> io.FileIO:
    """Open a file for unbuffered reading, and nothing else: a pipe could block for ever.

    Raises:
        OSError: it is not there, may not be read, or is no regular file.
    """
    if stat.S_ISREG(path.stat().st_mode):
        raw = io.FileIO(path, opener=_without_waiting)
        if stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
            return raw
        raw.close()  # it was replaced since it was looked at
    raise OSError(errno.EINVAL, "It is not a regular file", str(path))


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def open_trace(path: Path) -> BinaryIO:
    """Open a trace for reading; what is compressed with zstd is read as what it holds."""
    raw = open_regular(path)
    if path.suffix != ".zst":
        return io.BufferedReader(raw, _BUFFER)
    import zstandard  # heavy, and few traces need it

    decompressor = zstandard.ZstdDecompressor()
    stream = decompressor.stream_reader(raw, read_across_frames=True, closefd=True)
    return io.BufferedReader(stream, _STEP)


def ends_early(path: Path) -> bool:
    """Tell whether a compressed trace was cut short; what there is of it can be read.

    Raises:
        OSError: it cannot be read.
    """
    if path.suffix != ".zst":
        return False
    with io.BufferedReader(open_regular(path), 16) as file:
        return zst.ends_early(file)


def read_lines(file: BinaryIO, start: int, *, limit: int | None = None) -> Iterator[Line]:
    """Yield the lines of a file that stands at offset `start`, up to offset `limit`."""
    position = start
    while limit is None or position < limit:
        room = _STEP if limit is None else min(_STEP, limit - position)
        raw = file.readline(room)
        if not raw:
            return
        position += len(raw)
        if raw.endswith(b"\n"):
            yield Line(raw, position, True)
            continue
        line = _long_line(file, raw, position, limit)
        yield line
        position = line.end


def _long_line(file: BinaryIO, head: bytes, position: int, limit: int | None) -> Line:
    """Return the rest of a line whose first part is `head`."""
    held = bytearray(head)
    too_long = False
    while limit is None or position < limit:
        part = file.readline(_STEP if limit is None else min(_STEP, limit - position))
        if not part:
            break
        position += len(part)
        if too_long or len(held) + len(part) > MAX_LINE_BYTES:
            too_long, held = True, bytearray()
        else:
            held += part
        if part.endswith(b"\n"):
            return Line(held, position, True, too_long)
    return Line(held, position, False, too_long)


def content(raw: bytes | bytearray) -> Content | None:
    """Return what a line holds, None when it is blank."""
    try:
        return Content((jsonvalue.parse(raw),), True, False)
    except ValueError:
        pass
    text = raw.decode("utf-8", "replace").strip(WHITESPACE)
    if not text:
        return None
    try:
        return Content((jsonvalue.parse(text),), True, False)
    except ValueError:
        return _with_care(text)


def _with_care(text: str) -> Content:
    records: list[Any] = []
    lost = False
    for piece in _NULS.split(text):
        found, whole = _objects_in(piece.strip(WHITESPACE + "\ufeff"))
        records += found
        lost = lost or not whole
    return Content(tuple(records), False, lost or not records)


def _objects_in(text: str) -> tuple[list[Any], bool]:
    """Return the objects of a damaged line, and whether nothing else was in it.

    A record cut short by a crash may have the next one glued to it, so reading goes on at the next
    place that looks like the start of a record.
    """
    found: list[Any] = []
    at, missed, whole = 0, 0, True
    while at < len(text):
        if missed > _MAX_RESYNCS or len(found) == _MAX_RECORDS:
            return found, False
        try:
            value, at = jsonvalue.parse_with_care(text, at)
        except ValueError:
            whole = False
            missed += 1
            start = _RECORD_START.search(text, at + 1)
            if start is None:
                break
            at = start.start()
            continue
        if isinstance(value, dict):
            found.append(value)
        else:
            missed += 1
        while at < len(text) and text[at] in WHITESPACE:
            at += 1
    return found, whole
