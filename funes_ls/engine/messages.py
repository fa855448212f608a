"""JSON-RPC messages as the engine reads and writes them."""

import json
from typing import Any

import msgspec

from funes_ls import protocol
from funes_ls.engine.framing import frame
from funes_ls.indexer.errors import FunesError, UsageError

_encoder = msgspec.json.Encoder()
_LONGEST_NAME = 80


class BadMessage(Exception):
    """A body that is no message; `code` says which error to answer."""

    def __init__(self, code: int, message: str) -> None:
        """Keep what to answer."""
        super().__init__(message)
        self.code = code
        self.message = message


def decode(body: bytes) -> dict[str, Any]:
    """Return the message in a body; halves of characters standing alone are replaced.

    Raises:
        BadMessage: it is no JSON, or no message.
    """
    try:
        message: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        message = _decode_loosely(body)
    if not isinstance(message, dict):
        raise BadMessage(protocol.INVALID_REQUEST, "A message is one JSON object.")
    return message


def _decode_loosely(body: bytes) -> Any:
    """Decode what msgspec refuses because a string holds half of a surrogate pair."""
    try:
        return _mended(json.loads(body.decode("utf-8"), parse_constant=_refuse))
    except (ValueError, RecursionError) as exc:
        raise BadMessage(protocol.PARSE_ERROR, "The message is not valid JSON.") from exc


def _refuse(_name: str) -> Any:
    raise ValueError("not JSON")


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_mended(one) for one in value]
    if isinstance(value, dict):
        return {_mended(name): _mended(one) for name, one in value.items()}
    return value


def encoded(value: Any) -> msgspec.Raw:
    """Return a value as JSON that goes into a message as it is."""
    try:
        return msgspec.Raw(_encoder.encode(value))
    except UnicodeEncodeError:
        # Half of a surrogate pair in a name of a file or in stored text.
        return msgspec.Raw(_encoder.encode(_mended(msgspec.to_builtins(value))))


def response(number: Any, result: msgspec.Raw) -> bytes:
    """Return a framed answer."""
    return _framed({"jsonrpc": "2.0", "id": number, "result": result})


def error(number: Any, code: int, message: str, *, kind: str, hint: str = "") -> bytes:
    """Return a framed error."""
    data = {"kind": kind, "hint": hint}
    told = {"code": code, "message": message, "data": data}
    return _framed({"jsonrpc": "2.0", "id": number, "error": encoded(told)})


def notification(method: str, params: Any) -> bytes:
    """Return a framed notification."""
    return _framed({"jsonrpc": "2.0", "method": method, "params": encoded(params)})


def code_of(exc: FunesError) -> int:
    """Return the code of an error that a user is told."""
    if exc.kind == "cancelled":
        return protocol.REQUEST_CANCELLED
    return protocol.INVALID_PARAMS if isinstance(exc, UsageError) else protocol.REQUEST_FAILED


def shown(name: Any) -> str:
    """Return the name of a method as an error quotes it."""
    return str(name)[:_LONGEST_NAME]


def _framed(message: dict[str, Any]) -> bytes:
    return frame(_encoder.encode(message))
