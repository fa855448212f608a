"""Builds small Claude Code transcripts for tests, record by record."""

import json
import os
from pathlib import Path
from typing import Any


def record(
    text: str | list[dict[str, Any]],
    *,
    uuid: str,
    role: str = "user",
    ts: str | None = "2026-03-02T10:00:00.000Z",
    cwd: str = "/work/demo",
    **more: Any,
) -> dict[str, Any]:
    """Return one user or assistant record; `ts=None` leaves the timestamp out."""
    content = [{"type": "text", "text": text}] if role == "assistant" else text
    if isinstance(text, list):
        content = text
    found = {
        "parentUuid": None,
        "isSidechain": False,
        "type": role,
        "uuid": uuid,
        "sessionId": "inner",
        "cwd": cwd,
        "message": {"role": role, "content": content},
        **more,
    }
    return found if ts is None else {**found, "timestamp": ts}


def tool_use(name: str, args: dict[str, Any], *, id: str) -> list[dict[str, Any]]:
    """Return the content of a turn that calls a tool."""
    return [{"type": "tool_use", "id": id, "name": name, "input": args}]


def tool_result(text: str, *, id: str) -> list[dict[str, Any]]:
    """Return the content of a turn that answers a call."""
    return [{"type": "tool_result", "tool_use_id": id, "content": text}]


def write(path: Path, records: list[dict[str, Any]], *, mtime_s: int | None = None) -> Path:
    """Write a transcript and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    if mtime_s is not None:
        os.utime(path, (mtime_s, mtime_s))
    return path


def append(path: Path, records: list[dict[str, Any]]) -> None:
    """Add records to a transcript as an agent does."""
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(one) + "\n" for one in records))
