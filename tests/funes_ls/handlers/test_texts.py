"""Open documents: positions as the client counts, lines as LSP cuts them, edits followed."""

import random
import re

import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec

from funes_ls.handlers.texts import OpenText

ENCODINGS = ["utf-8", "utf-16", "utf-32"]
#: Ends of lines, what Python alone takes for one, characters of one to four bytes, a tab.
PIECES = [
    "\n",
    "\r\n",
    "\r",
    "\f",
    "\x0b",
    "\x1c",
    "\x85",
    "\u2028",
    "a",
    "é",
    "€",
    "🐍",
    "\t",
    " ",
]


def document(text: str, encoding: str = "utf-16") -> OpenText:
    codec = PositionCodec(types.PositionEncodingKind(encoding))
    return OpenText("file:///x.py", source=text, version=1, position_codec=codec)


def change(
    start: tuple[int, int], end: tuple[int, int], text: str
) -> types.TextDocumentContentChangePartial:
    place = types.Range(start=types.Position(*start), end=types.Position(*end))
    return types.TextDocumentContentChangePartial(range=place, text=text)


def position(text: str, offset: int, encoding: str) -> tuple[int, int]:
    """Return an offset as LSP writes it, worked out the long way."""
    ends = [found.end() for found in re.finditer("\r\n|\n|\r", text) if found.end() <= offset]
    width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    name = encoding if encoding == "utf-8" else f"{encoding}-le"
    start = ends[-1] if ends else 0
    return len(ends), len(text[start:offset].encode(name)) // width


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("seed", range(40))
def test_edits_land_where_the_client_made_them(encoding: str, seed: int) -> None:
    chance = random.Random(seed)
    text = "".join(chance.choices(PIECES, k=60))
    open_text = document(text, encoding)
    for _ in range(30):
        a, b = sorted(chance.choices(range(len(text) + 1), k=2))
        # Nobody's cursor is within a CRLF.
        a, b = (at - (text[at - 1 : at + 1] == "\r\n") for at in (a, b))
        new = "".join(chance.choices(PIECES, k=chance.randrange(4)))
        open_text.apply_change(
            change(position(text, a, encoding), position(text, b, encoding), new)
        )
        text = text[:a] + new + text[b:]
        assert open_text.source == text
        assert "".join(open_text.lines) == text


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("whole", [False, True])
def test_lines_are_found_again_after_edits(seed: int, whole: bool) -> None:
    """A line that is where it is said to be now holds the text it held, if no edit touched it."""
    chance = random.Random(seed)
    lines = [f"line {number}" for number in range(40)]
    open_text = document("\n".join(lines))
    for step in range(10):
        first = chance.randrange(len(lines))
        last = min(len(lines) - 1, first + chance.randrange(4))
        new = [f"new {step}.{number}" for number in range(chance.randrange(4))]
        lines[first:last] = new
        text = "".join(f"{line}\n" for line in new)
        one = change((first, 0), (last, 0), text)
        open_text.apply_change(
            types.TextDocumentContentChangeWholeDocument(text="\n".join(lines)) if whole else one
        )
    assert open_text.source == "\n".join(lines)
    stayed = [line for line in lines if line.startswith("line ")]
    for number in range(40):
        now = open_text.now(number, moment=0)
        if f"line {number}" in stayed:
            assert now is not None
            assert open_text.line(now) == f"line {number}"
    for number, line in enumerate(lines):
        then = open_text.then(number, moment=0)
        assert then is None if line.startswith("new ") else line == f"line {then}"


@pytest.mark.parametrize(
    ("edit", "now"),
    [
        (((1, 0), (1, 0), "new\n"), [0, 2, 3]),
        (((1, 1), (1, 1), "x"), [0, 1, 2]),
        (((1, 2), (1, 2), "\n"), [0, 1, 3]),
        (((1, 0), (2, 0), ""), [0, None, 1]),
        (((1, 0), (2, 0), "b!\n"), [0, 1, 2]),
        (((0, 1), (1, 1), ""), [0, None, 1]),
    ],
)
def test_where_a_line_is_after_an_edit(
    edit: tuple[tuple[int, int], tuple[int, int], str], now: list[int | None]
) -> None:
    open_text = document("aa\nbb\ncc")
    open_text.apply_change(change(*edit))
    assert [open_text.now(number, moment=0) for number in range(3)] == now


@pytest.mark.parametrize("seed", range(200))
def test_a_line_that_was_there_then_holds_the_same_text(seed: int) -> None:
    """Whatever was edited: who wrote a line is told only of lines that are as they were."""
    chance = random.Random(seed)
    lines = [f"line {number} {'🐍' * (number % 3)}" for number in range(12)]
    open_text = document("\n".join(lines))
    for _ in range(chance.randrange(1, 8)):
        text = open_text.source
        a = chance.choice([chance.randrange(len(text) + 1), *open_text.starts])
        b = chance.choice([a, min(len(text), a + chance.randrange(20)), *open_text.starts])
        new = chance.choice(["", "x", "\n", "# mine\n", "\n\n", "a\nb", "🐍"])
        start, end = (position(text, at, "utf-16") for at in sorted((a, b)))
        open_text.apply_change(change(start, end, new))
    found = 0
    for number in range(len(open_text.starts)):
        then = open_text.then(number, moment=0)
        if then is not None:
            assert open_text.line(number) == lines[then]
            assert open_text.now(then, moment=0) == number
            found += 1
    assert found <= len(lines)


def test_a_moment_too_long_ago_is_told() -> None:
    open_text = document("a\n")
    for _ in range(2_001):
        open_text.apply_change(change((0, 0), (0, 0), "x"))
    assert open_text.now(0, moment=1) == 0
    with pytest.raises(LookupError):
        open_text.now(0, moment=0)
    with pytest.raises(LookupError):
        open_text.now(0, moment=9_999)


def test_positions_beyond_the_end_are_the_end() -> None:
    open_text = document("🐍b\r\nc")
    ends = [(0, 99), (7, 0), (1, 99), (0, 1), (0, 2), (0, 3)]
    found = [open_text.offset(types.Position(*one)) for one in ends]
    assert found == [2, 5, 5, 0, 1, 2]


def test_huge_lines_are_edited_fast() -> None:
    open_text = document("x" * 2_000_000 + "é\n" + "y" * 2_000_000)
    open_text.apply_change(change((0, 2_000_001), (1, 0), "\n"))
    open_text.apply_change(change((1, 1), (1, 1), "z"))
    assert open_text.line(1)[:3] == "yzy"


def test_the_plain_text_has_the_same_lines() -> None:
    open_text = document("a\r\nb\rc\fd\u2028e\n")
    assert open_text.plain == "a\nb\nc\fd\u2028e\n"
    assert len(open_text.lines) == len(open_text.plain.split("\n"))
