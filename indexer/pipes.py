"""Messages over the pipe between a process and its child: each a length and that many bytes."""

import struct
from typing import IO

_LENGTH = struct.Struct("<Q")


def read_message(stream: IO[bytes]) -> bytes | None:
    """Return the next message, None where the stream ends, also in the middle of one."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(head)
    body = stream.read(size)
    return body if len(body) == size else None


def write_message(stream: IO[bytes], body: bytes) -> None:
    """Write a message whole, and let it go at once."""
    stream.write(_LENGTH.pack(len(body)) + body)
    stream.flush()
