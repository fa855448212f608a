"""Codex: items kept and lost by compat, bare rollouts, packed and moved files, links."""

from pathlib import Path
from typing import Any

import pytest
import zstandard

from funes_ls.indexer.model import Turn
from funes_ls.indexer.traces import Unit, source_for
from tests.indexer.traces.reading import (
    read_all,
    read_in_steps,
    stored_texts,
    turns_of,
    unit_at,
    write_lines,
)
from tests.indexer.traces.records import SESSION, codex, codex_header, codex_text, sample

SOURCE = source_for("codex")
STEM = f"rollout-2026-03-02T11-00-00-{SESSION}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".codex" / "sessions" / "2026" / "03" / "02" / f"{STEM}.jsonl"


def call(call_id: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "name": name, "call_id": call_id, **more}


def output(call_id: str, value: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def test_compat_turns(path: Path) -> None:
    write_lines(
        path,
        codex_header(),
        codex_text(1, "be brief", role="developer"),
        codex(2, {"type": "message", "role": "user", "content": "plain"}),
        codex(3, call("c1", "exec", arguments='{"cmd": "ls"}')),
        codex(4, output("c1", "kiln.log")),
        codex(5, call("c2", "patch", arguments=3)),
        codex(6, output("c2", [{"type": "input_text", "text": "é"}, {"n": 1.0}])),
        codex(7, output("c3", None)),
        codex(8, {"type": "custom_tool_call", "name": "apply", "call_id": "c4", "input": "*** x"}),
        codex(9, {"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}] * 2}),
        codex(10, {"message": "told twice", "type": "user_message"}, kind="event_msg"),
    )
    turns = turns_of(SOURCE, path)
    assert [(t.role, t.blocks[0].text, t.blocks[0].tool_name) for t in turns] == [
        ("developer", "be brief", None),
        ("user", "plain", None),
        ("assistant", '{"cmd": "ls"}', "exec"),
        ("tool", "kiln.log", "exec"),
        ("assistant", "{}", "patch"),
        ("tool", '[{"type":"input_text","text":"é"},{"n":1.0}]', "patch"),
        ("assistant", "*** x", "apply"),
        ("assistant", "a\na", None),
    ]
    assert [turn.turn_uuid for turn in turns] == [f"{SESSION}-{seq}" for seq in range(8)]
    assert {(turn.workdir, turn.parent_uuid) for turn in turns} == {("-work-demo", None)}


def test_what_compat_loses_is_extra_and_moves_no_id(path: Path) -> None:
    write_lines(
        path,
        codex_header(),
        codex_text(1, "go"),
        codex(2, {"type": "local_shell_call", "call_id": "s", "action": {"command": ["ls"]}}),
        codex(3, {"type": "web_search_call", "id": "w", "action": {"query": "kiln"}}),
        codex(4, {"type": "tool_search_call", "arguments": "find"}),
        codex(5, {"type": "agent_message", "content": [{"type": "input_text", "text": "hi"}]}),
        codex(6, {"type": "reasoning", "summary": [], "content": [{"type": "text", "text": "t"}]}),
        codex(
            7,
            {"message": "we did much", "replacement_history": [{"type": "message"}]},
            kind="compacted",
        ),
        codex(8, {"type": "ghost_snapshot"}),
        codex_text(9, "done", role="assistant"),
    )
    turns = turns_of(SOURCE, path)
    assert [(t.turn_uuid, t.seq, t.role, t.blocks[0].text) for t in turns if t.extra] == [
        (f"{SESSION}-x2", 0, "assistant", '{"command":["ls"]}'),
        (f"{SESSION}-x3", 0, "assistant", '{"query":"kiln"}'),
        (f"{SESSION}-x4", 0, "assistant", "find"),
        (f"{SESSION}-x5", 0, "assistant", "hi"),
        (f"{SESSION}-x6", 0, "assistant", "t"),
        (f"{SESSION}-x7", 0, "system", "we did much"),
    ]
    assert [t.turn_uuid for t in turns if not t.extra] == [f"{SESSION}-0", f"{SESSION}-1"]


BARE = [
    {"id": SESSION, "timestamp": "2025-06-01T00:00:00Z", "instructions": None, "git": {}},
    {"record_type": "state"},
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "<environment_context>\n<cwd>/work/old</cwd>\n</x>"}
        ],
    },
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "old prompt"}]},
    {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
    {"type": "function_call_output", "call_id": "c", "output": '{"output":"x"}'},
    {"record_type": "state"},
]


