"""Applies the commands of sed that agents change files with: substitutions and deletions of lines.

What is written in ways not understood here changes nothing, and so claims nothing.
"""

import re
import time
from collections.abc import Callable, Iterator

#: Longer scripts and lines are left alone.
_MOST_CHARS = 4_000
#: Steps a pattern may take in one line at worst, and seconds a script may take for all of them.
_MOST_STEPS = 20_000_000
_MOST_SECONDS = 0.5
#: More optional parts than these are not matched one by one: each doubles the ways to do it.
_MOST_OPTIONAL = 8
_ADDRESS = re.compile(r"(\d+|\$|/(?:[^/\\]|\\.)+/)(?:,(\d+|\$|\+\d+))?\s*")
#: What a pattern of Python is made of: escapes, classes, repetitions and single signs.
_TOKEN = re.compile(r"\\.|\[\^?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|.", re.DOTALL)
#: Signs in brackets: whether they are those not meant, and which.
_CLASS = re.compile(r"\[(\^?)(\]?(?:\[:[a-z]*:\]|[^\]])*)\]")
_KINDS = {
    "[:space:]": r"\s",
    "[:blank:]": r" \t",
    "[:digit:]": "0-9",
    "[:alpha:]": "A-Za-z",
    "[:alnum:]": "A-Za-z0-9",
    "[:upper:]": "A-Z",
    "[:lower:]": "a-z",
    "[:xdigit:]": "A-Fa-f0-9",
}
_DELETE = re.compile(r"d\s*$")
#: What is special in one kind of pattern only when escaped, in the other only when not.
_SWAPPED = "(){}+?|"

Change = Callable[[str], str | None]
Chosen = Callable[[int, int, str], bool]
#: A chosen line's change, and the longest line it is quick on.
Command = tuple[Chosen, Change, int]


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
    except (ValueError, re.error, OverflowError, RecursionError):
        return lines
    total = len(lines)
    changed: list[str] = []
    until = time.monotonic() + _MOST_SECONDS
    for number, line in enumerate(lines, start=1):
        kept: str | None = line
        for is_chosen, change, longest in commands:
            if kept is not None and len(kept) <= longest and is_chosen(number, total, kept):
                kept = change(kept)
        if kept is not None:
            changed += kept.split("\n")
        if number % 64 == 0 and time.monotonic() > until:
            return lines
    return changed


def _commands(script: str, extended: bool) -> Iterator[Command]:
    """Yield which lines a command is for, and what it makes of them; None deletes.

    Raises:
        ValueError: a command is none of those known here.
    """
    at = 0
    while at < len(script):
        if script[at] in " \t\n;":
            at += 1
            continue
        chosen, at, limit = _address(script, at, extended)
        if script[at : at + 1] == "s" and at + 1 < len(script):
            change, at, longest = _substitution(script, at + 1, extended)
            yield chosen, change, min(longest, limit)
        elif (end := _DELETE.match(script[at:].split("\n")[0].split(";")[0])) is not None:
            at += end.end()
            yield chosen, lambda _: None, limit
        else:
            raise ValueError("not known")


def _address(script: str, at: int, extended: bool) -> tuple[Chosen, int, int]:
    """Return which lines are meant, where to go on, and the longest line this is quick on."""
    found = _ADDRESS.match(script, at)
    if found is None:
        return (lambda number, total, line: True), at, _MOST_CHARS
    first, last = found[1], found[2]
    if first.startswith("/"):
        if last:
            raise ValueError("not known")
        pattern = re.compile(_pattern(first[1:-1], extended))
        longest = _longest(pattern.pattern)
        return (lambda number, total, line: pattern.search(line) is not None), found.end(), longest

    def is_chosen(number: int, total: int, line: str) -> bool:
        low = total if first == "$" else int(first)
        high = low if not last else total if last == "$" else int(last.lstrip("+"))
        high += low if last and last.startswith("+") else 0
        return low <= number <= high

    return is_chosen, found.end(), _MOST_CHARS


def _substitution(script: str, at: int, extended: bool) -> tuple[Change, int, int]:
    """Return the change, where to go on, and the longest line it is quick on."""
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
    if any(int(one) > pattern.groups for one in re.findall(r"(?<!\\)\\([0-9])", put)):
        raise ValueError("no such group")
    template = _template(put)
    count = 0 if "g" in given else 1

    def change(line: str) -> str:
        return pattern.sub(template, line, count=count)

    return change, at + len(given), _longest(pattern.pattern)


def _longest(pattern: str) -> int:
    """Return how long a line may be for a pattern never to take long on it.

    Raises:
        ValueError: it may take very long on any: repetitions within repetitions.
    """
    many = optional = 0
    open_groups: list[bool] = []  # whether each can match the same in several ways
    within = False  # of the group that was closed just now
    for found in _TOKEN.finditer(pattern):
        token = found[0]
        if token == "(":
            open_groups.append(False)
        elif token == ")":
            within = bool(open_groups) and open_groups.pop()
            if within and open_groups:
                open_groups[-1] = True
            continue
        elif token == "|" or token[0] in "*+?{":
            if within and token[0] in "*+{":
                raise ValueError("repeated repetition")
            many += token[0] in "*+{"
            optional += token[0] == "?"
            open_groups[-1:] = [True] * len(open_groups[-1:])
        within = False
    if optional > _MOST_OPTIONAL:
        raise ValueError("too many ways")
    return min(int((_MOST_STEPS >> optional) ** (1 / (many + 1))), _MOST_CHARS)


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
        if sign == "[":
            signs = _CLASS.match(text, at)
            if signs is None or "--" in signs[2]:
                raise ValueError("not known")
            found.append(f"[{signs[1]}{_signs_of(signs[2])}]")
            at = signs.end()
            continue
        is_literal = (sign in _SWAPPED and not extended) or (sign == "*" and at == 0)
        found.append(f"\\{sign}" if is_literal else sign)
        at += 1
    return "".join(found)


def _signs_of(text: str) -> str:
    """Return what stands in brackets, as Python writes it.

    Raises:
        ValueError: a kind of signs is not known.
    """
    parts = []
    for part in re.split(r"(\[:[a-z]*:\])", text):
        if part.startswith("[:"):
            if part not in _KINDS:
                raise ValueError("not known")
            parts.append(_KINDS[part])
        else:
            parts.append(re.sub(r"[\\\[\]&~|]", r"\\\g<0>", part))
    return "".join(parts)


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
