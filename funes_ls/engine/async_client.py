"""An asyncio front's engine: many requests at once, and connected anew when the engine dies."""

import asyncio
import contextlib
import itertools
import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import msgspec

from funes_ls.engine import client as blocking
from funes_ls.engine.client import EngineError, Watch
from funes_ls.engine.framing import FramingError, Incoming, frame

_log = logging.getLogger(__name__)
_WAIT_S = 10.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 30.0
#: A request does not wait for an engine that could not be reached a moment ago.
_FRESH_FAILURE_S = 1.0
_READ_AHEAD_BYTES = 1 << 20
#: What may be asked again when the engine died over it: nothing is changed by it.
_HARMLESS = frozenset(
    {
        "funes/recall",
        "funes/get",
        "funes/sessions",
        "funes/status",
        "funes/related",
        "funes/blame",
        "funes/memories",
        "engine/status",
    }
)
_DOWN = "The engine is gone."
_HINT = "See `funes engine logs`."

Notified = Callable[[Any], None]


class _Link:
    """One connection; dead for good once it is lost."""

    def __init__(self, connection: blocking.Connection, notified: Callable[[str, Any], None]):
        self.hello = connection.hello
        self._connection = connection
        self._notified = notified
        self._numbers = itertools.count(1_000)
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._watches: dict[str, Watch] = {}
        self._writer: asyncio.StreamWriter
        self._reading: asyncio.Task[None]
        self.lost = asyncio.Event()

    async def open(self) -> None:
        """Take the connection's socket over."""
        sock, begun = self._connection.detach()
        sock.setblocking(False)
        reader, self._writer = await asyncio.open_connection(sock=sock, limit=_READ_AHEAD_BYTES)
        self._reading = asyncio.create_task(self._read(reader, begun))

    async def request(self, method: str, params: dict[str, Any], watches: dict[str, Watch]) -> Any:
        number = next(self._numbers)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        named = {f"{name}-{number}": watch for name, watch in watches.items()}
        tokens = {name: f"{name}-{number}" for name in watches}
        self._pending[number] = answer
        self._watches.update(named)
        try:
            await self.send({"id": number, "method": method, "params": {**params, **tokens}})
            return await answer
        except BaseException:
            if not answer.done() or answer.cancelled():
                with contextlib.suppress(EngineError):
                    self.send_now({"method": "$/cancelRequest", "params": {"id": number}})
            raise
        finally:
            self._pending.pop(number, None)
            for name in named:
                self._watches.pop(name, None)

    async def send(self, message: dict[str, Any]) -> None:
        self.send_now(message)
        with contextlib.suppress(ConnectionError):  # the answer will say so
            await self._writer.drain()

    def send_now(self, message: dict[str, Any]) -> None:
        if self.lost.is_set():
            raise EngineError(_DOWN, hint=_HINT)
        self._writer.write(frame(_encoded({"jsonrpc": "2.0", **message})))

    async def close(self) -> None:
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
        await asyncio.to_thread(self._connection.close)

    async def _read(self, reader: asyncio.StreamReader, begun: bytes) -> None:
        try:
            incoming = Incoming()
            data = begun
            while True:
                incoming.add(data)
                while (body := incoming.take()) is not None:
                    self._take(msgspec.json.decode(body))
                data = await reader.read(_READ_AHEAD_BYTES)
                if not data:
                    return
        except (OSError, FramingError, msgspec.DecodeError) as exc:
            _log.info("the engine is gone (%s)", type(exc).__name__)
        finally:
            self.lost.set()
            for answer in self._pending.values():
                if not answer.done():
                    answer.set_exception(EngineError(_DOWN, hint=_HINT))

    def _take(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method == "$/progress":
            told = message["params"]
            watch = self._watches.get(told["token"])
            if watch is not None:
                watch(told["value"])
        elif method is not None:
            self._notified(method, message.get("params"))
        else:
            answer = self._pending.get(message.get("id", -1))
            if answer is None or answer.done():
                return
            try:
                answer.set_result(blocking.result_of(message))
            except EngineError as exc:
                answer.set_exception(exc)


class Engine:
    """The engine as a front sees it, through as many connections as it takes."""

    def __init__(
        self,
        home: Path,
        *,
        client: str,
        start: bool = True,
        notify: bool = True,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        """Speak for a front; nothing is connected before the first request.

        Args:
            home: The funes home.
            client: What the front is, see `blocking.connect`.
            start: Start an engine when none runs.
            notify: Whether notifications are wanted; then the connection is kept up.
            env: The front's environment.
        """
        self._home = home
        self._options: dict[str, Any] = {
            "client": client, "start": start, "notify": notify, "env": env,
        }  # fmt: skip
        self._callbacks: dict[str, list[Notified]] = {}
        self._link: _Link | None = None
        self._connecting: asyncio.Task[_Link] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._failure: tuple[float, EngineError] | None = None
        self._closed = False

    @classmethod
    async def connect(cls, home: Path, **options: Any) -> Self:
        """Return an engine that is connected already; see `__init__`.

        Raises:
            EngineError: see `blocking.connect`.
        """
        engine = cls(home, **options)
        await engine.ready()
        return engine

    @property
    def hello(self) -> dict[str, Any]:
        """Return how the engine answered hello, {} while there is no connection."""
        return self._link.hello if self._link is not None else {}

    def on_notification(self, method: str, callback: Notified) -> None:
        """Have something called with the params of each notification of a method."""
        self._callbacks.setdefault(method, []).append(callback)

    async def ready(self) -> None:
        """Be connected.

        Raises:
            EngineError: see `blocking.connect`.
        """
        await self._linked()

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        timeout_s: float,
        on_partial: Watch | None = None,
        on_progress: Watch | None = None,
    ) -> Any:
        """Return what the engine answers; a cancelled task withdraws its request.

        Raises:
            EngineError: the engine says no, is not there, or does not answer in time.
        """
        given = {"partialResultToken": on_partial, "workDoneToken": on_progress}
        watches = {name: watch for name, watch in given.items() if watch is not None}
        try:
            async with asyncio.timeout(timeout_s):
                link = await self._linked()
                try:
                    return await link.request(method, dict(params), watches)
                except EngineError as exc:
                    if exc.kind != "engine_down" or method not in _HARMLESS:
                        raise
                return await (await self._linked()).request(method, dict(params), watches)
        except TimeoutError as exc:
            raise EngineError(
                f"The engine has not answered {method} in time.", hint=_HINT, kind="engine_timeout"
            ) from exc

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell the engine something and expect nothing back.

        Raises:
            EngineError: it is not there.
        """
        await (await self._linked()).send({"method": method, "params": dict(params)})

    async def close(self) -> None:
        """Hang up for good."""
        self._closed = True
        for task in (self._keeping, self._connecting):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, EngineError):
                    await task
        if self._link is not None:
            await self._link.close()
            self._link = None

    async def _linked(self) -> _Link:
        if self._closed:
            raise EngineError("The connection was closed.")
        if self._link is not None and not self._link.lost.is_set():
            return self._link
        if self._connecting is None or self._connecting.done():
            if self._failure and time.monotonic() - self._failure[0] < _FRESH_FAILURE_S:
                raise self._failure[1]
            self._connecting = asyncio.create_task(self._connect())
        # One request's end must not end what others wait for.
        return await asyncio.shield(self._connecting)

    async def _connect(self) -> _Link:
        if self._link is not None:
            await self._link.close()
            self._link = None
        try:
            connection = await asyncio.to_thread(
                blocking.connect, self._home, wait_s=_WAIT_S, **self._options
            )
        except EngineError as exc:
            self._failure = (time.monotonic(), exc)
            raise
        link = _Link(connection, self._notified)
        await link.open()
        self._link, self._failure = link, None
        if self._options["notify"] and self._keeping is None:
            self._keeping = asyncio.create_task(self._keep_up())
        return link

    async def _keep_up(self) -> None:
        """Connect anew whenever the engine is lost, ever less often while it cannot be had."""
        pause_s = _FIRST_PAUSE_S
        while not self._closed:
            if self._link is not None:
                await self._link.lost.wait()
            await asyncio.sleep(pause_s)
            try:
                await self._linked()
                pause_s = _FIRST_PAUSE_S
            except EngineError as exc:
                _log.info("the engine cannot be had (%s)", exc.kind)
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _notified(self, method: str, params: Any) -> None:
        for callback in self._callbacks.get(method, ()):
            callback(params)


def _encoded(message: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:  # half of a character from an editor: escaped, mended over there
        return json.dumps(message).encode("ascii")
