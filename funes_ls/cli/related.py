"""`funes related`: the sessions that have to do with a file."""

import argparse
import sys
from pathlib import Path

from funes_ls import render
from funes_ls.cli.asking import answer_to
from funes_ls.cli.output import notice, use_color
from funes_ls.indexer.home import expanded
from funes_ls.sending import Params, as_object


def related(args: argparse.Namespace) -> int:
    """Print the sessions that have to do with a file, the strongest relation first."""
    from funes_ls.render_related import related_text

    params: Params = {"path": named(args.file), "limit": args.limit, "memory": args.memory}
    answer = answer_to("funes/related", params, args)
    if args.json:
        render.write_json(answer)
        return 0
    found = as_object(answer)
    notice(found.note, quiet=args.quiet)
    render.write(related_text(found, color=use_color(sys.stdout.isatty())))
    return 0


def named(file: str) -> str:
    """Return a file so that a process elsewhere finds it; one that is not here stays as it is."""
    path = expanded(file) if file.startswith("~") else Path(file)
    return str(path.absolute()) if exists(path) or file.startswith(("./", "../")) else file


def exists(path: Path) -> bool:
    """Return whether there is a file or folder; a name that none can have is none."""
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, or with a NUL
        return False
