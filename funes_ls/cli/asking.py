"""Gets an answer from the engine, or in this process when there is none.

On the way through the engine only the standard library is loaded: that is what makes a recall
take a tenth of a second.
"""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from funes_ls.cli.output import notice
from funes_ls.engine.client import Connection, EngineError, connect
from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.home import home_dir
from funes_ls.sending import Params, prepared

if TYPE_CHECKING:
    import argparse

Watch = Callable[[Any], None]

#: Seconds for an answer; the engine gives up a little earlier and says so.
_RECALL_S = 12.0
_TABLE_S = 7.0
#: Seconds for a memory elsewhere to come, and between two looks.
_FETCH_S, _AGAIN_S = 1_800.0, 0.2
#: Variables that a token for the Hub may be in.
_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN")
#: Seconds for an engine to start and say hello.
START_S = 10.0
#: What the engine says when the fault is its own: then this process answers.
_TROUBLES = {
    *("engine_down", "engine_timeout", "engine_newer", "engine_crashing", "engine_stopping"),
    *("timeout", "busy", "internal", "token", "bad_message", "no_such_method"),
}


def answer_to(
    method: str, params: Params, args: "argparse.Namespace", *, on_partial: Watch | None = None
) -> Any:
    """Return an answer: what the engine's JSON reads as, or the struct it would be made of.

    Args:
        method: One of `protocol.METHODS`.
        params: Its params as on the wire; those that are None are left out.
        args: The command line, for `--no-engine` and `--quiet`.
        on_partial: Called with each answer so far.

    Raises:
        FunesError: there is no answer, whoever was asked.
    """
    env = os.environ

    def warn(warning: str) -> None:
        notice(f"funes: {warning}", quiet=args.quiet)

    own = prepared(method, params, env, warn=warn)
    if uses_engine(args, env):
        try:
            return _fetched(lambda: _from_engine(method, own, env, on_partial=on_partial), args)
        except FunesError as exc:
            if not is_trouble(exc) and not _has_own_token(exc, env):
                raise
            if is_trouble(exc) and exc.kind != "no_engine":
                notice(f"funes: {exc.message} Answering without it.", quiet=args.quiet)
    from funes_ls.cli import without_engine

    return without_engine.answer_to(method, own, env, on_partial=on_partial)


def _has_own_token(exc: FunesError, env: Mapping[str, str]) -> bool:
    """Return whether this process may read what the engine may not.

    An engine has the environment of whoever started it.
    """
    return exc.kind in ("unauthorised", "missing") and any(env.get(name) for name in _TOKENS)


def _fetched(ask: Callable[[], Any], args: "argparse.Namespace") -> Any:
    """Return an answer, once the memory it is of has been fetched from elsewhere."""
    end = time.monotonic() + _FETCH_S
    told = False
    while True:
        try:
            return ask()
        except FunesError as exc:
            if exc.kind != "fetching" or time.monotonic() > end:
                raise
            if not told:
                notice(f"funes: {exc.message}", quiet=args.quiet)
            told = True
        time.sleep(_AGAIN_S)


def uses_engine(args: "argparse.Namespace", env: Mapping[str, str]) -> bool:
    """Return whether the engine is to be asked."""
    return not args.no_engine and env.get("FUNES_ENGINE") != "inline"


def is_trouble(exc: FunesError) -> bool:
    """Return whether an error is the engine's own, so that others may still have an answer."""
    return exc.kind in _TROUBLES or exc.kind == "no_engine" or not isinstance(exc, EngineError)


def connected(env: Mapping[str, str]) -> Connection:
    """Return a connection; an engine is started only for a memory that is there.

    Raises:
        FunesError: kind `no_engine` when there is neither; else why none can be had.
    """
    home = home_dir(env)
    # What was read of memories elsewhere is there too.
    start = any((home / name).is_dir() for name in ("memory", "derived"))
    try:
        return connect(home, client="cli", start=start, wait_s=START_S, env=env)
    except EngineError as exc:
        if exc.kind == "engine_down" and not start:
            exc.kind = "no_engine"
        raise


def _from_engine(
    method: str, params: Params, env: Mapping[str, str], *, on_partial: Watch | None
) -> Any:
    limit_s = _RECALL_S if method == "funes/recall" else _TABLE_S
    with connected(env) as connection:
        try:
            return connection.request(method, params, timeout_s=limit_s, on_partial=on_partial)
        except KeyboardInterrupt:
            with suppress(FunesError):
                connection.cancel()
            raise
