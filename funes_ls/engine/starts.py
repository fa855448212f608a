"""Counts starts that did not end well, so that a crash loop stops; standard library only."""

import time
from pathlib import Path

from funes_ls.engine.address import run_dir

#: More unclean ends than this within the window, and no front starts the engine any more.
MAX_CRASHES = 4
WINDOW_S = 180.0
_FILE = "engine.starts"
_ROUNDING_S = 1.0


def is_crashing(home: Path) -> bool:
    """Return whether the engine has died too often of late to be started again."""
    return len(_recent(home)) > MAX_CRASHES


def note_start(home: Path) -> None:
    """Write down that the engine starts; the note stays if it dies."""
    _write(home, [*_recent(home), time.time()])


def note_end(home: Path) -> None:
    """Take the note of this start back: the engine has ended as it should, or has lived long."""
    _write(home, _recent(home)[:-1])


def forget_crashes(home: Path) -> None:
    """Let the engine be started again, because a person says so."""
    _path(home).unlink(missing_ok=True)


def _path(home: Path) -> Path:
    return run_dir(home) / _FILE


def _recent(home: Path) -> list[float]:
    """Return when the engine started of late, seconds; times of a clock set back do not count."""
    now = time.time()
    try:
        lines = _path(home).read_text(encoding="ascii").split()
        times = [float(line) for line in lines]
    except (OSError, ValueError):
        return []
    return [at for at in times if -_ROUNDING_S <= now - at < WINDOW_S]


def _write(home: Path, times: list[float]) -> None:
    try:
        _path(home).write_text("".join(f"{at:.3f}\n" for at in times), encoding="ascii")
    except OSError:
        return  # the disk is full or read-only: then there is more to worry about
