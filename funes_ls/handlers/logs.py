"""The server's log: to stderr, to the client as far as it wants, and never of what sessions say."""

import logging
import threading
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from funes_ls.handlers.configuration import LEVELS

if TYPE_CHECKING:
    from funes_ls.handlers.front import Front

_KINDS = (
    (logging.ERROR, types.MessageType.Error),
    (logging.WARNING, types.MessageType.Warning),
    (logging.INFO, types.MessageType.Info),
    (logging.NOTSET, types.MessageType.Log),
)
_local = threading.local()


class Logs(logging.Handler):
    """Sends what this program logs to the client as `window/logMessage`."""

    def __init__(self, ls: "Front") -> None:
        """Send nothing before `use_level`."""
        super().__init__(logging.WARNING)
        self._ls = ls
        self.addFilter(logging.Filter("funes_ls"))
        self.setFormatter(logging.Formatter("%(message)s"))
        logging.getLogger("funes_ls").addHandler(self)

    def use_level(self, name: str) -> None:
        """Send what is at least this serious."""
        self.setLevel(LEVELS[name])

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record; what sending itself logs is not sent in turn."""
        elsewhere = threading.current_thread() is not threading.main_thread()
        if elsewhere or getattr(_local, "sending", False):
            return
        _local.sending = True
        try:
            kind = next(kind for level, kind in _KINDS if record.levelno >= level)
            message = record.getMessage().partition("\n")[0]
            self._ls.window_log_message(types.LogMessageParams(type=kind, message=message))
        except Exception:
            self.handleError(record)
        finally:
            _local.sending = False

    def answered(self, method: str, seconds: float) -> None:
        """Trace a request, if the client wants that."""
        protocol = self._ls.protocol
        if protocol.trace == types.TraceValue.Off or not protocol.is_initialized:
            return
        params: dict[str, Any] = {"message": f"{method} answered in {seconds * 1000:.0f} ms"}
        if protocol.trace == types.TraceValue.Verbose:
            params["verbose"] = f"generation {self._ls.generation}"
        protocol.notify(types.LOG_TRACE, params)


class _TemplatesOnly(logging.Filter):
    """Lets records of pygls through without what is filled in: whole messages of the client."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = str(record.msg), None
        record.exc_info = record.exc_text = record.stack_info = None
        return True


def log_to_stderr(level: str) -> None:
    """Send what this program logs to stderr; of libraries only that something went wrong."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    own = logging.getLogger("funes_ls")
    own.setLevel(logging.DEBUG if level == "debug" else logging.INFO)
    handler.setLevel(LEVELS[level])
    own.addHandler(handler)
    own.propagate = False
    for name in ("pygls", "asyncio"):
        theirs = logging.getLogger(name)
        theirs.setLevel(logging.WARNING)
        theirs.propagate = False
        quiet = logging.StreamHandler()
        quiet.addFilter(_TemplatesOnly())
        theirs.addHandler(quiet)
    logging.raiseExceptions = False


def register(ls: "Front") -> None:
    """Trace what is answered."""
    ls.protocol.on_answered = ls.logs.answered
