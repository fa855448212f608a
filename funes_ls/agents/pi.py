"""pi, asked once: `pi -p`, whose output is the answer itself.

Source: flags as observed on version 0.73.1.
"""

from collections.abc import Mapping

from funes_ls.agents.agent import Agent

_ARGUMENTS = [
    "-p",
    "--no-session",
    "--no-tools",
    "--no-extensions",
    "--no-skills",
    "--no-prompt-templates",
    "--no-context-files",
]


def _arguments(_env: Mapping[str, str]) -> list[str]:
    return list(_ARGUMENTS)


def text_of(line: str) -> str:
    """Return the line: pi prints its answer and nothing else."""
    return line


PI = Agent(
    name="pi",
    program="pi",
    arguments=_arguments,
    text_of=text_of,
    reason_of=lambda _line: "",  # it stands on stderr
    install="npm install -g @mariozechner/pi-coding-agent",
    tells_first=True,
)
