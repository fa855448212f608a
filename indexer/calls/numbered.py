"""Takes line numbers off what tools show of files."""

import re

from msgspec import Struct

#: `cat -n`, `nl`, and the arrows of Claude's Read.
_NUMBERED = re.compile(r" *(\d+)(?:→|\t|│ ?|\||:)(.*)", re.DOTALL)
_REMINDER = re.compile(r"\n*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_ENOUGH = 0.5


class Shown(Struct, frozen=True, kw_only=True):
    """A part of a file as a tool showed it; `first_line` is 0 when nothing tells it."""

    text: str
    first_line: int


def without_reminders(text: str) -> str:
    """Return an answer without what the harness told the model beside it."""
    return _REMINDER.sub("\n", text) if "<system-reminder>" in text else text


def unnumbered(text: str) -> Shown | None:
    """Return text whose lines are numbered one after the other without the numbers, else None.

    What stands before or after the numbered lines is left out.
    """
    lines: list[str] = []
    first = 0
    for line in without_reminders(text).split("\n"):
        found = _NUMBERED.fullmatch(line)
        number = int(found[1]) if found else 0
        if found and number == (first + len(lines) if lines else number):
            first = first or number
            lines.append(found[2])
        elif lines:
            break
    return Shown(text="\n".join(lines), first_line=first) if lines else None
