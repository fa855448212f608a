"""What several harnesses' records have in common: blocks, work directories, titles."""

import re
from pathlib import Path
from typing import Any

from funes_ls.indexer.chunk import WHITESPACE
from funes_ls.indexer.model import Block, BlockType
from funes_ls.indexer.names import is_scaffolding
from funes_ls.indexer.traces import jsonvalue

_NOT_ALNUM = re.compile(r"[^A-Za-z0-9]")
_TITLE_CHARS = 200


def is_blank(text: str) -> bool:
    """Tell whether a text is nothing but Unicode white space."""
    if text and "!" <= text[0] <= "~":
        return False
    return not text.strip(WHITESPACE)


def text_block(text: Any, block_type: BlockType = "text") -> list[Block]:
    """Return a block of a text, none for a blank one or for anything that is no string."""
    if not isinstance(text, str) or is_blank(text):
        return []
    return [Block(block_type=block_type, text=text)]


def string(value: Any) -> str | None:
    """Return a value that is a string, None for any other."""
    return value if isinstance(value, str) else None


def kind_of(record: dict[str, Any]) -> str:
    """Return the `type` of a record or part, "" when it has none that is a string."""
    kind = record.get("type")
    return kind if isinstance(kind, str) else ""


def flat_text(content: Any) -> str:
    """Return a string content, or the text parts and bare strings of a list, one a line."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts: list[str] = []
    for part in content:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, dict) and part.get("type") == "text":
            parts.append(string(part.get("text")) or "")
    return "\n".join(parts)


def time_text(value: Any) -> str:
    """Return a recorded time as text, "" when it is neither text nor a number."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return jsonvalue.dumps(value)
    return ""


def munge(cwd: Any) -> str | None:
    """Return the work directory facet of a path, None when nothing but dashes is left of it."""
    if not isinstance(cwd, str):
        return None
    munged = _NOT_ALNUM.sub("-", cwd.strip(WHITESPACE))
    return munged if munged.strip("-") else None


def fallback_workdir(path: Path) -> str:
    """Return the facet of a trace that records no cwd: the path part after the first `projects`."""
    parts = path.parts
    if "projects" in parts[:-1]:
        return parts[parts.index("projects") + 1]
    return path.parent.name


def stem_of(path: Path) -> str:
    """Return a trace's file name without `.jsonl` or `.jsonl.zst`."""
    return (path.with_suffix("") if path.suffix == ".zst" else path).stem


def title_of(text: str) -> str:
    """Return a prompt as one line of at most 200 characters, "" for what a harness wrote."""
    if is_scaffolding(text):
        return ""
    return " ".join(text[:4000].split())[:_TITLE_CHARS].rstrip()


def without_nul(blocks: list[Block]) -> tuple[Block, ...] | None:
    """Return the blocks with U+FFFD for each U+0000, None when there is none."""
    if not any("\0" in block.text for block in blocks):
        return None
    return tuple(
        Block(
            block_type=block.block_type,
            text=block.text.replace("\0", "\ufffd"),
            tool_name=block.tool_name,
            tool_use_id=block.tool_use_id,
            own=block.own,
        )
        for block in blocks
    )
