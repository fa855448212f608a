"""Claude Code, asked once: `claude -p`.

Source: flags and events as observed on version 2.1.332.
"""

import json
from collections.abc import Mapping
from typing import Any

from funes_ls.agents.agent import Agent

_ARGUMENTS = [
    "-p",
    "--tools",
    "",
    "--strict-mcp-config",
    "--no-session-persistence",
    "--settings",
    '{"disableAllHooks":true}',
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
]


def _arguments(_env: Mapping[str, str]) -> list[str]:
    return list(_ARGUMENTS)


def text_of(line: str) -> str:
    """Return what an event adds to the answer; whole messages, which repeat it, add nothing."""
    try:
        event: Any = json.loads(line)
        if event.get("type") != "stream_event":
            return ""
        delta = event["event"].get("delta") or {}
        return str(delta.get("text", "")) if delta.get("type") == "text_delta" else ""
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return ""


def reason_of(line: str) -> str:
    """Return what the last event says of a failure: a login that is missing, a limit reached."""
    try:
        event: Any = json.loads(line)
        failed = event.get("type") == "result" and event.get("is_error")
        return str(event.get("result") or event.get("subtype") or "") if failed else ""
    except (ValueError, AttributeError, TypeError, RecursionError):
        return ""


CLAUDE = Agent(
    name="claude",
    program="claude",
    arguments=_arguments,
    text_of=text_of,
    reason_of=reason_of,
    install="npm install -g @anthropic-ai/claude-code",
)