def test_bare_rollouts_are_extra_turns_with_ids_in_order(path: Path) -> None:
    write_lines(path, *BARE)
    turns, problems, session = read_all(SOURCE, path)
    assert problems == []
    assert [(t.turn_uuid, t.seq, t.extra) for t in turns] == [
        (f"{SESSION}-{seq}", seq, True) for seq in range(4)
    ]
    assert {(t.ts, t.workdir) for t in turns} == {("2025-06-01T00:00:00Z", "-work-old")}
    assert turns[3].blocks[0].tool_name == "shell"
    assert (session.session_id, session.cwd, session.title) == (SESSION, "/work/old", "old prompt")


def test_what_compat_would_lose_moves_no_id_of_a_bare_rollout(path: Path) -> None:
    write_lines(path, *BARE[:3], {"type": "web_search_call", "action": {"query": "x"}}, *BARE[3:])
    ids = [turn.turn_uuid for turn in turns_of(SOURCE, path)]
    assert ids == [f"{SESSION}-0", f"{SESSION}-x3", *(f"{SESSION}-{seq}" for seq in range(1, 4))]


def test_bare_rollouts_read_in_steps(path: Path) -> None:
    write_lines(path, *BARE)
    data = path.read_bytes()
    whole = turns_of(SOURCE, path)
    for cut in range(0, len(data), 23):
        assert read_in_steps(SOURCE, path, data, [cut])[0] == whole


def test_the_first_header_wins_key_by_key(path: Path) -> None:
    write_lines(
        path,
        codex_text(1, "early"),
        codex(2, {"cwd": "/first"}, kind="session_meta"),
        codex_header("the-id", cwd="/second", forked_from_id="origin"),
        codex_header("parent-id"),
    )
    turns, _, session = read_all(SOURCE, path)
    assert (turns[0].turn_uuid, turns[0].workdir) == ("the-id-0", "-first")
    assert session.session_id == "the-id"


@pytest.mark.parametrize(
    ("more", "link", "parent"),
    [
        ({"forked_from_id": "origin"}, "fork", "origin"),
        ({"parent_thread_id": "boss"}, "subagent", "boss"),
        (
            {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "boss", "depth": 1}}}},
            "subagent",
            "boss",
        ),
        ({"source": {"subagent": "review"}}, "subagent", ""),
        ({"source": "cli"}, "", ""),
    ],
)
def test_links_to_other_sessions(path: Path, more: dict[str, Any], link: str, parent: str) -> None:
    write_lines(path, codex_header(**more), codex_header("x", forked_from_id="later"))
    session = read_all(SOURCE, path)[2]
    assert (session.link, session.parent_id) == (link, parent)


def test_what_the_header_says_of_git(path: Path) -> None:
    git = {"branch": "dev", "repository_url": "https://git.invalid/o/kiln.git"}
    write_lines(path, codex_header(git=git))
    session = read_all(SOURCE, path)[2]
    assert (session.branch, session.remotes) == ("dev", ["https://git.invalid/o/kiln.git"])


def test_titles(path: Path) -> None:
    write_lines(
        path,
        codex_header(),
        codex_text(1, "# AGENTS.md instructions for /work"),
        codex_text(2, "<environment_context>…"),
        codex_text(3, "# Context from my IDE setup:\nx\n## My request for Codex:\nfix it\n"),
    )
    assert read_all(SOURCE, path)[2].title == "fix it"


