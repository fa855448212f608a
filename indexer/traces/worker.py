"""Reads traces in a process of its own: `python -m funes_ls.indexer.traces.worker`.

Requests come in on stdin, frames go out on stdout, each as a length and MessagePack; the process
ends with its input. `funes_ls.indexer.readahead` is the other side.
"""

import os
import signal
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from funes_ls.indexer.model import Problem, SessionMeta, Turn
from funes_ls.indexer.traces.base import Reading, Unit
from funes_ls.indexer.traces.registry import reader_of

LENGTH = struct.Struct("<Q")
_FRAME_CHARS = 256 * 1024
_FRAME_ITEMS = 500
#: By how much reading ahead steps back behind whoever answers.
_NICE = 5

#: Turns and problems in order: one of each pair is None.
Items = list[tuple[Turn | None, Problem | None]]


class Request(Struct, frozen=True, kw_only=True):
    """A unit to read; `path` is its real path as the file system has it."""

    key: str
    harness: str
    path: bytes
    size: int
    mtime_ns: int
    inode: int
    subagent: bool
    resume: bytes | None


class Frame(Struct, frozen=True, kw_only=True):
    """Some items of a reading, in order, and what it says of itself by then.

    Attributes:
        key: The unit's.
        items: Each a turn or a problem.
        last: Whether the reading ends here; `resume` and the rest are whole only then.
        error: Why the reading broke off, "" when it did not.
    """

    key: str
    items: Items
    session: SessionMeta
    restarted: bool
    last: bool = False
    resume: bytes = b""
    offset: int = 0
    late_names: bool = False
    failed: bool = False
    error: str = ""


def request_of(unit: Unit, resume: bytes | None) -> Request:
    """Return what asks the worker to read a unit."""
    return Request(
        key=unit.key,
        harness=unit.harness,
        path=os.fsencode(unit.path),
        size=unit.size,
        mtime_ns=unit.mtime_ns,
        inode=unit.inode,
        subagent=unit.subagent,
        resume=resume,
    )


def read_message(stream: IO[bytes]) -> bytes | None:
    """Return the next message of a stream, None at its end."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(head)
    body = stream.read(size)
    return body if len(body) == size else None


def write_message(stream: IO[bytes], body: bytes) -> None:
    """Write one message and let it go at once."""
    stream.write(LENGTH.pack(len(body)) + body)
    stream.flush()


def frames(request: Request) -> Iterator[Frame]:
    """Yield the reading of a unit, frame by frame."""
    unit = Unit(
        key=request.key,
        harness=request.harness,
        path=Path(os.fsdecode(request.path)),
        size=request.size,
        mtime_ns=request.mtime_ns,
        inode=request.inode,
        subagent=request.subagent,
    )
    reading = reader_of(unit).read(unit, resume=request.resume)
    items: Items = []
    try:
        size = 0
        for item in reading:
            items.append((item, None) if isinstance(item, Turn) else (None, item))
            size += sum(len(b.text) for b in item.blocks) if isinstance(item, Turn) else 0
            if size >= _FRAME_CHARS or len(items) >= _FRAME_ITEMS:
                yield _frame(request.key, reading, items)
                items, size = [], 0
    except Exception as exc:  # whatever it is, the other side decides what it means
        yield _last(request.key, reading, items, error=type(exc).__name__)
    else:
        yield _last(request.key, reading, items)


def _frame(key: str, reading: Reading, items: Items) -> Frame:
    return Frame(key=key, items=items, session=reading.session, restarted=reading.restarted)


def _last(key: str, reading: Reading, items: Items, *, error: str = "") -> Frame:
    return Frame(
        key=key,
        items=items,
        session=reading.session,
        restarted=reading.restarted,
        last=True,
        resume=b"" if error else reading.resume,
        offset=reading.offset,
        late_names=reading.late_names,
        failed=reading.failed or bool(error),
        error=error,
    )


def main() -> None:
    """Serve requests until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asked
    if hasattr(os, "nice"):
        os.nice(_NICE)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a stray print must not break the frames
    encoder = msgspec.msgpack.Encoder()
    decoder = msgspec.msgpack.Decoder(Request)
    while (body := read_message(sys.stdin.buffer)) is not None:
        for frame in frames(decoder.decode(body)):
            write_message(replies, encoder.encode(frame))


if __name__ == "__main__":
    main()
