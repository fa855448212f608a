"""Code lenses: one at the top of a file that past sessions touched, and one a symbol if wanted."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from funes_ls.handlers.code_actions import SHOW_RELATED
from funes_ls.handlers.documents import is_document
from funes_ls.handlers.failures import bad_params, outdated
from funes_ls.handlers.guard import ClientRefused
from funes_ls.handlers.symbol_lens import SymbolLenses
from funes_ls.handlers.wording import ago, counted
from funes_ls.uris import path_of

if TYPE_CHECKING:
    from funes_ls.handlers.front import Front

#: News within so short a time are of one pass of indexing, and so are all while one is under way.
_QUIET_S = 1.0
#: An engine that dies while it indexes says nothing of its end.
_LONGEST_PASS_S = 600.0
_REFRESH_S = 10.0
_TOP = types.Range(start=types.Position(0, 0), end=types.Position(0, 0))
TOGGLE = "funes.toggleCodeLens"


def register(ls: "Front") -> None:
    """Serve code lenses."""
    refreshing = Refreshing(ls)
    symbols = SymbolLenses(ls, refreshing.ask)
    #: Titles that the client has seen, by document: they are told at once from then on, so that
    #: none blinks while one types.
    told: dict[str, tuple[int, types.Command]] = {}

    @ls.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=True))
    async def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        uri = params.text_document.uri
        path = path_of(uri)
        if not path or is_document(ls, uri, path):
            return []
        await ls.configuration.settled()
        mode = ls.lens_mode(uri)
        if mode == "off":
            return []
        asked = [_of_file(ls, uri, path, told)]
        if mode == "symbols":
            asked.append(symbols.of(uri))
        return [lens for lenses in await asyncio.gather(*asked) for lens in lenses]

    @ls.feature(types.CODE_LENS_RESOLVE)
    async def resolve(lens: types.CodeLens) -> types.CodeLens:
        uri, generation, symbol = _data(lens)
        if symbol:
            return symbols.resolved(lens, uri, symbol)
        if generation < ls.generation:
            raise outdated("The memory has changed since this lens was made.")
        answer = await _related(ls, uri, path_of(uri))
        if answer is None:
            return lens
        if answer["generation"] != generation or not answer["sessions"]:
            raise outdated("The memory has changed since this lens was made.")
        command = _command(uri, answer)
        told[uri] = (generation, command)
        return types.CodeLens(range=lens.range, command=command, data=lens.data)

    @ls.command(TOGGLE)
    async def toggle(*arguments: Any) -> dict[str, str]:
        mode = ls.toggle_lenses(arguments[0] if arguments else None)
        refreshing.ask()
        return {"codeLens": mode}

    ls.on_index.append(refreshing.heard)


async def _of_file(
    ls: "Front", uri: str, path: str, told: Mapping[str, tuple[int, types.Command]]
) -> list[types.CodeLens]:
    answer = await _related(ls, uri, path)
    if not answer or not answer["total"]:
        return []
    data = {"uri": uri, "generation": answer["generation"]}
    generation, command = told.get(uri, (-1, None))
    if ls.client.lens_at_once:
        command = _command(uri, answer)
    elif generation != answer["generation"]:
        command = None
    return [types.CodeLens(range=_TOP, command=command, data=data)]


async def _related(ls: "Front", uri: str, path: str) -> Any:
    asked = {"path": path, "limit": 1, "factsOnly": True}
    return await ls.quick("funes/related", ls.with_settings("funes/related", asked, uri=uri))


def _command(uri: str, answer: Any) -> types.Command:
    last = ago(answer["last_us"])
    title = counted(answer["total"], "past session") + (f" · last {last}" if last else "")
    return types.Command(title=title, command=SHOW_RELATED, arguments=[{"uri": uri}])


def _data(lens: types.CodeLens) -> tuple[str, int, str]:
    data: Any = lens.data
    if isinstance(data, dict):
        uri, generation = data.get("uri"), data.get("generation")
        symbol = data.get("symbol", "")
        if not isinstance(symbol, str) or not isinstance(generation, int):
            raise bad_params("This lens is none of ours.")
        if isinstance(uri, str) and path_of(uri):
            return uri, generation, symbol
    raise bad_params("This lens is none of ours.")


class Refreshing:
    """Asks the client to look for lenses again, once when a pass of indexing is over."""

    def __init__(self, ls: "Front") -> None:
        """Ask a client that takes it."""
        self._ls = ls
        self._task: asyncio.Task[None] | None = None
        self._again = False

    def ask(self) -> None:
        """Ask at once."""
        if self._ls.client.lens_refresh:
            self._ls.spawn(self._ask())

    def heard(self) -> None:
        """Hear that the memory has changed."""
        if not self._ls.client.lens_refresh:
            return
        self._again = True
        if self._task is None or self._task.done():
            self._task = self._ls.spawn(self._refresh())

    async def _refresh(self) -> None:
        while self._again:
            ends = time.monotonic() + _LONGEST_PASS_S
            while (self._again or self._ls.is_indexing) and time.monotonic() < ends:
                self._again = False
                await asyncio.sleep(_QUIET_S)
            await self._ask()

    async def _ask(self) -> None:
        with contextlib.suppress(ClientRefused, TimeoutError):
            await self._ls.protocol.ask(
                types.WORKSPACE_CODE_LENS_REFRESH, None, timeout_s=_REFRESH_S
            )
