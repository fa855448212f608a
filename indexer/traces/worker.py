"""Reads traces in a process of its own: `python -m funes_ls.indexer.traces.worker`.

Requests come in on stdin, frames go out on stdout, each as a length and MessagePack; the process
ends with its input. `funes_ls.indexer.readahead` is the other side.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from funes_ls.indexer.clean import CleanReading
from funes_ls.indexer.errors import ScannerError
from funes_ls.indexer.model import Problem, SessionMeta, Turn
from funes_ls.indexer.pipes import read_message, write_message
from funes_ls.indexer.redaction.base import LocalRedaction
from funes_ls.indexer.traces.base import Unit
from funes_ls.indexer.traces.registry import reader_of

_FRAME_CHARS = 256 * 1024
_FRAME_ITEMS = 500
#: By how much reading ahead steps back behind whoever answers.
_NICE = 5

#: Turns and problems in order: one of each pair is None.
Items = list[tuple[Turn | None, Problem | None]]


class Request(Struct, frozen=True, kw_only=True):
    """A unit to read.

    Attributes:
        path: Its real path as the file system has it.
        rules: Where compiled rules for secrets are kept; None to read it as it is.
    """

    key: str
    harness: str
    path: bytes
    size: int
    mtime_ns: int
    inode: int
    subagent: bool
    resume: bytes | None
    rules: bytes | None = None
    shown: str = ""


class Frame(Struct, frozen=True, kw_only=True):
    """Some items of a reading, in order, and what it says of itself by then.

    Attributes:
        key: The unit's.
        items: Each a turn or a problem.
        last: Whether the reading ends here; `resume` and the rest are whole only then.
        error: Why the reading broke off, "" when it did not.
        scanner: What is wrong with the scanner for secrets: kind, message and hint; () mostly.
        cwd, path, counts: See `CleanReading`.
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
    scanner: tuple[str, ...] = ()
    cwd: str = ""
    path: str = ""
    counts: dict[str, int] = {}


def request_of(unit: Unit, resume: bytes | None, rules: Path | None = None) -> Request:
    """Return what asks the worker to read a unit, without secrets if it is told of rules."""
    return Request(
        key=unit.key,
        harness=unit.harness,
        path=os.fsencode(unit.path),
        size=unit.size,
        mtime_ns=unit.mtime_ns,
        inode=unit.inode,
        subagent=unit.subagent,
        resume=resume,
        rules=os.fsencode(rules) if rules is not None else None,
        shown=unit.shown,
    )


def frames(request: Request, redaction: LocalRedaction | None = None) -> Iterator[Frame]:
    """Yield the reading of a unit, frame by frame, without the secrets in it."""
    unit = Unit(
        key=request.key,
        harness=request.harness,
        path=Path(os.fsdecode(request.path)),
        size=request.size,
        mtime_ns=request.mtime_ns,
        inode=request.inode,
        subagent=request.subagent,
        shown=request.shown,
    )
    raw = reader_of(unit).read(unit, resume=request.resume)
    reading = CleanReading(raw, unit, redaction)
    items: Items = []
    try:
        size = 0
        for item in reading:
            items.append((item, None) if isinstance(item, Turn) else (None, item))
            size += sum(len(b.text) for b in item.blocks) if isinstance(item, Turn) else 0
            if size >= _FRAME_CHARS or len(items) >= _FRAME_ITEMS:
                yield _frame(request.key, reading, items)
                items, size = [], 0
        last = _last(request.key, reading, items)
    except ScannerError as exc:
        yield _unscanned(request.key, unit, exc)
    except Exception as exc:  # whatever it is, the other side decides what it means
        try:
            yield _last(request.key, reading, items, error=type(exc).__name__)
        except ScannerError as worse:
            yield _unscanned(request.key, unit, worse)
    else:
        yield last


def _frame(key: str, reading: CleanReading, items: Items) -> Frame:
    return Frame(
        key=key,
        items=items,
        session=reading.session,
        restarted=reading.restarted,
        cwd=reading.cwd,
        path=reading.path,
        counts=dict(reading.counts),
    )


def _unscanned(key: str, unit: Unit, exc: ScannerError) -> Frame:
    """Return the end of a reading that nobody can take secrets out of."""
    return Frame(
        key=key,
        items=[],
        session=SessionMeta(session_id="", harness=unit.harness),
        restarted=False,
        last=True,
        failed=True,
        scanner=(exc.kind, exc.message, exc.hint),
    )


def _last(key: str, reading: CleanReading, items: Items, *, error: str = "") -> Frame:
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
        cwd=reading.cwd,
        path=reading.path,
        counts=dict(reading.counts),
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
    redaction: LocalRedaction | None = None
    while (body := read_message(sys.stdin.buffer)) is not None:
        request = decoder.decode(body)
        if request.rules is None:
            redaction = None
        elif redaction is None:
            redaction = LocalRedaction(Path(os.fsdecode(request.rules)))
        for frame in frames(request, redaction):
            write_message(replies, encoder.encode(frame))


if __name__ == "__main__":
    main()
