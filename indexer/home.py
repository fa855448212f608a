"""Where a funes home is; the standard library only, so that a shim may ask."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path with a leading `~` as the home it names; as it is where there is no such user.

    `Path.expanduser` raises there.
    """
    return Path(os.path.expanduser(path))  # noqa: PTH111


def home_dir(env: Mapping[str, str]) -> Path:
    """Return `$FUNES_HOME`, by default `.funes` in the user's home directory."""
    named = env.get("FUNES_HOME", "").strip()
    return expanded(named) if named else Path.home() / ".funes"


def make_private(path: Path) -> None:
    """Make a directory, and what is missing above it, that only its user can enter.

    A memory holds what transcripts hold; what is there already keeps its mode.
    """
    if not path.parent.is_dir():
        make_private(path.parent)
    path.mkdir(exist_ok=True, mode=0o700)


def shown_dir(home: Path) -> Path:
    """Return where text of sessions lies that was written for editors to show."""
    return home / "run" / "documents"


def drop_shown(home: Path) -> None:
    """Remove what was written for editors; whatever they still want is written anew."""
    with contextlib.suppress(OSError):
        for path in shown_dir(home).iterdir():
            with contextlib.suppress(OSError):
                path.chmod(0o600)  # Windows removes no read-only file
                path.unlink()
