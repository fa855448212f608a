"""The agents there are: how each is configured and called, and what its traces look like."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.agents.agents import Agent, Place, Written, records

#: A key that opens nothing; agents insist on having one.
NO_KEY = "sk-not-a-key"


class Claude(Agent, frozen=True, kw_only=True):
    """Claude Code."""

    name: str = "claude"
    harness: str = "claude_code"
    traces: str = ".claude/projects"
    model: str = ""

    def prepare(self, place: Place, url: str) -> dict[str, str]:
        """Return the model's address, and that nothing else is to be called up."""
        silent = (
            "DISABLE_AUTOUPDATER",
            "DISABLE_TELEMETRY",
            "DISABLE_ERROR_REPORTING",
            "DISABLE_BUG_COMMAND",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        )
        return {
            **dict.fromkeys(silent, "1"),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": NO_KEY,
        }

    def argv(
        self, prompt: str, *, url: str, resume: str, denied: bool, flags: Sequence[str]
    ) -> list[str]:
        """Return the arguments: nobody is there to be asked, so what is not allowed is denied."""
        allowed = ["--allowedTools", "Bash,Edit,Write,Read"]
        session = ["--resume", resume] if resume else []
        return ["-p", *session, *([] if denied else allowed), *flags, "--", prompt]

    def written(self, trace: Path, call_id: str) -> Written:
        """Return the record of a call; each block of a message has its own."""
        for record in records(trace):
            content = (record.get("message") or {}).get("content")
            if record["type"] == "assistant" and _has(content, "tool_use", call_id):
                return Written(session_id=trace.stem, turn_uuid=record["uuid"])
        raise AssertionError(f"no call {call_id} in {trace.name}")

    def resumable(self, trace: Path) -> str:
        """Return the session's id."""
        return trace.stem


class Codex(Agent, frozen=True, kw_only=True):
    """Codex. With `model` it knows `apply_patch` as a tool, with others as a command only."""

    name: str = "codex"
    harness: str = "codex"
    traces: str = ".codex/sessions"
    model: str = "gpt-5.5"

    def prepare(self, place: Place, url: str) -> dict[str, str]:
        """Return the variables; the rest are arguments."""
        (place.home / ".codex").mkdir(exist_ok=True)
        return {"CODEX_HOME": str(place.home / ".codex"), "SCRIPTED_KEY": NO_KEY}

    def argv(
        self, prompt: str, *, url: str, resume: str, denied: bool, flags: Sequence[str]
    ) -> list[str]:
        """Return the arguments, the provider among them."""
        provider = (
            f'{{name="scripted", base_url="{url}/v1", wire_api="responses",'
            ' env_key="SCRIPTED_KEY"}'
        )
        settings = {
            "model_provider": '"scripted"',
            "model_providers.scripted": provider,
            "model": json.dumps(self.model),
            "check_for_update_on_startup": "false",
            "analytics.enabled": "false",
            "feedback.enabled": "false",
        }
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        may = ["-s", "read-only"] if denied else ["--dangerously-bypass-approvals-and-sandbox"]
        session = ["resume", resume] if resume else []
        return [*options, "exec", "--skip-git-repo-check", *may, *flags, *session, prompt]

    def written(self, trace: Path, call_id: str) -> Written:
        """Return the place of a call: rollouts number what was said, and have no ids for it."""
        session_id, number = "", 0
        for record in records(trace):
            payload = record["payload"]
            if record["type"] == "session_meta":
                session_id = session_id or payload["id"]
            if record["type"] != "response_item":
                continue
            if payload.get("call_id") == call_id and not payload["type"].endswith("_output"):
                return Written(session_id=session_id, turn_uuid=f"{session_id}-{number}")
            number += _is_said(payload)
        raise AssertionError(f"no call {call_id} in {trace.name}")

    def resumable(self, trace: Path) -> str:
        """Return the session's id."""
        return str(next(iter(records(trace)))["payload"]["id"])


def _is_said(payload: dict[str, Any]) -> bool:
    """Tell whether an item of a rollout says something, so that it counts."""
    if payload["type"] == "message":
        return any(part.get("text", "").strip() for part in payload["content"])
    if payload["type"] == "reasoning":
        return any(part["text"].strip() for part in payload["summary"])
    return bool(payload.get("output", "-"))


class Pi(Agent, frozen=True, kw_only=True):
    """The pi coding agent."""

    name: str = "pi"
    harness: str = "pi"
    traces: str = ".pi/agent/sessions"
    model: str = "scripted-1"

    def prepare(self, place: Place, url: str) -> dict[str, str]:
        """Write the list of models, of which there is one."""
        model = {
            "id": self.model,
            "name": self.model,
            "reasoning": True,
            "input": ["text"],
            "contextWindow": 128_000,
            "maxTokens": 8_192,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        }
        provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": NO_KEY}
        folder = place.home / ".pi" / "agent"
        folder.mkdir(parents=True, exist_ok=True)
        listed = {"providers": {"scripted": {**provider, "models": [model]}}}
        (folder / "models.json").write_text(json.dumps(listed), encoding="utf-8")
        return {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}

    def argv(
        self, prompt: str, *, url: str, resume: str, denied: bool, flags: Sequence[str]
    ) -> list[str]:
        """Return the arguments; pi asks for no permissions."""
        assert not denied
        session = ["--session", resume] if resume else []
        return ["--provider", "scripted", "--model", self.model, *session, *flags, "-p", prompt]

    def written(self, trace: Path, call_id: str) -> Written:
        """Return the entry of a call."""
        for record in records(trace):
            content = (record.get("message") or {}).get("content")
            if record["type"] == "message" and _has(content, "toolCall", call_id):
                return Written(session_id=trace.stem, turn_uuid=record["id"])
        raise AssertionError(f"no call {call_id} in {trace.name}")

    def resumable(self, trace: Path) -> str:
        """Return the file, which is what pi takes."""
        return str(trace)


def _has(content: Any, kind: str, call_id: str) -> bool:
    parts = content if isinstance(content, list) else []
    return any(part.get("type") == kind and part.get("id") == call_id for part in parts)


CLAUDE = Claude()
CODEX = Codex()
#: A model that has no tool for patches: they go through the shell.
CODEX_SHELL = Codex(model="gpt-5-codex")
PI = Pi()
