"""Commands that carry a memory to other places, and take it back from there."""

from funes_ls.cli.parsers.base import Commands, add_json, add_no_engine, command, filled

_MEMORY = "<org>/<repo> on the Hub, or s3://<bucket>/<folder>"


def push(commands: Commands) -> None:
    """Add `funes push`."""
    parser = command(
        commands,
        "push",
        "Publish what a memory elsewhere lacks of the local one; nothing with secrets leaves",
        "funes push acme/kb --dry-run",
        "funes push acme/kb",
    )
    parser.add_argument("memory", type=filled, metavar="MEMORY", help=_MEMORY)
    parser.add_argument(
        "--dry-run", action="store_true", help="only show what would leave this machine"
    )
    parser.add_argument(
        "--texts", action="store_true", help="with --dry-run: the text of every block, too"
    )
    parser.add_argument(
        "--create", action="store_true", help="make the dataset, private, where there is none"
    )
    parser.add_argument(
        "--force-reindex", action="store_true", help="index all chunks over there, new or not"
    )
    parser.add_argument(
        "-y",
        "--yes",
        action="store_true",
        help="publish, unasked, also what everyone can read, or where nothing is this machine's",
    )
    add_json(parser)


def pull(commands: Commands) -> None:
    """Add `funes pull`."""
    parser = command(
        commands,
        "pull",
        "Bring a memory from elsewhere to this machine, to go on with it here",
        "funes pull acme/kb",
        "funes pull s3://bucket/kb --yes",
    )
    parser.add_argument(
        "memory", type=filled, metavar="MEMORY", help=f"{_MEMORY}, or the path of a memory"
    )
    parser.add_argument(
        "-y", "--yes", action="store_true", help="also into a memory that it shares nothing with"
    )
    add_json(parser)
    add_no_engine(parser)


def unpublish(commands: Commands) -> None:
    """Add `funes unpublish`."""
    parser = command(
        commands,
        "unpublish",
        "Take sessions back from a memory elsewhere, with its history where that can be",
        "funes unpublish 0ccf1a04 acme/kb --dry-run",
        "funes unpublish 0ccf1a04 77aa01c2 acme/kb",
    )
    parser.add_argument(
        "session",
        type=filled,
        nargs="+",
        metavar="SESSION",
        help="session id, or the start of one; its sub-agents go with it",
    )
    parser.add_argument("memory", type=filled, metavar="MEMORY", help=_MEMORY)
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")
    parser.add_argument(
        "-y", "--yes", action="store_true", help="take them back, unasked; that cannot be undone"
    )
    add_json(parser)


def curate(commands: Commands) -> None:
    """Add `funes curate`."""
    parser = command(
        commands,
        "curate",
        "Look through what may be published to a memory, and decide what stays here",
        "funes curate acme/kb acme/api",
        "funes curate acme/kb --include 0ccf1a04 --exclude 77aa01c2",
    )
    parser.add_argument("memory", type=filled, metavar="MEMORY", help=_MEMORY)
    parser.add_argument(
        "project",
        type=filled,
        nargs="?",
        metavar="OWNER/NAME",
        help="repository the memory is of: only its sessions go, and of them only included ones",
    )
    parser.add_argument(
        "--include",
        type=filled,
        action="append",
        metavar="S",
        help="session that may go; repeatable",
    )
    parser.add_argument(
        "--exclude",
        type=filled,
        action="append",
        metavar="S",
        help="session that stays; repeatable",
    )
    parser.add_argument(
        "--withhold",
        type=filled,
        action="append",
        metavar="CHUNK",
        help="block that stays, by its first chunk (`funes push MEMORY --dry-run --texts`)",
    )
    parser.add_argument("-y", "--yes", action="store_true", help="publish afterwards, unasked")
    add_json(parser)
