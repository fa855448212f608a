"""Workspace symbols: past sessions by their titles."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from funes_ls.handlers.addresses import Address, uri_of
from funes_ls.handlers.documents import placed
from funes_ls.handlers.failures import Refused, bad_params
from funes_ls.handlers.wording import ago, harness_word, one_line
from funes_ls.indexer.errors import FunesError

if TYPE_CHECKING:
    from funes_ls.handlers.front import Front

_MOST = 50
#: Where each symbol needs a file that is there, as clients of old do.
_MOST_FILES = 10
_START = types.Range(start=types.Position(0, 0), end=types.Position(0, 0))


def register(ls: "Front") -> None:
    """Serve workspace symbols."""

    @ls.feature(types.WORKSPACE_SYMBOL, types.WorkspaceSymbolOptions(resolve_provider=True))
    async def symbols(
        params: types.WorkspaceSymbolParams,
    ) -> list[types.WorkspaceSymbol] | list[types.SymbolInformation]:
        lazily = ls.client.virtual_documents or ls.client.symbol_resolve
        asked = {"title": params.query, "limit": _MOST if lazily else _MOST_FILES}
        answer = await ls.quick("funes/sessions", ls.with_settings("funes/sessions", asked))
        sessions = answer["sessions"] if answer else []
        if lazily:
            return [_symbol(ls, session) for session in sessions]
        found = [await _information(ls, session) for session in sessions]
        return [symbol for symbol in found if symbol is not None]

    @ls.feature(types.WORKSPACE_SYMBOL_RESOLVE)
    async def resolve(symbol: types.WorkspaceSymbol) -> types.WorkspaceSymbol:
        data: Any = symbol.data
        if not isinstance(data, dict) or not isinstance(data.get("session"), str):
            raise bad_params("This symbol is none of ours.")
        uri, line = await placed(ls, _address(ls, data["session"]))
        place = types.Position(line=line, character=0)
        symbol.location = types.Location(uri=uri, range=types.Range(start=place, end=place))
        return symbol


def _address(ls: "Front", session_id: str) -> Address:
    return Address(kind="session", session=session_id, memory=ls.settings().memory)


def _symbol(ls: "Front", session: Mapping[str, Any]) -> types.WorkspaceSymbol:
    uri = uri_of(_address(ls, session["session_id"]))
    location: types.Location | types.LocationUriOnly = types.LocationUriOnly(uri=uri)
    if not ls.client.symbol_resolve:
        location = types.Location(uri=uri, range=_START)
    return types.WorkspaceSymbol(
        name=_name(session),
        kind=types.SymbolKind.Event,
        container_name=_about(session),
        location=location,
        data={"session": session["session_id"]},
    )


async def _information(ls: "Front", session: Mapping[str, Any]) -> types.SymbolInformation | None:
    try:
        uri, _ = await placed(ls, _address(ls, session["session_id"]))
    except (FunesError, Refused):
        return None
    return types.SymbolInformation(
        name=_name(session),
        kind=types.SymbolKind.Event,
        container_name=_about(session),
        location=types.Location(uri=uri, range=_START),
    )


def _name(session: Mapping[str, Any]) -> str:
    return one_line(session["title"]) or "Untitled session"


def _about(session: Mapping[str, Any]) -> str:
    parts = [harness_word(session["harness"]), ago(session["ended_us"]), session["repo"]]
    return one_line(" · ".join(filter(None, parts)))
