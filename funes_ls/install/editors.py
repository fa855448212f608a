"""Editors with agents of their own, and any other: a server in the file they read, or its JSON."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from funes_ls.install import entries
from funes_ls.install.entries import Entry
from funes_ls.install.plan import Plan, Wanted

_SERVER = "funes"
#: VS Code and what is built from it, by the name of its folder.
_FLAVOURS = ("Code", "Code - Insiders", "VSCodium")


class Editor:
    """An editor whose servers are members of an object in JSON files."""

    PROGRAM = ""

    def __init__(self, key: str, paths: Callable[[Wanted], list[Path]], *, about: str) -> None:
        """Know where they are.

        Args:
            key: The object's name.
            paths: Returns the files of those that are installed here.
            about: What a person is told who has to put it in by hand.
        """
        self._key = key
        self._paths = paths
        self._about = about

    def tracked(self, wanted: Wanted) -> list[Path]:
        """Return the files."""
        return self._paths(wanted)

    def trees(self, _wanted: Wanted) -> list[Path]:
        """Return nothing: no folder in the editor's place is ours."""
        return []

    def our_entries(self, wanted: Wanted) -> list[Entry]:
        """Return our server in each file."""
        return [Entry(path, (self._key, _SERVER)) for path in self._paths(wanted)]

    def containers(self, wanted: Wanted, read: Callable[[Path], bytes | None]) -> set[str]:
        """Return what around our server is not there yet."""
        return entries.containers(self.our_entries(wanted), read)

    def add(self, wanted: Wanted) -> Plan:
        """Return what puts the server in, or its JSON where nothing is found to put it in."""
        paths = self._paths(wanted)
        if not paths:
            return Plan(by_hand=(self._block(wanted),), notes=(self._about,))
        plan = Plan()
        for path in paths:
            plan = plan.then(self._add_to(path, wanted))
        return plan

    def _add_to(self, path: Path, wanted: Wanted) -> Plan:
        change = entries.setting(path, (self._key, _SERVER), _server(wanted))
        return entries.planned(change, by_hand=self._block(wanted))

    def remove(self, wanted: Wanted) -> Plan:
        """Return what takes the server out."""
        return entries.removing(self.our_entries(wanted), wanted.created)

    def _block(self, wanted: Wanted) -> str:
        block = {self._key: {_SERVER: _server(wanted)}}
        return json.dumps(block, indent=2, ensure_ascii=False)


def _server(wanted: Wanted) -> dict[str, Any]:
    command, *arguments = wanted.server
    server: dict[str, Any] = {"type": "stdio", "command": command, "args": arguments}
    if wanted.server_env:
        server["env"] = dict(wanted.server_env)
    return server


def _code_files(wanted: Wanted) -> list[Path]:
    """Return the file of servers of each VS Code that has been started here."""
    home, env = wanted.user_home, wanted.env
    if os.name == "nt":
        base = Path(env.get("APPDATA") or home / "AppData" / "Roaming")
    elif sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    else:
        base = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    folders = [base / flavour / "User" for flavour in _FLAVOURS]
    return [folder / "mcp.json" for folder in folders if folder.is_dir()]


def _cursor_files(wanted: Wanted) -> list[Path]:
    folder = wanted.user_home / ".cursor"
    return [folder / "mcp.json"] if folder.is_dir() else []


VSCODE = Editor("servers", _code_files, about="No VS Code was found; this goes into its mcp.json.")
CURSOR = Editor(
    "mcpServers", _cursor_files, about="No Cursor was found; this goes into ~/.cursor/mcp.json."
)
GENERIC = Editor(
    "mcpServers",
    lambda _wanted: [],
    about="Most agents take this in their file of MCP servers, under this key or `servers`.",
)
