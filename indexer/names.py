"""The names of harnesses and block types; the standard library only, so that a shim may ask."""

from typing import Literal

BlockType = Literal["text", "thinking", "tool_use", "tool_result"]
BLOCK_TYPES: tuple[BlockType, ...] = ("text", "thinking", "tool_use", "tool_result")

#: `--harness` values, mapped to the facet stored in rows.
HARNESSES = {"claude": "claude_code", "codex": "codex", "pi": "pi", "hermes": "hermes"}