def test_a_packed_rollout_reads_like_a_plain_one_and_goes_on_from_its_state(path: Path) -> None:
    data = b"".join(sample("codex"))
    half = data[: data.index(b"kiln.log")]
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    whole = turns_of(SOURCE, path)
    path.write_bytes(half)
    reading = SOURCE.read(unit_at(SOURCE, path))
    begun = [item for item in reading if isinstance(item, Turn)]
    packed = path.with_name(path.name + ".zst")
    packed.write_bytes(zstandard.compress(half) + zstandard.compress(data[len(half) :]))
    path.unlink()
    later = SOURCE.read(unit_at(SOURCE, packed), resume=reading.resume)
    rest = [item for item in later if isinstance(item, Turn)]
    assert not later.restarted
    assert stored_texts(begun + rest) == stored_texts(whole)
    assert [t.turn_uuid for t in begun + rest] == [t.turn_uuid for t in whole]
    assert stored_texts(turns_of(SOURCE, packed)) == stored_texts(whole)
    unpacked = SOURCE.read(_written(path, data), resume=later.resume)
    assert (list(unpacked), unpacked.restarted) == ([], False)


def _written(path: Path, data: bytes) -> Unit:
    path.write_bytes(data)
    return unit_at(SOURCE, path)


def test_a_damaged_packed_rollout_is_a_problem(path: Path) -> None:
    packed = path.with_name(path.name + ".zst")
    packed.parent.mkdir(parents=True)
    packed.write_bytes(b"this is not zstd at all")
    turns, problems, _ = read_all(SOURCE, packed)
    assert (turns, [problem.kind for problem in problems]) == ([], ["unreadable"])


def test_units_leave_out_sidecars_and_packed_copies(path: Path) -> None:
    write_lines(path, codex_header())
    write_lines(path.with_name("session_index.jsonl"), {"id": "x", "thread_name": "y"})
    path.with_name(path.name + ".zst").write_bytes(zstandard.compress(b"{}\n"))
    other = path.with_name("rollout-b.jsonl.zst")
    other.write_bytes(zstandard.compress(b"{}\n"))
    units = [unit for unit in SOURCE.units(path.parents[3]) if isinstance(unit, Unit)]
    assert {Path(unit.key).name for unit in units} == {path.name, other.name}


def test_an_answer_with_server_and_own_name(path: Path) -> None:
    asked = call("c1", "recall", arguments='{"query":"x"}', namespace="mcp__funes__")
    write_lines(
        path,
        codex_header(),
        codex(1, asked),
        codex(2, output("c1", "an old passage")),
        codex(3, call("c2", "exec_command", arguments='{"cmd":"funes get a b | head -3"}')),
        codex(4, output("c2", "an old turn")),
        codex_text(5, "so it is"),
    )
    assert stored_texts(turns_of(SOURCE, path)) == ["so it is"]


def test_known_places(tmp_path: Path) -> None:
    assert SOURCE.roots(tmp_path, {}) == [
        tmp_path / ".codex" / "sessions",
        tmp_path / ".codex" / "archived_sessions",
    ]
    assert SOURCE.roots(tmp_path, {"CODEX_HOME": "/c"})[0] == Path("/c/sessions")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"arguments": None, "input": "patch"}, "patch"),
        ({"arguments": {"a": 1}, "input": "patch"}, "patch"),
        ({"arguments": "", "input": "patch"}, ""),
        ({"arguments": "{}", "input": "patch"}, "{}"),
        ({"arguments": None, "input": None}, "{}"),
        ({"input": 7}, "{}"),
        ({}, "{}"),
    ],
)
def test_what_a_call_is_given(path: Path, given: dict[str, Any], text: str) -> None:
    write_lines(path, codex_header(), codex(1, call("c1", "apply_patch", **given)))
    (turn,) = turns_of(SOURCE, path)
    assert [block.text for block in turn.blocks] == [text]
