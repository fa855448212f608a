"""The agents that can be asked, in the order they are tried."""

from collections.abc import Mapping

from funes_ls.agents.agent import Agent, program_of
from funes_ls.agents.claude import CLAUDE
from funes_ls.agents.codex import CODEX
from funes_ls.agents.pi import PI

AGENTS: dict[str, Agent] = {one.name: one for one in (CLAUDE, CODEX, PI)}


def installed(env: Mapping[str, str]) -> list[Agent]:
    """Return the agents whose command is on the path."""
    return [agent for agent in AGENTS.values() if program_of(agent, env) is not None]
