"""The agents that can be given a memory, each in a module of its own."""

from importlib import import_module
from typing import cast

from funes_ls.install.plan import Setup

#: Agent -> how people call it, in order of help.
TITLES = {"claude": "Claude Code"}
#: Agents that are not in a module of their own name.
_MODULES: dict[str, str] = {}


def setup_of(agent: str) -> Setup:
    """Return how an agent is given a memory."""
    return cast(Setup, import_module(f"funes_ls.install.{_MODULES.get(agent, agent)}"))
