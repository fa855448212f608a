"""A tool call with its answer, as the extraction sees it."""

from typing import Any

import msgspec
from msgspec import Struct


class Call(Struct, frozen=True, kw_only=True):
    """A call that was answered.

    Attributes:
        tool: Name of the tool, "" when it is not known.
        text: The input as the trace has it: a JSON object, or plain text.
        output: The answer's text.
        cwd: Folder the session runs in, "" when it is not known.
    """

    tool: str
    text: str
    output: str
    cwd: str = ""

    def args(self) -> dict[str, Any]:
        """Return the input as an object; plain text stands under `input`."""
        try:
            value = msgspec.json.decode(self.text.encode("utf-8", "replace"))
        except (msgspec.DecodeError, RecursionError):
            return {"input": self.text}
        if isinstance(value, dict):
            return value
        return {"input": value} if isinstance(value, str) else {}


def word(args: dict[str, Any], *names: str) -> str:
    """Return the first of the named arguments that is a text, "" when none is."""
    for name in names:
        if isinstance(value := args.get(name), str):
            return value
    return ""


def number(args: dict[str, Any], *names: str) -> int | None:
    """Return the first of the named arguments that is a whole number."""
    for name in names:
        value = args.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, str) and value.isdecimal() and len(value) < 10:
            return int(value)
    return None
