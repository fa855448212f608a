"""Commands that carry a memory to other places, and take it back from there."""

from funes_ls.cli.parsers.base import Commands, add_json, command, filled

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
    parser.add_argument("-y", "--yes", action="store_true", help="ask nothing")
    add_json(parser)
