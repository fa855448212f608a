"""The agents that can be given a memory, each in a module of its own."""

from importlib import import_module
from typing import cast

from funes_ls.install.plan import Setup

#: Agent -> how people call it, in order of help.
TITLES = {
    "claude": "Claude Code",
    "codex": "Codex",
    "pi": "pi",
    "hermes": "Hermes",
    "vscode": "VS Code",
    "cursor": "Cursor",
    "generic": "The agent",
}
#: Those that have no module of their own: members of `editors`.
_EDITORS = ("vscode", "cursor", "generic")


def setup_of(agent: str) -> Setup:
    """Return how an agent is given a memory."""
    if agent in _EDITORS:
        editors = import_module("funes_ls.install.editors")
        return cast(Setup, getattr(editors, agent.upper()))
    return cast(Setup, import_module(f"funes_ls.install.{agent}"))
