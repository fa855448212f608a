"""Sessions that other sessions started, and sessions that an older version has left in files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from funes_ls.indexer.traces import Unit, source_for
from funes_ls.indexer.traces.registry import detect
from tests.indexer.traces.reading import read_all
from tests.indexer.traces.samples_more import (
    ANSWER,
    CODE,
    FILE,
    PROMPT,
    SAMPLES,
    THOUGHT,
    event,
    qwen_record,
    write_json,
    write_log,
)


def units_in(harness: str, home: Path) -> Iterator[Unit]:
    """Yield the units of a harness in all its places."""
    source = source_for(harness)
    for root in source.roots(home, {}):
        yield from (unit for unit in source.units(root) if isinstance(unit, Unit))


@pytest.mark.parametrize(("above", "parent"), [(None, "q-1"), ("explore.1", "agent-explore_1")])
def test_a_sub_agent_of_qwen_knows_who_started_it(
    above: str | None, parent: str, tmp_path: Path
) -> None:
    project = SAMPLES["qwen"](tmp_path).parents[1]
    side = {"isSidechain": True, "agentId": "plan-2"}
    path = write_log(
        project / "subagents" / "q-1" / "agent-plan-2.jsonl",
        {**qwen_record(0, "system", []), "subtype": "agent_bootstrap", **side},
        qwen_record(1, "user", [{"text": "Plan the harbour."}], **side),
        qwen_record(2, "assistant", [{"text": "Planned."}], **side),
    )
    write_json(path.with_suffix(".meta.json"), {"agentId": "plan-2", "parentAgentId": above})
    found = list(units_in("qwen", tmp_path))
    assert [unit.subagent for unit in found] == [False, True]
    turns, problems, session = read_all(source_for("qwen"), path)
    assert (len(turns), problems) == (2, [])
    assert (session.session_id, session.link, session.parent_id) == (
        "agent-plan-2",
        "subagent",
        parent,
    )
    assert (session.cwd, session.title, session.inner_id) == ("/work/demo", "Plan the harbour.", "")


def test_a_part_of_a_task_of_roo_knows_the_task(tmp_path: Path) -> None:
    path = SAMPLES["cline"](tmp_path)
    item = {"id": path.parent.name, "parentTaskId": "1700000000000", "workspace": "/work/other"}
    write_json(path.parent / "history_item.json", item)
    _, problems, session = read_all(source_for("cline"), path)
    assert problems == []
    assert (session.link, session.parent_id, session.cwd) == (
        "subagent",
        "1700000000000",
        "/work/demo",
    )
    write_json(path, [{"role": "user", "content": "Where?"}])
    assert read_all(source_for("cline"), path)[2].cwd == "/work/other"


def test_what_an_agent_told_its_helper_is_no_title(tmp_path: Path) -> None:
    path = write_log(
        tmp_path / ".copilot" / "session-state" / "c-2" / "events.jsonl",
        event(0, "session.start", sessionId="c-2", version=1, context={"cwd": "/work/demo"}),
        event(1, "user.message", content="Look for boats.", parentToolCallId="t1"),
        event(2, "user.message", content=PROMPT),
    )
    turns, problems, session = read_all(source_for("copilot"), path)
    assert (len(turns), problems, session.title) == (2, [], PROMPT)


def old_opencode(home: Path, *, parent: str = "") -> Path:
    """Write a session as opencode did before it had a database; return its root."""
    root = home / ".local" / "share" / "opencode"
    storage = root / "storage"
    about: dict[str, Any] = {"id": "ses_1", "directory": "/work/demo", "title": "New session - 1"}
    write_json(storage / "session" / "global" / "ses_1.json", {**about, "parentID": parent or None})
    state = {
        "status": "completed",
        "input": {"filePath": FILE, "content": CODE},
        "output": "Wrote file successfully.",
    }
    parts: dict[str, list[dict[str, Any]]] = {
        "msg_1": [{"type": "text", "text": PROMPT}],
        "msg_2": [
            {"type": "step-start"},
            {"type": "reasoning", "text": THOUGHT},
            {"type": "tool", "callID": "w1", "tool": "write", "state": state},
        ],
        "msg_3": [{"type": "text", "text": ANSWER}],
    }
    for number, (message, held) in enumerate(parts.items()):
        role = "assistant" if number else "user"
        info = {"id": message, "role": role, "time": {"created": 1772445600000 + number}}
        write_json(storage / "message" / "ses_1" / f"{message}.json", info)
        for at, part in enumerate(held):
            write_json(storage / "part" / message / f"prt_{number}{at}.json", part)
    return root


def test_an_opencode_without_a_database_is_read_as_one_with_it(tmp_path: Path) -> None:
    SAMPLES["opencode"](tmp_path / "new")
    old = old_opencode(tmp_path / "old")
    readings = []
    for home in (tmp_path / "new", tmp_path / "old"):
        [unit] = units_in("opencode", home)
        reading = source_for("opencode").read(unit)
        turns = list(reading)
        session = reading.session
        said = [(turn.turn_uuid, turn.role, turn.ts, turn.blocks) for turn in turns]  # type: ignore[union-attr]  # no problem is among them
        readings.append((said, session.session_id, session.cwd, session.title))
        assert not reading.failed
    assert readings[0] == readings[1]
    assert detect(old) is source_for("opencode")


def test_a_part_that_is_added_changes_the_session_and_a_bad_one_is_told(tmp_path: Path) -> None:
    root = old_opencode(tmp_path, parent="ses_0")
    source = source_for("opencode")
    [before] = units_in("opencode", tmp_path)
    assert before.subagent
    part = root / "storage" / "part" / "msg_3" / "prt_29.json"
    write_json(part, {"type": "text", "text": "And a heron."})
    for path in (part, root / "storage" / "message" / "ses_1" / "msg_3.json"):
        [after] = source.units_at(root, path)
        assert (after.key, after.size > before.size) == (before.key, True)
    assert source.units_at(root, root / "storage" / "message" / "ses_9" / "msg_3.json") == []
    part.write_text('{"type": "te', encoding="utf-8")
    reading = source.read(after)
    turns = list(reading)
    [problem] = [one for one in turns if not hasattr(one, "blocks")]
    assert (problem.kind, len(turns), reading.failed) == ("bad_line", 4, False)  # type: ignore[union-attr]  # it is a problem
    assert (reading.session.link, reading.session.parent_id) == ("subagent", "ses_0")
    for path in (root / "storage" / "session").rglob("*.json"):
        path.write_text(json.dumps([]), encoding="utf-8")
    assert not source.read(after).failed
