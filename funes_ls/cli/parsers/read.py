"""Commands that ask a memory: recall, get, sessions and the like."""

import argparse

from funes_ls.cli.parsers.base import (
    Commands,
    add_json,
    add_memory,
    add_no_engine,
    add_session_filters,
    command,
    filled,
    natural,
    number,
    positive,
)
from funes_ls.indexer.names import BLOCK_TYPES


def recall(commands: Commands) -> None:
    """Add `funes recall`."""
    parser = command(
        commands,
        "recall",
        "Search past sessions and print the passages that answer, verbatim",
        'funes recall "why did we drop the cache"',
        "funes recall --trace < failed.log",
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="the question")
    _add_artefacts(parser.add_argument_group("to ask with, alone or beside words"))
    parser.add_argument("-k", "--k", type=positive, metavar="N", help="hits (default 8)")
    parser.add_argument("--candidates", type=positive, metavar="N", help="fused pool (default 30)")
    parser.add_argument(
        "--half-life", type=number, metavar="DAYS", help="of the age weight (default 30, 0 is off)"
    )
    parser.add_argument(
        "--neighbors", type=natural, metavar="N", help="steps of context around a hit (default 1)"
    )
    parser.add_argument(
        "--rerank",
        choices=("late", "cross", "auto", "off"),
        help="what reorders the best hits: late compares words, cross reads them (default auto)",
    )
    parser.add_argument("--explain", action="store_true", help="show which legs found each hit")
    parser.add_argument(
        "--stream",
        action="store_true",
        help="show what words find at once, then the final order (as JSON lines off a terminal)",
    )
    _add_filters(parser)
    add_memory(parser, several=True)
    add_json(parser)
    add_no_engine(parser)


def _add_artefacts(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--diff",
        action="store_true",
        help="what has changed since the last commit, or a patch on stdin",
    )
    group.add_argument("--staged", action="store_true", help="the same of what is staged")
    group.add_argument(
        "--trace",
        action="store_true",
        help="a stack trace, or what a compiler, a test or a log says, on stdin",
    )
    group.add_argument("--file", type=filled, metavar="PATH", help="a file")


def _add_filters(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("filters, applied before ranking")
    group.add_argument("--type", type=filled, metavar="T", help=f"one of: {', '.join(BLOCK_TYPES)}")
    group.add_argument("--tool", type=filled, metavar="NAME", help="calls and results of one tool")
    add_session_filters(group)
    group.add_argument(
        "--session", type=filled, metavar="ID", help="one session, or the start of its id"
    )


def ask(commands: Commands) -> None:
    """Add `funes ask`."""
    parser = command(
        commands,
        "ask",
        "Have a coding agent answer one question from past sessions, naming them",
        'funes ask "why did we drop the cache"',
        'funes ask codex "which rounding do the fees use" --since 30d',
    )
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="claude, codex or pi if you choose; the question"
    )
    parser.add_argument("-k", "--k", type=positive, metavar="N", help="passages (default 8)")
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be sent, and start no agent"
    )
    add_session_filters(parser.add_argument_group("filters, applied before ranking"))
    add_memory(parser)
    add_json(parser)
    add_no_engine(parser)


def get(commands: Commands) -> None:
    """Add `funes get`."""
    parser = command(
        commands,
        "get",
        "Print one turn with the turns around it, verbatim",
        "funes get 0ccf1a04-1b4c-43b6-8aa5-79e41db43a68 a1b2c3d4-0000-4000-8000-000000000001",
        "funes get 0ccf1a04 a1b2c3d4-0000-4000-8000-000000000001 --window 5 --format human",
    )
    parser.add_argument(
        "session", type=filled, metavar="SESSION", help="session id, or the start of one"
    )
    parser.add_argument("turn", metavar="TURN", help="turn id, as the `→ get` line gives it")
    parser.add_argument("--window", type=natural, default=3, metavar="N", help="turns each side")
    parser.add_argument(
        "--format",
        choices=("human", "agent"),
        help="layout (default: human when stdin and stdout are terminals)",
    )
    parser.add_argument("--highlight", default="", metavar="TEXT", help="mark TEXT (human layout)")
    add_memory(parser)
    add_json(parser)
    add_no_engine(parser)


def status(commands: Commands) -> None:
    """Add `funes status`."""
    parser = command(
        commands, "status", "Show what the memory holds", "funes status", "funes status --problems"
    )
    parser.add_argument("--problems", action="store_true", help="list what could not be read")
    parser.add_argument("--excluded", action="store_true", help="list what is kept out, and why")
    add_memory(parser)
    add_json(parser)
    add_no_engine(parser)


def sessions(commands: Commands) -> None:
    """Add `funes sessions`."""
    parser = command(
        commands,
        "sessions",
        "List sessions, newest first",
        "funes sessions --since 7d",
        "funes sessions --project api --json",
    )
    parser.add_argument("--limit", type=positive, default=50, metavar="N", help="default 50")
    parser.add_argument("--offset", type=natural, default=0, metavar="N", help="skip the first N")
    parser.add_argument(
        "--title", type=filled, metavar="TEXT", help="sessions whose title holds TEXT"
    )
    add_session_filters(parser)
    add_memory(parser)
    add_json(parser)
    add_no_engine(parser)


def related(commands: Commands) -> None:
    """Add `funes related`."""
    parser = command(
        commands,
        "related",
        "List the sessions that have to do with a file, the strongest relation first",
        "funes related src/http.py",
        "funes related src/http.py --json",
    )
    parser.add_argument("file", type=filled, metavar="FILE", help="a path, or its last names")
    parser.add_argument("--limit", type=positive, default=20, metavar="N", help="default 20")
    add_memory(parser)
    add_json(parser)
    add_no_engine(parser)


def blame(commands: Commands) -> None:
    """Add `funes blame`."""
    parser = command(
        commands,
        "blame",
        "Show which sessions wrote the lines of a file, and what they were asked",
        "funes blame src/http.py",
        "funes blame src/http.py:40-60 --json",
    )
    parser.add_argument(
        "file", type=filled, metavar="FILE[:LINE[-LINE]]", help="a file, and which of its lines"
    )
    parser.add_argument(
        "--text", metavar="PATH", help="take the file's unsaved text from PATH; - is stdin"
    )
    parser.add_argument(
        "--as-of", type=filled, metavar="WHEN", help="when the text was like this (default now)"
    )
    add_memory(parser)
    add_json(parser)
    add_no_engine(parser)


def memories(commands: Commands) -> None:
    """Add `funes memories`."""
    parser = command(
        commands,
        "memories",
        "List the memories there are",
        "funes memories",
        "funes memories --json",
    )
    add_json(parser)
    add_no_engine(parser)
