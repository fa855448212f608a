"""The names of harnesses and block types; the standard library only, so that a shim may ask."""

import re
from typing import Literal

BlockType = Literal["text", "thinking", "tool_use", "tool_result"]
BLOCK_TYPES: tuple[BlockType, ...] = ("text", "thinking", "tool_use", "tool_result")

#: `--harness` values, mapped to the facet stored in rows.
HARNESSES = {
    "claude": "claude_code",
    "codex": "codex",
    "pi": "pi",
    "hermes": "hermes",
    "gemini": "gemini",
    "qwen": "qwen",
    "opencode": "opencode",
    "copilot": "copilot",
    "cline": "cline",
    "vscode": "vscode",
}

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
_TAG = re.compile(r"<(?=[a-z]+[-_])(command-)?[a-z_-]*[ >]")


def is_scaffolding(text: str, *, commands: bool = True) -> bool:
    """Tell whether a harness wrote a text in the user's name.

    Args:
        text: Of a block; its beginning will do.
        commands: Whether what a harness makes of a command that the user typed counts, too.
    """
    opening = text[:4000].lstrip()
    if opening.startswith(SCAFFOLDING):
        return True
    tag = _TAG.match(opening)
    return tag is not None and (commands or tag[1] is None)
