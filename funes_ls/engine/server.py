"""Listens for clients, serves each, and ends when it is told to or nobody needs it."""

import asyncio
import logging
import socket
from typing import Any

from funes_ls.engine import messages
from funes_ls.engine.clients import READ_AHEAD_BYTES, Client
from funes_ls.engine.core import Core
from funes_ls.engine.dispatch import Dispatcher
from funes_ls.engine.peers import is_ours

_log = logging.getLogger(__name__)
MOST_CLIENTS = 256
_LOOK_S = 0.5


class Server:
    """The clients of one engine; lives on one event loop."""

    def __init__(self, core: Core, *, token: str = "") -> None:
        """Serve from a core; must be made on the loop's thread."""
        self._core = core
        self._loop = asyncio.get_running_loop()
        self._clients: set[Client] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()
        self._dispatcher = Dispatcher(core, token=token, end=self.end)
        core.clients = lambda: len(self._clients)
        core.tell = self.tell

    def end(self, reason: str) -> None:
        """Stop serving."""
        if not self._ended.is_set():
            _log.info("ends: %s", reason)
            self._ended.set()

    async def listen(self, sock: socket.socket) -> asyncio.Server:
        """Take clients that connect to a listening socket."""
        return await asyncio.start_server(self._accepted, sock=sock, limit=READ_AHEAD_BYTES)

    async def adopt(self, sock: socket.socket) -> None:
        """Serve one connected socket until it ends."""
        reader, writer = await asyncio.open_connection(sock=sock, limit=READ_AHEAD_BYTES)
        await self._serve(reader, writer)

    async def until_ended(self, *, idle_s: float | None) -> None:
        """Wait until the end is called for, or nobody has needed this for so long."""
        while not self._ended.is_set():
            try:
                async with asyncio.timeout(_LOOK_S):
                    await self._ended.wait()
            except TimeoutError:
                self._loop.run_in_executor(self._core.lane("tables"), self._core.tick)
                if self._core.is_lost:
                    self.end("its home is gone, or another engine's")
                if idle_s is not None and self._core.is_idle(self._core.settings.idle_s):
                    self.end("nobody needs it")

    async def close(self) -> None:
        """Hang up on everybody, what was sent delivered if they read it."""
        clients = list(self._clients)
        for client in clients:
            self._dispatcher.forget(client)
        await asyncio.gather(*(client.close() for client in clients))
        for task in self._tasks:
            task.cancel()

    def tell(self, method: str, params: Any, may_be_left_out: bool) -> None:
        """Send a notification to whoever wants news; from any thread."""
        data = messages.notification(method, params)
        try:
            self._loop.call_soon_threadsafe(self._tell, data, may_be_left_out)
        except RuntimeError:
            return  # the loop has ended: nobody is there

    def _tell(self, data: bytes, may_be_left_out: bool) -> None:
        for client in self._clients:
            if client.wants_news:
                (client.send_if_reading if may_be_left_out else client.send)(data)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sock = writer.get_extra_info("socket")
        if len(self._clients) >= MOST_CLIENTS or not is_ours(sock._sock):
            _log.warning("a connection was refused")
            writer.transport.abort()
            return
        await self._serve(reader, writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Client(reader, writer)
        task = asyncio.current_task()
        self._clients.add(client)
        if task is not None:
            self._tasks.add(task)
        try:
            await client.serve(self._dispatcher.take)
        except asyncio.CancelledError:
            pass  # the engine ends
        finally:
            self._clients.discard(client)
            if task is not None:
                self._tasks.discard(task)
            self._dispatcher.forget(client)
            self._core.note_activity()
            writer.close()
