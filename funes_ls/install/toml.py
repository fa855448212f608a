"""Takes a table of ours out of TOML that people wrote; all else stays as it is."""

import re
import tomllib
from typing import Any

_HEADER = re.compile(r"\s*\[")
_IDLE = re.compile(r"\s*(#.*)?")


class Malformed(ValueError):
    """The text is no TOML, or the table is not written in a way that can be cut out."""


def parsed(text: str) -> dict[str, Any]:
    """Return what a text says.

    Raises:
        Malformed: it is no TOML.
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        raise Malformed("no TOML") from exc


def without_table(text: str, outer: str, name: str) -> str:
    """Return the text without the table `outer.name` and what is in it.

    Raises:
        Malformed: as the class says.
    """
    before = parsed(text)
    if name not in before.get(outer, {}):
        return text
    quoted = rf"""(?:{name}|"{name}"|'{name}')"""
    ours = re.compile(rf"\s*\[\s*{outer}\s*\.\s*{quoted}\s*(?:\.[^\]]*)?\]\s*(?:#.*)?\s*")
    kept: list[str] = []
    cut: list[str] = []
    for line in text.splitlines(keepends=True):
        is_header = _HEADER.match(line) is not None
        is_ours = is_header and ours.fullmatch(line) is not None
        if cut and is_header and not is_ours:
            kept = _joined(kept, _tail(cut))
            cut = []
        (cut if cut or is_ours else kept).append(line)
    if cut:
        kept = _joined(kept, _tail(cut))
    new = "".join(kept)
    if parsed(new) not in _expected(before, outer, name):
        raise Malformed("the table is not written in one piece")
    return new


def _tail(cut: list[str]) -> list[str]:
    """Return the empty lines and comments at the end of what was cut: they are the next one's."""
    end = len(cut)
    while end > 1 and _IDLE.fullmatch(cut[end - 1].rstrip("\r\n")):
        end -= 1
    return cut[end:]


def _joined(kept: list[str], tail: list[str]) -> list[str]:
    """Return what stood around the table, without the empty line that came with it."""
    if kept and not kept[-1].strip() and not (tail and tail[0].strip()):
        kept = kept[:-1]
    return kept + tail


def _expected(before: dict[str, Any], outer: str, name: str) -> list[dict[str, Any]]:
    """Return what may be left: with the outer table, or without it when it is empty."""
    rest = {key: value for key, value in before[outer].items() if key != name}
    others = {key: value for key, value in before.items() if key != outer}
    return [{**before, outer: rest}, *([others] if not rest else [])]
