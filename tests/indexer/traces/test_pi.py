"""pi: versions 1 to 3, entries compat loses, forks."""

from pathlib import Path

import pytest

from funes_ls.indexer.chunk import chunk_id, chunks_of
from funes_ls.indexer.traces import source_for
from tests.indexer.traces.reading import read_all, stored_texts, turns_of, write_lines
from tests.indexer.traces.records import SESSION, pi, pi_header

SOURCE = source_for("pi")
STEM = f"2026-03-02T12-00-00-000Z_{SESSION}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".pi" / "agent" / "sessions" / "--work-demo--" / f"{STEM}.jsonl"


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def test_a_turn_has_what_its_entry_says(path: Path) -> None:
    write_lines(path, pi_header(), pi(1, user("hello"), timestamp=1704448801000))
    turns, _, session = read_all(SOURCE, path)
    (turn,) = turns
    assert (turn.session_id, turn.turn_uuid, turn.parent_uuid) == (STEM, "00000001", "00000000")
    assert (turn.ts, turn.workdir, turn.compat_uuid) == ("1704448801000", "-work-demo", None)
    assert (session.inner_id, session.cwd, session.title) == (SESSION, "/work/demo", "hello")


def test_results_are_named_by_themselves(path: Path) -> None:
    result = {"role": "toolResult", "toolName": "grep", "toolCallId": "c", "content": "out"}
    calls = [
        {"type": "toolCall", "id": "c", "name": "grep"},
        {"type": "toolCall", "name": "x", "arguments": {"b": 1e-7}},
    ]
    write_lines(path, pi(1, {"role": "assistant", "content": calls}), pi(2, result))
    first, second = turns_of(SOURCE, path)
    assert [(b.text, b.tool_name) for b in first.blocks] == [("{}", "grep"), ('{"b":1e-7}', "x")]
    assert (second.role, second.blocks[0].tool_name, second.blocks[0].text) == (
        "tool",
        "grep",
        "out",
    )


def test_version_1_is_stored_under_ids_of_its_own(path: Path) -> None:
    entries = [{k: v for k, v in pi(n, user(f"note {n}")).items() if k != "id"} for n in range(3)]
    write_lines(path, {"type": "session", "id": SESSION, "cwd": "/w"}, *entries)
    turns = turns_of(SOURCE, path)
    assert [(t.turn_uuid, t.compat_uuid, t.extra) for t in turns] == [
        (f"{STEM}-{seq}", "", False) for seq in range(3)
    ]
    compat = {chunk.id for turn in turns for chunk in chunks_of(turn, compat=True)}
    assert compat == {chunk_id(STEM, "", 0, 0)}
    assert len({chunk.id for turn in turns for chunk in chunks_of(turn)}) == 3


def test_what_compat_loses_is_extra(path: Path) -> None:
    write_lines(
        path,
        pi_header(),
        pi(1, user("start")),
        pi(2, {"role": "user", "content": "as a string"}),
        pi(3, {"role": "bashExecution", "command": "date", "output": "Monday"}),
        pi(4, {"role": "hookMessage", "content": "from a hook"}),
        pi(5, {"role": "compactionSummary", "summary": "in short"}),
        {"type": "custom_message", "id": "cm", "content": [{"type": "text", "text": "custom"}]},
        {"type": "compaction", "summary": "compacted"},
        {"type": "branch_summary", "id": "bs", "summary": "the other branch"},
        {"type": "label", "id": "l"},
    )
    turns = turns_of(SOURCE, path)
    assert [(t.turn_uuid, t.role, len(t.blocks)) for t in turns if t.extra] == [
        ("00000002", "user", 1),
        ("00000003", "user", 2),
        ("00000004", "system", 1),
        ("00000005", "system", 1),
        ("cm", "system", 1),
        (f"{STEM}-x7", "system", 1),
        ("bs", "system", 1),
    ]
    assert stored_texts(turns)[2:4] == [
        '[tool_use bash] {"command":"date"}',
        "[tool_result bash] Monday",
    ]
    assert {t.seq for t in turns} == {0}


def test_a_recall_run_by_hand_is_not_stored(path: Path) -> None:
    ran = {"role": "bashExecution", "command": "funes recall kiln", "output": "an old passage"}
    write_lines(path, pi_header(), pi(1, ran))
    assert stored_texts(turns_of(SOURCE, path)) == []


@pytest.mark.parametrize(
    "more",
    [
        {"parentSession": "/home/dev/.pi/agent/sessions/--w--/2026_origin.jsonl"},
        {"branchedFrom": "C:\\sessions\\2026_origin.jsonl"},
    ],
)
def test_forks_name_their_parent(path: Path, more: dict[str, str]) -> None:
    write_lines(path, {**pi_header(), **more})
    session = read_all(SOURCE, path)[2]
    assert (session.parent_id, session.link) == ("2026_origin", "fork")


def test_the_name_a_user_gave_is_the_title(path: Path) -> None:
    write_lines(path, pi(1, user("prompt")), {"type": "session_info", "id": "i", "name": "Mine"})
    assert read_all(SOURCE, path)[2].title == "Mine"
