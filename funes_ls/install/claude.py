"""Claude Code: a server of the user's scope, and a plugin that holds nothing but hooks.

Both are put in by its own commands; its settings are never edited here. The plugin lies in our
folder as a marketplace of its own, since Claude Code reads hooks from where a plugin came from.

Source: commands, files and events as observed on version 2.1.332.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from funes_ls.install import entries, files, hook_script
from funes_ls.install.entries import Entry
from funes_ls.install.plan import Change, Command, Plan, Step, Wanted, holding

PROGRAM = "claude"
INSTALL = "npm install -g @anthropic-ai/claude-code"
_SERVER = "funes"
_MARKET = "funes-local"
_PLUGIN = f"funes@{_MARKET}"
_EVENTS = ("SessionStart", "Stop", "SubagentStop", "SessionEnd")
_HOOK_S = 10


def _folder(wanted: Wanted) -> Path:
    return wanted.place("CLAUDE_CONFIG_DIR", ".claude")


def _config(wanted: Wanted) -> Path:
    """Return the file of servers: beside the folder, or in it where a variable names it."""
    is_named = wanted.env.get("CLAUDE_CONFIG_DIR", "").strip()
    return (_folder(wanted) if is_named else wanted.user_home) / ".claude.json"


def _settings(wanted: Wanted) -> Path:
    return _folder(wanted) / "settings.json"


def _markets(wanted: Wanted) -> Path:
    return _folder(wanted) / "plugins" / "known_marketplaces.json"


def _plugins(wanted: Wanted) -> Path:
    return _folder(wanted) / "plugins" / "installed_plugins.json"


def tracked(wanted: Wanted) -> list[Path]:
    """Return the files that Claude Code's own commands change, copies that it makes included."""
    folder = _folder(wanted)
    named = [_config(wanted), _settings(wanted), _markets(wanted), _plugins(wanted)]
    copies = sorted(folder.glob("backups/.claude.json.backup.*"))
    more = sorted(folder.glob("plugins/*.json"))
    # The name alone stands for the folder of copies, which may not be there yet.
    return list(dict.fromkeys([*named, *more, folder / "backups" / "copies", *copies]))


def trees(wanted: Wanted) -> list[Path]:
    """Return where Claude Code keeps copies of the plugin."""
    plugins = _folder(wanted) / "plugins"
    return [plugins / "cache" / _MARKET, plugins / "marketplaces" / _MARKET]


def our_entries(wanted: Wanted) -> list[Entry]:
    """Return our entries, also those that its commands write."""
    return [
        Entry(_config(wanted), ("mcpServers", _SERVER)),
        Entry(_settings(wanted), ("enabledPlugins", _PLUGIN)),
        Entry(_settings(wanted), ("extraKnownMarketplaces", _MARKET)),
        Entry(_plugins(wanted), ("plugins", _PLUGIN)),
        Entry(_markets(wanted), (_MARKET,)),
    ]


def containers(wanted: Wanted, read: Callable[[Path], bytes | None]) -> set[str]:
    """Return what around our entries is not there yet."""
    return entries.containers(our_entries(wanted), read)


def add(wanted: Wanted) -> Plan:
    """Return what registers the server and the hooks, as far as that is still to be done."""
    own = _own_files(wanted)
    try:
        server = _server_commands(wanted)
        plugin, note = _plugin_commands(wanted, is_new=_is_plugin_new(wanted, own))
    except files.ConfigError as exc:
        by_hand = (_shown(_server_block(wanted)),)
        return Plan(problems=(str(exc),), by_hand=by_hand)
    commands = [*server, *plugin]
    if commands and not wanted.program:
        lines = tuple(_line(command) for command in commands)
        return Plan(steps=tuple(own), by_hand=lines, notes=(_NOT_HERE,))
    return Plan(steps=(*own, *commands), notes=(note,) if note else ())


_NOT_HERE = f"Claude Code is not installed here (`{INSTALL}`); once it is, run what is below."


