"""Ids and times for the sample sessions: made from names, so the same every time."""

import hashlib
import json
from datetime import datetime
from pathlib import Path
from typing import Any


def digest(*parts: object) -> str:
    """Return 64 hexadecimal digits that depend on the parts only."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()


def uuid4(*parts: object) -> str:
    """Return an id in the form of a random UUID."""
    h = digest(*parts)
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:32]}"


def uuid7(at: datetime, *parts: object) -> str:
    """Return an id in the form of a time-ordered UUID."""
    ms = f"{int(at.timestamp() * 1000):012x}"
    h = digest(*parts)
    return f"{ms[:8]}-{ms[8:]}-7{h[:3]}-9{h[3:6]}-{h[6:18]}"


def iso(at: datetime) -> str:
    """Return a time as the harnesses write it: `2026-03-02T10:00:00.000Z`."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def munge(cwd: str) -> str:
    """Return the folder name Claude Code makes of a working directory."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in cwd)


def dump(record: Any) -> str:
    """Return one line of a trace, without its line end."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def write_lines(path: Path, records: list[Any], *, torn: bool = False) -> None:
    """Write a trace; a torn one ends in the middle of its last record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(dump(record) + "\n" for record in records)
    if torn:
        last = text.rstrip("\n").rfind("\n") + 1
        text = text[: last + (len(text) - last) // 2]
    path.write_text(text, encoding="utf-8", newline="\n")
