"""Globs of paths, as the settings and `.funesignore` have them, as regular expressions."""

import os
import posixpath
import re
from pathlib import Path

from msgspec import Struct

_DRIVE = re.compile(r"[A-Za-z]:/")


def slashed(path: str) -> str:
    """Return a path with forward slashes, and without one at its end."""
    return path.replace("\\", "/").rstrip("/") or "/"


def absolute(path: str, cwd: str) -> str:
    """Return a path that a tool was given as a whole one, with forward slashes."""
    path = slashed(os.path.expanduser(path) if path.startswith("~") else path)  # noqa: PTH111
    if not path.startswith("/") and not _DRIVE.match(path):
        path = f"{slashed(cwd)}/{path}"
    return posixpath.normpath(path)


def glob_regex(glob: str, flags: int = 0) -> re.Pattern[str]:
    """Return what matches, as a whole, the paths that a glob names and all below them.

    `*` and `?` stay within a folder, `**` does not; a glob that is no whole path matches at any
    depth; `~` is the home.
    """
    pattern = glob.strip()
    if pattern == "~" or pattern.startswith(("~/", "~\\")):
        pattern = f"{Path.home()}/{pattern[2:]}"
    pattern = slashed(pattern)
    if _DRIVE.match(pattern):
        flags |= re.IGNORECASE
    elif not pattern.startswith("/"):
        pattern = f"**/{pattern}"
    return re.compile(_translated(pattern), flags | re.DOTALL)


def _translated(pattern: str) -> str:
    parts = []
    at = 0
    while at < len(pattern):
        rest = pattern[at:]
        if rest == "/**":
            break  # what is below is matched anyway, and so is the folder itself
        if rest.startswith("**/"):
            parts.append("(?:.*/)?")
            at += 3
        elif rest.startswith("**"):
            parts.append(".*")
            at += 2
        elif rest[0] == "*":
            parts.append("[^/]*")
            at += 1
        elif rest[0] == "?":
            parts.append("[^/]")
            at += 1
        elif rest[0] == "[" and (end := pattern.find("]", at + 2)) > 0:
            inside = pattern[at + 1 : end].replace("\\", r"\\").replace("[", r"\[")
            parts.append("[" + ("^" + inside[1:] if inside[0] in "!^" else inside) + "]")
            at = end + 1
        else:
            parts.append(re.escape(rest[0]))
            at += 1
    return "".join(parts) + "(?:/.*)?"


class Lines(Struct, frozen=True, kw_only=True):
    """What a `.funesignore` says.

    Attributes:
        folder: Where it lies.
        whole: Whether it keeps out all that happens there.
        patterns: What matches paths below it, and whether that takes them out or back in; the
            last one that matches counts.
    """

    folder: str
    whole: bool
    patterns: tuple[tuple[re.Pattern[str], bool], ...] = ()

    def hides(self, path: str, *, is_session: bool = False) -> bool:
        """Return whether a file, or a session that ran in a folder, is kept out."""
        if self.whole:
            return True
        name = slashed(path)
        below = "/" if self.folder == "/" else f"{self.folder}/"
        if not name.startswith(below) or (is_session and name == self.folder):
            return False
        hidden = False
        for pattern, takes_out in self.patterns:
            if pattern.fullmatch(name[len(below) :]):
                hidden = takes_out
        return hidden


def lines_of(text: str, folder: str) -> Lines:
    """Return what a `.funesignore` says; one without lines keeps everything out."""
    lines = [line.strip() for line in text.lstrip("\ufeff").splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines or any(slashed(line) in ("*", "**", "/", "/*", "/**", "**/*") for line in lines):
        return Lines(folder=folder, whole=True)
    found = []
    for line in lines:
        takes_out = not line.startswith("!")
        pattern = slashed(line.removeprefix("!"))
        # With a slash it is said from where the file lies.
        pattern = pattern.lstrip("/") if "/" in pattern else f"**/{pattern}"
        found.append((re.compile(_translated(pattern), re.DOTALL), takes_out))
    return Lines(folder=folder, whole=False, patterns=tuple(found))
