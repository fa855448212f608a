"""The script that an agent's hooks run: it hands the event to `funes hook` and ends at once."""

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from funes_ls.install import files
from funes_ls.install.plan import Change, Wanted, holding

#: Where else the program is looked for, should it have moved.
_COMMON = ('"$HOME/.local/bin/funes"', "/usr/local/bin/funes", "/opt/homebrew/bin/funes")


def script_path(wanted: Wanted) -> Path:
    """Return where the script of an agent's hooks is."""
    return wanted.folder / ("hook.cmd" if os.name == "nt" else "hook")


def script(wanted: Wanted) -> Change:
    """Return the writing of the script."""
    text = _batch(wanted) if os.name == "nt" else _shell(wanted)
    return holding(script_path(wanted), text, mode=0o700)


def command(wanted: Wanted, event: str) -> str:
    """Return the line by which a hook runs the script, for agents that run no shell."""
    path = str(script_path(wanted))
    return f'"{path}" {event}' if os.name == "nt" else f"{shlex.quote(path)} {event}"


def shell_command(wanted: Wanted, event: str) -> str:
    """Return the line for a shell; silent, too, when somebody has deleted funes' home."""
    line = command(wanted, event)
    is_there = f"test ! -x {shlex.quote(str(script_path(wanted)))}"
    return line if os.name == "nt" else f"{is_there} || {line}"


def writing(wanted: Wanted) -> list[Change]:
    """Return the writing of the script where it is not there or differs."""
    change = script(wanted)
    now = files.read(change.path)
    return [change] if wanted.force or change.edit(now) != now else []


def block(wanted: Wanted, event: str, limit_s: int) -> dict[str, Any]:
    """Return a hook as Claude Code and Codex write it."""
    hook = {"type": "command", "command": shell_command(wanted, event), "timeout": limit_s}
    return {"hooks": [hook]}


def runs_ours(wanted: Wanted) -> Callable[[Any], bool]:
    """Return what tells a hook of ours from others: it runs our script and nothing else."""
    own = str(script_path(wanted))

    def is_ours(value: Any) -> bool:
        hooks = value.get("hooks") if isinstance(value, dict) else None
        if not hooks or not isinstance(hooks, list):
            return False
        return all(isinstance(one, dict) and own in _words(one.get("command")) for one in hooks)

    return is_ours


def _words(line: Any) -> list[str]:
    try:
        return shlex.split(line, posix=os.name != "nt") if isinstance(line, str) else []
    except ValueError:
        return []


def _shell(wanted: Wanted) -> str:
    named = wanted.server_env.get("FUNES_HOME", "")
    home = f"FUNES_HOME={shlex.quote(named)}\nexport FUNES_HOME\n" if named else ""
    own = shlex.join(wanted.server[: wanted.server.index("mcp")])
    places = " ".join(_COMMON)
    # The background job gets the event by another descriptor: shells take 0 away from it. What is
    # on its way is not to end with the terminal. Python is not to heed a project's variables.
    return f"""#!/bin/sh
# Tells funes that a session has grown. Prints nothing, ends at once and with 0 whatever happens.
# Made by `funes add {wanted.agent}`; `funes remove {wanted.agent}` takes it away.
exec 3<&0 >/dev/null 2>&1
trap '' HUP INT
unset PYTHONHOME PYTHONPATH
{home}set -- "$1" {own}
if [ ! -x "$2" ]; then
    for funes in {places} "$(command -v funes)"; do
        [ -x "$funes" ] && set -- "$1" "$funes" && break
    done
fi
event=$1
shift
if [ -x "$1" ]; then
    "$@" hook {wanted.agent} "$event" <&3 3<&- &
else
    cat <&3 3<&- &
fi
exit 0
"""


def _batch(wanted: Wanted) -> str:
    named = wanted.server_env.get("FUNES_HOME", "")
    home = f'set "FUNES_HOME={named}"\r\n' if named else ""
    own = " ".join(f'"{word}"' for word in wanted.server[: wanted.server.index("mcp")])
    return f"@echo off\r\n{home}{own} hook {wanted.agent} %1 >nul 2>nul\r\nexit /b 0\r\n"
