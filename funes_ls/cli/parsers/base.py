"""What the parsers of commands share: help layout, errors, common options, types of values."""

import argparse
import math
import os
from typing import NoReturn, TypeAlias

from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.names import HARNESSES


class Help(argparse.RawDescriptionHelpFormatter):
    """Knows the terminal's width without `shutil`, which every command would wait for."""

    def __init__(self, prog: str) -> None:
        """Take the width there is."""
        super().__init__(prog, width=max(columns() - 2, 20))


def columns() -> int:
    """Return the width of the terminal, 80 where it has none."""
    try:
        return int(os.environ.get("COLUMNS") or os.get_terminal_size(1).columns or 80)
    except (ValueError, OSError):
        return 80


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises `UsageError` instead of exiting."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of leaving the process."""
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", hint=f"See `{self.prog} -h`.")


def example_lines(*lines: str) -> str:
    """Return the lines that open a help text."""
    return "examples:\n" + "".join(f"  {line}\n" for line in lines) + "\n"


def command(commands: "Commands", name: str, about: str, *examples: str) -> Parser:
    """Add a command whose help opens with examples and return its parser."""
    parser = commands.add_parser(
        name,
        help=about[0].lower() + about[1:],
        description=example_lines(*examples) + about + ".",
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no notices, no progress")
    return parser


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_memory(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Add `--memory`, which may be given several times where several can be asked at once."""
    parser.add_argument(
        "--memory",
        type=filled,
        metavar="M",
        action="append" if several else "store",
        help="memory to read: local (the default), a path, <org>/<repo> on the Hub, s3://…"
        + ("; several are asked at once" if several else ""),
    )


def add_no_engine(parser: argparse.ArgumentParser) -> None:
    """Add `--no-engine`."""
    parser.add_argument(
        "--no-engine", action="store_true", help="work in this process, which takes seconds longer"
    )


def add_session_filters(group: "argparse._ArgumentGroup | argparse.ArgumentParser") -> None:
    """Add the filters on sessions."""
    group.add_argument(
        "--harness", type=filled, metavar="H", help=f"one of: {', '.join(HARNESSES)}"
    )
    group.add_argument("--project", type=filled, metavar="P", help="a folder, or its last names")
    group.add_argument(
        "--repo", type=filled, metavar="R", help="owner/name of a git remote, or the name"
    )
    group.add_argument(
        "--cwd", type=filled, metavar="DIR", help="sessions run in this folder or below"
    )
    group.add_argument(
        "--path", type=filled, metavar="FILE", help="sessions that touched this file or folder"
    )
    group.add_argument("--branch", type=filled, metavar="B", help="git branch the session was on")
    group.add_argument(
        "--since", type=filled, metavar="WHEN", help="2026-03-01, 7d, 12h, yesterday …"
    )
    group.add_argument("--until", type=filled, metavar="WHEN", help="same; a date counts whole")
    group.add_argument("--no-subagents", action="store_true", help="leave sub-agents out")


def filled(text: str) -> str:
    """Return a text that is not blank."""
    if not text.strip():
        raise argparse.ArgumentTypeError("an empty value is no filter; leave the option out")
    return text


def number(text: str) -> float:
    """Return a finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"{text} is not a number")
    return number


def positive(text: str) -> int:
    """Return a whole number from 1 up."""
    return _whole(text, least=1)


def natural(text: str) -> int:
    """Return a whole number from 0 up."""
    return _whole(text, least=0)


def _whole(text: str, *, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from {least} up")
    return number


#: Where a command is added.
Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
