"""Reads files as text, whatever their encoding, and cuts texts into lines as editors do.

Standard library only: the commands need it before anything is loaded.
"""

import codecs
import re
from pathlib import Path

#: Larger files are not asked about.
MAX_BYTES = 16 << 20
#: A NUL so early says that a file is no text, as git has it.
_LOOKED_AT = 8000
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
#: LSP 3.17, "Text Documents": nothing else ends a line.
_LINE_END = re.compile("\r\n|\n|\r")


def read_text(path: Path) -> str | None:
    """Return the text of a file without its byte order mark, None when it is no text or too long.

    Raises:
        OSError: it cannot be read.
        ValueError: there can be no file of this name.
    """
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    return decoded(data) if len(data) <= MAX_BYTES else None


def decoded(data: bytes) -> str | None:
    """Return bytes as text, None when they are none.

    Lines that are no UTF-8 are read as Windows-1252, each by itself: some files have both.
    """
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return data.decode(encoding, "replace").removeprefix("\ufeff")
    if b"\0" in data[:_LOOKED_AT]:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(map(_line, data.splitlines(keepends=True)))


def _line(data: bytes) -> str:
    for encoding in ("utf-8", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their ends; an end at the very end begins no other."""
    lines = _LINE_END.split(text)
    return lines[:-1] if not lines[-1] else lines
