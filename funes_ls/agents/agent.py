"""What is known of a coding agent's command line, and which of them are installed."""

import shutil
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Agent(NamedTuple):
    """How to ask one question of a coding agent, without tools and without a trace left behind.

    Attributes:
        name: The harness's name.
        program: Its command.
        arguments: Returns what follows the command, from the environment; the prompt comes by
            stdin.
        text_of: Returns what a line of its output adds to the answer, "" for nothing.
        reason_of: Returns why it fails, when a line of its output says so, else "".
        install: How a person gets it.
        tells_first: The reason of a failure is the first line on its stderr, not the last.
    """

    name: str
    program: str
    arguments: Callable[[Mapping[str, str]], list[str]]
    text_of: Callable[[str], str]
    reason_of: Callable[[str], str]
    install: str
    tells_first: bool = False


def program_of(agent: Agent, env: Mapping[str, str]) -> str | None:
    """Return where an agent's command is, None when it is not installed."""
    return shutil.which(agent.program, path=env.get("PATH", ""))
