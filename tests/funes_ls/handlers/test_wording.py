"""Recalled text in an editor: escaped, short, printable."""

import re

import pytest

from funes_ls.handlers.wording import ago, counted, harness_word, markdown, one_line

DAY = 86_400_000_000


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1)>",
        "[click](command:workbench.action.quit)",
        "![x](https://example.org/pixel.png)",
        "https://example.org/",
        "www.example.org",
        "a@example.org",
        "# heading",
        "`code` **bold** _it_ ~~no~~ | table |",
        "&lt;script&gt;",
        "$(gear)",
        "1. one",
        "- [x] done",
    ],
)
def test_markdown_shows_the_text_and_nothing_else(text: str) -> None:
    escaped = markdown(text)
    assert re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", escaped) == text
    bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", escaped)
    assert not re.search(r"[!-/:-@\[-`{-~]", bare)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one\n two\t three ", "one two three"),
        ("\x1b[31mred\x07\u202e", "[31mred"),
        ("x" * 100, "x" * 79 + "…"),
        ("", ""),
    ],
)
def test_one_line(text: str, line: str) -> None:
    assert one_line(text) == line


@pytest.mark.parametrize(
    ("past_us", "words"),
    [
        (0, "just now"),
        (-DAY, "just now"),
        (60_000_000, "1 minute ago"),
        (3 * 3_600_000_000, "3 hours ago"),
        (DAY, "1 day ago"),
        (65 * DAY, "2 months ago"),
        (800 * DAY, "2 years ago"),
    ],
)
def test_ago(past_us: int, words: str) -> None:
    assert ago(10**16 - past_us, now_us=10**16) == words


def test_unknown_times_and_harnesses() -> None:
    assert (ago(None), harness_word(""), harness_word("claude_code")) == ("", "session", "claude")
    assert (counted(1, "turn"), counted(1200, "turn")) == ("1 turn", "1,200 turns")
