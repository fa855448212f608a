"""JSON as the compat profile reads and writes it (the verdicts and the form of Rust's serde_json).

msgspec agrees with serde_json on syntax, escapes, UTF-8 and float formatting, and is the fast path.
What differs is handled here: nesting depth, `-0`, and integers beyond 64 bits.
"""

import json
import math
import re
from typing import Any

import msgspec

from funes_ls.indexer.chunk import WHITESPACE

#: serde_json refuses the 128th nested array or object.
MAX_DEPTH = 127
#: Beyond this a value cannot be written again within Python's recursion limit.
MAX_CARE_DEPTH = 400
_EXOTIC = re.compile(rb"[:\[,]\s*-(?:0[\s,}\]]|\d{19})|[:\[,]\s*\d{20}")
#: Searched as they are: a pattern takes ten times as long.
_MINUS_ZEROS = tuple(b"-0" + bytes([byte]) for byte in b",}] \t\n\r\f\v")
#: Maps digits to 1 and all else to 0: finding a run of ones is much faster than a pattern.
_DIGITS = bytes(byte in b"0123456789" for byte in range(256))
_LONG_RUN = b"\1" * 19
#: Shorter integers are in the range of doubles. So many digits show in every 64th byte.
_HUGE_DIGITS = 309
_HUGE_RUN = b"\1" * (_HUGE_DIGITS // 64)
#: Integers of 64 bits are no longer, with a sign.
_INT_CHARS = 20
_SURROGATE = re.compile("[\ud800-\udfff]")

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def parse(raw: bytes | bytearray | str) -> Any:
    """Return the value of a JSON text that serde_json takes.

    Raises:
        ValueError: serde_json refuses the text.
    """
    try:
        value = _decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise ValueError(str(exc)) from exc
    if _may_nest(raw) and depth_over(value, MAX_DEPTH):
        raise ValueError("nested too deeply")
    if len(raw) >= _HUGE_DIGITS:
        _check_range(raw)
    return value


def _check_range(raw: bytes | bytearray | str) -> None:
    """Refuse integers beyond the doubles, which msgspec takes up to 4,300 digits."""
    data = raw.encode("utf-8", "replace") if isinstance(raw, str) else raw
    if _HUGE_RUN in data[::64].translate(_DIGITS) and is_exotic(data):
        parse_exact(data)


def _may_nest(raw: bytes | bytearray | str) -> bool:
    """Tell cheaply whether a text could nest too deeply."""
    if isinstance(raw, str):
        return raw.count("[") + raw.count("{") > MAX_DEPTH
    return raw.count(b"[") + raw.count(b"{") > MAX_DEPTH


def depth_over(value: Any, limit: int) -> bool:
    """Tell whether arrays and objects nest more than `limit` deep."""
    level: list[Any] = [value] if isinstance(value, (dict, list)) else []
    for _ in range(limit):
        if not level:
            return False
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, (dict, list))
        ]
    return bool(level)


def is_exotic(raw: bytes | bytearray) -> bool:
    """Tell whether a text holds numbers that msgspec and serde_json read differently."""
    minus_zero = any(form in raw for form in _MINUS_ZEROS)
    if not minus_zero and _LONG_RUN not in raw.translate(_DIGITS):
        return False
    return _EXOTIC.search(raw) is not None


def parse_exact(raw: bytes | bytearray) -> Any:
    """Return the value of a text that `parse` takes, with numbers as serde_json has them.

    Raises:
        ValueError: an integer is beyond the range of doubles.
    """
    text = raw.decode("utf-8", "replace").strip(WHITESPACE)
    return json.loads(text, parse_int=_exact_int)


def _exact_int(digits: str) -> int | float:
    # Python makes no integers of more than 4,300 digits, but doubles of any number.
    value = int(digits) if len(digits) <= _INT_CHARS else None
    if value is not None and digits != "-0" and -(2**63) <= value < 2**64:
        return value
    number = float(digits)
    if math.isinf(number):
        raise ValueError("number out of range")
    return number


def _care_int(digits: str) -> int | float | str:
    """Return an integer, or its digits where no number can hold them."""
    try:
        return _exact_int(digits)
    except ValueError:
        return digits


_CARE = json.JSONDecoder(strict=False, parse_int=_care_int)


def dumps(value: Any) -> str:
    """Return compact JSON: keys in source order, non-ASCII literal, floats as serde_json."""
    return _encode(value).decode("utf-8")


def parse_with_care(text: str, start: int = 0) -> tuple[Any, int]:
    """Return a value that only a lenient reader takes, and where it ends.

    Takes NaN and Infinity, control characters in strings, half surrogate pairs, each of which
    becomes U+FFFD, and integers beyond the doubles, which become strings of their digits.

    Raises:
        ValueError: not even a lenient reader can read it.
    """
    try:
        value, end = _CARE.raw_decode(text, start)
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc
    if depth_over(value, MAX_CARE_DEPTH):
        raise ValueError("nested too deeply")
    return _without_surrogates(value), end


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def parse_column(text: Any) -> Any:
    """Return the value of JSON kept as text in a column, as compat reads it; None if it cannot."""
    if not isinstance(text, str):
        return None
    try:
        value = parse(text)
    except ValueError:
        return None
    raw = text.encode("utf-8", "replace")
    return parse_exact(raw) if is_exotic(raw) else value
