"""Other ways to read a text lead back to the places they came from."""

import json

import pytest

from funes_ls.indexer.redaction import views
from tests.credentials import Source, github

_WORD = "NEEDLE"


def back(view: views.View, text: str, piece: str) -> str:
    """Return what stands in the text where the view has a piece."""
    at = view.text.index(piece)
    start, end = view.origin(at, at + len(piece))
    return text[start:end]


@pytest.mark.parametrize("text", ["", "plain", "a=b; c='d'\n", "100% of it & more", "é→😀"])
def test_a_text_without_escapes_has_no_other_reading(text: str) -> None:
    assert views.plain(text) is None


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("\x1b[32mA\x1b[0m=\x1b[1;33mB\x1b[0m", "A=B"),
        ("\x1b]0;title\x07A", "A"),
        (r"{\"a\": \"b\"}", '{"a": "b"}'),
        (r"{\\\"a\\\": \\\"b\\\"}", '{"a": "b"}'),
        (r"a\nb\tc\rd", "a\nb\tc\rd"),
        (r"a\/b", "a/b"),
        (r"\u0041=\u003d", "A=="),
        (r"a\u00e9b", "a b"),
        (r"a\u0000b", "a b"),
        ("a&quot;b&amp;c&#39;d&apos;e&#34;f&#x27;", "a\"b&c'd'e\"f'"),
        ("a%3Db%2Fc%40d%3ae%2bf", "a=b/c@d:e+f"),
        ("a\0b\u200bc\ufeffd\u00ade", "abcde"),
    ],
)
def test_escapes_are_read_as_what_they_mean(text: str, read: str) -> None:
    view = views.plain(text)
    assert view is not None and view.text == read


@pytest.mark.parametrize(
    "text",
    [
        f"\x1b[32mNAME\x1b[0m=\x1b[33m{_WORD}\x1b[0m",
        rf"{{\"NAME\": \"{_WORD}\", \"b\": 1}}",
        json.dumps(json.dumps({"a": f'x="{_WORD}"', "é": "\n"})),
        f"%3D%2F{_WORD}%40",
        f"é😀\x1b[0m→{_WORD}é\x1b[0m",
        f"\0\0{_WORD}\0",
    ],
)
def test_a_whole_piece_is_found_again(text: str) -> None:
    view = views.plain(text)
    assert view is not None
    assert back(view, text, _WORD) == _WORD


def test_a_piece_with_escapes_inside_is_found_with_them() -> None:
    text = r"a=NEE%2FDLE; b=NEE\"DLE; c"
    view = views.plain(text)
    assert view is not None
    assert back(view, text, "NEE/DLE") == "NEE%2FDLE"
    assert back(view, text, 'NEE"DLE') == r"NEE\"DLE"
    text = "a=NEE\x1b[0mDLE;"
    view = views.plain(text)
    assert view is not None and back(view, text, _WORD) == "NEE\x1b[0mDLE"


def test_each_character_has_its_place() -> None:
    """Characters that no escape stands for come from just where they are the same."""
    made = Source(3)
    parts = ["\x1b[1m", r"\n", "%3A", "&amp;", "\0", "ab", "Z", "é", "7"]
    for _ in range(200):
        text = "".join(made.choice(parts) for _ in range(12))
        view = views.plain(text)
        if view is None:
            continue
        last = 0
        for at, char in enumerate(view.text):
            start, end = view.origin(at, at + 1)
            assert last <= start < end <= len(text)
            last = start
            assert text[start:end] == char or text[start] in "\\%&", (text, at)


@pytest.mark.parametrize(
    ("before", "between", "after"),
    [
        ("TOKEN=", "\n", "\n"),
        ("TOKEN=", "\n    ", "\n"),
        ("TOKEN=", "\r\n", "\r\n"),
        ("TOKEN=", "\\\n", "\n"),
        ("+TOKEN=", "\n+", "\n"),
        ("> TOKEN=", "\n> ", "\n"),
        ('t = "', '" + "', '"'),
        ("t = '", "'\n    '", "'"),
        ('t = "', '" .\n  "', '"'),
    ],
)
def test_a_wrapped_value_is_put_together(before: str, between: str, after: str) -> None:
    token = github(Source(4))
    text = f"{before}{token[:20]}{between}{token[20:]}{after}"
    (view,) = views.joined(text)
    assert token in view.text
    assert back(view, text, token) == f"{token[:20]}{between}{token[20:]}"


@pytest.mark.parametrize(
    "text",
    [
        "first words of a line\nand words of another\n",
        "import os\nimport sys\n\ndef main():\n    return 0\n",
        'names = ["alpha", "beta", "gamma"]\n',
        "A1B2C3D4=x\nE5F6G7H8=y\n",
    ],
)
def test_lines_that_part_nothing_stay_apart(text: str) -> None:
    assert list(views.joined(text)) == []


def test_far_joins_are_looked_at_apart() -> None:
    made = Source(5)
    first, second = github(made), github(made)
    halves = [f"TOKEN={one[:20]}\n{one[20:]}\n" for one in (first, second)]
    text = f"{halves[0]}{'some words here. ' * 200}\n{halves[1]}"
    seen = list(views.joined(text))
    assert len(seen) == 2
    for view, token, half in zip(seen, (first, second), halves, strict=True):
        assert back(view, text, token) == half.removeprefix("TOKEN=").rstrip("\n")
        assert len(view.text) < 1000
