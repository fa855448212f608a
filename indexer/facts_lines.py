"""When two lines of a file count as the same, and which say nothing by themselves."""

import hashlib
import re
from functools import lru_cache

#: Fewer letters and digits than these five say nothing of where a line comes from.
_ENOUGH = re.compile(r"\w(?:\W*\w){4}")
#: Words that alone on a line, signs apart, say no more than a bracket does.
_COMMON = re.compile(
    "begin|break|catch|continue|default|else|endif|esac|finally|private|protected|public"
    "|return(false|nil|none|null|self|true)?"
)
#: Longer lines are not worth the room.
_REMEMBERED_CHARS = 300
_SIGNS = re.compile(r"\W+")


def line_key(line: str) -> str:
    """Return what two lines have in common that differ only as formatters make them differ.

    Spaces, the kind of quotes and a comma or semicolon at the end do not count; "" is a blank line.
    """
    # Three times as fast as one pattern, and asked of every line that is seen.
    return "".join(line.split()).replace('"', "'").replace("`", "'").rstrip(",;")


def is_weak(key: str) -> bool:
    """Tell whether a line, by its key, is so common that it proves nothing without neighbours."""
    if not _ENOUGH.search(key):
        return True
    return len(key) < 20 and _COMMON.fullmatch(_SIGNS.sub("", key).lower()) is not None


def key_hash(key: str) -> int:
    """Return 63 bits that stand for a line's key, the same on every machine."""
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def key_of(line: str) -> tuple[str, bool]:
    """Return a line's key and whether it is weak; what lines often ask for is remembered."""
    return _key_of(line) if len(line) <= _REMEMBERED_CHARS else _judged(line)


def _judged(line: str) -> tuple[str, bool]:
    key = line_key(line)
    return key, is_weak(key)


#: Lines of the files that are open in editors, asked about again with every hover.
_key_of = lru_cache(maxsize=1 << 13)(_judged)


def unix(text: str) -> str:
    """Return a text with every kind of line end as a newline."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def split_lines(text: str) -> list[str]:
    """Return the lines of a text as editors count them; one more, empty, behind a last line end."""
    return unix(text).split("\n")
