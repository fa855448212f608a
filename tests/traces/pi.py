"""Writes sample sessions as pi does, in its first and its current version."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.traces.ids import digest, iso, uuid7, write_lines
from tests.traces.script import Script, Step


def write(scripts: list[Script], home: Path) -> None:
    """Write each script below `.pi/agent/sessions`; forks need their parents first."""
    by_name = {script.name: script for script in scripts}
    written: dict[str, list[dict[str, Any]]] = {}
    for script in scripts:
        head: dict[str, Any] = {"type": "session", "version": 3, "id": _session(script)}
        head |= {"timestamp": iso(_start(script)), "cwd": script.cwd}
        parent = script.head.get("parent", "")
        entries = list(written[parent]) if parent else []
        if parent:
            folder = f"/home/dev/.pi/agent/sessions/{_folder(script)}"
            head["parentSession"] = f"{folder}/{stem(by_name[parent])}.jsonl"
        entries += _entries(script, entries[-1]["id"] if entries else None)
        written[script.name] = entries
        if script.head.get("variant") == "v1":
            del head["version"]
            entries = [_as_v1(entry) for entry in entries]
        path = home / ".pi" / "agent" / "sessions" / _folder(script) / f"{stem(script)}.jsonl"
        write_lines(path, [head, *entries])


def stem(script: Script) -> str:
    """Return the file stem of a session: its start and its id."""
    return f"{iso(_start(script)).replace(':', '-').replace('.', '-')}_{_session(script)}"


def _start(script: Script) -> datetime:
    return datetime.fromisoformat(script.head["start"])


def _session(script: Script) -> str:
    return uuid7(_start(script), "pi", script.name)


def _folder(script: Script) -> str:
    return f"--{script.cwd.removeprefix('/').replace('/', '-')}--"


def _as_v1(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in ("id", "parentId")}


def _entries(script: Script, parent: str | None) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []

    def put(kind: str, at: datetime, more: dict[str, Any]) -> None:
        nonlocal parent
        entry_id = digest(script.name, len(entries))[:8]
        entries.append(
            {"type": kind, "id": entry_id, "parentId": parent, "timestamp": iso(at), **more}
        )
        parent = entry_id

    put("model_change", _start(script), {"provider": "sample", "modelId": "sample-model"})
    for step in script.steps:
        if step.kind == "compact":
            more = {"summary": step.text, "firstKeptEntryId": parent, "tokensBefore": 98_412}
            put("compaction", step.at, more)
        else:
            for at, message in _messages(script, step, len(entries)):
                put("message", at, {"message": message})
    return entries


def _messages(script: Script, step: Step, number: int) -> list[tuple[datetime, dict[str, Any]]]:
    ms = int(step.at.timestamp() * 1000)
    if step.kind == "user":
        content = [{"type": "text", "text": step.text}]
        return [(step.at, {"role": "user", "content": content, "timestamp": ms})]
    if step.kind == "queued":
        run = {"role": "bashExecution", "command": step.text, "output": "", "exitCode": 0}
        return [(step.at, {**run, "cancelled": False, "truncated": False, "timestamp": ms})]
    if step.kind == "say":
        return [(step.at, _assistant({"type": "text", "text": step.text}, ms, "stop"))]
    if step.kind == "think":
        part = {"type": "thinking", "thinking": step.text, "thinkingSignature": "reasoning_content"}
        return [(step.at, _assistant(part, ms, "stop"))]
    name, arguments = _tool(step)
    call_id = f"call_{digest(script.name, number)[:20]}"
    call = {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}
    later = step.at + timedelta(milliseconds=350)
    answer = step.answer or f"Successfully changed {step.text}."
    result = {
        "role": "toolResult",
        "toolCallId": call_id,
        "toolName": name,
        "content": [{"type": "text", "text": answer}],
        "isError": step.failed,
        "timestamp": int(later.timestamp() * 1000),
    }
    return [(step.at, _assistant(call, ms, "toolUse")), (later, result)]


def _assistant(part: dict[str, Any], ms: int, stop: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": [part],
        "provider": "sample",
        "model": "sample-model",
        "stopReason": stop,
        "timestamp": ms,
    }


def _tool(step: Step) -> tuple[str, dict[str, Any]]:
    if step.kind == "edit":
        return "edit", {"path": step.text, "oldText": step.old, "newText": step.new}
    if step.kind == "write":
        return "write", {"path": step.text, "content": step.new}
    if step.kind == "read":
        return "read", {"path": step.text}
    if step.kind == "grep":
        pattern, _, where = step.text.partition(" | ")
        return "grep", {"pattern": pattern, "path": where or "."}
    return "bash", {"command": step.text}
