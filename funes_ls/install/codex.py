"""Codex: a server in config.toml, by its own command, and hooks in hooks.json.

Codex runs no hook that its user has not looked at. That consent is his: it is never written here.

Source: commands, files and events as observed on version 0.171.0.
"""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from funes_ls.install import entries, files, hook_script, jsonc, toml
from funes_ls.install.entries import Entry
from funes_ls.install.plan import Change, Command, Plan, Wanted

PROGRAM = "codex"
INSTALL = "npm install -g @openai/codex"
_SERVER = "funes"
#: Both have been there as long as hooks: an older Codex may refuse a file that names others.
_EVENTS = ("SessionStart", "Stop")
_HOOK_S = 10
_REVIEW = (
    "Codex runs new hooks only after you have looked at them: start `codex` and open `/hooks`."
)


def _config(wanted: Wanted) -> Path:
    return wanted.place("CODEX_HOME", ".codex") / "config.toml"


def _hooks(wanted: Wanted) -> Path:
    return wanted.place("CODEX_HOME", ".codex") / "hooks.json"


def tracked(wanted: Wanted) -> list[Path]:
    """Return the two files."""
    return [_config(wanted), _hooks(wanted)]


def trees(_wanted: Wanted) -> list[Path]:
    """Return nothing: no folder in Codex's place is ours."""
    return []


def our_entries(wanted: Wanted) -> list[Entry]:
    """Return our hooks."""
    return [
        Entry(_hooks(wanted), ("hooks", event), hook_script.runs_ours(wanted)) for event in _EVENTS
    ]


def containers(wanted: Wanted, read: Callable[[Path], bytes | None]) -> set[str]:
    """Return what around our entries is not there yet."""
    return entries.containers(our_entries(wanted), read)


def add(wanted: Wanted) -> Plan:
    """Return what registers the server and the hooks, as far as that is still to be done."""
    own = hook_script.writing(wanted)
    return Plan(steps=tuple(own)).then(_server(wanted)).then(_hook_plan(wanted))


def _server(wanted: Wanted) -> Plan:
    try:
        found = _found(wanted)
    except files.ConfigError as exc:
        return Plan(problems=(str(exc),), by_hand=(_block(wanted),))
    command, *arguments = wanted.server
    is_same = (
        found.get("command") == command
        and found.get("args", []) == arguments
        and found.get("env", {}) == dict(wanted.server_env)
    )
    if is_same and not wanted.force:
        return Plan()
    variables = [word for pair in wanted.server_env.items() for word in ("--env", "=".join(pair))]
    words = ("mcp", "add", _SERVER, *variables, "--", *wanted.server)
    if wanted.program:
        return Plan(steps=(Command((wanted.program, *words), (_config(wanted),)),))
    note = f"Codex is not installed here (`{INSTALL}`); once it is, run what is below."
    return Plan(by_hand=(shlex.join((PROGRAM, *words)),), notes=(note,))


def _found(wanted: Wanted) -> dict[str, Any]:
    """Return our server as Codex has it, {} when it has none.

    Raises:
        ConfigError: its configuration cannot be read.
    """
    path = _config(wanted)
    try:
        servers = toml.parsed(entries.decoded(path, files.read(path))).get("mcp_servers", {})
    except toml.Malformed as exc:
        raise files.ConfigError(
            f"{path} is not what it should be (TOML); it was left alone."
        ) from exc
    found = servers.get(_SERVER, {}) if isinstance(servers, dict) else {}
    return found if isinstance(found, dict) else {}


def _block(wanted: Wanted) -> str:
    from funes_ls.agents.codex import toml_value

    command, *arguments = wanted.server
    lines = [
        f"[mcp_servers.{_SERVER}]",
        f"command = {toml_value(command)}",
        f"args = {toml_value(arguments)}",
    ]
    if wanted.server_env:
        lines.append(f"env = {toml_value(dict(wanted.server_env))}")
    return "\n".join(lines)


def _hook_plan(wanted: Wanted) -> Plan:
    change = entries.editing(_hooks(wanted), lambda text: _with_hooks(text, wanted))
    return entries.planned(change, by_hand=_hook_block(wanted), note=_REVIEW)


def _with_hooks(text: str, wanted: Wanted) -> str:
    """Return hooks.json with our hooks in it, each once."""
    is_ours = hook_script.runs_ours(wanted)
    for event in _EVENTS:
        value = hook_script.block(wanted, event, _HOOK_S)
        ours = list(filter(is_ours, entries.items(_hooks(wanted), text, ("hooks", event))))
        if ours == [value]:
            continue
        if ours:
            text = jsonc.without_items(text, ("hooks", event), is_ours)
        text = jsonc.with_item(text, ("hooks", event), value)
    return text


def _hook_block(wanted: Wanted) -> str:
    import json

    blocks = {event: [hook_script.block(wanted, event, _HOOK_S)] for event in _EVENTS}
    return json.dumps({"hooks": blocks}, indent=2, ensure_ascii=False)


def remove(wanted: Wanted) -> Plan:
    """Return what takes our server and our hooks out."""
    return _server_removal(wanted).then(entries.removing(our_entries(wanted), wanted.created))


def _server_removal(wanted: Wanted) -> Plan:
    path = _config(wanted)

    def cut(now: bytes | None) -> bytes | None:
        text = entries.decoded(path, now)
        new = toml.without_table(text, "mcp_servers", _SERVER)
        return now if new == text else new.encode("utf-8")

    try:
        if not _found(wanted):
            return Plan()
        cut(files.read(path))
    except toml.Malformed:
        words = (wanted.program or PROGRAM, "mcp", "remove", _SERVER)
        if wanted.program:
            return Plan(steps=(Command(words, (path,)),))
        return Plan(problems=(f"{path} still names funes.",), by_hand=(shlex.join(words),))
    except files.ConfigError as exc:
        return Plan(problems=(str(exc),))
    return Plan(steps=(Change(path, cut),))
