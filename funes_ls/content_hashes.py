"""Tells whether a text is what a recorded content hash was made of."""

import hashlib
from collections.abc import Callable, Sequence

_MASK32 = (1 << 32) - 1
_MASK64 = (1 << 64) - 1
#: Characters hashed in the search for a place, by how fast a hash is.
_MOST_FAST = 16_000_000
_MOST_SLOW = 300_000
#: Hashes are often cut; what is left must tell texts apart.
_FEWEST_DIGITS = 8

Digest = Callable[[bytes], str]


def place_of_hash(lines: Sequence[str], recorded: str, start: int, count: int) -> int | None:
    """Return the line at which `count` lines have a recorded hash, None for nowhere.

    The recorded place is looked at first; elsewhere the text must stand exactly once.

    Args:
        lines: Of the document.
        recorded: The name of the algorithm, a colon and hexadecimal digits.
        start: Where the lines were when it was recorded, from 0.
        count: How many they were.
    """
    name, _, digits = recorded.lower().rpartition(":")
    digest, most = _ALGORITHMS.get((name, len(digits)), _cut(name, digits))
    if digest is None or count < 1:
        return None
    if _is_there(lines, start, count, digest, digits):
        return start
    places = range(len(lines) - count + 1)
    if sum(map(len, lines)) * min(count, len(places) or 1) > most:
        return None
    found = [n for n in places if n != start and _is_there(lines, n, count, digest, digits)]
    return found[0] if len(found) == 1 else None


def _is_there(lines: Sequence[str], start: int, count: int, digest: Digest, digits: str) -> bool:
    if start < 0 or start + count > len(lines):
        return False
    text = "\n".join(lines[start : start + count])
    windows = text.replace("\n", "\r\n")
    texts = (text, f"{text}\n", windows, f"{windows}\r\n") if "\n" in text else (text, f"{text}\n")
    return any(
        digest(one.encode("utf-8", "surrogateescape")).startswith(digits)
        for one in dict.fromkeys(texts)
    )


def _cut(name: str, digits: str) -> tuple[Digest | None, int]:
    """Return the algorithm of a hash of which only the first digits were recorded."""
    whole = {"sha256": 64, "sha1": 40, "md5": 32}.get(name, 0)
    is_enough = _FEWEST_DIGITS <= len(digits) <= whole
    return (_digest_of(name) if is_enough else None), _MOST_FAST


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


_ALGORITHMS: dict[tuple[str, int], tuple[Digest, int]] = {
    ("murmur3", 8): (murmur3_32, _MOST_SLOW),
    ("murmur3", 32): (murmur3_128, _MOST_SLOW),
}
