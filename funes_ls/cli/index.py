"""`funes index`: runs it, shows it, asks when time is up, and sums up."""

import argparse
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from funes_ls import render
from funes_ls.cli.asking import START_S, uses_engine
from funes_ls.cli.output import confirm, is_terminal, notice
from funes_ls.cli.progress import duration, shown
from funes_ls.engine.client import Connection, EngineError, connect
from funes_ls.indexer.errors import FunesError, UsageError
from funes_ls.indexer.home import expanded, home_dir
from funes_ls.indexer.progress import IndexEvent, Progress
from funes_ls.indexer.settings import Settings, load_settings
from funes_ls.render import counted
from funes_ls.render_report import rules_text
from funes_ls.sending import Params, sendable

if TYPE_CHECKING:
    from funes_ls.hub.imports import Fetched
    from funes_ls.service import IndexReport

_MOST_WARNINGS = 5
#: A run takes as long as it takes; Ctrl-C ends it.
_NO_LIMIT_S = 1e7


def index(args: argparse.Namespace, settings: Settings) -> int:
    """Index and print what was done; in a script, what to index must be named."""
    person = is_terminal()
    if not person and not (args.target or args.harness or args.yes):
        raise UsageError(
            "Without a terminal, say what to index.",
            hint="Name a path or `--harness H`, or pass `--yes` for every known place.",
        )
    with shown(quiet=args.quiet) as progress:
        report = run(args, settings, progress, person=person)
    for line in warnings(report):
        notice(line, quiet=args.quiet)
    if args.json:
        render.write_json(report)
    else:
        render.write(summary(report))
    return 0


def run(
    args: argparse.Namespace, settings: Settings, progress: Progress, *, person: bool = False
) -> "IndexReport":
    """Index, by the engine where there is one; a `person` may be asked whether to go on.

    Raises:
        FunesError: it cannot be done.
    """
    if args.target and (fetched := _fetched(args, settings, progress, person=person)) is not None:
        args.target, args.origin, args.limit = str(fetched.root), fetched.origin, None
    report = _from_engine(args, progress) if uses_engine(args, os.environ) else None
    if report is None:
        report = _in_this_process(args, settings, progress, person=person)
    return report


def _fetched(
    args: argparse.Namespace, settings: Settings, progress: Progress, *, person: bool
) -> "Fetched | None":
    """Fetch a dataset of traces where one is named; None for a path."""
    from funes_ls.hub import imports

    if not imports.names_dataset(args.target):
        return None

    def go_on(size: int) -> bool:
        question = f"{args.target} holds {size / 1e9:.1f} GB of traces. Fetch them?"
        return bool(args.yes) or (person and confirm(question, default=False))

    def told(done: int, total: int | None) -> None:
        progress(IndexEvent(phase="fetch", done=done, total=total or 0))

    return imports.fetch(args.target, settings, os.environ, go_on=go_on, progress=told)


def _in_this_process(
    args: argparse.Namespace, settings: Settings, progress: Progress, *, person: bool
) -> "IndexReport":
    from funes_ls import service

    request = service.IndexRequest(
        target=args.target or "",
        origin=getattr(args, "origin", ""),
        harness=args.harness or "",
        limit=args.limit,
        words_only=args.words_only,
        finish=args.yes,
        wait=person,
        thinking=settings.thinking,
    )
    return service.run_index(
        request,
        settings,
        env=os.environ,
        progress=progress,
        ask_more=_ask if person else lambda _left, _eta_s: False,
    )


def _from_engine(args: argparse.Namespace, progress: Progress) -> "IndexReport | None":
    """Return what the engine did; None when there is none and none can be started.

    Raises:
        FunesError: it refused or failed.
        KeyboardInterrupt: it was interrupted, and has stopped where the memory is consistent.
    """
    home = home_dir(os.environ)
    try:
        connection = connect(home, client="cli", wait_s=START_S, env=os.environ)
    except FunesError as exc:
        notice(f"funes: {exc.message} Indexing without it.", quiet=args.quiet)
        return None
    with connection, withdrawn_on_interrupt(connection):
        return _report_of(connection, _params(args), progress)


def _report_of(connection: Connection, params: Params, progress: Progress) -> "IndexReport":
    import msgspec

    from funes_ls.index_run import IndexReport

    def watch(value: Any) -> None:
        if value.get("event"):
            progress(msgspec.convert(value["event"], IndexEvent))

    try:
        answer = connection.request("funes/index", params, timeout_s=_NO_LIMIT_S, on_progress=watch)
    except EngineError as exc:
        if exc.kind == "cancelled":
            raise KeyboardInterrupt from exc
        raise
    return msgspec.convert(answer, IndexReport)


def _params(args: argparse.Namespace) -> Params:
    target = str(expanded(args.target).absolute()) if args.target else ""
    params = {
        "target": sendable(target),
        "origin": getattr(args, "origin", ""),
        "harness": sendable(args.harness or ""),
        "limit": args.limit,
        "wordsOnly": args.words_only,
        "finish": args.yes,
        "thinking": _thinking(args),
    }
    return {name: value for name, value in params.items() if value is not None}


def _thinking(args: argparse.Namespace) -> bool | None:
    """Return what this command line or its environment says of thinking; None is the engine's."""
    if args.no_thinking:
        return False
    if not os.environ.get("FUNES_THINKING", "").strip():
        return None
    return load_settings(os.environ)[0].thinking


@contextmanager
def withdrawn_on_interrupt(connection: Connection) -> Iterator[None]:
    """Withdraw the request at the first Ctrl-C and await its end; give up at the second."""

    def interrupt(_signal: int, _frame: object) -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        with suppress(RuntimeError):  # in the middle of writing to stderr
            notice("funes: stopping …")
        try:
            connection.cancel()
        except FunesError:
            raise KeyboardInterrupt from None  # there is no engine to wait for

    before: dict[signal.Signals, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(ValueError):  # not the main thread: whoever runs us handles signals
            before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
    if report.redacted:
        lines.append(f"Secrets taken out: {rules_text(report.redacted)}.")
    if report.excluded:
        lines.append(f"{counted(report.excluded, 'session')} kept out.")
    if report.problems:
        them = "it" if report.problems == 1 else "them"
        listed = f"`funes status --problems` lists {them}."
        lines.append(f"{counted(report.problems, 'problem')}; {listed}")
    return "\n".join(lines)


def _reading_line(report: "IndexReport") -> str:
    if not report.sessions and not report.failed:
        return f"Up to date: {counted(report.current, 'trace')}, nothing new."
    parts = [f"{counted(report.sessions, 'trace')} read, {counted(report.chunks, 'new chunk')}"]
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
    if report.stopped == "background":
        return (
            "The engine goes on with them in the background; `funes engine status` shows how far."
        )
    if report.stopped == "budget":
        return "Run `funes index` again to go on, or `funes index --yes` to finish."
    return "Run `funes index` for the vectors." if report.stopped == "words_only" else ""
