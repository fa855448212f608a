"""What the gate and its child say to one another: length-prefixed frames of MessagePack."""

import struct
from typing import IO

from msgspec import Struct

#: Bytes that say how long a frame is.
_HEAD = struct.Struct(">I")


class Ask(Struct, frozen=True):
    """Texts to scan; without any: the end, to be answered with all that was scanned."""

    texts: list[str]


class Hit(Struct, frozen=True):
    """What was found in a text: where it stands in the frame, the rules, lines from 1 (0: none)."""

    at: int
    rules: list[str]
    lines: list[int]


class Reply(Struct, frozen=True):
    """What was scanned, as proof, and what was found.

    Attributes:
        count: Texts scanned: of the frame, at the end of the run.
        digests: SHA-256 of each, as UTF-8.
        hits: Of the texts that hold something.
        missing: True when the scanner is not installed.
    """

    count: int
    digests: list[bytes] = []
    hits: list[Hit] = []
    missing: bool = False


def write_frame(stream: IO[bytes], body: bytes) -> None:
    """Write a frame whole."""
    stream.write(_HEAD.pack(len(body)) + body)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes | None:
    """Return the next frame, None where the stream ends, also in the middle of one."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    size = _HEAD.unpack(head)[0]
    body = stream.read(size)
    return body if len(body) == size else None
