"""The requests of our own, `funes/…`: checked, completed from the settings, passed on."""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from funes_ls import protocol
from funes_ls.handlers.failures import bad_params
from funes_ls.handlers.front import checked_params
from funes_ls.handlers.progress import Work, begun

if TYPE_CHECKING:
    from funes_ls.handlers.front import Front

#: These take as long as they take, under this title; who has had enough withdraws them.
_LONG = {
    "funes/index": "Indexing sessions",
    "funes/forget": "Forgetting sessions",
    "funes/scrub": "Looking for secrets",
    "funes/ask": "Asking an agent",
}
_TOKENS = ("workDoneToken", "partialResultToken")


def register(ls: "Front") -> None:
    """Serve every method of the engine that is meant for clients."""
    for method in protocol.METHODS:
        if method.startswith("funes/"):
            ls.feature(method)(_passing(ls, method))

    ls.engine.on_notification("funes/didIndex", lambda news: _did_index(ls, news))
    ls.engine.on_notification("engine/progress", lambda news: _progressed(ls, news))


def _passing(ls: "Front", method: str) -> Callable[[Any], Any]:
    async def handle(params: Any) -> Any:
        return await passed_on(ls, method, params)

    return handle


async def passed_on(ls: "Front", method: str, raw: Any) -> Any:
    """Return the engine's answer to a request of the client.

    Raises:
        Refused: the params do not fit.
        FunesError: see `Front.request`.
    """
    if not isinstance(raw, dict | None):
        raise bad_params("The params are no table.")
    given: Mapping[str, Any] = raw or {}
    tokens = checked_params(method, given)
    await ls.configuration.settled()
    uri = str((given.get("textDocument") or {}).get("uri", ""))
    params = ls.with_settings(method, given, uri=uri)
    for name in _TOKENS:
        params.pop(name, None)
    if method in _LONG:
        return await _long(ls, method, params, tokens)
    return await ls.request(method, params, on_partial=_partial(ls, tokens.partial_result_token))


async def _long(ls: "Front", method: str, params: dict[str, Any], tokens: protocol.Params) -> Any:
    work = await begun(ls, tokens.work_done_token, title=_LONG[method])
    return await watched(ls, method, params, work, partial=tokens.partial_result_token)


async def watched(
    ls: "Front",
    method: str,
    params: dict[str, Any],
    work: Work,
    *,
    partial: protocol.Token | None = None,
) -> Any:
    """Return the engine's answer to long work, whose progress is told and which can be cancelled.

    Raises:
        FunesError: see `Front.request`.
    """
    async with work:
        return await ls.request(
            method,
            params,
            timeout_s=math.inf,
            on_progress=work.report,
            on_partial=_partial(ls, partial),
        )


def _partial(ls: "Front", token: protocol.Token | None) -> Callable[[Any], None] | None:
    if token is None:
        return None
    return lambda value: ls.protocol.notify(types.PROGRESS, {"token": token, "value": value})


def _progressed(ls: "Front", news: Any) -> None:
    ls.is_indexing = bool(news.get("phase"))


def _did_index(ls: "Front", news: Any) -> None:
    ls.generation = max(ls.generation, int(news.get("generation", 0)))
    ls.lines.heard(ls.generation, news.get("sessions") or ())
    ls.protocol.notify("funes/didIndex", news)
    for hear in ls.on_index:
        hear()
