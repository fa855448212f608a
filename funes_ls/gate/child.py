"""The process that scans: texts on stdin, what was found in them on stdout, never the secrets.

It is one of its own since the scanner is foreign code that may crash or hang.
"""

import hashlib
import os
import re
import sys
from collections.abc import Callable
from typing import IO, Any

import msgspec

from funes_ls.gate.messages import Ask, Hit, Reply
from funes_ls.gate.views import views
from funes_ls.indexer.pipes import read_message, write_message

Scan = Callable[[str], list[Any]]

#: Exit code of a child that has no scanner.
MISSING = 3
#: Ours, and the one with the rule's name that memories of the reference have.
_PLACEHOLDER = re.compile(r"\[REDACTED:[\w.-]+\]|<?redacted>?")
_ARMOUR = re.compile(r"-{3,}\s*(?:BEGIN|END)[A-Z0-9 ]*-{3,}")
_WORD = re.compile(r"[A-Za-z0-9+/=_.~-]{8,}")


def is_placeholder(secret: str) -> bool:
    """Return whether what was found is a placeholder, with nothing beside it that could be one."""
    rest, count = _PLACEHOLDER.subn(" ", secret)
    if not count:
        return False
    words = _WORD.findall(_ARMOUR.sub(" ", rest))
    return not any(re.search("[0-9]", word) and re.search("[A-Za-z]", word) for word in words)


def hit_of(at: int, text: str, scan: Scan) -> Hit | None:
    """Return what a text holds, None when it is clean."""
    rules: dict[str, int] = {}
    for number, view in enumerate(views(text)):
        for found in scan(view):
            if not is_placeholder(found.secret):
                line = int(found.location.start_line or 0) if number == 0 else 0
                name = str(found.rule_id)
                rules[name] = rules.get(name) or line
    return Hit(at, list(rules), list(rules.values())) if rules else None


def answer(ask: Ask, scan: Scan) -> Reply:
    """Return what the texts of a frame hold."""
    digests, hits = [], []
    for at, text in enumerate(ask.texts):
        digests.append(hashlib.sha256(text.encode()).digest())
        hit = hit_of(at, text, scan)
        if hit is not None:
            hits.append(hit)
    return Reply(len(digests), digests, hits)


def serve(source: IO[bytes], target: IO[bytes], scan: Scan) -> None:
    """Answer frames until one without texts asks for the sum."""
    count = 0
    while (body := read_message(source)) is not None:
        ask = msgspec.msgpack.decode(body, type=Ask)
        if not ask.texts:
            write_message(target, msgspec.msgpack.encode(Reply(count)))
            return
        reply = answer(ask, scan)
        count += reply.count
        write_message(target, msgspec.msgpack.encode(reply))


def main() -> int:
    """Scan for the process that started this one; the scanner's own words go nowhere."""
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        from betterleaks import scan_string
    except ImportError:
        write_message(target, msgspec.msgpack.encode(Reply(0, missing=True)))
        return MISSING
    serve(source, target, scan_string)
    return 0


if __name__ == "__main__":
    sys.exit(main())
