"""What adding or removing would do: files it writes, commands it runs, what is left to a person."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from funes_ls.indexer.home import expanded, home_dir


class Change(NamedTuple):
    """A file that is changed.

    Attributes:
        edit: Returns the new contents from those there are; None is a file that is not there.
        is_own: It lies in our own folder: there is nothing of anybody else's in it.
    """

    path: Path
    edit: Callable[[bytes | None], bytes | None]
    is_own: bool = False
    mode: int = 0o600


def holding(path: Path, text: str, *, mode: int = 0o600) -> Change:
    """Return the writing of a file of our own."""
    data = text.encode("utf-8")
    return Change(path, lambda _now: data, is_own=True, mode=mode)


class Command(NamedTuple):
    """A command of the agent's that is run, and the files that it changes."""

    argv: tuple[str, ...]
    touches: tuple[Path, ...] = ()


Step = Change | Command


class Plan(NamedTuple):
    """What would be done, in order.

    Attributes:
        steps: What is done.
        by_hand: Commands or blocks of text that are left to a person.
        notes: What a person should know.
        problems: What stands in the way; the rest is done all the same.
    """

    steps: tuple[Step, ...] = ()
    by_hand: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def then(self, other: "Plan") -> "Plan":
        """Return this plan and then another."""
        return Plan(
            steps=self.steps + other.steps,
            by_hand=self.by_hand + other.by_hand,
            notes=self.notes + other.notes,
            problems=self.problems + other.problems,
        )


class Wanted(NamedTuple):
    """What an agent is to be given, and where.

    Attributes:
        agent: Its name.
        funes_home: The memory's home.
        user_home: The person's home directory.
        env: The environment of the command.
        server: The command that serves the memory to the agent.
        server_env: Variables that the server needs.
        program: Where the agent's own command is, "" where it is not installed.
        force: Install again what is there already.
        created: Containers that an earlier `add` has made, as `path#member.member`.
    """

    agent: str
    funes_home: Path
    user_home: Path
    env: Mapping[str, str]
    server: tuple[str, ...]
    server_env: Mapping[str, str]
    program: str
    force: bool = False
    created: frozenset[str] = frozenset()

    @property
    def folder(self) -> Path:
        """Return our own folder for this agent."""
        return self.funes_home / "agents" / self.agent

    def place(self, variable: str, *names: str) -> Path:
        """Return the agent's folder: what a variable says, else one below the home directory."""
        named = self.env.get(variable, "").strip() if variable else ""
        return expanded(named) if named else self.user_home.joinpath(*names)


class Setup(Protocol):
    """How one agent is given a memory; a module of this package each."""

    #: Its command, "" for those that have none.
    PROGRAM: str

    def tracked(self, wanted: Wanted) -> list[Path]:
        """Return files of the agent's that adding may change."""

    def containers(self, wanted: Wanted, read: Callable[[Path], bytes | None]) -> set[str]:
        """Return what our entries are put into and is not there yet, by names of its own."""

    def trees(self, wanted: Wanted) -> list[Path]:
        """Return folders in the agent's place that are ours alone."""

    def add(self, wanted: Wanted) -> Plan:
        """Return what is to be done, nothing when all is there."""

    def remove(self, wanted: Wanted) -> Plan:
        """Return what takes our entries, and only those, out of files that others changed."""


def wanted_for(agent: str, program: str, *, memory: str, env: Mapping[str, str]) -> Wanted:
    """Return what an agent is to be given on this machine."""
    home = home_dir(env).absolute()
    user_home = Path(env.get("HOME") or Path.home())
    is_default = home == user_home / ".funes"
    return Wanted(
        agent=agent,
        funes_home=home,
        user_home=user_home,
        env=env,
        server=(*own_command(env), "mcp", *([memory] if memory else [])),
        server_env={} if is_default else {"FUNES_HOME": str(home)},
        program=(shutil.which(program, path=env.get("PATH", "")) or "") if program else "",
    )


def own_command(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return how this program is called from anywhere."""
    name = "funes.exe" if os.name == "nt" else "funes"
    beside = Path(sys.executable).parent / name
    if beside.is_file():
        return (str(beside),)
    called = Path(sys.argv[0])
    if called.name == name and called.is_file():
        return (str(called.absolute()),)
    found = shutil.which("funes", path=env.get("PATH", ""))
    if found:
        return (str(Path(found).absolute()),)
    return (sys.executable, "-P", "-c", "from funes_ls.cli import main; raise SystemExit(main())")
