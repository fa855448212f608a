"""Tells whether a file compressed with zstandard is whole; its decompressor reads on in silence.

Source: RFC 8878, sections 3.1.1 (frames, blocks) and 3.1.2 (skippable frames).
"""

import os
from typing import BinaryIO

_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"
#: No frame header is longer.
_HEADER_BYTES = 18
_RLE = 1


def ends_early(file: BinaryIO) -> bool:
    """Tell whether a seekable file ends within a frame; steps over blocks without reading them.

    What follows the frames and is none counts as whole: the decompressor complains of it.
    """
    end = file.seek(0, os.SEEK_END)
    at = 0
    while at < end:
        file.seek(at)
        head = file.read(_HEADER_BYTES)
        is_skippable = head[0] >> 4 == 5 and _SKIPPABLE.startswith(head[1:4])
        if len(head) < len(_MAGIC):
            return is_skippable or _MAGIC.startswith(head)
        if is_skippable:
            if len(head) < 8:
                return True
            at += 8 + int.from_bytes(head[4:8], "little")
        elif head.startswith(_MAGIC):
            size = _header_size(head)
            at = end + 1 if size == 0 else _behind_blocks(file, at + size, end)
            at += 4 * (size > 0 and bool(head[4] & 4))  # a checksum
        else:
            return False
    return at > end


def _header_size(head: bytes) -> int:
    """Return the bytes of a frame's header, 0 when it is cut."""
    if len(head) < 5:
        return 0
    descriptor = head[4]
    single = descriptor >> 5 & 1
    content_size = (single, 2, 4, 8)[descriptor >> 6]
    size = 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3] + content_size
    return size if size <= len(head) else 0


def _behind_blocks(file: BinaryIO, at: int, end: int) -> int:
    """Return the offset behind a frame's last block, one beyond the end when it is cut."""
    while at < end:
        file.seek(at)
        head = file.read(3)
        if len(head) < 3:
            break
        header = int.from_bytes(head, "little")
        at += 3 + (1 if header >> 1 & 3 == _RLE else header >> 3)
        if header & 1:
            return at
    return end + 1
