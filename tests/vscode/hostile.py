"""A session whose every text tries to be more than text."""

import json
from pathlib import Path
from typing import Any

from tests.editors.editor import Sample

#: A word that only this session has.
WORD = "zebrafinch"
EVIL = (
    f"[{WORD}](command:workbench.action.terminal.new) <b>{WORD}</b> <script>alert(1)</script> "
    "![x](https://example.invalid/x.png) $(zap) \u202egnp.exe\u202c \u001b[31mred\u001b]0;x\u0007 "
    "`code` **bold** [more](command:workbench.action.quit)"
)
_LINES = "first_zebra_line = 'of a bird'\nsecond_zebra_line = 'of another bird'\n"


def write(sample: Sample) -> Path:
    """Write the session and the file that it made; return the file."""
    file = sample.project / "zebra.py"
    session = "00000000-0000-4000-8000-00000000feed"
    call = {"type": "tool_use", "id": "toolu_zebra", "name": "Write"}
    call["input"] = {"file_path": str(file), "content": _LINES}  # type: ignore[assignment]
    done = {"type": "tool_result", "tool_use_id": "toolu_zebra", "content": "File created."}
    said: list[tuple[str, Any]] = [
        ("user", EVIL),
        ("assistant", [{"type": "text", "text": f"I write it, {EVIL}."}]),
        ("assistant", [call]),
        ("user", [done]),
    ]
    trace = sample.home / ".claude" / "projects" / "-zebra" / f"{session}.jsonl"
    trace.parent.mkdir(parents=True, exist_ok=True)
    lines = [_record(sample, session, at, *one) for at, one in enumerate(said)]
    trace.write_text("".join(f"{json.dumps(one)}\n" for one in lines), encoding="utf-8")
    file.write_text(_LINES, encoding="utf-8")
    return file


def _record(sample: Sample, session: str, at: int, role: str, content: Any) -> dict[str, Any]:
    return {
        "parentUuid": _uuid(at - 1) if at else None,
        "isSidechain": False,
        "userType": "external",
        "cwd": str(sample.project),
        "sessionId": session,
        "version": "2.1.197",
        "gitBranch": "main",
        "type": role,
        "message": {"role": role, "content": content},
        "uuid": _uuid(at),
        "timestamp": f"2026-03-11T13:02:{at:02d}.243Z",
    }


def _uuid(at: int) -> str:
    return f"00000000-0000-4000-8000-{at:012d}"
