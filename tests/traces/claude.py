"""Writes sample sessions as Claude Code does."""

from pathlib import Path
from typing import Any

from tests.traces.ids import digest, iso, munge, uuid4, write_lines
from tests.traces.script import Script, Step

MODEL = "claude-sonnet-4-5"
_DESCRIPTIONS = {"git": "Look at the repository", "cargo": "Run cargo", "pytest": "Run the tests"}


def write(scripts: list[Script], home: Path) -> None:
    """Write each script below `.claude/projects`; forks need their parents first."""
    written: dict[str, list[dict[str, Any]]] = {}
    for script in scripts:
        records = _records(script, written)
        written[script.name] = records
        torn = script.head.get("variant") == "torn"
        write_lines(_path(script, home), records, torn=torn)


def session_id(script: Script) -> str:
    """Return the id a session has by its script's name."""
    return uuid4("claude", script.name)


def _path(script: Script, home: Path) -> Path:
    folder = home / ".claude" / "projects" / munge(script.cwd)
    head = script.head
    if head.get("variant") == "subagent":
        return folder / uuid4("claude", head["parent"]) / "subagents" / f"{_agent(script)}.jsonl"
    if head.get("variant") == "old-subagent":
        return folder / f"{_agent(script)}.jsonl"
    return folder / f"{session_id(script)}.jsonl"


def _agent(script: Script) -> str:
    return f"agent-{digest('agent', script.name)[:8]}"


def _records(script: Script, written: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    writer = _Writer(script)
    if script.head.get("variant") == "fork":
        writer.copy(written[script.head["parent"]])
    elif "subagent" not in script.head.get("variant", ""):
        writer.records.append(
            {
                "type": "file-history-snapshot",
                "messageId": uuid4(script.name, "snapshot"),
                "snapshot": {"trackedFileBackups": {}, "timestamp": iso(script.steps[0].at)},
                "isSnapshotUpdate": False,
            }
        )
    for step in script.steps:
        writer.step(step)
    if "title" in script.head:
        writer.records.append(
            {"type": "ai-title", "aiTitle": script.head["title"], "sessionId": writer.session}
        )
    return writer.records


class _Writer:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.records: list[dict[str, Any]] = []
        self.side = "subagent" in script.head.get("variant", "")
        owner = script.head["parent"] if self.side else script.name
        self.session = uuid4("claude", owner)
        self.parent: str | None = None
        self.message = 0

    def copy(self, records: list[dict[str, Any]]) -> None:
        for record in records:
            if record["type"] in ("user", "assistant"):
                self.records.append({**record, "sessionId": self.session})
                self.parent = record["uuid"]

    def step(self, step: Step) -> None:
        if step.kind == "user":
            self.message += 1
            self.put("user", step, {"role": "user", "content": step.text})
        elif step.kind == "say":
            self.say(step, {"type": "text", "text": step.text})
        elif step.kind == "think":
            self.message += 1
            self.say(step, {"type": "thinking", "thinking": step.text, "signature": "c2FtcGxl"})
        elif step.kind == "queued":
            attachment = {"type": "queued_command", "prompt": step.text, "commandMode": "prompt"}
            self.put("attachment", step, None, {"attachment": attachment})
        elif step.kind == "compact":
            self.compact(step)
        else:
            self.call(step)

    def say(self, step: Step, part: dict[str, Any]) -> None:
        message = {
            "id": f"msg_{digest(self.script.name, self.message)[:24]}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [part],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 6, "output_tokens": len(str(part)) // 4},
        }
        self.put("assistant", step, message)

    def call(self, step: Step) -> None:
        name, tool_input = _tool(self.script, step)
        call_id = f"toolu_{digest(self.script.name, len(self.records))[:24]}"
        self.say(step, {"type": "tool_use", "id": call_id, "name": name, "input": tool_input})
        answer = {"tool_use_id": call_id, "type": "tool_result", "content": _answer(step)}
        if step.failed:
            answer["is_error"] = True
        self.put("user", step, {"role": "user", "content": [answer]})

    def compact(self, step: Step) -> None:
        boundary = {
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "level": "info",
            "logicalParentUuid": self.parent,
            "compactMetadata": {"trigger": "auto", "preTokens": 155_021},
        }
        self.parent = None
        self.put("system", step, None, boundary)
        flags = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
        self.put("user", step, {"role": "user", "content": step.text}, flags)

    def put(
        self,
        kind: str,
        step: Step,
        message: dict[str, Any] | None,
        more: dict[str, Any] | None = None,
    ) -> None:
        uuid = uuid4(self.script.name, len(self.records))
        record: dict[str, Any] = {
            "parentUuid": self.parent,
            "isSidechain": self.side,
            "userType": "external",
            "cwd": self.script.cwd,
            "sessionId": self.session,
            "version": self.script.head.get("version", "2.1.197"),
            "gitBranch": self.script.head.get("branch", "main"),
            "type": kind,
        }
        if self.side:
            record["agentId"] = _agent(self.script).removeprefix("agent-")
        if message is not None:
            record["message"] = message
        self.records.append({**record, **(more or {}), "uuid": uuid, "timestamp": iso(step.at)})
        self.parent = uuid


def _tool(script: Script, step: Step) -> tuple[str, dict[str, Any]]:
    path = f"{script.cwd}/{step.text}"
    if step.kind == "shell":
        words = step.text.split()
        told = _DESCRIPTIONS.get(words[0], f"Run {words[0]}")
        return "Bash", {"command": step.text, "description": told}
    if step.kind == "edit":
        return "Edit", {"file_path": path, "old_string": step.old, "new_string": step.new}
    if step.kind == "write":
        return "Write", {"file_path": path, "content": step.new}
    if step.kind == "read":
        return "Read", {"file_path": path}
    if step.kind == "delegate":
        title = step.text.splitlines()[0][:40]
        return "Task", {"description": title, "prompt": step.text, "subagent_type": "Explore"}
    pattern, _, where = step.text.partition(" | ")
    return "Grep", {"pattern": pattern, "path": where or ".", "output_mode": "content", "-n": True}


def _answer(step: Step) -> str | list[dict[str, str]]:
    if step.kind == "edit" and not step.answer:
        return f"The file {step.text} has been updated."
    if step.kind == "write" and not step.answer:
        return f"File created successfully at: {step.text}"
    if step.kind == "delegate":
        return [{"type": "text", "text": step.answer}]
    return step.answer
