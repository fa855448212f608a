"""Commands that take things out of a memory, or look for what should not be there."""

from funes_ls.cli.parsers.base import Commands, add_json, add_no_engine, command, filled


def forget(commands: Commands) -> None:
    """Add `funes forget`."""
    parser = command(
        commands,
        "forget",
        "Take sessions out of the local memory for good, to the last byte",
        "funes forget 0ccf1a04 --dry-run",
        "funes forget --project old-client --before 2026-01-01",
    )
    parser.add_argument(
        "session",
        type=filled,
        nargs="?",
        metavar="SESSION",
        help="session id, or the start of one",
    )
    parser.add_argument(
        "--project", type=filled, metavar="P", help="sessions of a folder, or its last names"
    )
    parser.add_argument(
        "--match", type=filled, metavar="TEXT", help="sessions that hold this text, in any case"
    )
    parser.add_argument(
        "--before",
        type=filled,
        metavar="DATE",
        help="sessions that ended before it: 2026-03-01, 90d",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")
    parser.add_argument(
        "-y", "--yes", action="store_true", help="take them out, unasked; that cannot be undone"
    )
    add_json(parser)
    add_no_engine(parser)


def scrub(commands: Commands) -> None:
    """Add `funes scrub`."""
    parser = command(
        commands,
        "scrub",
        "Take secrets out of what the local memory has stored already",
        "funes scrub --dry-run",
        "funes scrub",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say how many there are")
    add_json(parser)
    add_no_engine(parser)


def scan(commands: Commands) -> None:
    """Add `funes scan`."""
    parser = command(
        commands,
        "scan",
        "Look for secrets in a memory, a trace or any files, and change nothing",
        "funes scan",
        "funes scan ~/.claude/projects/-home-dev-api",
    )
    parser.add_argument(
        "target",
        type=filled,
        nargs="?",
        metavar="PATH|MEMORY",
        help="a file, a folder or a memory (default: local); exits 2 when there are secrets",
    )
    add_json(parser)
