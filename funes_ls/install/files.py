"""Reading and writing other programs' files: in one step, through links, with their mode."""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from funes_ls.indexer.errors import FunesError

_MOST_BYTES = 64 << 20
_NEW_FILE = 0o600


class ConfigError(FunesError):
    """A file of an agent cannot be read or written; it stays as it is."""

    kind = "agent_config"


def read(path: Path) -> bytes | None:
    """Return what a file holds, None when there is none.

    Raises:
        ConfigError: it cannot be read, or is not a file.
    """
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"{path} is not a file.", hint="Nothing was changed.")
        if found.st_size > _MOST_BYTES:
            raise ConfigError(f"{path} is too large to be a configuration.")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise ConfigError(
            f"{path} cannot be read ({exc.strerror or exc}).", hint="Nothing was changed."
        ) from exc


def refuse_if_fixed(path: Path) -> None:
    """Refuse a file that its owner has made read-only, or a folder that takes no new file.

    Raises:
        ConfigError: it cannot be written.
    """
    target = _behind_links(path)
    if target.exists():
        mode = target.stat().st_mode
        if not mode & 0o222 or not os.access(target, os.W_OK):
            raise _fixed(path, "it is read-only")
    folder = target.parent
    while not folder.exists() and folder.parent != folder:
        folder = folder.parent
    if not folder.is_dir():
        raise _fixed(path, f"{folder} is not a folder")
    if not folder.stat().st_mode & 0o222 or not os.access(folder, os.W_OK):
        raise _fixed(path, f"the folder {folder} is read-only")


def _fixed(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"{path} cannot be changed: {why}.", hint="Make it writable and run this again."
    )


def write(path: Path, data: bytes, *, mode: int = _NEW_FILE) -> None:
    """Put new contents in place in one step; a link is kept, and what it leads to is replaced.

    Args:
        path: The file.
        data: Its contents.
        mode: Of a file that is not there yet; another keeps its own.

    Raises:
        ConfigError: it cannot be written; what was there stays.
    """
    refuse_if_fixed(path)
    target = _behind_links(path)
    draft = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            mode = stat.S_IMODE(target.stat().st_mode)
        number, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        draft = Path(name)
        with os.fdopen(number, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        draft.chmod(mode)
        if target.exists() and hasattr(os, "chown"):
            with suppress(OSError):  # the owner's it stays, also when another user writes it
                os.chown(draft, target.stat().st_uid, target.stat().st_gid)
        draft.replace(target)
    except OSError as exc:
        if draft is not None:
            with suppress(OSError):
                draft.unlink()
        raise _fixed(path, exc.strerror or str(exc)) from exc


def delete(path: Path) -> None:
    """Take a file away; one that is not there is no error.

    Raises:
        ConfigError: it stays.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as exc:
        raise _fixed(path, exc.strerror or str(exc)) from exc


def delete_tree(folder: Path) -> None:
    """Take a folder of our own away with all in it; a link is taken away, not what it leads to."""
    if folder.is_symlink():
        with suppress(OSError):
            folder.unlink()
        return
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            delete_tree(path)
        else:
            with suppress(OSError):
                path.unlink()
    with suppress(OSError):
        folder.rmdir()


def _behind_links(path: Path) -> Path:
    """Return the file that a link leads to, also one that is not there yet.

    Raises:
        ConfigError: links lead in a circle.
    """
    try:
        return path.resolve()
    except (OSError, RuntimeError) as exc:
        raise _fixed(path, "its links lead in a circle") from exc
