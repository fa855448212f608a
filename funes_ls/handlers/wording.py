"""Recalled text and counts as an editor may show them: escaped, short, printable."""

import re
import time

from funes_ls.indexer.times import parse_ts
from funes_ls.render import safe

#: Every character that Markdown or HTML could take for markup, and those that make bare addresses
#: into links.
_MARKUP = re.compile(r"([!-/:-@\[-`{-~])")
_UNITS = (
    ("year", 365 * 86_400),
    ("month", 30 * 86_400),
    ("day", 86_400),
    ("hour", 3_600),
    ("minute", 60),
)


def markdown(text: str) -> str:
    """Return text as Markdown that shows exactly that text."""
    return _MARKUP.sub(r"\\\1", text)


def one_line(text: str, *, most: int = 80) -> str:
    """Return text on one line, cut at a number of characters."""
    found = " ".join(safe(text).split())
    return found if len(found) <= most else found[: most - 1].rstrip() + "…"


def ago(us: int | None, *, now_us: int | None = None) -> str:
    """Return how long ago a moment (UTC µs) was; "" when it is unknown."""
    if us is None:
        return ""
    now = time.time_ns() // 1000 if now_us is None else now_us
    past_s = (now - us) / 1e6
    for name, seconds in _UNITS:
        if past_s >= seconds:
            return f"{counted(int(past_s // seconds), name)} ago"
    return "just now"


def since(ts: str) -> str:
    """Return how long ago a recorded time was; "" when it is none."""
    return ago(parse_ts(ts)) if ts else ""


def counted(count: int, name: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"


def harness_word(harness: str) -> str:
    """Return a harness's short name as people say it: `claude_code` is claude."""
    return harness.removesuffix("_code") or "session"
