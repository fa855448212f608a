"""Small changes to JSON that people wrote: comments, order, indents and all else stay as they are.

Comments and commas after the last member are tolerated, as editors do.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder()
_UNIT = "  "
_MOST_DEPTH = 200


class Member(NamedTuple):
    """A member of an object, or an item of an array (`key` is "" then); offsets into the text.

    Attributes:
        start: Where its key, or the item, begins.
        comma: Where the comma after it is, None for a last one without.
    """

    key: str
    start: int
    node: "Node"
    comma: int | None


class Node(NamedTuple):
    """A value and where it is in the text, `end` exclusive."""

    start: int
    end: int
    value: Any
    members: tuple[Member, ...] = ()

    def member(self, key: str) -> Member | None:
        """Return the member of a name, None when there is none."""
        return next((one for one in self.members if one.key == key), None)


class Malformed(ValueError):
    """The text is no JSON, or nothing can be said for certain about what it means."""


def parse(text: str) -> Node:
    """Return the value of a text with the place of everything in it.

    Raises:
        Malformed: it is no JSON even with comments, or names a member twice.
    """
    try:
        node, at = _value(text, _skipped(text, 1 if text.startswith("\ufeff") else 0), 0)
    except (json.JSONDecodeError, IndexError) as exc:
        raise Malformed("no JSON") from exc
    if _skipped(text, at) != len(text):
        raise Malformed("more than one value")
    return node


def _skipped(text: str, at: int) -> int:
    """Return where the next thing is after spaces and comments."""
    while at < len(text):
        if text[at] in _SPACE:
            at += 1
        elif text.startswith("//", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            if end < 0:
                raise Malformed("a comment without an end")
            at = end + 2
        else:
            break
    return at


def _value(text: str, at: int, depth: int) -> tuple[Node, int]:
    if depth > _MOST_DEPTH:
        raise Malformed("too deep")
    if text[at] not in "{[":
        value, end = _DECODER.raw_decode(text, at)
        return Node(at, end, value), end
    is_object = text[at] == "{"
    members, end = _members(text, at, depth, "}" if is_object else "]", is_object=is_object)
    if not is_object:
        return Node(at, end, [one.node.value for one in members], members), end
    value = {one.key: one.node.value for one in members}
    if len(value) != len(members):
        raise Malformed("a name stands twice")
    return Node(at, end, value, members), end


def _members(
    text: str, start: int, depth: int, closing: str, *, is_object: bool
) -> tuple[tuple[Member, ...], int]:
    members: list[Member] = []
    at = _skipped(text, start + 1)
    while text[at] != closing:
        if members and members[-1].comma is None:
            raise Malformed("a comma is missing")
        key, begin = "", at
        if is_object:
            if text[at] != '"':
                raise Malformed("a name is missing")
            key, at = _DECODER.raw_decode(text, at)
            at = _skipped(text, at)
            if text[at] != ":":
                raise Malformed("a colon is missing")
            at = _skipped(text, at + 1)
        node, at = _value(text, at, depth + 1)
        at = _skipped(text, at)
        comma = at if text[at] == "," else None
        members.append(Member(key, begin, node, comma))
        at = at if comma is None else _skipped(text, at + 1)
    return tuple(members), at + 1


def at_path(node: Node, path: tuple[str, ...]) -> Node | None:
    """Return the value at a path of names, None when it is not there."""
    for key in path:
        found = node.member(key) if isinstance(node.value, dict) else None
        if found is None:
            return None
        node = found.node
    return node


def with_member(text: str, path: tuple[str, ...], value: Any) -> str:
    """Return the text with a member set; objects on the way to it are made.

    Raises:
        Malformed: the text is no JSON, or something on the way is no object.
    """
    text = text if text.strip(_SPACE + "\ufeff") else f"{text}{{}}\n"
    node = parse(text)
    for number, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise Malformed(f"{'.'.join(path[:number]) or 'the whole'} is no object")
        found = node.member(key)
        if found is None:
            for name in reversed(path[number + 1 :]):
                value = {name: value}
            return _inserted(text, node, value, key=key)
        node = found.node
    if node.value == value:
        return text
    column = _indent_at(text, node.start)
    return text[: node.start] + _dumped(text, value, column, spread=True) + text[node.end :]


def with_item(text: str, path: tuple[str, ...], value: Any) -> str:
    """Return the text with an item added to the array at a path, which is made if need be.

    Raises:
        Malformed: the text is no JSON, or what is there is no array.
    """
    node = at_path(parse(text), path) if text.strip(_SPACE + "\ufeff") else None
    if node is None:
        return with_member(text, path, [value])
    if not isinstance(node.value, list):
        raise Malformed(f"{'.'.join(path)} is no array")
    return _inserted(text, node, value)


def without_member(text: str, path: tuple[str, ...], *, prune: int = 0) -> str:
    """Return the text without a member; one that is not there is no error.

    Args:
        text: The JSON.
        path: Names down to the member.
        prune: How many of the objects around it go too when nothing is left in them.
    """
    root = parse(text)
    parent = at_path(root, path[:-1])
    if parent is None or not isinstance(parent.value, dict) or path[-1] not in parent.value:
        return text
    if prune > 0 and len(path) > 1 and len(parent.members) == 1:
        return without_member(text, path[:-1], prune=prune - 1)
    return _cut(text, parent, [path[-1] == one.key for one in parent.members])


def without_items(
    text: str, path: tuple[str, ...], is_ours: Callable[[Any], bool], *, prune: int = 0
) -> str:
    """Return the text without some items of the array at a path; see `without_member`."""
    node = at_path(parse(text), path)
    if node is None or not isinstance(node.value, list):
        return text
    ours = [is_ours(one.node.value) for one in node.members]
    if prune > 0 and ours and all(ours):
        return without_member(text, path, prune=prune - 1)
    return _cut(text, node, ours) if any(ours) else text


def _inserted(text: str, node: Node, value: Any, *, key: str | None = None) -> str:
    """Return the text with one more member at the end of an object or array."""
    inner = text[node.start + 1 : node.end - 1]
    whole = text.strip(_SPACE + "\ufeff")
    spread = "\n" in (inner if inner.strip(_SPACE) else whole) or whole == "{}"
    outer = _indent_at(text, node.start)
    indent = outer + _unit(text)
    if node.members:
        indent = _indent_at(text, node.members[0].start)
    body = _dumped(text, value, indent, spread=spread)
    if key is not None:
        body = f"{json.dumps(key, ensure_ascii=False)}: {body}"
    end = node.start + 1 + len(inner.rstrip(_SPACE))
    line = _newline(text)
    lead = f"{line}{indent}" if spread else " " * bool(node.members)
    last = node.members[-1] if node.members else None
    if last is None:
        tail = f"{line}{outer}" if spread and "\n" not in text[end : node.end] else ""
        return text[:end] + lead + body + tail + text[end:]
    if last.comma is not None:  # commas stand after last members here
        return text[:end] + lead + body + "," + text[end:]
    return text[: last.node.end] + "," + text[last.node.end : end] + lead + body + text[end:]


def _cut(text: str, node: Node, goes: list[bool]) -> str:
    """Return the text without some members of an object or array."""
    spans: list[tuple[int, int]] = []
    kept_comma: int | None = None
    for one, is_cut in zip(node.members, goes, strict=True):
        if not is_cut:
            kept_comma = one.comma
            continue
        begin = node.start + 1 + len(text[node.start + 1 : one.start].rstrip(_SPACE))
        spans.append((begin, one.node.end))
        if one.comma is not None:
            spans.append((one.comma, one.comma + 1))
        elif kept_comma is not None:  # the last one went: the comma before it has to go
            spans.append((kept_comma, kept_comma + 1))
    left = text[node.start : node.end]
    for begin, end in sorted(spans, reverse=True):
        left = left[: begin - node.start] + left[end - node.start :]
    if not left[1:-1].strip(_SPACE):
        left = left[0] + left[-1]
    return text[: node.start] + left + text[node.end :]


def _dumped(text: str, value: Any, indent: str, *, spread: bool) -> str:
    if not spread:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text)).split("\n")
    return f"{_newline(text)}{indent}".join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_at(text: str, at: int) -> str:
    """Return the spaces that the line of a place begins with."""
    begin = text.rfind("\n", 0, at) + 1
    line = text[begin:at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """Return what one step of indent is: that of the first line that has one."""
    for line in text.split("\n"):
        lead = line[: len(line) - len(line.lstrip(" \t"))]
        if lead and line.strip(_SPACE):
            return lead
    return _UNIT
