"""Text of documents and hovers."""

from typing import Any

import pytest

from funes_ls.handlers.hover import hover_text
from funes_ls.handlers.pages import leads, recall_page, turns_page, why_page


def turn(text: str, *, asked: bool = False, block_type: str = "text") -> dict[str, Any]:
    block = {"block_type": block_type, "tool_name": None, "text": text}
    return {"turn_uuid": "t", "ts": "now", "role": "user", "blocks": [block], "asked": asked}


def answer(*turns: dict[str, Any]) -> dict[str, Any]:
    about = {"harness": "claude_code", "cwd": "/work", "workdir": "", "repo": "", "title": "T"}
    return {**about, "session_id": "s", "found": True, "turns": turns}


def session(title: str, number: int = 1) -> dict[str, Any]:
    return {
        "harness": "codex",
        "title": title,
        "cwd": "/work",
        "started_us": None,
        "ended_us": None,
        "turns": 2,
        "get": f"funes get s-{number} ''",
    }


def related(*titles: str, total: int = 0) -> dict[str, Any]:
    sessions = [session(title, number) for number, title in enumerate(titles)]
    return {"path": "/work/x.py", "sessions": sessions, "total": total or len(sessions)}


def test_reading_begins_at_the_turn_that_was_asked_for() -> None:
    page = turns_page(answer(turn("one\ntwo"), turn("three", asked=True)))
    assert page.text.splitlines()[page.line] == "## user · now ←"


def test_fences_are_longer_than_any_in_the_text() -> None:
    page = turns_page(answer(turn("````\nx\n````", block_type="tool_result")))
    assert page.text.splitlines().count("`````") == 2


def test_no_control_characters_get_into_a_document() -> None:
    page = turns_page(answer(turn("a\x1b[2Jb\u202ec\rd")))
    assert not set(page.text) & set("\x1b\u202e\r")


def test_only_lines_of_ours_lead_somewhere() -> None:
    text = "→ funes get s t\n  → funes get s t\n→ rm -rf /\nx → funes get s t\n→ funes get 's\n"
    assert [(one.line, one.start) for one in leads(text)] == [(0, 2)]


def test_a_recall_without_hits_says_so() -> None:
    page = recall_page("why\nnot", {"note": "Words only.", "hits": []})
    assert page.text.startswith("# Recall: why not\n")
    assert "Words only." in page.text and "Nothing of this was found." in page.text


def test_a_line_that_is_not_known_falls_back_to_the_file() -> None:
    blame: dict[str, Any] = {"path": "/work/x.py", "lines": [], "turns": []}
    page = why_page(blame, related("Why"), line=4)
    assert page.text.startswith("Line 5 itself is not traced") and "## Why" in page.text
    found = {"title": "Why", "ask": "Please do", "get": "funes get s t"}
    page = why_page({**blame, "turns": [found]}, related("Why"), line=4)
    assert page.text.startswith("# Line 5 of /work/x.py") and "Please do" in page.text


@pytest.mark.parametrize("links", [True, False])
def test_hovers_are_short_and_escaped(links: bool) -> None:
    titles = ["[x](command:quit) <b>", "two", "three"]
    text = hover_text(related(*titles, total=9), is_markdown=True, links=links)
    lines = text.split("\n")
    assert len(lines) == 3
    assert "\\[x\\]\\(command\\:quit\\) \\<b\\>" in lines[0]
    assert ("](funes:/session/s-0.md)" in lines[0]) == links
    assert "7 more past sessions" in lines[2]
    assert "command:" not in text


def test_plain_hovers_have_no_markup() -> None:
    text = hover_text(related("one*", "two_"), is_markdown=False, links=True)
    assert text == "codex · one*\ncodex · two_"
