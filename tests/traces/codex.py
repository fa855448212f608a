"""Writes sample sessions as Codex does: current, older, bare-era, archived and compressed."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import zstandard

from tests.traces.ids import digest, dump, iso, uuid7, write_lines
from tests.traces.script import Script, Step

_INSTRUCTIONS = "You are a coding agent running in a terminal. Be precise, safe and helpful."


def write(scripts: list[Script], home: Path) -> None:
    """Write each script below `.codex`."""
    by_name = {script.name: script for script in scripts}
    for script in scripts:
        records = _bare(script) if _variant(script) == "bare" else _current(script, by_name)
        path = _path(script, home)
        if _variant(script) == "zst":
            text = "".join(dump(record) + "\n" for record in records)
            packed = zstandard.ZstdCompressor(level=10).compress(text.encode())
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_name(path.name + ".zst").write_bytes(packed)
        else:
            write_lines(path, records)


def session_id(script: Script) -> str:
    """Return the id a session has by its script's name."""
    return uuid7(_start(script), "codex", script.name)


def _variant(script: Script) -> str:
    return script.head.get("variant", "")


def _start(script: Script) -> datetime:
    return datetime.fromisoformat(script.head["start"])


def _path(script: Script, home: Path) -> Path:
    start = _start(script)
    name = f"rollout-{start:%Y-%m-%dT%H-%M-%S}-{session_id(script)}.jsonl"
    if _variant(script) == "archived":
        return home / ".codex" / "archived_sessions" / name
    return home / ".codex" / "sessions" / f"{start:%Y}" / f"{start:%m}" / f"{start:%d}" / name


def _current(script: Script, by_name: dict[str, Script]) -> list[dict[str, Any]]:
    sid, start = session_id(script), _start(script)
    remote = f"https://git.example.invalid/lab/{script.head['project']}.git"
    meta: dict[str, Any] = {
        "id": sid,
        "timestamp": iso(start),
        "cwd": script.cwd,
        "originator": "codex_cli",
        "cli_version": script.head.get("version", "0.171.0"),
        "source": "cli",
        "model_provider": "sample",
        "base_instructions": {"text": _INSTRUCTIONS},
        "git": {
            "commit_hash": digest(script.name, "commit")[:40],
            "branch": script.head.get("branch", "main"),
            "repository_url": remote,
        },
    }
    parent = by_name.get(script.head.get("parent", ""))
    if _variant(script) == "fork" and parent:
        meta |= {"forked_from_id": session_id(parent), "history_mode": "paginated"}
    if _variant(script) == "subagent" and parent:
        spawned = {"parent_thread_id": session_id(parent), "depth": 1}
        meta |= {"parent_thread_id": session_id(parent)}
        meta |= {"source": {"subagent": {"thread_spawn": spawned}}}
    lines = [(start, "session_meta", meta)]
    lines.append((start, "response_item", _message("user", _environment(script))))
    lines.append((start, "turn_context", {"cwd": script.cwd, "model": "sample-model"}))
    for number, step in enumerate(script.steps):
        lines += [(at, "response_item", item) for at, item in _items(script, step, number)]
        if step.kind == "user":
            event = {"type": "user_message", "message": step.text, "kind": "plain"}
            lines.append((step.at, "event_msg", event))
        elif step.kind == "compact":
            lines.append((step.at, "compacted", {"message": step.text, "replacement_history": []}))
    lines.append((script.steps[-1].at, "event_msg", {"type": "token_count", "info": None}))
    return [
        {"timestamp": iso(at), "ordinal": ordinal, "type": kind, "payload": payload}
        for ordinal, (at, kind, payload) in enumerate(lines)
    ]


def _bare(script: Script) -> list[dict[str, Any]]:
    git = {"commit_hash": digest(script.name, "commit")[:40], "branch": "main"}
    start = iso(_start(script))
    head = {"id": session_id(script), "timestamp": start, "instructions": None, "git": git}
    records: list[dict[str, Any]] = [head, {"record_type": "state"}]
    records.append(_message("user", _environment(script)))
    for number, step in enumerate(script.steps):
        records += [item for _, item in _items(script, step, number)]
        records.append({"record_type": "state"})
    return records


def _environment(script: Script) -> str:
    where = f"  <cwd>{script.cwd}</cwd>\n  <shell>bash</shell>"
    return f"<environment_context>\n{where}\n</environment_context>"


def _message(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _items(script: Script, step: Step, number: int) -> list[tuple[datetime, dict[str, Any]]]:
    if step.kind == "user":
        return [(step.at, _message("user", step.text))]
    if step.kind == "say":
        return [(step.at, _message("assistant", step.text))]
    if step.kind == "think":
        summary = [{"type": "summary_text", "text": step.text}]
        return [(step.at, {"type": "reasoning", "summary": summary, "encrypted_content": "Z0FB"})]
    if step.kind == "compact":
        return []
    call_id = f"call_{digest(script.name, number)[:24]}"
    later = step.at + timedelta(milliseconds=412)
    if step.kind in ("edit", "write"):
        patch = {"type": "custom_tool_call", "status": "completed", "call_id": call_id}
        patch |= {"name": "apply_patch", "input": _patch(step)}
        done = step.answer or f"Success. Updated the following files:\nM {step.text}"
        answer = {"type": "custom_tool_call_output", "call_id": call_id, "output": done}
        return [(step.at, patch), (later, answer)]
    command = _command(step)
    call = {"type": "function_call", "name": "exec_command", "call_id": call_id}
    call["arguments"] = dump({"cmd": command})
    if _variant(script) == "bare":
        call |= {"name": "shell", "arguments": dump({"command": ["bash", "-lc", command]})}
    out = {"type": "function_call_output", "call_id": call_id, "output": _output(step, call_id)}
    return [(step.at, call), (later, out)]


def _command(step: Step) -> str:
    if step.kind == "read":
        return f"sed -n '1,200p' {step.text}"
    if step.kind == "grep":
        pattern, _, where = step.text.partition(" | ")
        return f"rg -n '{pattern}' {where or '.'}"
    return step.text


def _output(step: Step, call_id: str) -> str:
    code = 1 if step.failed else 0
    head = f"Chunk ID: {call_id[-6:]}\nWall time: 0.4120 seconds\nProcess exited with code {code}"
    return f"{head}\nOutput:\n{step.answer}\n"


def _patch(step: Step) -> str:
    if step.kind == "write":
        body = "".join(f"+{line}\n" for line in step.new.rstrip("\n").split("\n"))
        return f"*** Begin Patch\n*** Add File: {step.text}\n{body}*** End Patch\n"
    old = "".join(f"-{line}\n" for line in step.old.split("\n"))
    new = "".join(f"+{line}\n" for line in step.new.split("\n"))
    return f"*** Begin Patch\n*** Update File: {step.text}\n@@\n{old}{new}*** End Patch\n"
