"""Compares folders and files as people and traces spell them; touches no disk."""

import re
import unicodedata
from pathlib import Path

_DRIVE = re.compile(r"[A-Za-z]:/")
#: Where disks of Windows and of macOS are, whose names mean the same in either case.
_CASELESS = re.compile(r"[A-Za-z]:/|/(?:Users|Volumes|mnt/[A-Za-z])/")


def normal(path: str, *, base: str = "") -> str:
    """Return a path with `/` between names, no trailing one, no `.` or `..`, and composed letters.

    Args:
        path: As a person or a trace wrote it.
        base: Folder that a relative path starts from; "" leaves it relative.
    """
    text = unicodedata.normalize("NFC", path.strip()).replace("\\", "/")
    if text == "~" or text.startswith("~/"):
        text = Path.home().as_posix() + text[1:]
    if base and not is_absolute(text):
        text = f"{normal(base)}/{text}"
    root = "/" if text.startswith("/") else ""
    names: list[str] = []
    for name in text.split("/"):
        if name == ".." and names and names[-1] != "..":
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    return root + "/".join(names)


def is_absolute(path: str) -> bool:
    """Tell whether a path starts at a root, of POSIX or of a Windows drive."""
    text = path.replace("\\", "/")
    return text.startswith(("/", "~/")) or text == "~" or _DRIVE.match(text) is not None


def is_under(path: str, folder: str) -> bool:
    """Tell whether a normal path is a folder or lies in it, whole names compared."""
    path, folder = _fold_drive(path, folder)
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def ends_with(path: str, tail: str) -> bool:
    """Tell whether the last names of a normal path are those of `tail`."""
    path, tail = _fold_drive(path, tail)
    return path == tail or path.endswith("/" + tail)


def holds(path: str, part: str) -> bool:
    """Tell whether the names of `part` follow one another somewhere in a normal path."""
    path, part = _fold_drive(path, part)
    return f"/{part}/" in f"/{path.strip('/')}/"


def munged(path: str) -> str:
    """Return the stored work-directory facet of a path: all but ASCII letters and digits dashed."""
    return re.sub(r"[^A-Za-z0-9]", "-", path.strip())


def is_same(path: str, other: str) -> bool:
    """Tell whether two normal paths are one, as their disk compares names."""
    path, other = _fold_drive(path, other)
    return path == other


def _fold_drive(path: str, other: str) -> tuple[str, str]:
    """Drop case where the first one lies on a disk whose names have none."""
    if _CASELESS.match(path):
        return path.lower(), other.lower()
    return path, other
