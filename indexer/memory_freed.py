"""Memory that was freed and that libraries hold back for later: kept small, and given back.

Only glibc holds so much back that it is worth a call; with another C library these do nothing.
"""

import contextlib
import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

#: glibc's names for how many heaps threads share, from what size on something has pages of its own,
#: and how much is kept at a heap's end. Left alone, glibc raises the second to the largest thing
#: that was ever freed, and what lies between two such things in a heap cannot be given back.
_M_ARENA_MAX, _M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD = -8, -3, -1
_LIMITS = {_M_ARENA_MAX: 2, _M_MMAP_THRESHOLD: 4 << 20, _M_TRIM_THRESHOLD: 16 << 20}

_MAPS = Path("/proc/self/maps")
_MADV_DONTNEED = 4


def hold_little_back() -> None:
    """Keep glibc from holding much back; for each thread apart that adds up to 90 MB."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        for name, value in _LIMITS.items():
            ctypes.CDLL(None).mallopt(name, value)


def give_back() -> None:
    """Give memory back that work has left; takes some milliseconds, on any thread."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None:
        pyarrow.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def let_files_go() -> None:
    """Stop holding pages of mapped files, the words index above all; they are read again if needed.

    Only what is mapped to be read, and shared: such a page is nowhere but in its file.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError, ValueError):
        madvise = ctypes.CDLL(None).madvise
        madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for start, end in _mapped_to_read():
            madvise(start, end - start, _MADV_DONTNEED)


def _mapped_to_read() -> Iterator[tuple[int, int]]:
    """Yield first and last address of files mapped to be read and shared; none but on Linux."""
    for line in _MAPS.read_text(encoding="utf-8", errors="replace").splitlines():
        where, kind, _, _, inode, *_ = line.split()
        if kind == "r--s" and inode != "0":
            start, _, end = where.partition("-")
            yield int(start, 16), int(end, 16)
