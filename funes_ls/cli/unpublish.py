"""`funes unpublish`: shows what would be taken back, asks, and takes it back."""

import argparse
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from funes_ls import render
from funes_ls.cli.output import confirm, is_terminal, notice
from funes_ls.cli.progress import shown
from funes_ls.cli.push import remote_of
from funes_ls.indexer.errors import UsageError
from funes_ls.render import counted

if TYPE_CHECKING:
    from funes_ls.hub.unpublish import UnpublishAnswer

_MOST_SHOWN = 20
_TITLE_CHARS = 60


def unpublish(args: argparse.Namespace) -> int:
    """Take sessions back from a memory; off a terminal only with `--yes`."""
    import msgspec

    from funes_ls.hub.unpublish import unpublish as run
    from funes_ls.indexer.settings import load_settings

    if not (args.dry_run or args.yes or is_terminal()):
        raise UsageError(
            "Without a terminal, taking sessions back has to be confirmed.",
            hint="Pass `--yes`, or `--dry-run` to see what would go.",
        )
    settings, _ = load_settings(os.environ)
    remote = remote_of(args.memory, settings)
    with shown(quiet=args.quiet) as progress:
        answer = run(remote, settings.home, args.session, dry_run=True, progress=progress)
    if not args.dry_run:
        if not args.yes and not _agreed(answer):
            notice("Nothing was taken back.", quiet=args.quiet)
            return 1
        with shown(quiet=args.quiet) as progress:
            answer = run(remote, settings.home, args.session, progress=progress)
    if args.json:
        render.write_json(msgspec.to_builtins(answer))
    else:
        render.write("\n".join(_lines(answer)))
    return 0


def _agreed(answer: "UnpublishAnswer") -> bool:
    notice("\n".join(_lines(answer)))
    asked = f"{render.safe(answer.memory)} and its history are written anew. Take them back?"
    return confirm(asked, default=False)


def _lines(answer: "UnpublishAnswer") -> Iterator[str]:
    memory = render.safe(answer.memory)
    amount = f"{counted(len(answer.sessions), 'session')} with {counted(answer.chunks, 'chunk')}"
    if answer.state == "unpublished":
        history = ", and its history" if answer.squashed else ""
        yield (
            f"Taken back from {memory}{history}: {amount}; "
            f"{counted(answer.left, 'chunk')} stay there."
        )
        yield f"They are not sent again: {render.safe(answer.decisions)} says so."
    else:
        yield f"{amount} would be taken back from {memory}:"
        for one in answer.sessions[:_MOST_SHOWN]:
            title = " ".join(render.safe(one.title).split())[:_TITLE_CHARS]
            count = counted(one.chunks, "chunk")
            yield f"  {render.safe(one.session_id)}  {count}  {title}".rstrip()
        if (more := len(answer.sessions) - _MOST_SHOWN) > 0:
            yield f"  and {more:,} more"
    yield answer.note
