"""Work that takes as long as it takes: by the engine where there is one, with its progress."""

import argparse
import os
from collections.abc import Callable
from typing import Any

from funes_ls.cli.asking import START_S, uses_engine
from funes_ls.cli.index import withdrawn_on_interrupt
from funes_ls.cli.output import notice
from funes_ls.cli.progress import shown
from funes_ls.engine.client import Connection, EngineError, connect
from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.home import home_dir
from funes_ls.indexer.progress import IndexEvent, Progress
from funes_ls.sending import Params, sendable

#: Ctrl-C ends it.
_NO_LIMIT_S = 1e7
#: Does the work in this process and returns the struct that the engine's JSON is of.
Here = Callable[[Progress], Any]


def long_answer(method: str, params: Params, args: argparse.Namespace, here: Here) -> Any:
    """Return an answer: what the engine's JSON reads as, or what `here` returns.

    Raises:
        FunesError: there is none.
        KeyboardInterrupt: it was interrupted, and has ended where the memory is whole.
    """
    given = {name: sendable(value) for name, value in params.items() if value}
    with shown(quiet=args.quiet) as progress:
        connection = _connected(args)
        if connection is None:
            return here(progress)
        with connection, withdrawn_on_interrupt(connection):
            return _answer_of(connection, method, given, progress)


def _connected(args: argparse.Namespace) -> Connection | None:
    """Return a connection; none is started for a memory that is not there."""
    home = home_dir(os.environ)
    if not uses_engine(args, os.environ) or not (home / "memory").is_dir():
        return None
    try:
        return connect(home, client="cli", wait_s=START_S, env=os.environ)
    except FunesError as exc:
        notice(f"funes: {exc.message} Working without it.", quiet=args.quiet)
        return None


def _answer_of(connection: Connection, method: str, params: Params, progress: Progress) -> Any:
    import msgspec

    def watch(value: Any) -> None:
        if value.get("event"):
            progress(msgspec.convert(value["event"], IndexEvent))

    try:
        return connection.request(method, params, timeout_s=_NO_LIMIT_S, on_progress=watch)
    except EngineError as exc:
        if exc.kind == "cancelled":
            raise KeyboardInterrupt from exc
        raise
