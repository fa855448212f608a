"""Codex, asked once: `codex exec`.

The user's configuration is left out, since it may start MCP servers, hooks and a notifier; what
says who answers and how to log in is taken over from it. Where that holds secrets, which have no
place on a command line that others on the machine can read, the configuration is kept and what
it starts is switched off by name.

Source: flags, events and features as observed on version 0.171.0: with these, the model is
offered `request_user_input`, which nobody answers, and `apply_patch`, which the sandbox refuses.
"""

import json
import re
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
    "--ignore-rules",
]
#: Each is a tool, or a way to come by tools; an older or newer program ignores those it lacks.
_FEATURES = (
    *("shell_tool", "unified_exec", "view_image", "image_generation", "goals", "multi_agent"),
    *("apps", "plugins", "hooks", "tool_suggest", "skill_search", "memories"),
    *("browser_use", "computer_use"),
)
#: Analytics are off since the user's own word on them is left out with the rest.
_OFF = (
    'web_search="disabled"',
    "notify=[]",
    "analytics.enabled=false",
    "feedback.enabled=false",
    "check_for_update_on_startup=false",
)
#: Keys of the user's configuration that say which model answers and where the login is.
_KEPT = (
    *("model", "model_provider", "model_reasoning_effort", "model_verbosity", "service_tier"),
    *("model_context_window", "oss_provider", "openai_base_url", "chatgpt_base_url"),
    *("cli_auth_credentials_store", "forced_login_method", "forced_chatgpt_workspace_id"),
)
#: Keys of a provider that hold no secret; an address may, in its query or before an `@`.
_PLAIN = {
    *("name", "base_url", "wire_api", "env_key", "env_key_instructions", "env_http_headers"),
    *("requires_openai_auth", "request_max_retries", "stream_max_retries"),
    *("stream_idle_timeout_ms", "supports_websockets"),
}
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def _arguments(env: Mapping[str, str]) -> list[str]:
    features = [f"features.{name}=false" for name in _FEATURES]
    config = _configuration(env)
    provider = _provider(config)
    if _has_secret(provider):
        kept = [f"mcp_servers.{name}.enabled=false" for name in _servers(config)]
        return [*_ARGUMENTS, *_options([*features, *_OFF, *kept]), "-"]
    own = [f"{key}={toml_value(config[key])}" for key in _KEPT if key in config]
    if provider:
        name = str(config["model_provider"])
        own.append(f"model_providers={toml_value({name: provider})}")
    return [*_ARGUMENTS, "--ignore-user-config", *_options([*features, *_OFF, *own]), "-"]


def _options(pairs: list[str]) -> Iterator[str]:
    for pair in pairs:
        yield "-c"
        yield pair


def _configuration(env: Mapping[str, str]) -> dict[str, Any]:
    home = env.get("HOME") or env.get("USERPROFILE") or ""
    folder = env.get("CODEX_HOME") or (home and str(Path(home) / ".codex"))
    if not folder:
        return {}
    try:
        return tomllib.loads((Path(folder) / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}


def _provider(config: Mapping[str, Any]) -> dict[str, Any]:
    providers = config.get("model_providers")
    found = providers.get(config.get("model_provider")) if isinstance(providers, dict) else None
    return found if isinstance(found, dict) else {}


def _has_secret(provider: Mapping[str, Any]) -> bool:
    address = str(provider.get("base_url", ""))
    return not set(provider) <= _PLAIN or "@" in address or "?" in address


def _servers(config: Mapping[str, Any]) -> list[str]:
    servers = config.get("mcp_servers")
    return [name for name in servers if _BARE.fullmatch(name)] if isinstance(servers, dict) else []


def toml_value(value: Any) -> str:
    """Return a value of a TOML file as TOML on one line."""
    if isinstance(value, dict):
        pairs = (f"{_quoted(str(key))}={toml_value(one)}" for key, one in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(toml_value(one) for one in value) + "]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return _quoted(str(value))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def text_of(line: str) -> str:
    """Return the message that an event completes, with an empty line after it."""
    try:
        event: Any = json.loads(line)
        item = event.get("item") or {}
        is_answer = event.get("type") == "item.completed" and item.get("type") == "agent_message"
        return f"{item['text']}\n" if is_answer else ""
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return ""


def reason_of(line: str) -> str:
    """Return what an event says of a failure: a login that is missing, a limit reached."""
    try:
        event: Any = json.loads(line)
        if event.get("type") == "turn.failed":
            return str(event["error"]["message"])
        return str(event["message"]) if event.get("type") == "error" else ""
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return ""


CODEX = Agent(
    name="codex",
    program="codex",
    arguments=_arguments,
    text_of=text_of,
    reason_of=reason_of,
    install="npm install -g @openai/codex",
)
