"""Where a funes home is; the standard library only, so that a shim may ask."""

from collections.abc import Mapping
from pathlib import Path


def home_dir(env: Mapping[str, str]) -> Path:
    """Return `$FUNES_HOME`, by default `.funes` in the user's home directory."""
    named = env.get("FUNES_HOME", "").strip()
    return Path(named).expanduser() if named else Path.home() / ".funes"


def make_private(path: Path) -> None:
    """Make a directory, and what is missing above it, that only its user can enter.

    A memory holds what transcripts hold; what is there already keeps its mode.
    """
    if not path.parent.is_dir():
        make_private(path.parent)
    path.mkdir(exist_ok=True, mode=0o700)
