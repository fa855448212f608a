"""Small changes to YAML that people wrote; comments, order, quotes and all else stay as they are.

The places come from a parser, the changes are whole lines, and what comes out is parsed again: it
must say what the text said before and the change, nothing else.
"""

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

_STEP = 2


class Malformed(ValueError):
    """The text is no YAML, or is written in a way that whole lines cannot change."""


def _yaml() -> Any:
    try:
        return import_module("yaml")
    except ImportError as exc:
        raise Malformed("there is no parser of YAML here") from exc


def parsed(text: str) -> dict[str, Any]:
    """Return what a text says, {} for an empty one.

    Raises:
        Malformed: it is no YAML, or no mapping.
    """
    yaml = _yaml()
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as exc:
        raise Malformed("no YAML") from exc
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Malformed("no mapping")
    return value


def _root(text: str) -> Any:
    yaml = _yaml()
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as exc:
        raise Malformed("no YAML") from exc


def with_member(text: str, outer: str, name: str, value: Any) -> str:
    """Return the text with the member `outer.name` set to a value of plain JSON.

    Raises:
        Malformed: as the class says.
    """
    expected = parsed(text)
    there = expected.get(outer)
    if there is not None and not isinstance(there, dict):
        raise Malformed(f"{outer} is no mapping")
    if isinstance(there, dict) and there.get(name) == value:
        return text
    if isinstance(there, dict) and name in there:
        text = without_member(text, outer, name)
    new = _with_lines(text, outer, [f"{name}:", *_indented(as_lines(value), _STEP)])
    return _checked(new, {**expected, outer: {**(there or {}), name: value}})


def with_item(text: str, outer: str, name: str, value: dict[str, Any]) -> str:
    """Return the text with an item added to the list `outer.name`, both made if need be.

    Raises:
        Malformed: as the class says.
    """
    expected = parsed(text)
    there = expected.get(outer) or {}
    if not isinstance(there, dict) or not isinstance(there.get(name, []), list | None):
        raise Malformed(f"{outer}.{name} is no list")
    item = _item(value)
    listed = there.get(name) or []
    wanted = {**expected, outer: {**there, name: [*listed, value]}}
    if name not in there:
        return _checked(_with_lines(text, outer, [f"{name}:", *_indented(item, _STEP)]), wanted)
    node = _value_of(_value_of(_root(text), outer), name)
    if not listed or getattr(node, "flow_style", True):
        raise Malformed(f"{outer}.{name} is not written as lines")
    last = _last_line(node)
    rows = text.splitlines(keepends=True)
    new = _inserted(rows, last + 1, _indented(item, node.start_mark.column))
    return _checked(new, wanted)


def without_member(text: str, outer: str, name: str, *, prune: bool = False) -> str:
    """Return the text without the member `outer.name`; `prune` takes `outer` too if it is empty.

    Raises:
        Malformed: as the class says.
    """
    expected = parsed(text)
    there = expected.get(outer)
    if not isinstance(there, dict) or name not in there:
        return text
    rest = {key: value for key, value in there.items() if key != name}
    root = _root(text)
    holder = root if prune and not rest else _value_of(root, outer)
    key, value = _pair(holder, outer if prune and not rest else name)
    wanted = {key: value for key, value in expected.items() if key != outer}
    if rest or not prune:
        wanted = {**expected, outer: rest}
    return _cut(text, key.start_mark.line, _last_line(value), wanted, outer)


def without_items(
    text: str, outer: str, name: str, is_ours: Callable[[Any], bool], *, prune: int = 0
) -> str:
    """Return the text without some items of the list `outer.name`.

    Args:
        text: The YAML.
        outer: A member of it.
        name: The member of that which is a list.
        is_ours: Tells which items go.
        prune: Take the list too when it is empty (1), and what it is in (2).

    Raises:
        Malformed: as the class says.
    """
    expected = parsed(text)
    there = expected.get(outer)
    listed = there.get(name) if isinstance(there, dict) else None
    if not isinstance(listed, list) or not any(map(is_ours, listed)):
        return text
    if prune and all(map(is_ours, listed)):
        return without_member(text, outer, name, prune=prune > 1)
    node = _value_of(_value_of(_root(text), outer), name)
    for index in reversed(range(len(listed))):
        if not is_ours(listed[index]):
            continue
        item = node.value[index]
        rest = [one for at, one in enumerate(parsed(text)[outer][name]) if at != index]
        wanted = {**expected, outer: {**expected[outer], name: rest}}
        text = _cut(text, item.start_mark.line, _last_line(item), wanted, name)
        expected = wanted
    return text


