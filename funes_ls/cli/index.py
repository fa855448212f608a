"""`funes index`: runs it, shows it, asks when time is up, and sums up."""

import argparse
import os
from typing import TYPE_CHECKING

from funes_ls import render
from funes_ls.cli.output import confirm, counted, is_terminal, notice
from funes_ls.cli.progress import duration, shown
from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.settings import Settings

if TYPE_CHECKING:
    from funes_ls.service import IndexReport

_MOST_WARNINGS = 5


def index(args: argparse.Namespace, settings: Settings) -> int:
    """Index and print what was done; in a script, what to index must be named."""
    from funes_ls import service

    person = is_terminal()
    if not person and not (args.target or args.harness or args.yes):
        raise UsageError(
            "Without a terminal, say what to index.",
            hint="Name a path or `--harness H`, or pass `--yes` for every known place.",
        )
    request = service.IndexRequest(
        target=args.target or "",
        harness=args.harness or "",
        limit=args.limit,
        words_only=args.words_only,
        finish=args.yes,
        wait=person,
        thinking=settings.thinking,
    )
    with shown(quiet=args.quiet) as progress:
        report = service.run_index(
            request,
            settings,
            env=os.environ,
            progress=progress,
            ask_more=_ask if person else lambda _left, _eta_s: False,
        )
    for line in warnings(report):
        notice(line, quiet=args.quiet)
    if args.json:
        render.write_json(report)
    else:
        render.write(summary(report))
    return 0


def _ask(left: int, eta_s: float) -> bool:
    about = f", about {duration(eta_s)}" if eta_s else ""
    return confirm(
        f"Everything is findable by words; {left:,} chunks still have no vector{about}. Go on?",
        default=True,
    )


def warnings(report: "IndexReport") -> list[str]:
    """Return a line for each of the first traces that could not be read whole."""
    lines = [
        f"{render.safe(path)}: {_skipped(count)}."
        for path, count in list(report.troubled.items())[:_MOST_WARNINGS]
    ]
    if (more := len(report.troubled) - len(lines)) > 0:
        lines.append(f"{more:,} more traces could not be read whole.")
    return lines


def _skipped(count: int) -> str:
    if not count:
        return "could not be read"
    return f"{counted(count, 'unreadable line')} skipped"


def summary(report: "IndexReport") -> str:
    """Return what a run did, in a few plain lines."""
    lines = [_reading_line(report)]
    if report.embedded:
        lines.append(f"{counted(report.embedded, 'chunk')} embedded with {report.model}.")
    if report.words_only:
        verb = "is" if report.words_only == 1 else "are"
        left = f"{counted(report.words_only, 'chunk')} {verb} findable by words only."
        lines.append(f"{left} {_next_step(report)}".rstrip())
    if report.problems:
        them = "it" if report.problems == 1 else "them"
        listed = f"`funes status --problems` lists {them}."
        lines.append(f"{counted(report.problems, 'problem')}; {listed}")
    return "\n".join(lines)


def _reading_line(report: "IndexReport") -> str:
    if not report.sessions and not report.failed:
        return f"Up to date: {counted(report.current, 'session')}, nothing new."
    parts = [f"{counted(report.sessions, 'session')} read, {counted(report.chunks, 'new chunk')}"]
    if report.current:
        parts.append(f"{report.current:,} unchanged")
    if report.removed:
        parts.append(f"{counted(report.removed, 'chunk')} of rewritten sessions taken back")
    if report.failed:
        parts.append(f"{report.failed:,} could not be read")
    return ", ".join(parts) + "."


def _next_step(report: "IndexReport") -> str:
    if report.stopped == "no_model":
        return report.note
    if report.stopped == "budget":
        return "Run `funes index` again to go on, or `funes index --yes` to finish."
    return "Run `funes index` for the vectors." if report.stopped == "words_only" else ""