def _own_files(wanted: Wanted) -> list[Change]:
    """Return the writing of our files that are not there or differ."""
    hooks = {event: [hook_script.block(wanted, event, _HOOK_S)] for event in _EVENTS}
    about = "Tells funes when a session has grown."
    market = {
        "name": _MARKET,
        "owner": {"name": "funes"},
        "plugins": [{"name": "funes", "source": "./plugin", "description": about}],
    }
    plugin = {"name": "funes", "version": "1.0.0", "description": about}
    folder = wanted.folder
    changes = [
        _json(folder / "plugin" / "hooks" / "hooks.json", {"hooks": hooks}),
        _json(folder / "plugin" / ".claude-plugin" / "plugin.json", plugin),
        _json(folder / ".claude-plugin" / "marketplace.json", market),
    ]
    due = [change for change in changes if _differs(change) or wanted.force]
    return [*hook_script.writing(wanted), *due]


def _is_plugin_new(wanted: Wanted, own: list[Change]) -> bool:
    return any(change.path.is_relative_to(wanted.folder / "plugin") for change in own)


def _json(path: Path, value: Any) -> Change:
    return holding(path, json.dumps(value, indent=2) + "\n")


def _differs(change: Change) -> bool:
    now = files.read(change.path)
    return change.edit(now) != now


def _server_block(wanted: Wanted) -> dict[str, Any]:
    command, *arguments = wanted.server
    return {
        "type": "stdio",
        "command": command,
        "args": arguments,
        "env": dict(wanted.server_env),
    }


def _server_commands(wanted: Wanted) -> list[Step]:
    found = entries.value_at(_config(wanted), ("mcpServers", _SERVER))
    if found == _server_block(wanted) and not wanted.force:
        return []
    claude = wanted.program or PROGRAM
    touches = (_config(wanted),)
    variables = [word for pair in wanted.server_env.items() for word in ("-e", "=".join(pair))]
    words = ("mcp", "add", _SERVER, "-s", "user", *variables, "--", *wanted.server)
    adding = Command((claude, *words), touches)
    if found is None:
        return [adding]
    return [Command((claude, "mcp", "remove", _SERVER, "-s", "user"), touches), adding]


def _plugin_commands(wanted: Wanted, *, is_new: bool) -> tuple[list[Step], str]:
    """Return what installs the plugin, and a word on one that the user has switched off."""
    claude = wanted.program or PROGRAM
    touches = (_settings(wanted), _markets(wanted), _plugins(wanted))
    known = entries.value_at(_markets(wanted), (_MARKET, "source", "path"))
    is_known = known == str(wanted.folder)
    is_installed = entries.value_at(_plugins(wanted), ("plugins", _PLUGIN)) is not None
    enabled = entries.value_at(_settings(wanted), ("enabledPlugins", _PLUGIN))
    if is_known and is_installed and not wanted.force and not is_new:
        off = f"Its hooks are switched off; `claude plugin enable {_PLUGIN}` switches them on."
        return [], off if enabled is False else ""
    steps: list[Step] = []
    if known is not None:
        steps.append(Command((claude, "plugin", "marketplace", "remove", _MARKET), touches))
    market = ("plugin", "marketplace", "add", str(wanted.folder))
    steps.append(Command((claude, *market), touches))
    steps.append(Command((claude, "plugin", "install", _PLUGIN), touches))
    return steps, ""


def remove(wanted: Wanted) -> Plan:
    """Return what takes our entries out.

    The plugin goes by Claude Code's own command; where that is gone, it is cut out here, as the
    server's entry always is, so that what is around it stays as it is.
    """
    server, *rest = our_entries(wanted)
    plan = entries.removing([server], wanted.created)
    plugin = entries.removing(rest, wanted.created)
    if plugin.steps and wanted.program:
        touches = (_settings(wanted), _markets(wanted), _plugins(wanted))
        command = Command((wanted.program, "plugin", "marketplace", "remove", _MARKET), touches)
        plugin = plugin._replace(steps=(command,))
    return plugin.then(plan)  # in this order: the command may write the file of servers, too


def _line(step: Step) -> str:
    import shlex

    return shlex.join(step.argv) if isinstance(step, Command) else ""


def _shown(block: dict[str, Any]) -> str:
    return json.dumps({"mcpServers": {_SERVER: block}}, indent=2, ensure_ascii=False)
