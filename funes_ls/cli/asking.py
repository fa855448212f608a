"""Gets an answer from the engine, or in this process when there is none.

On the way through the engine only the standard library is loaded: that is what makes a recall
take a tenth of a second.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from funes_ls.cli.output import notice
from funes_ls.engine.client import Connection, EngineError, connect
from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.home import expanded, home_dir

if TYPE_CHECKING:
    import argparse

Params = dict[str, Any]
Watch = Callable[[Any], None]

#: Seconds for an answer; the engine gives up a little earlier and says so.
_RECALL_S = 12.0
_TABLE_S = 7.0
#: Seconds for an engine to start and say hello.
START_S = 10.0
#: Variables that change no setting of an answer.
_NO_SETTINGS = ("FUNES_HOME", "FUNES_RULES_CACHE", "FUNES_SHARED", "FUNES_TEST_MODELS")
#: What the engine says when the fault is its own: then this process answers.
_TROUBLES = {
    *("engine_down", "engine_timeout", "engine_newer", "engine_crashing", "engine_stopping"),
    *("timeout", "busy", "internal", "token", "bad_message", "no_such_method"),
}
#: Fields of answers whose keys are data, not names.
_MAPPINGS = {"harnesses", "legs", "timings_ms", "troubled", "counts", "redacted"}


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
    own = prepared(method, params, env, quiet=args.quiet)
    if uses_engine(args, env):
        try:
            return _from_engine(method, own, env, on_partial=on_partial)
        except FunesError as exc:
            if not is_trouble(exc):
                raise
            if exc.kind != "no_engine":
                notice(f"funes: {exc.message} Answering without it.", quiet=args.quiet)
    from funes_ls.cli import without_engine

    return without_engine.answer_to(method, own, env, on_partial=on_partial)


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
    start = (home / "memory").is_dir()
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


def prepared(method: str, params: Params, env: Mapping[str, str], *, quiet: bool) -> Params:
    """Return params with what the environment sets, as text that can be sent; warn of the rest."""
    own = {name: sendable(value) for name, value in params.items() if value is not None}
    if has_settings(env):
        from funes_ls.indexer.settings import ENV_KEYS, QUESTION_FIELDS, load_settings

        settings, warnings = load_settings(env)
        for warning in warnings:
            notice(f"funes: {warning}", quiet=quiet)
        for variable, field in ENV_KEYS.items():
            name = QUESTION_FIELDS.get(field, "")
            is_asked = name == "memory" or (name and method == "funes/recall")
            if is_asked and env.get(variable, "").strip():
                own.setdefault(name, getattr(settings, field))
    if own.get("memory"):
        own["memory"] = _absolute(own["memory"])
    return own


def has_settings(env: Mapping[str, str]) -> bool:
    """Return whether settings differ from the defaults for all that can be seen from here."""
    own = (
        name
        for name, value in env.items()
        if name.startswith("FUNES_") and not name.startswith("FUNES_ENGINE") and value.strip()
    )
    return (
        any(name not in _NO_SETTINGS for name in own) or (home_dir(env) / "config.toml").is_file()
    )


def sendable(value: Any) -> Any:
    """Return text without halves of characters, as names that are no UTF-8 give them."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _absolute(memory: str) -> str:
    """Return a memory's path so that a process elsewhere finds it too."""
    try:
        path = expanded(memory)
        return str(path.absolute()) if memory != "local" and path.exists() else memory
    except (OSError, ValueError, RuntimeError):
        return memory


def as_object(value: Any) -> Any:
    """Return an answer with attributes; a struct is one already."""
    if isinstance(value, dict):
        return SimpleNamespace(
            **{name: one if name in _MAPPINGS else as_object(one) for name, one in value.items()}
        )
    return [as_object(one) for one in value] if isinstance(value, list) else value
