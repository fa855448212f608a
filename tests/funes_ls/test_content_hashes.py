"""The hashes that records of other tools are confirmed by."""

import hashlib
import time

import pytest

from funes_ls.content_hashes import HashedText, murmur3_32, murmur3_128


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "00000000"),
        (b"test", "ba6bd213"),
        (b"Hello, world!", "c0363e43"),
        (b"The quick brown fox jumps over the lazy dog", "2e4ff723"),
    ],
)
def test_murmur_of_32_bits(data: bytes, expected: str) -> None:
    """Source: the published vectors of MurmurHash3_x86_32, seed 0."""
    assert murmur3_32(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "0" * 32),
        (b"hello", "5b1e906a48ae1d19cbd8a7b341bd9b02"),
        (b"The quick brown fox jumps over the lazy dog", "7a433ca9c49a9347e34bbc7bbc071b6c"),
    ],
)
def test_murmur_of_128_bits(data: bytes, expected: str) -> None:
    """Source: the published vectors of MurmurHash3_x64_128, seed 0, its halves."""
    found = murmur3_128(data)
    halves = {found[:16], found[16:]}
    assert halves == {expected[:16], expected[16:]}


def test_the_halves_come_as_one_number() -> None:
    """Source: the documentation of the mmh3 package, `mmh3.hash128("foo", signed=False)`."""
    assert int(murmur3_128(b"foo"), 16) == 168394135621993849475852668931176482145


LINES = ["def a():", "    return 1", "", "def b():", "    return 2", ""]


def sha256(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_text_is_found_whatever_its_line_ends(end: str, line_end: str) -> None:
    recorded = sha256(f"def a():\n    return 1{end}".replace("\n", line_end))
    assert HashedText(LINES).is_at(recorded, 0, 2)
    assert not HashedText(LINES).is_at(recorded, 1, 2)
    assert HashedText(["new", *LINES]).place_of(recorded, 2) == 1


def test_a_text_that_stands_twice_has_no_place() -> None:
    recorded = sha256("def a():\n    return 1")
    twice = HashedText([*LINES, *LINES])
    assert twice.place_of(recorded, 2) is None
    assert twice.is_at(recorded, 6, 2)


@pytest.mark.parametrize(
    "recorded",
    [
        hashlib.sha256(b"def a():\n    return 1").hexdigest(),
        "sha256:",
        f"sha256:{hashlib.sha256(bytes('def a():', 'ascii')).hexdigest()[:7]}",
        "rot13:abcdef0123456789",
        "murmur3:12345",
        "sha256:zzzzzzzzzzzz",
        "",
    ],
)
def test_what_is_no_known_hash_is_nowhere(recorded: str) -> None:
    text = HashedText(LINES)
    assert not text.is_at(recorded, 0, 1)
    assert not text.is_at(recorded, 0, 2)
    assert text.place_of(recorded, 1) is None


def test_cut_hashes_and_other_algorithms() -> None:
    text = b"def b():\n    return 2"
    recorded = [
        f"sha256:{hashlib.sha256(text).hexdigest()[:16]}",
        f"SHA1:{hashlib.sha1(text).hexdigest().upper()}",
        f"md5:{hashlib.md5(text).hexdigest()}",
        f"murmur3:{murmur3_32(text)}",
        f"murmur3:{murmur3_128(text)}",
    ]
    assert [HashedText(LINES).place_of(one, 2) for one in recorded] == [3] * 5


def test_only_so_much_is_hashed_for_a_document() -> None:
    lines = [f"line {n}" for n in range(20_000)]
    text = HashedText(lines)
    slow = f"murmur3:{murmur3_32(b'line 70')}"
    assert text.is_at(slow, 70, 1)
    assert text.place_of(slow, 1) is None  # it would take longer than it may
    assert text.place_of(sha256("line 70"), 1) == 70
    recorded = f"murmur3:{murmur3_32(chr(10).join(lines[:5_000]).encode())}"
    begun = time.monotonic()
    assert [text.is_at(recorded, 0, 5_000) for _ in range(100)].count(True) == 2
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(("start", "count"), [(-1, 2), (5, 9), (0, 0), (0, 10**9), (10**9, 1)])
def test_ranges_outside_of_the_text(start: int, count: int) -> None:
    text = HashedText(LINES)
    assert not text.is_at(sha256(""), start, count)
    assert text.place_of(sha256("no such line"), count) is None
