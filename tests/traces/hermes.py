"""Writes sample sessions into a `state.db` as Hermes keeps (the columns readers use)."""

import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.traces.ids import digest, dump
from tests.traces.script import Script, Step

_SCHEMA = """
CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version VALUES (22);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT, system_prompt TEXT,
    parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT,
    message_count INTEGER DEFAULT 0, cwd TEXT, git_branch TEXT, title TEXT
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id),
    role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT,
    timestamp REAL NOT NULL, finish_reason TEXT, reasoning TEXT, reasoning_content TEXT,
    active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT
);
"""


def write(scripts: list[Script], home: Path) -> None:
    """Write all scripts into `.hermes/state.db`, in the order they began."""
    path = home / ".hermes" / "state.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    ids = {script.name: session_id(script) for script in scripts}
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(_SCHEMA)
        for script in sorted(scripts, key=lambda one: one.head["start"]):
            _session(db, script, ids)


def session_id(script: Script) -> str:
    """Return the id a session has by its script's start and name."""
    start = datetime.fromisoformat(script.head["start"])
    return f"{start:%Y%m%d_%H%M%S}_{digest('hermes', script.name)[:6]}"


def _session(db: sqlite3.Connection, script: Script, ids: dict[str, str]) -> None:
    rows = [{"role": "system", "content": "You are a helpful agent.", "at": script.steps[0].at}]
    for number, step in enumerate(script.steps):
        rows += _messages(script, step, number)
    parent = ids.get(script.head.get("parent", ""))
    began, ended = script.steps[0].at.timestamp(), script.steps[-1].at.timestamp()
    db.execute(
        "INSERT INTO sessions (id, source, model, parent_session_id, started_at, ended_at,"
        " end_reason, message_count, cwd, git_branch, title) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
        (
            *(ids[script.name], "cli", "sample-model", parent, began, ended, None, len(rows)),
            *(script.cwd, script.head.get("branch"), script.head.get("title")),
        ),
    )
    for row in rows:
        values = {"session_id": ids[script.name], **row}
        values["timestamp"] = values.pop("at").timestamp()
        names = ", ".join(values)
        marks = ", ".join("?" * len(values))
        db.execute(f"INSERT INTO messages ({names}) VALUES ({marks})", tuple(values.values()))


def _messages(script: Script, step: Step, number: int) -> list[dict[str, Any]]:
    at = step.at
    if step.kind in ("user", "compact"):
        return [{"role": "user", "content": step.text, "at": at}]
    if step.kind == "say":
        return [{"role": "assistant", "content": step.text, "at": at, "finish_reason": "stop"}]
    if step.kind == "think":
        return [{"role": "assistant", "content": "", "reasoning_content": step.text, "at": at}]
    name, arguments = _tool(script, step)
    call_id = f"call_{digest(script.name, number)[:24]}"
    function = {"name": name, "arguments": dump(arguments)}
    calls = dump([{"id": call_id, "type": "function", "function": function}])
    answer = {"role": "tool", "content": step.answer or "ok", "tool_call_id": call_id}
    return [
        {"role": "assistant", "content": "", "tool_calls": calls, "at": at},
        {**answer, "tool_name": name, "at": at},
    ]


def _tool(script: Script, step: Step) -> tuple[str, dict[str, Any]]:
    path = f"{script.cwd}/{step.text}"
    if step.kind == "edit":
        return "patch", {"path": path, "old_string": step.old, "new_string": step.new}
    if step.kind == "write":
        return "write_file", {"path": path, "content": step.new}
    if step.kind == "read":
        return "read_file", {"path": path}
    if step.kind == "grep":
        pattern, _, where = step.text.partition(" | ")
        return "search_files", {"pattern": pattern, "path": where or "."}
    return "terminal", {"command": step.text}
