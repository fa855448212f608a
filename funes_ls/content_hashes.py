"""Tells whether a text is what a recorded content hash was made of."""

import hashlib
from collections.abc import Callable, Sequence

_MASK32 = (1 << 32) - 1
_MASK64 = (1 << 64) - 1
#: Characters hashed for one document, by how fast a hash is: some 50 ms of either.
_MOST_FAST = 16_000_000
_MOST_SLOW = 120_000
#: Hashes are often cut; what is left must tell texts apart.
_FEWEST_DIGITS = 8

Digest = Callable[[bytes], str]


class HashedText:
    """A document in which texts are looked for of which only the hash is known."""

    def __init__(self, lines: Sequence[str]) -> None:
        """Take a document's lines."""
        self._lines = lines
        self._left = {True: _MOST_FAST, False: _MOST_SLOW}

    def is_at(self, recorded: str, start: int, count: int) -> bool:
        """Return whether `count` lines from `start` (from 0) have a recorded hash.

        Args:
            recorded: The name of the algorithm, a colon and hexadecimal digits.
            start: The first line.
            count: How many lines.
        """
        digest, is_fast = _algorithm(recorded)
        digits = recorded.lower().rpartition(":")[2]
        return digest is not None and self._is_there(start, count, digest, digits, is_fast)

    def place_of(self, recorded: str, count: int) -> int | None:
        """Return where `count` lines have a recorded hash, None if not in exactly one place.

        Nothing is found where the search would take long.
        """
        digest, is_fast = _algorithm(recorded)
        places = range(len(self._lines) - count + 1)
        if digest is None or not places or count < 1:
            return None
        size = sum(map(len, self._lines)) * min(count, len(places)) * 2
        if size > self._left[is_fast]:
            return None
        digits = recorded.lower().rpartition(":")[2]
        found = [n for n in places if self._is_there(n, count, digest, digits, is_fast)]
        return found[0] if len(found) == 1 else None

    def _is_there(self, start: int, count: int, digest: Digest, digits: str, is_fast: bool) -> bool:
        if count < 1 or start < 0 or start + count > len(self._lines):
            return False
        for text in _with_line_ends("\n".join(self._lines[start : start + count])):
            self._left[is_fast] -= len(text)
            if self._left[is_fast] < 0:
                return False
            if digest(text.encode("utf-8", "surrogateescape")).startswith(digits):
                return True
        return False


def _with_line_ends(text: str) -> tuple[str, ...]:
    """Return a text in the ways it may have been hashed, the likely ones first."""
    if "\n" not in text:
        return text, f"{text}\n"
    windows = text.replace("\n", "\r\n")
    return text, f"{text}\n", windows, f"{windows}\r\n"


def _algorithm(recorded: str) -> tuple[Digest | None, bool]:
    """Return how a hash was made, and whether that is fast."""
    name, _, digits = recorded.lower().rpartition(":")
    slow = _SLOW.get((name, len(digits)))
    return (slow, False) if slow else (_cut(name, digits), True)


def _cut(name: str, digits: str) -> Digest | None:
    """Return the algorithm of a hash of which the first digits may be all that was recorded."""
    whole = {"sha256": 64, "sha1": 40, "md5": 32}.get(name, 0)
    return _digest_of(name) if _FEWEST_DIGITS <= len(digits) <= whole else None


def _digest_of(name: str) -> Digest:
    return lambda data: hashlib.new(name, data, usedforsecurity=False).hexdigest()


def murmur3_32(data: bytes) -> str:
    """Return MurmurHash3_x86_32 with seed 0 as eight digits.

    Source: A. Appleby, MurmurHash3 (public domain).
    """
    h = 0
    whole = len(data) // 4 * 4
    for n in range(0, whole, 4):
        h ^= _scrambled32(int.from_bytes(data[n : n + 4], "little"))
        h = (_rotated(h, 13, 32) * 5 + 0xE6546B64) & _MASK32
    if data[whole:]:
        h ^= _scrambled32(int.from_bytes(data[whole:], "little"))
    return f"{_mixed32(h ^ len(data)):08x}"


def _scrambled32(k: int) -> int:
    return _rotated(k * 0xCC9E2D51 & _MASK32, 15, 32) * 0x1B873593 & _MASK32


def _mixed32(h: int) -> int:
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK32
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK32
    return h ^ h >> 16


def murmur3_128(data: bytes) -> str:
    """Return MurmurHash3_x64_128 with seed 0 as one little-endian number of 32 digits."""
    h1 = h2 = 0
    whole = len(data) // 16 * 16
    for n in range(0, whole, 16):
        h1 ^= _scrambled_low(int.from_bytes(data[n : n + 8], "little"))
        h1 = ((_rotated(h1, 27, 64) + h2) * 5 + 0x52DCE729) & _MASK64
        h2 ^= _scrambled_high(int.from_bytes(data[n + 8 : n + 16], "little"))
        h2 = ((_rotated(h2, 31, 64) + h1) * 5 + 0x38495AB5) & _MASK64
    tail = data[whole:]
    h2 ^= _scrambled_high(int.from_bytes(tail[8:], "little"))
    h1 ^= _scrambled_low(int.from_bytes(tail[:8], "little"))
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = (h1 + h2) & _MASK64
    h2 = (h2 + h1) & _MASK64
    h1, h2 = _mixed64(h1), _mixed64(h2)
    h1 = (h1 + h2) & _MASK64
    h2 = (h2 + h1) & _MASK64
    return f"{h2:016x}{h1:016x}"


_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


def _scrambled_low(k: int) -> int:
    return _rotated(k * _C1 & _MASK64, 31, 64) * _C2 & _MASK64


def _scrambled_high(k: int) -> int:
    return _rotated(k * _C2 & _MASK64, 33, 64) * _C1 & _MASK64


def _mixed64(k: int) -> int:
    k = (k ^ k >> 33) * 0xFF51AFD7ED558CCD & _MASK64
    k = (k ^ k >> 33) * 0xC4CEB9FE1A85EC53 & _MASK64
    return k ^ k >> 33


def _rotated(value: int, by: int, bits: int) -> int:
    return (value << by | value >> (bits - by)) & ((1 << bits) - 1)


_SLOW: dict[tuple[str, int], Digest] = {
    ("murmur3", 8): murmur3_32,
    ("murmur3", 32): murmur3_128,
}
