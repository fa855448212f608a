"""Takes a question as typed and makes it fit for the two legs."""

import re
import unicodedata

from msgspec import Struct

from funes_ls.indexer.errors import UsageError
from funes_ls.retrieval.answers import RecallFilter

#: A question this long or longer is refused: it is a file, not a question.
MAX_CHARS = 20_000
_SURELY_TOO_LONG = 10 * MAX_CHARS
#: What a leg reads of a long paste: its head and its tail, where errors stand.
WORDS_CHARS = 4_000
MODEL_CHARS = 1_000

_INLINE = re.compile(r"(?<!\S)(?P<key>[a-z]+):(?P<value>\"[^\"]+\"|[^\s\"]\S*)")
#: Inline filter -> field of `RecallFilter`.
INLINE_KEYS = {
    "project": "project",
    "repo": "repo",
    "cwd": "cwd",
    "path": "path",
    "file": "path",
    "branch": "branch",
    "session": "session",
    "harness": "harness",
    "type": "block_type",
    "tool": "tool",
    "since": "since",
    "until": "until",
}


class Inline(Struct, frozen=True, kw_only=True):
    """A `key:value` in a question that may be meant as a filter.

    Attributes:
        field: The field of `RecallFilter` it would set.
        value: Its value, without quotes.
        written: The words as typed, to fall back to.
    """

    field: str
    value: str
    written: str


def clean(text: str) -> str:
    """Return the question without what no text holds: halves of characters, controls, NULs.

    Raises:
        UsageError: There is nothing to look for, or far too much.
    """
    if len(text) > _SURELY_TOO_LONG:  # looking at each of its characters would take a while
        raise _too_long(len(text))
    sound = text.encode("utf-8", "replace").decode("utf-8")
    sound = "".join(" " if _is_control(char) else char for char in sound).strip()
    if len(sound) >= MAX_CHARS:
        raise _too_long(len(sound))
    if not any(is_wordy(char) for char in sound):
        what = "The question is empty." if not sound else f"The question {sound!r} has no words."
        raise UsageError(what, hint='Ask with words: funes recall "why did the build fail"')
    return sound


def _too_long(chars: int) -> UsageError:
    return UsageError(
        f"The question has {chars:,} characters; the longest taken is {MAX_CHARS - 1:,}.",
        hint="Paste the lines that matter, such as the error and the frames around it.",
    )


def _is_control(char: str) -> bool:
    return char not in "\n\t" and unicodedata.category(char) == "Cc"


def is_wordy(char: str) -> bool:
    """Tell letters, numbers and picture signs from punctuation."""
    return unicodedata.category(char)[0] in "LN" or (not char.isascii() and _is_symbol(char))


def _is_symbol(char: str) -> bool:
    return unicodedata.category(char) in ("So", "Sm")


def inline_filters(text: str) -> list[Inline]:
    """Return the `key:value` parts that could be filters, in order; the caller decides."""
    return [
        Inline(
            field=INLINE_KEYS[found["key"]],
            value=found["value"].strip('"'),
            written=found[0],
        )
        for found in _INLINE.finditer(text)
        if found["key"] in INLINE_KEYS
    ]


def without(text: str, inlines: list[Inline]) -> str:
    """Return the question without the parts that were taken as filters."""
    for inline in inlines:
        text = text.replace(inline.written, " ", 1)
    return " ".join(text.split()) if inlines else text


def with_inline(limits: RecallFilter, inline: Inline) -> RecallFilter:
    """Return the filter with one inline part added; what a flag has set stays."""
    values = {name: getattr(limits, name) for name in limits.__struct_fields__}
    if not values[inline.field]:
        values[inline.field] = inline.value
    return RecallFilter(**values)


def shorten(text: str, limit: int) -> str:
    """Return head and tail of a long paste, at most `limit` characters, cut between lines.

    The first line of a stack trace names the error in some languages, the last in others.
    """
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 3 // 5], text[-(limit * 2 // 5 - 1) :]
    head = head[: max(head.rfind("\n"), head.rfind(" ")) + 1 or None]
    start = max(tail.find("\n"), 0) or max(tail.find(" "), 0)
    return f"{head.rstrip()}\n{tail[start:].lstrip()}"
