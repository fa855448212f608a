"""Reads unified diffs, as `git apply` and `patch` take them."""

import re
from collections.abc import Iterator

from msgspec import Struct

from funes_ls.indexer.calls.paths import settled
from funes_ls.indexer.facts import FileEvent

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NAME = re.compile(r"(?:---|\+\+\+) ([^\t\n]+)")
_NOTHING = "/dev/null"


def is_unified(text: str) -> bool:
    """Tell whether a text holds a unified diff."""
    return "\n+++ " in text and "\n@@ -" in text


def unified_events(diff: str, cwd: str, *, strip: int = 1) -> Iterator[FileEvent]:
    """Yield what a diff does: an edit for each hunk, a write for a new file, a deletion.

    Args:
        diff: Its text; what stands around the files' parts is passed over.
        cwd: Folder its names start from.
        strip: First names of each path that are left out.
    """
    source = target = ""
    hunks: list[_Hunk] = []
    for line in diff.split("\n"):
        if hunks and hunks[-1].takes(line):
            continue
        if line.startswith("--- "):
            yield from _of_file(source, target, hunks)
            source, target, hunks = _path(line, cwd, strip), "", []
        elif line.startswith("+++ "):
            target = _path(line, cwd, strip)
        elif found := _HUNK.match(line):
            hunks.append(_Hunk(left_old=int(found[1] or 1), left_new=int(found[2] or 1)))
    yield from _of_file(source, target, hunks)


class _Hunk(Struct, kw_only=True):
    """Lines before and after, and how many of each are still to come."""

    left_old: int
    left_new: int
    old: list[str] = []
    new: list[str] = []

    def takes(self, line: str) -> bool:
        """Take a line if it is one of the hunk's."""
        if not (self.left_old or self.left_new):
            return False
        sign, text = line[:1] or " ", line[1:]
        if sign in " -":
            self.old.append(text)
            self.left_old -= 1
        if sign in " +":
            self.new.append(text)
            self.left_new -= 1
        return sign in " -+\\"


def _of_file(source: str, target: str, hunks: list[_Hunk]) -> Iterator[FileEvent]:
    if not target or not source or source == target == _NOTHING:
        return
    if target == _NOTHING:
        yield FileEvent(kind="delete", path=source)
        return
    if source == _NOTHING:
        text = "".join(f"{line}\n" for hunk in hunks for line in hunk.new)
        yield FileEvent(kind="write", path=target, new=text)
        return
    for hunk in hunks:
        if hunk.old != hunk.new:
            old, new = "\n".join(hunk.old), "\n".join(hunk.new)
            yield FileEvent(kind="edit", path=source, old=old, new=new)
    if source != target:
        yield FileEvent(kind="move", path=target, source=source)


def _path(line: str, cwd: str, strip: int) -> str:
    found = _NAME.match(line)
    name = found[1].strip().strip('"') if found else ""
    if name == _NOTHING:
        return _NOTHING
    return settled("/".join(name.split("/")[strip:]) if "/" in name else name, cwd)
