"""`funes forget`: shows what would go, asks, and takes it out."""

import argparse

from funes_ls import render
from funes_ls.cli.asking import answer_to, as_object
from funes_ls.cli.output import confirm, counted, is_terminal, notice
from funes_ls.indexer.errors import UsageError


def forget(args: argparse.Namespace) -> int:
    """Take a session out of the local memory; off a terminal only with `--yes`."""
    if not (args.dry_run or args.yes or is_terminal()):
        raise UsageError(
            "Without a terminal, forgetting has to be confirmed.",
            hint="Pass `--yes`, or `--dry-run` to see what would go.",
        )
    answer = answer_to("funes/forget", {"session": args.session, "dryRun": True}, args)
    if not args.dry_run:
        found = as_object(answer)
        question = f"{_what(found)} would go for good. Forget it?"
        if not args.yes and not confirm(question, default=False):
            notice("Nothing was forgotten.", quiet=args.quiet)
            return 1
        params = {"session": found.session_id, "dryRun": False}
        answer = answer_to("funes/forget", params, args)
    if args.json:
        render.write_json(answer)
    else:
        found = as_object(answer)
        verb = "would go" if args.dry_run else "forgotten"
        render.write(f"{_what(found)} {verb}.")
    return 0


def _what(answer: object) -> str:
    session, title = render.safe(answer.session_id), render.safe(answer.title)  # type: ignore[attr-defined]  # a struct, or read from JSON
    name = f"Session {session} ({' '.join(title.split())})" if title else f"Session {session}"
    return f"{name} with {counted(answer.chunks, 'chunk')}"  # type: ignore[attr-defined]  # likewise
