"""One code lens at the top of a file that past sessions touched: `7 past sessions · last …`."""

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from funes_ls.handlers.code_actions import SHOW_RELATED
from funes_ls.handlers.documents import is_document
from funes_ls.handlers.failures import bad_params, outdated
from funes_ls.handlers.guard import ClientRefused
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


def register(ls: "Front") -> None:
    """Serve code lenses."""

    @ls.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=True))
    async def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        uri = params.text_document.uri
        path = path_of(uri)
        if not path or is_document(ls, uri, path):
            return []
        await ls.configuration.settled()
        if not ls.settings(uri).code_lens:
            return []
        answer = await _related(ls, uri, path)
        if not answer or not answer["total"]:
            return []
        data = {"uri": uri, "generation": answer["generation"]}
        command = _command(uri, answer) if ls.client.lens_at_once else None
        return [types.CodeLens(range=_TOP, command=command, data=data)]

    @ls.feature(types.CODE_LENS_RESOLVE)
    async def resolve(lens: types.CodeLens) -> types.CodeLens:
        uri, generation = _data(lens)
        if generation < ls.generation:
            raise outdated("The memory has changed since this lens was made.")
        answer = await _related(ls, uri, path_of(uri))
        if answer is None:
            return lens
        if answer["generation"] != generation or not answer["sessions"]:
            raise outdated("The memory has changed since this lens was made.")
        return types.CodeLens(range=lens.range, command=_command(uri, answer), data=lens.data)

    ls.on_index.append(Refreshing(ls).heard)


async def _related(ls: "Front", uri: str, path: str) -> Any:
    params = ls.with_settings("funes/related", {"path": path, "limit": 1}, uri=uri)
    return await ls.quick("funes/related", params)


def _command(uri: str, answer: Any) -> types.Command:
    last = ago(answer["sessions"][0]["ended_us"])
    title = counted(answer["total"], "past session") + (f" · last {last}" if last else "")
    return types.Command(title=title, command=SHOW_RELATED, arguments=[{"uri": uri}])


def _data(lens: types.CodeLens) -> tuple[str, int]:
    data: Any = lens.data
    if isinstance(data, dict):
        uri, generation = data.get("uri"), data.get("generation")
        if isinstance(uri, str) and isinstance(generation, int) and path_of(uri):
            return uri, generation
    raise bad_params("This lens is none of ours.")


class Refreshing:
    """Asks the client to look for lenses again, once when a pass of indexing is over."""

    def __init__(self, ls: "Front") -> None:
        """Ask a client that takes it."""
        self._ls = ls
        self._task: asyncio.Task[None] | None = None
        self._again = False

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
            with contextlib.suppress(ClientRefused, TimeoutError):
                await self._ls.protocol.ask(
                    types.WORKSPACE_CODE_LENS_REFRESH, None, timeout_s=_REFRESH_S
                )
