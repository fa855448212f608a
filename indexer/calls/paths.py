"""Paths as facts keep them: absolute where the folder is known, `/` between names."""

import re

_DRIVE = re.compile(r"[A-Za-z]:[/\\]")
_LONGEST = 1024


def is_absolute(path: str) -> bool:
    """Tell whether a path starts at a root, of POSIX or of a Windows drive."""
    return path.startswith(("/", "\\\\", "~/")) or _DRIVE.match(path) is not None


def settled(path: str, cwd: str = "") -> str:
    """Return a path without `.` and `..`, below the folder if relative; "" for none or nonsense."""
    path = path.strip()
    if path.startswith("file://"):
        path = path[7:]
    if not path or len(path) > _LONGEST or "\n" in path or "\0" in path:
        return ""
    if not is_absolute(path) and cwd:
        path = f"{cwd}/{path}"
    if _DRIVE.match(path) or path.startswith("\\\\") or "/" not in path:
        path = path.replace("\\", "/")
    return _shortened(path)


def _shortened(path: str) -> str:
    root = "/" if path.startswith("/") else ""
    names: list[str] = []
    for name in path.split("/"):
        if name == ".." and names and names[-1] != "..":
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    return root + "/".join(names) if names else ""
