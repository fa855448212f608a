"""Codex, asked once: `codex exec`.

The user's configuration is left out, since it may start MCP servers and hooks; what chooses the
model is taken over from it.

Source: flags and events as observed on version 0.171.0.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from funes_ls.agents.agent import Agent

_ARGUMENTS = [
    "exec",
    "--json",
    "--skip-git-repo-check",
    "--sandbox",
    "read-only",
    "--ephemeral",
    "--ignore-user-config",
    "--ignore-rules",
]
#: Keys of the user's configuration that say which model answers.
_MODEL_KEYS = ("model", "model_provider", "model_providers", "model_reasoning_effort")


def _arguments(env: Mapping[str, str]) -> list[str]:
    return [*_ARGUMENTS, *_model_options(env), "-"]


def _model_options(env: Mapping[str, str]) -> Iterator[str]:
    folder = env.get("CODEX_HOME") or str(Path(env.get("HOME", "")) / ".codex")
    try:
        config = tomllib.loads((Path(folder) / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for key in _MODEL_KEYS:
        if key in config:
            yield "-c"
            yield f"{key}={toml_value(config[key])}"


def toml_value(value: Any) -> str:
    """Return a value of a TOML file as TOML on one line."""
    if isinstance(value, dict):
        pairs = (f"{json.dumps(str(key))}={toml_value(one)}" for key, one in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(toml_value(one) for one in value) + "]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(str(value))


def text_of(line: str) -> str:
    """Return the message that an event completes, with an empty line after it."""
    try:
        event: Any = json.loads(line)
        item = event.get("item") or {}
        is_answer = event.get("type") == "item.completed" and item.get("type") == "agent_message"
        return f"{item['text']}\n" if is_answer else ""
    except (ValueError, KeyError, AttributeError, TypeError):
        return ""


CODEX = Agent(
    name="codex",
    program="codex",
    arguments=_arguments,
    text_of=text_of,
    install="npm install -g @openai/codex",
)
