"""Writes sample sessions as a Parquet file of agent traces, the form they are shared in."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.traces.ids import digest, dump, iso, uuid4
from tests.traces.script import Script, Step


def write(scripts: list[Script], path: Path) -> None:
    """Write one row per script."""
    rows = [
        {
            "session_id": session_id(script),
            "harness": script.head.get("facet", "claude_code"),
            "sent_at": iso(script.steps[0].at),
            "file_path": f"sessions/{script.name}.jsonl",
            "metadata": dump({"cwd": script.cwd}),
            "messages": [m for n, step in enumerate(script.steps) for m in _lines(script, step, n)],
        }
        for script in scripts
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path, compression="zstd")


def session_id(script: Script) -> str:
    """Return the id a session has by its script's name."""
    return uuid4("parquet", script.name)


def _lines(script: Script, step: Step, number: int) -> list[str]:
    return [dump(message) for message in _messages(script, step, number)]


def _messages(script: Script, step: Step, number: int) -> list[dict[str, Any]]:
    if step.kind == "user":
        return [{"role": "user", "content": step.text}]
    if step.kind == "say":
        return [{"role": "assistant", "content": step.text}]
    if step.kind == "think":
        return [{"role": "assistant", "reasoning_content": step.text}]
    call_id = f"call_{digest(script.name, number)[:12]}"
    name, arguments = "bash", {"command": step.text}
    if step.kind == "edit":
        name, arguments = "edit", {"path": step.text, "old_text": step.old, "new_text": step.new}
    elif step.kind == "write":
        name, arguments = "write", {"path": step.text, "content": step.new}
    call = {"id": call_id, "type": "function"}
    call["function"] = {"name": name, "arguments": dump(arguments)}  # type: ignore[assignment]
    return [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": step.answer or "ok"},
    ]
