"""Reads patches in the form of `apply_patch`."""

import re
from collections.abc import Iterator

from funes_ls.indexer.calls.paths import settled
from funes_ls.indexer.facts import FileEvent

_BEGIN = "*** Begin Patch"
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE = re.compile(r"\*\*\* Move to: (.+)")


def find_patch(text: str) -> str:
    """Return the patch that a text holds, "" when there is none."""
    start = text.find(_BEGIN)
    if start < 0:
        return ""
    end = text.find("\n*** End Patch", start)
    return text[start : end if end >= 0 else len(text)]


def patch_events(patch: str, cwd: str) -> Iterator[FileEvent]:
    """Yield what a patch does: a write for a new file, an edit for each hunk, moves last."""
    kind = path = ""
    body: list[str] = []
    for line in patch.split("\n"):
        found = _FILE.fullmatch(line.rstrip("\r"))
        if found:
            yield from _of_file(kind, path, body, cwd=cwd)
            kind, path, body = found[1], settled(found[2], cwd), []
        elif not line.startswith("*** Begin Patch"):
            body.append(line)
    yield from _of_file(kind, path, body, cwd=cwd)


def _of_file(kind: str, path: str, body: list[str], *, cwd: str) -> Iterator[FileEvent]:
    if not path:
        return
    if kind == "Delete":
        yield FileEvent(kind="delete", path=path)
    elif kind == "Add":
        lines = [line[1:] for line in body if line.startswith("+")]
        yield FileEvent(kind="write", path=path, new="".join(f"{line}\n" for line in lines))
    else:
        yield from _hunks(path, body)
        moved = body and _MOVE.fullmatch(body[0].rstrip("\r"))
        target = settled(moved[1], cwd) if moved else ""
        if target:
            yield FileEvent(kind="move", path=target, source=path)


def _hunks(path: str, body: list[str]) -> Iterator[FileEvent]:
    old: list[str] = []
    new: list[str] = []
    for line in [*body, "@@"]:
        if line.startswith(("@@", "*** ")):
            if old != new:
                yield FileEvent(kind="edit", path=path, old="\n".join(old), new="\n".join(new))
            old, new = [], []
            continue
        if not line.startswith("+"):
            old.append(line[1:])
        if not line.startswith("-"):
            new.append(line[1:])
