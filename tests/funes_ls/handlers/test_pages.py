"""Text of documents and hovers."""

from typing import Any

import pytest

from funes_ls.handlers.addresses import Address, uri_of
from funes_ls.handlers.hover import Known, first_sentence, hover_text, of_symbol
from funes_ls.handlers.line_facts import Table
from funes_ls.handlers.pages import leads, recall_page, turns_page
from funes_ls.handlers.symbol_ranges import Symbol
from funes_ls.handlers.texts import State
from funes_ls.handlers.why import why_page


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


def lines_of(start: int, end: int, confidence: str = "exact", **more: Any) -> dict[str, Any]:
    found = {"start": start, "end": end, "confidence": confidence, "session_id": "s"}
    return {**found, "turn_uuid": "t", "from_path": "", "evidence": "trace", **more}


def writer(**more: Any) -> dict[str, Any]:
    found = {"session_id": "s", "turn_uuid": "t", "ts": "", "harness": "claude_code", "cwd": "/w"}
    said = {
        "title": "Why",
        "branch": "",
        "ask": "Please do.\nNow.",
        "reason": "It hangs at noon. So I wait.",
    }
    gets = {f"{name}get": f"funes get s {name}t" for name in ("", "ask_", "reason_")}
    return {**found, **said, **gets, **more}


def blame(*lines: dict[str, Any], turns: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {
        "path": "/w/x.py",
        "note": "",
        "lines": lines,
        "turns": turns or [writer()] * bool(lines),
    }


WHY = Address(kind="why", path="/w/x.py", line=4, last=5)


def test_lines_that_are_not_known_fall_back_to_the_file() -> None:
    text = why_page(WHY, blame(), related("Why"), source=["a", "b"]).text
    assert text.startswith("# Why lines 5–6 of /w/x.py are there")
    assert "Not traced to a session." in text and "## Why" in text
    assert "     5  a\n     6  b\n" in text


def test_why_quotes_the_ask_and_the_reason_and_leads_to_all_three() -> None:
    known = blame(lines_of(2, 5), lines_of(6, 6, "similar"), lines_of(9, 9))
    page = why_page(WHY, known, None, source=[])
    assert "```\nPlease do.\nNow.\n```" in page.text
    assert "```\nIt hangs at noon. So I wait.\n```" in page.text
    assert [one.target.turn for one in leads(page.text)] == ["ask_t", "reason_t", "t"]
    assert "- line 5: exact" in page.text and "- line 6: similar" in page.text
    assert "another one now" in page.text and "line 9" not in page.text


def test_only_claims_of_a_turn_stand_below_it() -> None:
    known = blame(
        lines_of(5, 5),
        lines_of(6, 6, "moved", turn_uuid="u", from_path="/w/y.py"),
        turns=[writer(), writer(turn_uuid="u", title="Other")],
    )
    first, second = why_page(WHY, known, None, source=[]).text.split("## ")[1:]
    assert "line 5" in first and "line 6" not in first
    assert "in /w/y.py" in second and "line 5" not in second


def test_long_texts_are_cut_on_the_page_of_lines() -> None:
    about = Address(kind="why", path="/w/x.py", line=0, last=4_999)
    page = why_page(about, blame(), None, source=["x" * 100_000] * 5_000)
    assert len(page.text) < 40_000


@pytest.mark.parametrize("links", [True, False])
def test_hovers_are_short_and_escaped(links: bool) -> None:
    known = Known(turn=writer(title="[x](command:quit) <b>", ts="2026-03-02T10:00:00Z"))
    text = hover_text(known, is_markdown=True, link=uri_of if links else None)
    who, asked, reason = text.split("  \n")
    assert who.startswith("**claude** · ") and " ago · " in who
    assert "\\[x\\]\\(command\\:quit\\) \\<b\\>" in who
    assert ("](funes:/turn/s/t.md)" in who) == links
    assert asked.startswith("asked: ") and ("](funes:/turn/s/ask_t.md)" in asked) == links
    assert (
        reason.startswith("reason: ") and "It hangs at noon\\." in reason and "wait" not in reason
    )
    assert "command:" not in text


def test_plain_hovers_have_no_markup() -> None:
    known = Known(turn=writer(title="one*"), from_path="/w/y_z.py")
    text = hover_text(known, is_markdown=False, link=uri_of)
    assert (
        text == "claude · one* · from /w/y_z.py\nasked: Please do. Now.\nreason: It hangs at noon."
    )


def test_sessions_of_others_are_marked() -> None:
    known = Known(turn=writer(), memory="team/[x]")
    first = hover_text(known, is_markdown=True).split("\n")[0]
    assert first.rstrip().endswith("· memory team\\/\\[x\\]")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", ""),
        ("  \n\n", ""),
        ("It is v3.11 now. Then more.", "It is v3.11 now."),
        ("Three. Two were too few.", "Three. Two were too few."),
        ("Done.\n\nAll of the tests pass. More.", "Done. All of the tests pass."),
        ("No end", "No end"),
        ("\n# Plan of it all\nDo it.", "# Plan of it all"),
        ("x" * 500, "x" * 119 + "…"),
    ],
)
def test_first_sentences(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


def table(*lines: dict[str, Any], symbols: list[Symbol]) -> Table:
    turns = {("s", "t"): writer(), ("s", "u"): writer(turn_uuid="u")}
    state = State(document=None, moment=0)
    return Table(state=state, generation=1, lines=lines, turns=turns, symbols=symbols)


def test_a_symbol_is_of_who_wrote_most_of_it() -> None:
    about = table(
        lines_of(1, 2, turn_uuid="u"),
        lines_of(4, 6),
        lines_of(8, 99),
        lines_of(7, 7, "similar"),
        symbols=[Symbol("Queue", 0, 40, 0), Symbol("Queue.take", 1, 6, 2)],
    )
    found = of_symbol(about, 2)
    assert found is not None and found.turn["turn_uuid"] == "t"
    assert found.more == "3 of 6 lines of Queue.take · 1 more turn"
    assert of_symbol(about, 3) is None
    hint = table(lines_of(1, 3, "similar"), symbols=[Symbol("f", 0, 2, 0)])
    assert of_symbol(hint, 0) is None


def test_a_page_of_hits_says_what_is_weak_and_what_was_revisited() -> None:
    told = {
        "harness": "codex",
        "ts": "2026-01-05T10:00:00Z",
        "cwd": "/w",
        "workdir": "",
        "role": "user",
    }
    named = {"rank": 1, "title": "Retries", "get": "funes get a b", "block_type": "text"}
    later = {
        "how": "file",
        "path": "/w/http.py",
        "ts": "2026-03-01T10:00:00Z",
        "get": "funes get c d",
    }
    hit = {**told, **named, "tool_name": None, "text": "five times", "revisited": later}
    page = recall_page("how often", {"note": "", "weak": True, "hits": [hit]})
    assert "Weak match: perhaps nothing here answers" in page.text
    assert "Revisited 2026-03-01T10:00:00Z, /w/http.py changed again: → funes get c d" in page.text
    plain = recall_page("how often", {"note": "", "hits": [{**hit, "revisited": None}]})
    assert "Weak" not in plain.text and "Revisited" not in plain.text