def _cut(text: str, first: int, last: int, wanted: dict[str, Any], name: str) -> str:
    """Return the text without some lines; what they were in is `{}` or `[]` when it is empty."""
    rows = text.splitlines(keepends=True)
    new = "".join([*rows[:first], *rows[last + 1 :]])
    said = parsed(new)
    if said == wanted:
        return new
    # A name without a value is nothing in YAML: it gets the empty value that is meant.
    for empty in ("{}", "[]"):
        mended = [*rows[:first], *rows[last + 1 :]]
        at = first - 1
        if at >= 0 and mended[at].strip() == f"{name}:":
            mended[at] = mended[at].rstrip("\r\n") + f" {empty}" + _newline(text)
            if parsed("".join(mended)) == wanted:
                return "".join(mended)
    raise Malformed("it is not written as lines")


def _with_lines(text: str, outer: str, lines: list[str]) -> str:
    """Return the text with lines put first into a member, which is made at the end if need be."""
    root = _root(text)
    pair = _pair_or_none(root, outer)
    rows = text.splitlines(keepends=True)
    if pair is None:
        return _inserted(rows, len(rows), [f"{outer}:", *_indented(lines, _STEP)])
    key, value = pair
    at = key.start_mark.line
    column = key.start_mark.column
    if not value.value:  # nothing, or an empty pair of braces
        head = rows[at][: key.end_mark.column]
        return "".join(rows[:at]) + _inserted(
            [f"{head}:{_newline(text)}", *rows[at + 1 :]], 1, _indented(lines, column + _STEP)
        )
    if getattr(value, "flow_style", True):
        raise Malformed(f"{outer} is not written as lines")
    first = value.value[0][0]
    return _inserted(rows, at + 1, _indented(lines, first.start_mark.column))


def _inserted(rows: list[str], at: int, lines: list[str]) -> str:
    end = _newline("".join(rows))
    before = rows[:at]
    if before and not before[-1].endswith("\n"):
        before = [*before[:-1], before[-1] + end]
    return "".join([*before, *(line + end for line in lines), *rows[at:]])


def _checked(text: str, expected: dict[str, Any]) -> str:
    if parsed(text) != expected:
        raise Malformed("it is not written as lines")
    return text


def _pair_or_none(node: Any, name: str) -> Any:
    if node is None:
        return None
    if getattr(node, "id", "") != "mapping":
        raise Malformed("no mapping")
    return next((pair for pair in node.value if pair[0].value == name), None)


def _pair(node: Any, name: str) -> Any:
    pair = _pair_or_none(node, name)
    if pair is None:
        raise Malformed(f"there is no {name}")
    return pair


def _value_of(node: Any, name: str) -> Any:
    return _pair(node, name)[1]


def _last_line(node: Any) -> int:
    """Return the last line that a value is on; where a block ends is told too late by its mark."""
    kind = getattr(node, "id", "")
    if kind == "scalar" or not node.value or getattr(node, "flow_style", False):
        mark = node.end_mark
        return int(
            mark.line - 1 if mark.column == 0 and mark.line > node.start_mark.line else mark.line
        )
    children = node.value if kind == "sequence" else [one for pair in node.value for one in pair]
    return max(map(_last_line, children))


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indented(lines: list[str], width: int) -> list[str]:
    return [" " * width + line for line in lines]


def _item(value: dict[str, Any]) -> list[str]:
    """Return a mapping as the lines of an item of a list."""
    lines = as_lines(value)
    return [f"- {lines[0]}", *_indented(lines[1:], _STEP)]


def as_lines(value: dict[str, Any]) -> list[str]:
    """Return a mapping as lines; what is in it is written as JSON, which is YAML too."""
    lines: list[str] = []
    for name, one in value.items():
        if isinstance(one, dict) and one:
            lines += [f"{name}:", *_indented(as_lines(one), _STEP)]
        else:
            lines.append(f"{name}: {json.dumps(one, ensure_ascii=False)}")
    return lines
