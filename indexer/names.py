"""The names of harnesses and block types; the standard library only, so that a shim may ask."""

from typing import Literal

BlockType = Literal["text", "thinking", "tool_use", "tool_result"]
BLOCK_TYPES: tuple[BlockType, ...] = ("text", "thinking", "tool_use", "tool_result")

#: `--harness` values, mapped to the facet stored in rows.
HARNESSES = {"claude": "claude_code", "codex": "codex", "pi": "pi", "hermes": "hermes"}

#: Openings of user texts that a harness wrote, beyond tags such as `<environment_context>`.
SCAFFOLDING = (
    "# AGENTS.md instructions",
    "# Context from my IDE",
    "Caveat: The messages below",
    "[Request interrupted",
    "This session is being continued from a previous conversation",
    "<INSTRUCTIONS>",
    "<permissions",
    "<skill>",
)
