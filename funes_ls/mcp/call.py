"""One call of a tool: what it asks of the engine, for how long, and that it can be withdrawn."""

import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from funes_ls.engine.client import Connection, EngineError, connect
from funes_ls.indexer.errors import FunesError, MemoryStateError

#: A call is over after so long, whatever happens.
LIMIT_S = 30.0
#: Of that an engine may take so long to start, and so long for an answer.
_START_S = 12.0
_ANSWER_S = 12.0
_AGAIN_S = 0.2
_MARGIN_S = 2.0
#: What passes: the engine is being replaced, makes its memory ready, or fetches one from elsewhere.
_PASSING = frozenset({"engine_stopping", "locked", "fetching"})


class Withdrawn(Exception):
    """Nobody waits for this call any more."""


class Call:
    """A call under way; `cancel` may come from another thread at any time."""

    def __init__(self, home: Path, env: Mapping[str, str], *, limit_s: float = LIMIT_S) -> None:
        """Begin a call to the engine of a home."""
        self._home = home
        self._env = env
        self._deadline = time.monotonic() + limit_s
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._cancelled = threading.Event()

    @property
    def cancelled(self) -> bool:
        """Return whether nobody waits any more."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Withdraw what the engine was asked."""
        self._cancelled.set()
        with self._lock, suppress(FunesError):
            if self._connection is not None:
                self._connection.cancel()

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """Return what the engine answers; one that died over it, or is just ending, is replaced.

        Raises:
            Withdrawn: nobody waits any more.
            MemoryStateError: there is no memory yet, and none was named.
            EngineError: the engine says no, or there is none.
        """
        is_named = params.get("memory") or params.get("memories")
        if not is_named and not (self._home / "memory").is_dir():
            raise no_memory(self._home)
        died = False
        while True:
            try:
                return self._asked(method, params)
            except EngineError as exc:
                if self.cancelled:
                    raise Withdrawn from None
                passes = exc.kind in _PASSING or (exc.kind == "engine_down" and not died)
                # With a margin: how far it has come is told, not that the time is over.
                if not passes or self._left_s < _MARGIN_S:
                    raise
                died = died or exc.kind == "engine_down"
                self._cancelled.wait(_AGAIN_S)

    @property
    def _left_s(self) -> float:
        return max(self._deadline - time.monotonic(), 0.0)

    def _asked(self, method: str, params: Mapping[str, Any]) -> Any:
        if self.cancelled:
            raise Withdrawn
        wait_s = min(_START_S, self._left_s)
        with connect(self._home, client="mcp", wait_s=wait_s, env=self._env) as connection:
            with self._lock:
                self._connection = connection
            try:
                if self.cancelled:
                    raise Withdrawn
                limit_s = min(_ANSWER_S, self._left_s)
                return connection.request(method, params, timeout_s=limit_s)
            finally:
                with self._lock:
                    self._connection = None


def no_memory(home: Path) -> MemoryStateError:
    """Return what is said where no session has been read yet."""
    return MemoryStateError(
        f"There is no memory at {home / 'memory'} yet: no session has been read.",
        hint="The user makes it with `funes index`, in a terminal.",
        kind="missing",
    )


def warm_up(home: Path, env: Mapping[str, str] = os.environ) -> None:
    """Have an engine ready before the first call, where there is a memory; nobody waits for it."""
    if env.get("FUNES_ENGINE") == "inline" or not (home / "memory").is_dir():
        return

    def start() -> None:
        with suppress(FunesError, OSError):
            connect(home, client="mcp", env=env).close()

    threading.Thread(target=start, name="warm up", daemon=True).start()
