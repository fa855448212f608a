"""Records as the harnesses write them, made up here, for tests that damage or multiply them."""

import json
from typing import Any

SESSION = "00000000-0000-4000-8000-00000000c0de"


def claude(
    number: int, content: Any, *, role: str = "user", session: str = SESSION, **more: Any
) -> dict[str, Any]:
    """Return a record of Claude Code."""
    return {
        "parentUuid": f"u{number - 1:04d}" if number else None,
        "isSidechain": False,
        "type": role,
        "message": {"role": role, "content": content},
        "uuid": f"u{number:04d}",
        "timestamp": f"2026-03-02T10:{number % 60:02d}:00.000Z",
        "cwd": "/work/demo",
        "sessionId": session,
        "gitBranch": "main",
        **more,
    }


def codex(number: int, payload: dict[str, Any], *, kind: str = "response_item") -> dict[str, Any]:
    """Return a line of a Codex rollout."""
    return {
        "timestamp": f"2026-03-02T11:{number % 60:02d}:00.000Z",
        "type": kind,
        "payload": payload,
    }


def codex_header(session: str = SESSION, **more: Any) -> dict[str, Any]:
    """Return the first line of a Codex rollout."""
    return codex(0, {"id": session, "cwd": "/work/demo", **more}, kind="session_meta")


def codex_text(number: int, text: str, *, role: str = "user") -> dict[str, Any]:
    """Return a Codex message."""
    part = "output_text" if role == "assistant" else "input_text"
    content = [{"type": part, "text": text}]
    return codex(number, {"type": "message", "role": role, "content": content})


def pi_header(version: int = 3, **more: Any) -> dict[str, Any]:
    """Return the first line of a pi session."""
    return {"type": "session", "version": version, "id": SESSION, "cwd": "/work/demo", **more}


def pi(number: int, message: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a message entry of pi."""
    return {
        "type": "message",
        "id": f"{number:08x}",
        "parentId": f"{number - 1:08x}" if number else None,
        "timestamp": f"2026-03-02T12:{number % 60:02d}:00.000Z",
        "message": message,
        **more,
    }


def sample(harness: str) -> list[bytes]:
    """Return the lines of a small session with every kind of block, with line feeds."""
    return [json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in _SAMPLES[harness]]


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


_SAMPLES: dict[str, list[dict[str, Any]]] = {
    "claude": [
        {"type": "summary", "summary": "a title", "leafUuid": "u0001"},
        claude(0, "why does the kiln log rotate — twice?"),
        claude(
            1,
            [
                {"type": "thinking", "thinking": "look at the 外注 settings 🚀"},
                {
                    "type": "tool_use",
                    "id": "t1",
                    "name": "Bash",
                    "input": {"command": "ls", "n": 1},
                },
            ],
            role="assistant",
        ),
        claude(2, [{"type": "tool_result", "tool_use_id": "t1", "content": _text("kiln.log")}]),
        {
            **claude(3, "unused"),
            "type": "attachment",
            "attachment": {"type": "queued_command", "prompt": "and hurry up"},
        },
        claude(4, _text("It rotates twice because two timers run."), role="assistant"),
    ],
    "codex": [
        codex_header(git={"branch": "main", "repository_url": "https://git.invalid/o/kiln.git"}),
        codex_text(1, "<environment_context><cwd>/work/demo</cwd></environment_context>"),
        codex_text(2, "why does the kiln log rotate — twice?"),
        codex(
            3,
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "look at the 外注 settings 🚀"}],
            },
        ),
        codex(
            4,
            {
                "type": "function_call",
                "name": "exec_command",
                "arguments": '{"cmd":"ls"}',
                "call_id": "c1",
            },
        ),
        codex(5, {"type": "function_call_output", "call_id": "c1", "output": "kiln.log"}),
        codex(6, {"type": "web_search_call", "action": {"type": "search", "query": "kiln"}}),
        codex_text(7, "It rotates twice because two timers run.", role="assistant"),
    ],
    "pi": [
        pi_header(),
        pi(0, {"role": "user", "content": _text("why does the kiln log rotate — twice?")}),
        pi(
            1,
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "look at the 外注 settings 🚀"},
                    {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"cmd": "ls"}},
                ],
            },
        ),
        pi(
            2,
            {
                "role": "toolResult",
                "toolCallId": "c1",
                "toolName": "bash",
                "content": _text("kiln.log"),
            },
        ),
        pi(3, {"role": "bashExecution", "command": "date", "output": "Monday"}),
        pi(4, {"role": "assistant", "content": _text("It rotates twice.")}),
    ],
}
