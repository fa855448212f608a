"""Where a client's files are: the folders it names, else the folder this server was started in."""

import threading
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from funes_ls.indexer.home import expanded

#: A client that said it has roots may take so long to name them.
_PATIENCE_S = 1.0
_HERE = ("./", "../", ".\\", "..\\")


class Roots:
    """The folders that relative paths are looked for in, best first."""

    def __init__(self, cwd: Path | None = None) -> None:
        """Begin with the folder of this process."""
        self._cwd = cwd or _cwd()
        self._folders: tuple[Path, ...] = ()
        self._known = threading.Event()
        self._known.set()

    def expect(self) -> None:
        """Wait, when next asked, for what the client says."""
        self._known.clear()

    def take(self, result: Any) -> None:
        """Keep what a client answered to `roots/list`; what is no folder here is left out."""
        listed = result.get("roots") if isinstance(result, dict) else None
        listed = listed if isinstance(listed, list) else []
        found = (_folder(one.get("uri")) for one in listed if isinstance(one, dict))
        self._folders = tuple(folder for folder in found if folder is not None)
        self._known.set()

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return the client's folders, then the one of this process."""
        if not self._known.wait(_PATIENCE_S):
            self._known.set()
        return (*self._folders, self._cwd)

    def file(self, named: str) -> Path | None:
        """Return the absolute path of a file or folder that is there, None when none is."""
        if named.startswith("file:"):
            return _existing(_folder(named))
        try:
            path = expanded(named) if named.startswith("~") else Path(named)
            if path.is_absolute():
                return _existing(path)
            return next(filter(None, (_existing(root / path) for root in self.folders)), None)
        except (OSError, ValueError, RuntimeError):  # a name that no file can have
            return None

    def sent(self, named: str) -> str:
        """Return a path for the engine: absolute where it is one from here, else as it is."""
        if named == "." or named.startswith((*_HERE, "~", "file:")):
            found = self.file(named)
            return str(found) if found is not None else named
        return named


def _cwd() -> Path:
    try:
        return Path.cwd()
    except OSError:  # it was removed
        return Path.home()


def _existing(path: Path | None) -> Path | None:
    return path.absolute() if path is not None and path.exists() else None


def _folder(uri: Any) -> Path | None:
    """Return the path of a `file:` URI, None for any other."""
    if not isinstance(uri, str):
        return None
    try:
        parts = urlsplit(uri)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            return None
        path = unquote(parts.path)
        if len(path) > 2 and path[0] == "/" and path[2] == ":":  # /C:/work
            path = path[1:]
        return Path(path) if path and "\0" not in path else None
    except ValueError:
        return None
