"""Hermes: a server and hooks in config.yaml, and the hooks' commands on its list of allowed ones.

Its own `hermes mcp add` writes the file anew without its comments; so the lines are put in here.

Source: files and events as observed on version 0.19.0.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from funes_ls.install import entries, files, hook_script, jsonc, yaml
from funes_ls.install.entries import Entry
from funes_ls.install.plan import Change, Plan, Wanted

PROGRAM = "hermes"
INSTALL = "pip install 'hermes-agent[mcp]'"
_SERVER = "funes"
_EVENTS = ("on_session_start", "post_llm_call", "on_session_end", "on_session_finalize")
_HOOK_S = 10
_NEEDS_MCP = f"Hermes speaks to tools only when its part for them is there: `{INSTALL}`."


def _folder(wanted: Wanted) -> Path:
    return wanted.place("HERMES_HOME", ".hermes")


def _config(wanted: Wanted) -> Path:
    return _folder(wanted) / "config.yaml"


def _allowed(wanted: Wanted) -> Path:
    return _folder(wanted) / "shell-hooks-allowlist.json"


def tracked(wanted: Wanted) -> list[Path]:
    """Return the two files."""
    return [_config(wanted), _allowed(wanted)]


def trees(_wanted: Wanted) -> list[Path]:
    """Return nothing: no folder in Hermes' place is ours."""
    return []


def our_entries(wanted: Wanted) -> list[Entry]:
    """Return our commands on the list of allowed ones."""
    ours = {hook_script.command(wanted, event) for event in _EVENTS}

    def is_ours(value: Any) -> bool:
        return isinstance(value, dict) and value.get("command") in ours

    return [Entry(_allowed(wanted), ("approvals",), is_ours)]


def containers(wanted: Wanted, read: Callable[[Path], bytes | None]) -> set[str]:
    """Return what around our lines is not there yet."""
    missing = entries.containers(our_entries(wanted), read)
    try:
        said = yaml.parsed(entries.decoded(_config(wanted), read(_config(wanted))))
    except (yaml.Malformed, files.ConfigError):
        return missing
    hooks = said.get("hooks")
    names = [name for name in ("mcp_servers", "hooks") if name not in said]
    events = [event for event in _EVENTS if not isinstance(hooks, dict) or event not in hooks]
    names += [f"hooks.{event}" for event in events]
    return missing | {f"{_config(wanted)}#{name}" for name in names}


def add(wanted: Wanted) -> Plan:
    """Return what registers the server and the hooks, as far as that is still to be done."""
    own = Plan(steps=tuple(hook_script.writing(wanted)))
    if not wanted.program and not _folder(wanted).is_dir():
        note = f"Hermes is not installed here (`{INSTALL}`); once it is, put this into config.yaml."
        return own._replace(by_hand=(_block(wanted),), notes=(note,))
    return own.then(_config_plan(wanted)).then(_allowed_plan(wanted))


def _config_plan(wanted: Wanted) -> Plan:
    change = _editing(_config(wanted), lambda text: _with_ours(text, wanted))
    return entries.planned(change, by_hand=_block(wanted), note=_NEEDS_MCP)


def _with_ours(text: str, wanted: Wanted) -> str:
    text = yaml.with_member(text, "mcp_servers", _SERVER, _merged(text, wanted))
    for event in _EVENTS:
        hook = _hook(wanted, event)
        hooks = yaml.parsed(text).get("hooks")
        listed = hooks.get(event) if isinstance(hooks, dict) else None
        if not any(map(_running(hook["command"]), listed if isinstance(listed, list) else [])):
            text = yaml.with_item(text, "hooks", event, hook)
    return text


def _merged(text: str, wanted: Wanted) -> dict[str, Any]:
    """Return our server with what the user has added to it."""
    servers = yaml.parsed(text).get("mcp_servers")
    there = servers.get(_SERVER) if isinstance(servers, dict) else None
    kept = there if isinstance(there, dict) and not wanted.force else {}
    return {**kept, **_server(wanted)}


def _server(wanted: Wanted) -> dict[str, Any]:
    command, *arguments = wanted.server
    server: dict[str, Any] = {"command": command, "args": arguments}
    if wanted.server_env:
        server["env"] = dict(wanted.server_env)
    return server


def _hook(wanted: Wanted, event: str) -> dict[str, Any]:
    return {"command": hook_script.command(wanted, event), "timeout": _HOOK_S}


def _allowed_plan(wanted: Wanted) -> Plan:
    change = entries.editing(_allowed(wanted), lambda text: _with_approvals(text, wanted))
    note = "Adding this allows Hermes to run the hooks above without asking again."
    return entries.planned(change, note=note)


def _with_approvals(text: str, wanted: Wanted) -> str:
    listed = entries.items(_allowed(wanted), text, ("approvals",))
    allowed = {(one.get("event"), one.get("command")) for one in listed if isinstance(one, dict)}
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    for event in _EVENTS:
        command = hook_script.command(wanted, event)
        if (event, command) not in allowed:
            entry = {"approved_at": stamp, "command": command, "event": event}
            text = jsonc.with_item(text, ("approvals",), entry)
    return text


def _editing(path: Path, edit: Callable[[str], str]) -> Change:
    def changed(now: bytes | None) -> bytes | None:
        text = entries.decoded(path, now)
        try:
            new = edit(text)
        except yaml.Malformed as exc:
            raise files.ConfigError(
                f"{path} cannot be changed safely ({exc}); it was left alone."
            ) from exc
        return now if new == text else new.encode("utf-8")

    return Change(path, changed)


def _block(wanted: Wanted) -> str:
    """Return what a person puts into config.yaml."""
    hooks = {event: [_hook(wanted, event)] for event in _EVENTS}
    block = {"mcp_servers": {_SERVER: _server(wanted)}, "hooks": hooks}
    return "\n".join(yaml.as_lines(block))


def remove(wanted: Wanted) -> Plan:
    """Return what takes our lines and the permission for our hooks out."""
    path = _config(wanted)
    change = _editing(path, lambda text: _without_ours(text, wanted))
    plan = entries.removing(our_entries(wanted), wanted.created)
    try:
        now = files.read(path)
        if now is None or change.edit(now) == now:
            return plan
    except files.ConfigError as exc:
        return plan._replace(problems=(*plan.problems, str(exc)))
    return Plan(steps=(change,)).then(plan)


def _without_ours(text: str, wanted: Wanted) -> str:
    def is_created(name: str) -> bool:
        return f"{_config(wanted)}#{name}" in wanted.created

    text = yaml.without_member(text, "mcp_servers", _SERVER, prune=is_created("mcp_servers"))
    for event in _EVENTS:
        prune = 0
        if is_created(f"hooks.{event}"):
            prune = 2 if is_created("hooks") else 1
        is_ours = _running(hook_script.command(wanted, event))
        text = yaml.without_items(text, "hooks", event, is_ours, prune=prune)
    return text


def _running(command: str) -> Callable[[Any], bool]:
    return lambda one: isinstance(one, dict) and one.get("command") == command
