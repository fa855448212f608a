"""What a client is told when something fails: a code, a sentence, and `data` with kind and hint."""

import logging
from typing import Any

import msgspec
from msgspec import Struct

from funes_ls import protocol
from funes_ls.engine.client import EngineError
from funes_ls.engine.log import frames
from funes_ls.indexer.errors import FunesError, UsageError

_log = logging.getLogger(__name__)
#: Codes of the engine that mean the same to an editor.
_PASSED_ON = {
    protocol.INVALID_PARAMS,
    protocol.METHOD_NOT_FOUND,
    protocol.INTERNAL_ERROR,
    protocol.REQUEST_CANCELLED,
    protocol.CONTENT_MODIFIED,
    protocol.REQUEST_FAILED,
}


class Failure(Struct, frozen=True, kw_only=True):
    """An error of JSON-RPC as it goes to the client."""

    code: int
    message: str
    kind: str
    hint: str = ""

    @property
    def data(self) -> dict[str, str]:
        """Return what programs look at."""
        return {"kind": self.kind, "hint": self.hint}


class Refused(Exception):
    """A request is answered with this failure."""

    def __init__(self, code: int, message: str, *, kind: str, hint: str = "") -> None:
        """Keep what the client is told."""
        super().__init__(message)
        self.failure = Failure(code=code, message=message, kind=kind, hint=hint)


def bad_params(message: str) -> Refused:
    """Return the refusal of params that do not fit."""
    return Refused(protocol.INVALID_PARAMS, message, kind="params")


def outdated(message: str) -> Refused:
    """Return the refusal of what is about an older state of the memory."""
    return Refused(protocol.CONTENT_MODIFIED, message, kind="content_modified", hint="Ask again.")


def changed() -> Refused:
    """Return the refusal of what is about an older text of a document."""
    text = "The document has changed meanwhile."
    return Refused(protocol.CONTENT_MODIFIED, text, kind="content_modified", hint="Ask again.")


def failure_of(exc: BaseException, what: str) -> Failure:
    """Return what the client is told of an exception.

    What nobody foresaw is logged, without its message: that may quote a session.
    """
    if isinstance(exc, Refused):
        return exc.failure
    if isinstance(exc, EngineError):
        code = exc.code if exc.code in _PASSED_ON else protocol.REQUEST_FAILED
        return Failure(code=code, message=exc.message, kind=exc.kind, hint=exc.hint)
    if isinstance(exc, FunesError):
        code = protocol.INVALID_PARAMS if isinstance(exc, UsageError) else protocol.REQUEST_FAILED
        return Failure(code=code, message=exc.message, kind=exc.kind, hint=exc.hint)
    if isinstance(exc, msgspec.ValidationError):
        return bad_params(str(exc)).failure
    _log.error("internal error in %s\n%s", what, frames(exc))
    return Failure(
        code=protocol.INTERNAL_ERROR,
        message="Internal error in the language server.",
        kind="internal",
        hint="Its log (stderr of funes-ls) says where.",
    )


def told(failure: Failure) -> dict[str, Any]:
    """Return the error object of a response."""
    return {"code": failure.code, "message": failure.message, "data": failure.data}
