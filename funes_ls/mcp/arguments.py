"""What a tool takes, as JSON schema and as values; small slips of a model are put right."""

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from funes_ls.indexer.errors import UsageError

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MOST_DIGITS = 12
_FAR = 1_000_000_000_000
_SHOWN_CHARS = 60
#: What models call an argument now and then -> its name, where a tool has one of that name.
_ALIASES = {
    "type": "block_type",
    "limit": "k",
    "count": "k",
    "session": "session_id",
    "turn": "turn_uuid",
    "turn_id": "turn_uuid",
    "file_path": "file",
    "filename": "file",
    "question": "query",
    "agent": "harness",
    "start_line": "line",
}


class Param(NamedTuple):
    """An argument of a tool.

    Attributes:
        about: What it is, for a model.
        kind: Its type.
        needed: A call without it is refused.
        least, most: Of a number; one beyond is taken as the nearest.
        choices: The values there are, () for any.
        between: What stands between texts that were given as a list.
    """

    about: str
    kind: Literal["string", "integer"] = "string"
    needed: bool = False
    least: int = 0
    most: int = 1_000_000
    choices: tuple[str, ...] = ()
    between: str = " "


class Given(NamedTuple):
    """The arguments of a call: those that the tool has, and the names of others."""

    values: dict[str, Any]
    unknown: tuple[str, ...]

    def text(self, name: str) -> str:
        """Return a text, "" when it is not given."""
        return str(self.values.get(name, ""))

    def number(self, name: str, default: int) -> int:
        """Return a number."""
        return int(self.values.get(name, default))


def schema_of(params: Mapping[str, Param]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": {name: _property(param) for name, param in params.items()},
        "required": [name for name, param in params.items() if param.needed],
    }


def _property(param: Param) -> dict[str, Any]:
    found: dict[str, Any] = {"type": param.kind, "description": param.about}
    if param.kind == "integer":
        found |= {"minimum": param.least, "maximum": param.most}
    if param.choices:
        found["enum"] = list(param.choices)
    return found


def given_of(params: Mapping[str, Param], raw: Any) -> Given:
    """Return what a model gave: of the right types, and nothing that is empty.

    Raises:
        UsageError: something is missing or cannot be what it should be.
    """
    values: dict[str, Any] = {}
    unknown: list[str] = []
    for written, value in _object(raw).items():
        name = _name(written, params)
        if name not in params:
            unknown.append(written)
        elif value not in (None, "", []) and name not in values:
            values[name] = _value(name, params[name], value)
    values = {name: value for name, value in values.items() if value != ""}
    missing = [name for name, param in params.items() if param.needed and name not in values]
    if missing:
        raise UsageError(f"This needs {' and '.join(f'`{name}`' for name in missing)}.")
    return Given(values, tuple(unknown))


def _object(raw: Any) -> dict[str, Any]:
    if isinstance(raw, str):  # an object that was encoded twice
        try:
            raw = json.loads(raw) if raw.strip() else {}
        except (ValueError, RecursionError):
            raw = []
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise UsageError("The arguments are no JSON object.")
    return raw


def _name(written: str, params: Mapping[str, Param]) -> str:
    if written in params:
        return written
    name = _HUMP.sub("_", written).lower().replace("-", "_")
    return name if name in params else _ALIASES.get(name, name)


def _value(name: str, param: Param, value: Any) -> str | int:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = param.between.join(value)
    if param.kind == "integer":
        number = _number(value)
        if number is None:
            raise UsageError(f"`{name}` is a whole number, not {_shown(value)}.")
        return min(max(number, param.least), param.most)
    if isinstance(value, dict | list):
        raise UsageError(f"`{name}` is a text, not {_shown(value)}.")
    text = str(value)
    if param.choices and text.strip():
        text = text.strip().lower()
        if text not in param.choices:
            raise UsageError(f"`{name}` is one of {', '.join(param.choices)}; not {_shown(value)}.")
    return text if text.strip() else ""


def _number(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([+-]?\d+)(?:\.0*)?\s*", value)
        return _bounded(found[1]) if found else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def _bounded(digits: str) -> int:
    """Return a number, however many digits it has."""
    if len(digits.lstrip("+-")) > _MOST_DIGITS:
        return -_FAR if digits.startswith("-") else _FAR
    return int(digits)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
