"""What a tool call says about files: which paths it touched."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from funes_ls.indexer.model import Block

#: Keys under which the harnesses' file tools name a path.
_PATH_KEYS = ("file_path", "path", "notebook_path", "filePath", "filename", "target_file")
#: Keys under which a patch or a shell command may stand.
_TEXT_KEYS = ("input", "patch", "command", "cmd")
_PATCH_FILE = re.compile(
    r"^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$|^\*\*\* Move to: (.+?)\s*$", re.M
)
_LONGEST_PATH = 1024


def touched_paths(block: Block) -> list[str]:
    """Return the paths a tool call names as its target, as written, in order, each once."""
    if block.block_type != "tool_use":
        return []
    text = block.text
    if text.startswith("*** Begin Patch"):
        return list(dict.fromkeys(_patched(text)))
    if "path" not in text and "ile" not in text:
        return []
    try:
        value = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return list(dict.fromkeys(_patched(text)))
    return list(dict.fromkeys(p for p in _named(value) if 0 < len(p) <= _LONGEST_PATH))


def _named(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    for key in _PATH_KEYS:
        if isinstance(path := value.get(key), str):
            yield path
    for key in _TEXT_KEYS:
        for text in _texts(value.get(key)):
            yield from _patched(text)
    edits = value.get("edits")
    for edit in edits if isinstance(edits, list) else ():
        yield from _named(edit)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (part for part in value if isinstance(part, str))


def _patched(text: str) -> Iterator[str]:
    if "*** " in text:
        for match in _PATCH_FILE.finditer(text):
            yield match.group(1) or match.group(2)
