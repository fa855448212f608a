"""Edits given as blocks of what is searched and what stands there afterwards."""

import re

_BEGIN = re.compile(r"[-<]{3,} ?SEARCH>?\s*")
_TURN = re.compile(r"={3,}\s*")
_END = re.compile(r"[+>]{3,} ?REPLACE>?\s*")
_HEAD = re.compile(r":(?:start|end)_line: ?\d+\s*|-{3,}\s*")


def searched_and_replaced(diff: str) -> list[tuple[str, str]]:
    """Return the old and new texts of a diff in SEARCH/REPLACE blocks; none for any other text.

    A block that was cut short is left out.
    """
    if "SEARCH" not in diff or "REPLACE" not in diff:
        return []
    found: list[tuple[str, str]] = []
    old: list[str] | None = None
    new: list[str] | None = None
    for line in diff.splitlines(keepends=True):
        if _BEGIN.fullmatch(line):
            old, new = [], None
        elif old is not None and new is None and _TURN.fullmatch(line):
            new = []
        elif old is not None and new is not None and _END.fullmatch(line):
            found.append(("".join(old), "".join(new)))
            old = new = None
        elif new is not None:
            new.append(line)
        elif old is not None and not (not old and _HEAD.fullmatch(line)):
            old.append(line)
    return found
