"""The first look at a person's sessions, as a part of `funes add`: words at once, vectors later."""

import argparse
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from funes_ls.cli.asking import START_S, uses_engine
from funes_ls.cli.output import notice
from funes_ls.cli.progress import duration, shown
from funes_ls.engine.client import EngineError, connect
from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.home import home_dir
from funes_ls.indexer.progress import IndexEvent, Progress
from funes_ls.install.plan import Wanted
from funes_ls.render import counted

if TYPE_CHECKING:
    from funes_ls.index_run import IndexReport

#: A model may have to be fetched first; Ctrl-C ends the watching.
_NO_LIMIT_S = 1e7
#: How long vectors are watched for an estimate of all of them.
_LOOK_S = 12.0


def is_due(wanted: Wanted, *, needed: bool) -> bool:
    """Return whether the local memory is needed, to recall from or publish, and not there yet."""
    return needed and not (wanted.funes_home / "memory" / "catalog.db").exists()


def read_words(args: argparse.Namespace) -> bool:
    """Make every session that is there findable by words; return whether there are any.

    Raises:
        FunesError: they cannot be read.
    """
    from funes_ls.cli import index
    from funes_ls.indexer.settings import load_settings

    words = argparse.Namespace(
        target="",
        harness="",
        limit=None,
        words_only=True,
        no_thinking=False,
        yes=False,
        quiet=args.quiet,
        no_engine=args.no_engine,
    )
    settings, _ = load_settings(os.environ)
    try:
        with shown(quiet=args.quiet) as progress:
            report = index.run(words, settings, progress)
    except FunesError as exc:
        if exc.kind != "no_source":
            raise
        _begin_empty(quiet=args.quiet)
        notice("There are no sessions yet; the memory fills as you work.", quiet=args.quiet)
        return False
    notice(_said(report), quiet=args.quiet)
    return report.chunks > 0


def _said(report: "IndexReport") -> str:
    read = f"{counted(report.sessions, 'trace')} read, {counted(report.chunks, 'chunk')}"
    return f"{read} findable by words."


def _begin_empty(*, quiet: bool) -> None:
    """Make a memory with nothing in it: from now on its engine may look for sessions."""
    from funes_ls.cli.rules import prepare_rules
    from funes_ls.indexer.lock import writer_lock
    from funes_ls.indexer.memory import open_memory
    from funes_ls.indexer.settings import load_settings

    settings, _ = load_settings(os.environ)
    with writer_lock(settings.home, wait_s=START_S):
        open_memory(settings.memory_dir, derived=settings.home / "derived", writable=True).close()
    with shown(quiet=quiet) as progress:
        prepare_rules(settings, progress, quiet=quiet)


def vectors_left(args: argparse.Namespace) -> str:
    """Have the engine go on with vectors; return how long they will take, as far as is known."""
    if not uses_engine(args, os.environ):
        return "`funes index` adds the vectors, which find what other words say."
    try:
        return _estimated(args)
    except FunesError as exc:
        notice(f"funes: {exc.message}", quiet=args.quiet)
        return "`funes index` adds the vectors, which find what other words say."


def _estimated(args: argparse.Namespace) -> str:
    """Watch the first vectors come, long enough to tell when the last ones will."""
    with shown(quiet=args.quiet) as progress:
        look = _Look(progress)
        with connect(home_dir(os.environ), client="cli", wait_s=START_S, env=os.environ) as engine:
            look.cancel = engine.cancel
            try:
                report = engine.request(
                    "funes/index", {}, timeout_s=_NO_LIMIT_S, on_progress=look.take
                )
            except EngineError as exc:
                if exc.kind != "cancelled":
                    raise
                return look.said()
    if report["stopped"] == "no_model":
        return str(report["note"])
    left = int(report["words_only"])
    return "" if not left else f"{counted(left, 'chunk')} get their vectors in the background."


class _Look:
    """Takes the engine's progress and ends the watching when there is an estimate."""

    def __init__(self, progress: Progress) -> None:
        """Pass progress on."""
        self._progress = progress
        self._since: float | None = None
        self._event: IndexEvent | None = None
        self.cancel: Callable[[], None] = lambda: None

    def take(self, value: Any) -> None:
        """Take what the engine tells of its work."""
        import msgspec

        if not value.get("event"):
            return
        event = msgspec.convert(value["event"], IndexEvent)
        self._progress(event)
        if event.phase != "vectors":
            return
        self._event = event
        now = time.monotonic()
        self._since = self._since or now
        if now - self._since >= _LOOK_S:
            with suppress(FunesError):
                self.cancel()

    def said(self) -> str:
        """Return how much is left and for how long."""
        event = self._event
        if event is None:
            return ""
        left = counted(max(event.total - event.done, 0), "chunk")
        about = f", for about {duration(event.eta_s)} more" if event.eta_s else ""
        return (
            f"{left} get their vectors in the background{about}; "
            "`funes engine status` shows how far they are."
        )
