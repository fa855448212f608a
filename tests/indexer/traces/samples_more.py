"""Small sessions of further harnesses, made up here: each asks for `src/kiln.py` and gets it."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILE = "/work/demo/src/kiln.py"
CODE = "def heat():\n    return 1250\n"
PROMPT = "Write the kiln module"
THOUGHT = "The kiln needs one function."
ANSWER = "The kiln module is written."


def write_json(path: Path, value: Any) -> Path:
    """Write a document, its folders too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_log(path: Path, *records: Any) -> Path:
    """Write records, one a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return path


def gemini_messages() -> list[dict[str, Any]]:
    """Return messages as Gemini CLI keeps them."""
    answer = [
        {"functionResponse": {"id": "w1", "name": "write_file", "response": {"output": "ok"}}}
    ]
    call = {"id": "w1", "name": "write_file", "args": {"file_path": FILE, "content": CODE}}
    at = "2026-03-02T10:00:00.000Z"
    return [
        {"id": "m1", "timestamp": at, "type": "user", "content": [{"text": PROMPT}]},
        {"id": "m2", "timestamp": at, "type": "info", "content": "update available"},
        {
            "id": "m3",
            "timestamp": at,
            "type": "gemini",
            "content": "",
            "thoughts": [{"subject": "Plan", "description": THOUGHT, "timestamp": at}],
            "toolCalls": [{**call, "status": "success", "result": answer, "timestamp": at}],
        },
        {"id": "m4", "timestamp": at, "type": "gemini", "content": ANSWER},
    ]


def gemini_head() -> dict[str, Any]:
    """Return what Gemini CLI says of a session."""
    return {"sessionId": "g-1", "projectHash": "abc", "startTime": "2026-03-02T10:00:00.000Z"}


def gemini(home: Path) -> Path:
    """Write a session of Gemini CLI."""
    path = home / ".gemini" / "tmp" / "demo" / "chats" / "session-2026-03-02T10-00-g1.json"
    document = {**gemini_head(), "messages": gemini_messages(), "directories": ["/work/demo"]}
    return write_json(path, document)


def qwen_record(number: int, kind: str, parts: Any, **more: Any) -> dict[str, Any]:
    """Return a record of Qwen Code."""
    return {
        "uuid": f"q{number}",
        "parentUuid": f"q{number - 1}" if number else None,
        "sessionId": "q-1",
        "timestamp": f"2026-03-02T10:0{number}:00.000Z",
        "type": kind,
        "cwd": "/work/demo",
        "gitBranch": "main",
        "message": {"role": kind, "parts": parts},
        **more,
    }


def qwen(home: Path) -> Path:
    """Write a session of Qwen Code."""
    call = {"id": "w1", "name": "write_file", "args": {"file_path": FILE, "content": CODE}}
    answer = {"id": "w1", "name": "write_file", "response": {"output": "ok"}}
    thought = {"text": THOUGHT, "thought": True}
    return write_log(
        home / ".qwen" / "projects" / "-work-demo" / "chats" / "q-1.jsonl",
        qwen_record(0, "user", [{"text": PROMPT}]),
        qwen_record(1, "assistant", [thought, {"functionCall": call}]),
        qwen_record(2, "tool_result", [{"functionResponse": answer}]),
        qwen_record(3, "assistant", [{"text": ANSWER}]),
    )


def event(number: int, kind: str, **data: Any) -> dict[str, Any]:
    """Return an event of Copilot CLI."""
    at = f"2026-03-02T10:0{number}:00.000Z"
    parent = f"e{number - 1}" if number else None
    return {"type": kind, "id": f"e{number}", "parentId": parent, "timestamp": at, "data": data}


def copilot(home: Path) -> Path:
    """Write a session of Copilot CLI."""
    call = {"toolCallId": "w1", "name": "create", "arguments": {"path": FILE, "file_text": CODE}}
    context = {"cwd": "/work/demo", "branch": "main"}
    asked: dict[str, Any] = {"content": "", "reasoningText": THOUGHT, "toolRequests": [call]}
    return write_log(
        home / ".copilot" / "session-state" / "c-1" / "events.jsonl",
        event(0, "session.start", sessionId="c-1", version=1, context=context),
        event(1, "user.message", content=PROMPT, transformedContent=f"<now/>{PROMPT}"),
        event(2, "assistant.message", messageId="a", **asked),
        event(3, "tool.execution_start", toolCallId="w1", toolName="create", arguments={}),
        event(
            4, "tool.execution_complete", toolCallId="w1", success=True, result={"content": "ok"}
        ),
        event(5, "assistant.message", messageId="b", content=ANSWER, toolRequests=[]),
    )


def cline(home: Path) -> Path:
    """Write a task of Cline, with calls as tags."""
    details = "<environment_details>\n# Current Working Directory (/work/demo) Files\nsrc/\n"
    first = [
        {"type": "text", "text": f"<task>\n{PROMPT}\n</task>"},
        {"type": "text", "text": details + "</environment_details>"},
    ]
    call = (
        f"<write_to_file>\n<path>src/kiln.py</path>\n<content>\n{CODE}</content>\n</write_to_file>"
    )
    told = f"<thinking>{THOUGHT}</thinking>\n{call}"
    result = "[write_to_file for 'src/kiln.py'] Result:"
    folder = home / ".cline" / "data" / "tasks" / "1772445600000"
    write_json(folder / "ui_messages.json", [{"ts": 1772445660000, "conversationHistoryIndex": 0}])
    return write_json(
        folder / "api_conversation_history.json",
        [
            {"role": "user", "content": first},
            {"role": "assistant", "content": [{"type": "text", "text": told}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": result},
                    {"type": "text", "text": "The content was saved."},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
        ],
    )


def vscode_document() -> dict[str, Any]:
    """Return a session of Copilot chat."""
    given = json.dumps({"filePath": FILE, "content": CODE})
    call = {"id": "w1", "name": "create_file", "arguments": given}
    rounds = [
        {"response": "", "thinking": {"text": THOUGHT}, "toolCalls": [call]},
        {"response": ANSWER, "toolCalls": []},
    ]
    results = {"w1": {"content": [{"value": "ok"}]}}
    request = {
        "requestId": "r1",
        "timestamp": 1772445600000,
        "message": {"text": PROMPT, "parts": []},
        "response": [{"kind": "progressTaskSerialized"}, {"value": ANSWER}],
        "result": {"metadata": {"toolCallRounds": rounds, "toolCallResults": results}},
    }
    return {"version": 3, "sessionId": "v-1", "requests": [request]}


def vscode(home: Path) -> Path:
    """Write a session of Copilot chat in VS Code."""
    storage = home / ".vscode-server" / "data" / "User" / "workspaceStorage" / "f00"
    write_json(storage / "workspace.json", {"folder": "file:///work/demo"})
    return write_json(storage / "chatSessions" / "v-1.json", vscode_document())


def opencode(home: Path) -> Path:
    """Write a database of opencode."""
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True, exist_ok=True)
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
    with sqlite3.connect(path) as base:
        base.executescript(
            "CREATE TABLE session (id TEXT PRIMARY KEY, directory TEXT, title TEXT,"
            " parent_id TEXT);"
            "CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_updated INTEGER,"
            " data TEXT);"
            "CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT,"
            " time_updated INTEGER, data TEXT);"
            "INSERT INTO session VALUES ('ses_1', '/work/demo', 'New session - 1', NULL);"
        )
        for number, (message, held) in enumerate(parts.items()):
            role = "assistant" if number else "user"
            info = json.dumps({"role": role, "time": {"created": 1772445600000 + number}})
            base.execute("INSERT INTO message VALUES (?, 'ses_1', 1, ?)", (message, info))
            for at, part in enumerate(held):
                row = (f"prt_{number}{at}", message, number, json.dumps(part))
                base.execute("INSERT INTO part VALUES (?, ?, 'ses_1', ?, ?)", row)
    base.close()
    return path


SAMPLES: dict[str, Callable[[Path], Path]] = {
    "gemini": gemini,
    "qwen": qwen,
    "copilot": copilot,
    "cline": cline,
    "vscode": vscode,
    "opencode": opencode,
}
