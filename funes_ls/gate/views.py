"""The forms of a text that are scanned: as it is, without disguises, and what is encoded in it."""

import base64
import binascii
import re
from collections.abc import Iterator
from urllib.parse import unquote

#: Markers by which a line asks the scanner to look away; the space takes their meaning.
_ALLOW = re.compile(r"(gitleaks|betterleaks)\s*:\s*allow", re.IGNORECASE)
#: Colours and cursor moves of terminals, links of terminals, and characters that show nothing.
_UNSEEN = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)"
    "|[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]"
)
_ESCAPE = re.compile(r"\\+(u[0-9a-fA-F]{4}|[nrt\"'/\\])")
_SIGNS = {"n": "\n", "r": "\n", "t": "\t", '"': '"', "'": "'", "/": "/", "\\": "\\"}
_PERCENT = re.compile(r"%[0-9a-fA-F]{2}")
#: Base64 of either alphabet that holds 12 bytes or more; long runs may be wrapped into lines.
_RUN = re.compile(r"[A-Za-z0-9+/_-]{16,}(?:\r?\n[A-Za-z0-9+/_-]{16,})*={0,2}")
#: Twice encoded is as deep as it is followed.
_DEPTH = 2
_READABLE = 0.85


def views(text: str) -> Iterator[str]:
    """Yield what is to be scanned of a text, the text itself first."""
    seen: set[str] = set()
    for view in _plain(_ALLOW.sub(r"\1 allow", text)):
        if view not in seen:
            seen.add(view)
            yield view
            yield from _decoded(view, _DEPTH, seen)


def _plain(text: str) -> Iterator[str]:
    yield text
    shown = _UNSEEN.sub("", text)
    if shown != text:
        yield shown
    if "\\" in shown:
        # An escaped text may hold an escaped text: any number of backslashes is one.
        yield _ALLOW.sub(r"\1 allow", _ESCAPE.sub(_unescaped, shown))
    if _PERCENT.search(shown):
        yield _ALLOW.sub(r"\1 allow", unquote(shown, errors="replace").replace("\0", " "))


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] != "u":
        return _SIGNS[code]
    point = int(code[1:], 16)
    return " " if point == 0 or 0xD800 <= point <= 0xDFFF else chr(point)


def _decoded(text: str, depth: int, seen: set[str]) -> Iterator[str]:
    for found in _RUN.finditer(text):
        inner = _plain_of(found[0])
        if inner is None or inner in seen:
            continue
        seen.add(inner)
        yield inner
        if depth > 1:
            yield from _decoded(inner, depth - 1, seen)


def _plain_of(run: str) -> str | None:
    """Return what a run of base64 says, None where it is no text."""
    body = re.sub(r"[\r\n=]", "", run).replace("-", "+").replace("_", "/")
    if len(body) % 4 == 1:
        body = body[:-1]
    try:
        raw = base64.b64decode(body + "=" * (-len(body) % 4))
    except (binascii.Error, ValueError):
        return None
    printable = sum(1 for byte in raw if 32 <= byte < 127 or byte in (9, 10, 13))
    if not raw or printable < _READABLE * len(raw):
        return None
    return _ALLOW.sub(r"\1 allow", raw.decode("utf-8", "replace").replace("\0", " "))
