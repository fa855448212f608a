"""Commands about coding agents: giving one its memory, taking that back, what its hooks call."""

from funes_ls.cli.parsers.base import (
    Commands,
    Parser,
    add_json,
    add_no_engine,
    command,
    filled,
    positive,
)

#: What can be given a memory: coding agents, editors with agents of their own, and any other.
AGENTS = ("claude", "codex", "pi", "hermes", "vscode", "cursor", "generic")


def add(commands: Commands) -> None:
    """Add `funes add`."""
    parser = command(
        commands,
        "add",
        "Give a coding agent this memory: tools to recall, hooks that keep it current",
        "funes add claude",
        "funes add codex --dry-run",
    )
    parser.add_argument("agent", choices=AGENTS, metavar="AGENT", help=f"one of: {_listed()}")
    parser.add_argument(
        "memory",
        nargs="?",
        type=filled,
        metavar="MEMORY",
        help="what it recalls from: local (the default), the path of a memory, or <org>/<repo>, "
        "to which its sessions are then published",
    )
    _add_plan_options(parser)
    parser.add_argument(
        "--force", action="store_true", help="install again what is installed already"
    )
    parser.add_argument("--no-index", action="store_true", help="read no sessions now")
    add_no_engine(parser)


def remove(commands: Commands) -> None:
    """Add `funes remove`."""
    parser = command(
        commands,
        "remove",
        "Take back what `funes add` gave an agent; sessions and memory stay",
        "funes remove claude",
        "funes remove codex --dry-run",
    )
    parser.add_argument("agent", choices=AGENTS, metavar="AGENT", help=f"one of: {_listed()}")
    _add_plan_options(parser)


def _add_plan_options(parser: Parser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")
    parser.add_argument("-y", "--yes", action="store_true", help="do what is planned, unasked")
    add_json(parser)


def _listed() -> str:
    return ", ".join(AGENTS)


def hook(commands: Commands) -> None:
    """Add `funes hook`."""
    parser = command(
        commands,
        "hook",
        "Tell the engine that a session has grown; agents call this, it prints nothing",
        "funes hook claude Stop < event.json",
        "funes hook codex Stop < event.json",
    )
    parser.add_argument("agent", metavar="AGENT", help="whose event it is")
    parser.add_argument("event", metavar="EVENT", help="its name for the event")


def mcp(commands: Commands) -> None:
    """Add `funes mcp`."""
    parser = command(
        commands,
        "mcp",
        "Serve a coding agent on stdin and stdout (Model Context Protocol); agents start it",
        "funes mcp",
        "funes mcp /work/team-memory --tokens 3000",
    )
    parser.add_argument(
        "memory",
        nargs="?",
        type=filled,
        metavar="MEMORY",
        help="what is recalled from: local (the default), or the path of a memory",
    )
    parser.add_argument(
        "--tokens",
        type=positive,
        metavar="N",
        help="about how many tokens an answer may have (default 6000)",
    )
