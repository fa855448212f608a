"""Applies the commands of sed that agents change files with: substitutions and deletions of lines.

What is written in ways not understood here changes nothing, and so claims nothing.
"""

import re
from collections.abc import Callable, Iterator

#: Longer scripts and lines are left alone: patterns may be slow on them.
_MOST_CHARS = 4_000
_ADDRESS = re.compile(r"(\d+|\$|/(?:[^/\\]|\\.)+/)(?:,(\d+|\$|\+\d+))?\s*")
_DELETE = re.compile(r"d\s*$")
#: What is special in one kind of pattern only when escaped, in the other only when not.
_SWAPPED = "(){}+?|"

Change = Callable[[str], str | None]
Chosen = Callable[[int, int, str], bool]


def apply_sed(lines: list[str], script: str, *, extended: bool) -> list[str]:
    """Return the lines after a script, the same ones where it is not understood.

    Args:
        lines: Of the file.
        script: Commands, one a line or apart by `;` between substitutions.
        extended: Patterns are written as with `sed -E`.
    """
    if len(script) > _MOST_CHARS:
        return lines
    try:
        commands = list(_commands(script, extended))
    except (ValueError, re.error, OverflowError):
        return lines
    whole = "\n".join(lines)
    if not any(sign is None or sign.search(whole) for _, _, sign in commands):
        return lines
    total = len(lines)
    changed: list[str] = []
    for number, line in enumerate(lines, start=1):
        kept: str | None = line
        for is_chosen, change, _ in commands:
            if kept is not None and len(kept) <= _MOST_CHARS and is_chosen(number, total, kept):
                kept = change(kept)
        if kept is not None:
            changed += kept.split("\n")
    return changed


def _commands(
    script: str, extended: bool
) -> Iterator[tuple[Chosen, Change, re.Pattern[str] | None]]:
    """Yield which lines a command is for, and what it makes of them; None deletes.

    The third is what a text must hold for the command to change anything.

    Raises:
        ValueError: a command is none of those known here.
    """
    at = 0
    while at < len(script):
        if script[at] in " \t\n;":
            at += 1
            continue
        chosen, at = _address(script, at, extended)
        if script[at : at + 1] == "s" and at + 1 < len(script):
            change, pattern, at = _substitution(script, at + 1, extended)
            yield chosen, change, pattern
        elif (end := _DELETE.match(script[at:].split("\n")[0].split(";")[0])) is not None:
            at += end.end()
            yield chosen, lambda _: None, None
        else:
            raise ValueError("not known")


def _address(script: str, at: int, extended: bool) -> tuple[Chosen, int]:
    found = _ADDRESS.match(script, at)
    if found is None:
        return (lambda number, total, line: True), at
    first, last = found[1], found[2]
    if first.startswith("/"):
        if last:
            raise ValueError("not known")
        pattern = re.compile(_pattern(first[1:-1], extended))
        return (lambda number, total, line: pattern.search(line) is not None), found.end()

    def is_chosen(number: int, total: int, line: str) -> bool:
        low = total if first == "$" else int(first)
        high = low if not last else total if last == "$" else int(last.lstrip("+"))
        high += low if last and last.startswith("+") else 0
        return low <= number <= high

    return is_chosen, found.end()


def _substitution(script: str, at: int, extended: bool) -> tuple[Change, re.Pattern[str], int]:
    sign = script[at]
    if sign in "\\\n" or sign.isalnum():
        raise ValueError("not known")
    wanted, at = _part(script, at + 1, sign)
    put, at = _part(script, at, sign)
    found = re.compile("[gIip0-9]*").match(script, at)
    given = found[0] if found else ""
    if given.strip("gIi"):
        raise ValueError("not known")
    flags = re.M | (re.I if set(given) & set("Ii") else 0)
    pattern = re.compile(_pattern(wanted, extended), flags)
    template = _template(put)
    count = 0 if "g" in given else 1

    def change(line: str) -> str:
        return pattern.sub(template, line, count=count)

    return change, pattern, at + len(given)


def _part(script: str, at: int, sign: str) -> tuple[str, int]:
    """Return what stands up to the next sign that is not escaped, and where to go on."""
    found = []
    while at < len(script) and script[at] != sign:
        if script[at] == "\\" and at + 1 < len(script):
            pair = script[at : at + 2]
            found.append(sign if pair[1] == sign else pair)
            at += 2
        else:
            found.append(script[at])
            at += 1
    if at >= len(script):
        raise ValueError("no end")
    return "".join(found), at + 1


def _pattern(text: str, extended: bool) -> str:
    """Return a pattern of sed as one of Python."""
    found, at = [], 0
    while at < len(text):
        sign = text[at]
        if sign == "\\" and at + 1 < len(text):
            escaped = text[at + 1]
            is_plain = escaped in _SWAPPED and not extended
            found.append(escaped if is_plain else f"\\{escaped}")
            at += 2
            continue
        if sign == "[" and (end := text.find("]", at + 2)) > 0:
            found.append(text[at : end + 1].replace("\\", "\\\\"))
            at = end + 1
            continue
        is_literal = (sign in _SWAPPED and not extended) or (sign == "*" and at == 0)
        found.append(f"\\{sign}" if is_literal else sign)
        at += 1
    return "".join(found)


def _template(text: str) -> Callable[[re.Match[str]], str]:
    """Return what makes the replacement of a match."""
    parts = re.findall(r"\\[0-9]|\\.|&|[^\\&]+|\\$", text, re.DOTALL)

    def fill(match: re.Match[str]) -> str:
        return "".join(_filled(part, match) for part in parts)

    return fill


def _filled(part: str, match: re.Match[str]) -> str:
    if part == "&":
        return match[0]
    if len(part) == 2 and part[0] == "\\":
        if part[1].isdigit():
            return match[int(part[1])] or ""
        return {"n": "\n", "t": "\t"}.get(part[1], part[1])
    return part
