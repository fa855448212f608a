"""`funes forget`: shows what would go, asks, and takes it out."""

import argparse
import os
from datetime import datetime
from typing import Any

from funes_ls import render
from funes_ls.cli.long import long_answer
from funes_ls.cli.output import confirm, is_terminal, notice
from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.home import expanded
from funes_ls.indexer.progress import Progress
from funes_ls.render import counted
from funes_ls.sending import as_object

_TITLE_CHARS = 70


def forget(args: argparse.Namespace) -> int:
    """Take sessions out of the local memory; off a terminal only with `--yes`."""
    if not (args.session or args.project or args.match or args.before):
        raise UsageError(
            "Nothing says which sessions to forget.",
            hint="Name one, or pass `--project`, `--match` or `--before`.",
        )
    if not (args.dry_run or args.yes or is_terminal()):
        raise UsageError(
            "Without a terminal, forgetting has to be confirmed.",
            hint="Pass `--yes`, or `--dry-run` to see what would go.",
        )
    answer = None
    if args.dry_run or not args.yes:
        answer = _answer(args, dry_run=True)
    if not args.dry_run and (answer is None or as_object(answer).total):
        if answer is not None:
            notice(_listed(as_object(answer)))
            if not confirm("This cannot be undone. Forget?", default=False):
                notice("Nothing was forgotten.", quiet=args.quiet)
                return 1
        answer = _answer(args, dry_run=False)
    if args.json:
        render.write_json(answer)
    else:
        render.write(_text(as_object(answer)))
    return 0


def _answer(args: argparse.Namespace, *, dry_run: bool) -> Any:
    params = {
        "session": args.session,
        "project": _folder(args.project),
        "match": args.match,
        "before": args.before,
        "dryRun": dry_run,
    }

    def here(progress: Progress) -> Any:
        from funes_ls import service
        from funes_ls.indexer.settings import load_settings
        from funes_ls.memories import OpenEachTime
        from funes_ls.protocol_secrets import ForgetParams

        asked = ForgetParams(
            session=args.session or "",
            project=params["project"] or "",
            match=args.match or "",
            before=args.before or "",
            dry_run=dry_run,
        )
        settings, _ = load_settings(os.environ)
        return service.forget(asked, OpenEachTime(settings), progress=progress)

    return long_answer("funes/forget", params, args, here)


def _folder(project: str | None) -> str | None:
    """Return a project so that a process elsewhere knows a folder that is named from here."""
    if project and project.startswith((".", "~")):
        return str(expanded(project).resolve())
    return project


def _text(found: Any) -> str:
    if not found.total:
        return f"No session matches; nothing was forgotten. {found.note}".rstrip()
    if not found.forgotten:
        return f"{_listed(found)}\n{found.note}"
    return f"{_counts(found)} forgotten. {found.note}"


def _listed(found: Any) -> str:
    """Return what would go: how much, and the newest sessions by name."""
    if not found.total:
        return "No session matches."
    lines = [f"{_counts(found)} would go:"]
    for one in found.sessions:
        title = " ".join(render.safe(one.title).split())[:_TITLE_CHARS]
        day = (
            datetime.fromtimestamp(one.ended_us / 1e6).strftime("%Y-%m-%d") if one.ended_us else ""
        )
        mark = " (sub-agent)" if one.subagent else ""
        lines.append(
            f"  {day:10}  {render.safe(one.session_id)}  {title}{mark}, "
            f"{counted(one.chunks, 'chunk')}"
        )
    if (more := found.total - len(found.sessions)) > 0:
        lines.append(f"  and {more:,} more")
    if found.subagents:
        lines.append(
            f"{counted(found.subagents, 'session')} of sub-agents "
            f"{'goes' if found.subagents == 1 else 'go'} with the sessions that started them."
        )
    for memory in found.published:
        lines.append(f"{render.safe(memory)} holds some of them, and keeps them.")
    return "\n".join(lines)


def _counts(found: Any) -> str:
    return f"{counted(found.total, 'session')} with {counted(found.chunks, 'chunk')}"
