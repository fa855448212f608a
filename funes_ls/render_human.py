"""The human layout of `funes get`: prose wrapped, tool calls folded to a headline."""

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from funes_ls.render import safe

if TYPE_CHECKING:
    from funes_ls.retrieval.answers import GetAnswer, TurnBlock, TurnView

_PAYLOAD_LINES = 6
_ANCHOR_WORDS = 6
_LABEL = re.compile(r"^\[tool_(?:use|result)(?: ([^\]]*))?\] ?")
_DIM, _REVERSE, _RESET = "\x1b[2m", "\x1b[7m", "\x1b[0m"
#: Payload worth showing of a tool call, by the argument that holds it.
_PAYLOAD_KEYS = ("new_string", "newText", "new_text", "content", "command", "cmd", "patch", "input")
_TARGET_KEYS = ("file_path", "path", "notebook_path", "description", "pattern", "query", "url")


def get_human(answer: "GetAnswer", *, color: bool, width: int, highlight: str = "") -> str:
    """Return turns for a person's terminal.

    Args:
        answer: A found turn with the turns around it.
        color: Whether to dim headers; the highlight is reversed either way.
        width: Columns to wrap at.
        highlight: Words to mark in prose, found whatever the white space between them.
    """
    return "\n".join(
        line
        for turn in answer.turns
        for line in _turn_lines(turn, color=color, width=width, highlight=highlight)
    )


def terminal_width(columns: str | None) -> int:
    """Return the layout width from `$COLUMNS`, clamped to 40–120; 100 when it says nothing."""
    try:
        return max(40, min(120, int(columns or "")))
    except ValueError:
        return 100


def _turn_lines(turn: "TurnView", *, color: bool, width: int, highlight: str) -> Iterator[str]:
    when = safe(turn.ts)[:16].replace("T", " ")
    yield _dim(f"── {when} · {safe(turn.role)} ──", color)
    for block in turn.blocks:
        if block.block_type in ("tool_use", "tool_result"):
            yield from _tool_lines(block, color=color, width=width)
        else:
            yield from _prose_lines(safe(block.text), width=width, highlight=highlight)
        yield ""


def _dim(text: str, color: bool) -> str:
    return f"{_DIM}{text}{_RESET}" if color else text


def _tool_lines(block: "TurnBlock", *, color: bool, width: int) -> Iterator[str]:
    body = _LABEL.sub("", safe(block.text), count=1)
    name = safe(block.tool_name or "tool")
    if block.block_type == "tool_result":
        yield "  " + _dim(_cut(f"{name} ⇒ {' '.join(body.split())}", width - 2), color)
        return
    # Anew: arguments may spell out as escapes what a terminal would obey.
    target, payload = (safe(part) for part in _tool_call(body))
    yield "  " + _dim(_cut(f"{name} {target}".rstrip(), width - 2), color)
    lines = payload.splitlines()
    for line in lines[:_PAYLOAD_LINES]:
        yield from (f"  {part}" for part in _wrap(line, width - 2))
    if len(lines) > _PAYLOAD_LINES:
        yield "  " + _dim(f"… {len(lines) - _PAYLOAD_LINES} more lines", color)


def _tool_call(body: str) -> tuple[str, str]:
    """Return what a tool call aims at and the text it carries; raw arguments stand as target."""
    try:
        args: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ("", body) if "\n" in body else (" ".join(body.split()), "")
    if not isinstance(args, dict):
        return " ".join(body.split()), ""
    target = next((str(args[key]) for key in _TARGET_KEYS if isinstance(args.get(key), str)), "")
    for key in _PAYLOAD_KEYS:
        value = args.get(key)
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            value = " ".join(value)
        if isinstance(value, str) and value.strip():
            return " ".join(target.split()), value
    return " ".join(target.split()) or " ".join(body.split()), ""


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def _prose_lines(text: str, *, width: int, highlight: str) -> Iterator[str]:
    span = _mark_span(text.split(), highlight.split())
    if span is None:
        for line in text.split("\n"):
            yield from _wrap(line, width)
        return
    start = 0
    for line in text.split("\n"):
        words = line.split()
        marked = [
            f"{_REVERSE}{word}{_RESET}" if start + index in span else word
            for index, word in enumerate(words)
        ]
        yield from _fill(list(zip(words, marked, strict=True)), width)
        start += len(words)


def _mark_span(words: list[str], mark: list[str]) -> range | None:
    """Find a passage in a text, word by word; a first word the chunker cut may be wrong."""
    for skip in (0, 1):
        needle = mark[skip:]
        if not needle or (skip and len(needle) < _ANCHOR_WORDS):
            return None
        anchor = needle[:_ANCHOR_WORDS]
        for start in range(len(words) - len(anchor) + 1):
            if words[start : start + len(anchor)] == anchor:
                return range(start, start + _agreeing(words[start:], needle))
    return None


def _agreeing(words: list[str], needle: list[str]) -> int:
    for count, (word, wanted) in enumerate(zip(words, needle, strict=False)):
        if word != wanted:
            return count
    return min(len(words), len(needle))


def _wrap(line: str, width: int) -> Iterator[str]:
    """Wrap one line; a line that fits keeps its indentation, a blank one stays blank."""
    if len(line) <= width:
        yield line.rstrip()
    else:
        yield from _fill([(word, word) for word in line.split()], width)


def _fill(words: list[tuple[str, str]], width: int) -> Iterator[str]:
    """Fill lines from (plain, shown) words: width counts what is seen, not escapes."""
    shown: list[str] = []
    used = 0
    for plain, word in words:
        if shown and used + 1 + len(plain) > width:
            yield " ".join(shown)
            shown, used = [], 0
        while not shown and len(plain) > width and plain == word:
            yield plain[:width]
            plain = word = plain[width:]
        used += len(plain) + (1 if shown else 0)
        shown.append(word)
    yield " ".join(shown)
