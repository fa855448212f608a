"""The engine's log: what happened and where in the code, never what sessions say."""

import faulthandler
import logging
import os
import sys
import threading
import traceback
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import Any

from funes_ls.indexer.home import make_private

NAME = "engine.log"
_MOST_BYTES = 1_000_000
_log = logging.getLogger(__name__)


class _FramesOnly(logging.Formatter):
    """Leaves the message of an exception out: it may quote a session."""

    def formatException(self, ei: Any) -> str:
        return frames(ei[1])

    def formatStack(self, stack_info: str) -> str:
        return ""


def log_path(home: Path) -> Path:
    """Return where the engine of a home logs."""
    return home / "logs" / NAME


def frames(exc: BaseException | None) -> str:
    """Return where an exception came from and of which kind it is, without its message."""
    if exc is None:
        return ""
    return "".join(traceback.format_tb(exc.__traceback__)) + type(exc).__name__


def log_to_file(home: Path) -> None:
    """Send what this program logs to its file, and crashes of this process too.

    Other libraries' records stay out: they may quote what they were given.
    """
    path = log_path(home)
    make_private(path.parent)
    handler = RotatingFileHandler(
        path, maxBytes=_MOST_BYTES, backupCount=1, encoding="utf-8", errors="backslashreplace"
    )
    handler.setFormatter(_FramesOnly("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    handler.addFilter(logging.Filter("funes_ls"))
    root = logging.getLogger("funes_ls")
    root.setLevel(logging.INFO)
    root.propagate = False
    root.addHandler(handler)
    logging.raiseExceptions = False
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread
    # Frames of a crash in native code; only they go there, and stderr stays shut.
    _faults.append(path.with_suffix(".faults").open("w", encoding="utf-8"))
    faulthandler.enable(file=_faults[-1])


_faults: list[Any] = []


def _uncaught(
    _kind: type[BaseException], exc: BaseException, _frames: TracebackType | None
) -> None:
    _log.error("internal error\n%s", frames(exc))


def _uncaught_in_thread(told: threading.ExceptHookArgs) -> None:
    _log.error("internal error in a thread\n%s", frames(told.exc_value))


def shut_standard_streams() -> None:
    """Point stdin, stdout and stderr of this process at nothing: nobody reads them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    if nothing > 2:
        os.close(nothing)
