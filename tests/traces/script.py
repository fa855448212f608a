"""Reads the hand-written scripts of the sample sessions.

A script is a header of `key: value` lines, an empty line, and steps. A step begins with a mark at
the start of a line and goes on until the next mark:

    U> what the user typed            A> what the assistant said      T> what it thought
    $ a shell command                 R> a file read                  G> a pattern | where
    E> a file edited: old text, a line `====`, new text               W> a file written: content
    = what the tool answered          =! the same, as an error
    Q> typed while the agent was busy K> summary at a compaction      X> handed to a sub-agent
    ~ 3h                              (time passes; also m, d)

A backslash before a mark makes it ordinary text.
"""

import re
from datetime import datetime, timedelta
from pathlib import Path

from msgspec import Struct

SCRIPTS = Path(__file__).parent / "scripts"

_MARK = re.compile(r"^(U>|A>|T>|E>|W>|R>|G>|Q>|K>|X>|\$|=!|=|~)(?: |$)")
_KINDS = {
    "U>": "user",
    "A>": "say",
    "T>": "think",
    "E>": "edit",
    "W>": "write",
    "R>": "read",
    "G>": "grep",
    "Q>": "queued",
    "K>": "compact",
    "X>": "delegate",
    "$": "shell",
    "=": "answer",
    "=!": "error",
    "~": "pause",
}
_CALLS = ("shell", "edit", "write", "read", "grep", "delegate")
_UNITS = {"m": 60, "h": 3600, "d": 86400}


class Step(Struct, frozen=True, kw_only=True):
    """One step of a session.

    Attributes:
        text: Of a file step: the path; what follows it is in `old` and `new`.
        at: When it happened.
        answer: What the tool answered, for tool steps.
    """

    kind: str
    text: str
    at: datetime
    old: str = ""
    new: str = ""
    answer: str = ""
    failed: bool = False


class Script(Struct, frozen=True, kw_only=True):
    """A whole session as written; `head` has its header (harness, project, variant, …)."""

    name: str
    head: dict[str, str]
    steps: list[Step]

    @property
    def cwd(self) -> str:
        """Return the working directory the session is told to run in."""
        return self.head.get("cwd") or f"/home/dev/src/{self.head['project']}"


def load_scripts() -> list[Script]:
    """Return every script, sorted by name."""
    return [load_script(path) for path in sorted(SCRIPTS.glob("*.txt"))]


def load_script(path: Path) -> Script:
    """Return one script with its times worked out."""
    head_text, _, body = path.read_text(encoding="utf-8").partition("\n\n")
    head = dict(line.split(": ", 1) for line in head_text.splitlines())
    steps: list[Step] = []
    clock = datetime.fromisoformat(head["start"])
    for kind, text in _pieces(body):
        if kind == "pause":
            clock += timedelta(seconds=int(text[:-1]) * _UNITS[text[-1]])
        elif kind in ("answer", "error"):
            last = steps.pop()
            if last.kind not in _CALLS:
                raise ValueError(f"{path.name}: an answer without a call: {text[:40]}")
            steps.append(
                Step(
                    kind=last.kind,
                    text=last.text,
                    at=last.at,
                    old=last.old,
                    new=last.new,
                    answer=text,
                    failed=kind == "error",
                )
            )
        else:
            clock += timedelta(milliseconds=2_300 + 61 * len(text) + 977 * (len(steps) % 7))
            steps.append(_step(kind, text, clock))
    return Script(name=path.stem, head=head, steps=steps)


def _pieces(body: str) -> list[tuple[str, str]]:
    pieces: list[tuple[str, list[str]]] = []
    for line in body.rstrip("\n").split("\n"):
        mark = _MARK.match(line)
        if mark:
            pieces.append((_KINDS[mark[1]], [line[mark.end() :]]))
        else:
            pieces[-1][1].append(line.removeprefix("\\"))
    return [(kind, "\n".join(lines).strip("\n")) for kind, lines in pieces]


def _step(kind: str, text: str, at: datetime) -> Step:
    if kind not in ("edit", "write"):
        return Step(kind=kind, text=text, at=at)
    path, _, rest = text.partition("\n")
    if kind == "write":
        return Step(kind=kind, text=path, at=at, new=rest + "\n", answer="")
    old, _, new = rest.partition("\n====\n")
    return Step(kind=kind, text=path, at=at, old=old, new=new)
