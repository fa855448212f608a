"""Claude Code: turns, extras, links, titles, odd files."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from funes_ls.indexer.chunk import chunks_of
from funes_ls.indexer.traces import Unit, source_for
from tests.indexer.traces.reading import (
    read_all,
    stored_texts,
    turns_of,
    unit_at,
    write_lines,
)
from tests.indexer.traces.records import SESSION, claude

SOURCE = source_for("claude")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".claude" / "projects" / "-work-demo" / f"{SESSION}.jsonl"


def tool_use(call_id: str, name: str, given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def tool_result(call_id: str, content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def test_a_turn_has_what_its_record_says(path: Path) -> None:
    write_lines(path, claude(1, "hello", timestamp=1772445600), claude(2, [{"type": "image"}]))
    (turn,) = turns_of(SOURCE, path)
    assert (turn.session_id, turn.turn_uuid, turn.parent_uuid) == (SESSION, "u0001", "u0000")
    assert (turn.seq, turn.role, turn.ts, turn.workdir) == (0, "user", "1772445600", "-work-demo")
    assert (turn.source_path, turn.harness, turn.extra) == (str(path), "claude_code", False)
    assert turn.blocks[0].text == "hello"


def test_blocks_in_order_and_names_filled_in_from_anywhere(path: Path) -> None:
    parts = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "  "},
        "odd",
        tool_use("t1", "Bash", {"b": 1, "a": -0.0}),
        {"type": "tool_use", "id": "t2", "name": "Read"},
        {"type": "tool_use", "id": "t3", "input": None},
    ]
    results = [
        tool_result("t1", [{"type": "text", "text": "a"}, "b", {"type": "image"}]),
        tool_result("t9", "late"),
        tool_result("t2", None),
    ]
    late = claude(3, [tool_use("t9", "Glob", {}), tool_use("t1", "Grep", {})], role="assistant")
    write_lines(path, claude(1, parts, role="assistant"), claude(2, results), late)
    first, second, _ = turns_of(SOURCE, path)
    assert [(b.block_type, b.text, b.tool_name) for b in first.blocks] == [
        ("thinking", "hm", None),
        ("tool_use", '{"b":1,"a":-0.0}', "Bash"),
        ("tool_use", "{}", "Read"),
        ("tool_use", "null", None),
    ]
    assert [(b.text, b.tool_name) for b in second.blocks] == [("a\nb", "Grep"), ("late", "Glob")]


def test_exotic_numbers_of_an_input_are_written_as_compat_does(path: Path) -> None:
    record = claude(1, [tool_use("t", "X", {"n": "N"})], role="assistant")
    line = json.dumps(record).replace('"N"', "[-0, 18446744073709551616, 1E5]")
    write_lines(path, line)
    assert turns_of(SOURCE, path)[0].blocks[0].text == (
        '{"n":[-0.0,1.8446744073709552e19,100000.0]}'
    )


def test_workdir_is_the_first_usable_cwd_or_comes_from_the_path(path: Path) -> None:
    write_lines(path, claude(1, "a", cwd="/"), claude(2, "b", cwd=r"C:\my dir"), claude(3, "c"))
    turns, _, session = read_all(SOURCE, path)
    assert {turn.workdir for turn in turns} == {"C--my-dir"}
    assert session.cwd == r"C:\my dir"
    write_lines(path, claude(1, "a", cwd=None))
    assert turns_of(SOURCE, path)[0].workdir == "-work-demo"


def test_the_cwd_is_known_before_the_first_turn(path: Path) -> None:
    write_lines(path, claude(1, "a", cwd=None), claude(2, "b"))
    reading = SOURCE.read(unit_at(SOURCE, path))
    next(iter(reading))
    assert reading.session.cwd == "/work/demo"


def test_queued_prompts_are_extra(path: Path) -> None:
    queued = {"type": "queued_command", "prompt": [{"type": "text", "text": "and hurry"}]}
    write_lines(
        path,
        claude(1, "first"),
        {**claude(2, None), "type": "attachment", "attachment": queued},
        {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "plain"}},
        claude(3, "last"),
    )
    turns = turns_of(SOURCE, path)
    assert [(t.turn_uuid, t.seq, t.extra, t.blocks[0].text) for t in turns] == [
        ("u0001", 0, False, "first"),
        ("u0002", 0, True, "and hurry"),
        (f"{SESSION}-x2", 0, True, "plain"),
        ("u0003", 1, False, "last"),
    ]


def test_a_byte_order_mark_crlf_and_blank_lines(path: Path) -> None:
    write_lines(path, claude(1, "first\r"), "", claude(2, "second"), "  ", end="\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    turns, problems, _ = read_all(SOURCE, path)
    assert problems == []
    assert stored_texts(turns) == ["first", "second"]
    assert [(t.turn_uuid, t.extra, t.seq) for t in turns] == [
        ("u0001", True, 0),
        ("u0002", False, 0),
    ]


def test_half_surrogates_are_replaced_and_never_move_the_others(path: Path) -> None:
    bad = json.dumps(claude(1, "oven ?? hot")).replace("??", "\\ud83d")
    write_lines(path, claude(0, "before"), bad, claude(2, "🚀"))
    turns = turns_of(SOURCE, path)
    assert [(t.seq, t.extra, t.blocks[0].text) for t in turns] == [
        (0, False, "before"),
        (0, True, "oven \ufffd hot"),
        (1, False, "🚀"),
    ]


def test_zero_bytes_cost_only_what_they_overwrote(path: Path) -> None:
    def line(number: int, text: str) -> bytes:
        return json.dumps(claude(number, text)).encode()

    data = line(1, "good") + b"\n" + line(2, "zeros behind") + b"\0" * 9000 + b"\n"
    data += b"\0" * 4096 + b"\n" + line(3, "cut in half")[:80] + b"\n" + line(4, "after") + b"\n"
    data += b"\0" * 143_000
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    turns, problems, _ = read_all(SOURCE, path)
    assert stored_texts(turns) == ["good", "zeros behind", "after"]
    assert [(problem.kind, problem.line) for problem in problems] == [
        ("bad_line", 3),
        ("bad_line", 4),
    ]
    path.write_bytes(data + line(5, "appended later") + b"\n")
    assert stored_texts(turns_of(SOURCE, path))[-1] == "appended later"


def test_nul_in_text_is_kept_for_compat_only(path: Path) -> None:
    write_lines(path, claude(1, "a\0b"))
    (turn,) = turns_of(SOURCE, path)
    assert [chunk.text for chunk in chunks_of(turn, compat=True)] == ["a\0b"]
    assert [chunk.text for chunk in chunks_of(turn)] == ["a\ufffdb"]


def test_what_funes_answered_is_not_stored(path: Path) -> None:
    shell = {"command": "make && funes recall kiln"}
    write_lines(
        path,
        claude(1, [tool_use("t1", "mcp__funes__recall", {"query": "kiln"})], role="assistant"),
        claude(2, [tool_result("t1", "an old passage"), {"type": "text", "text": "go on"}]),
        claude(3, [tool_use("t2", "Bash", shell)], role="assistant"),
        claude(4, [tool_result("t2", "ok, and an old passage")]),
        claude(5, [tool_use("t3", "Bash", {"command": "grep 'funes recall' x"})], role="assistant"),
        claude(6, [tool_result("t3", "README: funes recall")]),
    )
    assert stored_texts(turns_of(SOURCE, path)) == [
        "go on",
        '[tool_use Bash] {"command":"make && funes recall kiln"}',
        """[tool_use Bash] {"command":"grep 'funes recall' x"}""",
        "[tool_result Bash] README: funes recall",
    ]


def test_titles(path: Path) -> None:
    scaffolding = [
        claude(1, "<command-name>/clear</command-name>"),
        claude(2, "Caveat: The messages below were generated"),
        claude(3, "the meta prompt", isMeta=True),
        claude(4, "[Request interrupted by user]"),
        claude(5, "side work", isSidechain=True),
        {"type": "ai-title", "aiTitle": "made up"},
    ]
    write_lines(path, *scaffolding)
    assert read_all(SOURCE, path)[2].title == "made up"
    write_lines(path, *scaffolding, claude(6, "  fix the\n kiln " + "x" * 300), claude(7, "more"))
    assert read_all(SOURCE, path)[2].title == "fix the kiln " + "x" * 187
    write_lines(path, claude(6, "fix"), {"type": "custom-title", "customTitle": "Mine"})
    assert read_all(SOURCE, path)[2].title == "Mine"


def test_links_to_other_sessions(path: Path) -> None:
    write_lines(path, claude(1, "a", session="other"))
    session = read_all(SOURCE, path)[2]
    assert (session.inner_id, session.parent_id, session.link) == ("other", "", "")
    write_lines(path, claude(1, "a", forkedFrom={"sessionId": "origin", "messageUuid": "m"}))
    session = read_all(SOURCE, path)[2]
    assert (session.inner_id, session.parent_id, session.link) == ("", "origin", "fork")
    assert session.branch == "main"


def test_sub_agents_are_sessions_of_their_own_and_come_last(path: Path) -> None:
    child = path.with_suffix("") / "subagents" / "agent-ab12.jsonl"
    write_lines(path, claude(1, "parent"))
    replayed = claude(1, "parent", isSidechain=True, forkedFrom={"sessionId": SESSION})
    write_lines(child, replayed, claude(2, "child", isSidechain=True))
    older = write_lines(path.with_name("older.jsonl"), claude(1, "older"))
    os.utime(older, ns=(10**18, 10**18))
    units = [unit for unit in SOURCE.units(path.parents[1]) if isinstance(unit, Unit)]
    assert [(Path(unit.key).stem, unit.subagent) for unit in units] == [
        (SESSION, False),
        ("older", False),
        ("agent-ab12", True),
    ]
    _, _, session = read_all(SOURCE, child)
    assert (session.session_id, session.parent_id, session.link) == (
        "agent-ab12",
        SESSION,
        "subagent",
    )
    assert session.title == "child"


def test_files_that_hold_no_talk(path: Path) -> None:
    write_lines(path, {"type": "summary", "summary": "lantern"}, {"type": "new-thing"}, "null", "7")
    reading = SOURCE.read(next(u for u in SOURCE.units(path) if isinstance(u, Unit)))
    assert list(reading) == []
    assert reading.skipped == {"new-thing": 1}
    assert (reading.session.title, reading.offset) == ("", path.stat().st_size)


def test_a_file_that_vanished_is_a_problem_and_leaves_no_state(path: Path) -> None:
    write_lines(path, claude(1, "a"))
    (unit,) = [unit for unit in SOURCE.units(path) if isinstance(unit, Unit)]
    path.unlink()
    reading = SOURCE.read(unit)
    (problem,) = reading
    assert getattr(problem, "kind", "") == "unreadable"
    assert (reading.failed, reading.resume) == (True, b"")


def test_known_places(tmp_path: Path) -> None:
    assert SOURCE.roots(tmp_path, {}) == [
        tmp_path / ".claude" / "projects",
        tmp_path / ".config" / "claude" / "projects",
    ]
    named = {"CLAUDE_CONFIG_DIR": str(tmp_path / "c")}
    assert SOURCE.roots(tmp_path, named) == [tmp_path / "c" / "projects"]


@pytest.mark.parametrize("count", [400, 5_000])
def test_a_record_with_a_number_beyond_all_bounds_is_kept(path: Path, count: int) -> None:
    digits = "7" * count
    huge = json.dumps(claude(2, [tool_use("t1", "Calc", {"n": "@"})], role="assistant"))
    write_lines(path, claude(1, "go"), huge.replace('"@"', digits), claude(3, "done"))
    turns, problems, _ = read_all(SOURCE, path)
    assert problems == []
    assert [(turn.extra, turn.seq, turn.turn_uuid) for turn in turns] == [
        (False, 0, "u0001"),
        (True, 0, "u0002"),
        (False, 1, "u0003"),
    ]
    assert turns[1].blocks[0].text == f'{{"n":"{digits}"}}'


def test_a_number_that_fits_only_a_double_stays_compat(path: Path) -> None:
    line = json.dumps(claude(1, [tool_use("t1", "Calc", {"n": "@"})], role="assistant"))
    write_lines(path, line.replace('"@"', "1" + "0" * 300))
    (turn,) = turns_of(SOURCE, path)
    assert (turn.extra, turn.blocks[0].text) == (False, '{"n":1e300}')
