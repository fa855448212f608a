"""An engine inside this process, for containers and tests: the same code over a socket pair."""

import asyncio
import socket
import threading
from collections.abc import Mapping
from pathlib import Path

from funes_ls.engine.client import Connection
from funes_ls.engine.core import Core
from funes_ls.engine.server import Server

_engines: dict[Path, "_Inline"] = {}
_lock = threading.Lock()
_END_S = 5.0


class _Inline:
    """An engine on a thread of its own, for as long as somebody is connected."""

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        self.users = 0
        self._home = home
        self._env = dict(env)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()
        self._ready.wait()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._core = Core(self._home, self._env)
        self._core.address = "inline"
        self._server = Server(self._core)
        self._ready.set()
        await self._server.until_ended(idle_s=None)
        await self._server.close()
        self._core.close(wait_s=_END_S)

    def connect(self) -> socket.socket:
        """Return an end whose other one the engine serves."""
        ours, theirs = socket.socketpair()
        asyncio.run_coroutine_threadsafe(self._server.adopt(theirs), self._loop)
        return ours

    def end(self) -> None:
        """End the engine; what is under way is finished or undone."""
        self._loop.call_soon_threadsafe(self._server.end, "the last front has gone")
        self._thread.join(2 * _END_S)


def inline_connection(home: Path, env: Mapping[str, str]) -> Connection:
    """Return a connection to this process's engine of a home, which ends with the last one."""
    with _lock:
        engine = _engines.get(home)
        if engine is None:
            engine = _engines[home] = _Inline(home, env)
        engine.users += 1
        sock = engine.connect()

    def leave() -> None:
        with _lock:
            engine.users -= 1
            if engine.users:
                return
            _engines.pop(home, None)
        engine.end()

    return Connection(sock, on_close=leave)
