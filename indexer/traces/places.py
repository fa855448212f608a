"""Where editors that are VS Code, or were made from it, keep what belongs to a user."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from funes_ls.indexer.home import expanded

_EDITORS = (
    "Code", "Code - Insiders", "Code - OSS", "VSCodium", "VSCodium - Insiders", "Cursor",
    "Windsurf", "Trae", "Positron", "Antigravity",
)  # fmt: skip
_SERVERS = (".vscode-server", ".vscode-server-insiders", ".vscode-remote", ".cursor-server")


def user_folders(home: Path, env: Mapping[str, str]) -> Iterator[Path]:
    """Yield the `User` folders of editors that are there, those of remote servers, too."""
    bases = [_base(home, env)]
    named = env.get("VSCODE_PORTABLE", "").strip()
    folders = [base / name / "User" for base in bases for name in _EDITORS]
    folders += [home / name / "data" / "User" for name in _SERVERS]
    if named:
        folders.append(expanded(named) / "user-data" / "User")
    yield from (folder for folder in folders if folder.is_dir())


def _base(home: Path, env: Mapping[str, str]) -> Path:
    if sys.platform == "win32":
        named = env.get("APPDATA", "").strip()
        return Path(named) if named else home / "AppData" / "Roaming"
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    named = env.get("XDG_CONFIG_HOME", "").strip()
    return expanded(named) if named else home / ".config"
