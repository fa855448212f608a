"""Progress of long work, as LSP wants it: one begin, reports that never fall, one end."""

import asyncio
import contextlib
import itertools
import os
from types import TracebackType
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from funes_ls.handlers.guard import ClientRefused
from funes_ls.protocol import Token

if TYPE_CHECKING:
    from funes_ls.handlers.front import Front

_CREATE_S = 10.0
_numbers = itertools.count(1)


class Work:
    """Work that is told of under a token, from entering to leaving; told of not at all without."""

    def __init__(self, ls: "Front", token: Token | None, title: str) -> None:
        """Prepare to tell; nothing is told yet."""
        self._ls = ls
        self._token = token
        self._title = title
        self._percentage = 0
        self._told = False
        self._said = ""
        self._task: asyncio.Task[Any] | None = None

    def report(self, value: Any) -> None:
        """Pass on what the engine tells."""
        if value.get("kind") == "end":
            self._said = str(value.get("message") or "")
        if value.get("kind") != "report" or not self._told:
            return
        self._percentage = max(self._percentage, int(value.get("percentage") or 0))
        told = {"kind": "report", "percentage": self._percentage, "cancellable": True}
        if value.get("message"):
            told["message"] = value["message"]
        self._tell(told)

    def cancel(self) -> None:
        """Stop the work; whoever waits for it is told so."""
        if self._task is not None:
            self._task.cancel()

    async def __aenter__(self) -> "Work":
        """Begin."""
        self._task = asyncio.current_task()
        if self._token is not None:
            self._ls.works[self._token] = self
            self._told = True
            self._tell(
                {"kind": "begin", "title": self._title, "cancellable": True, "percentage": 0}
            )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        _exc: BaseException | None,
        _frames: TracebackType | None,
    ) -> None:
        """End, however it went."""
        if self._token is None:
            return
        self._ls.works.pop(self._token, None)
        said = "Stopped." if kind is not None else self._said
        self._tell({"kind": "end", **({"message": said} if said else {})})
        self._told = False

    def _tell(self, value: dict[str, Any]) -> None:
        params = {"token": self._token, "value": value}
        self._ls.protocol.notify(types.PROGRESS, params)


async def begun(ls: "Front", token: Token | None, *, title: str) -> Work:
    """Return work under the client's token, or under one of ours that the client has taken."""
    if token is None and ls.client.work_done:
        token = await _created(ls)
    return Work(ls, token, title)


async def _created(ls: "Front") -> Token | None:
    """Return a new token, None when the client does not take it."""
    token = f"funes-{os.getpid()}-{next(_numbers)}"
    with contextlib.suppress(ClientRefused, TimeoutError):
        await ls.protocol.ask(
            types.WINDOW_WORK_DONE_PROGRESS_CREATE, {"token": token}, timeout_s=_CREATE_S
        )
        return token
    return None
