"""What turns a changed file back: the replaced pieces alone, so that no copy of a file is kept."""

from difflib import SequenceMatcher
from hashlib import sha256
from typing import Any

#: More changed lines than this are kept as one piece: comparing them would take long.
_MOST_LINES = 4000

#: Where a piece begins in the changed file, its length there, and what stood there, as Latin-1.
Splice = tuple[int, int, str]


def digest(data: bytes | None) -> str:
    """Return the hash of a file's contents, "" for a file that is not there."""
    return "" if data is None else sha256(data).hexdigest()


def reverse(before: bytes, after: bytes) -> list[Splice]:
    """Return what makes `before` of `after` again."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    old_end, new_end = len(old) - tail, len(new) - tail
    middle_old, middle_new = old[head:old_end], new[head:new_end]
    if max(len(middle_old), len(middle_new)) > _MOST_LINES:
        codes = [("replace", 0, len(middle_old), 0, len(middle_new))]
    else:
        matcher = SequenceMatcher(None, middle_old, middle_new, autojunk=False)
        codes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    starts = [0]
    for line in new:
        starts.append(starts[-1] + len(line))
    return [
        (
            starts[head + b1],
            starts[head + b2] - starts[head + b1],
            b"".join(middle_old[a1:a2]).decode("latin-1"),
        )
        for _, a1, a2, b1, b2 in codes
    ]


def reversed_by(after: bytes, splices: list[Splice]) -> bytes:
    """Return what a file was before a change."""
    for start, length, text in sorted(splices, reverse=True):
        after = after[:start] + text.encode("latin-1") + after[start + length :]
    return after


def splices_of(value: Any) -> list[Splice]:
    """Return splices that were read from JSON.

    Raises:
        ValueError, TypeError: they are none.
    """
    return [(int(start), int(length), str(text)) for start, length, text in value]


def _common(one: list[bytes], other: list[bytes]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
