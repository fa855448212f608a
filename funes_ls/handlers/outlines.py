"""Asks a process of its own for the symbols of a text; started when needed, ended when idle."""

import asyncio
import contextlib
import json
import logging
import sys

from funes_ls.handlers.symbol_ranges import Symbol

_log = logging.getLogger(__name__)
#: Longer texts have no symbols here: they are data, and would cost more than they say.
MOST_CHARS = 1_000_000
_ANSWER_S = 2.0
_IDLE_S = 120.0
_MOST_ANSWER_BYTES = 1 << 22
#: `-P`: no module of the folder that an editor happens to be started in.
_PROGRAM = (sys.executable, "-P", "-m", "funes_ls.handlers.symbol_ranges")


class Outlines:
    """Symbols of texts, one after the other."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None

    async def of(self, text: str, grammar: str) -> list[Symbol]:
        """Return the symbols of a text whose lines end at LF; none when they cannot be had."""
        if not grammar or len(text) > MOST_CHARS:
            return []
        async with self._lock:
            try:
                async with asyncio.timeout(_ANSWER_S):
                    found = await self._ask(text, grammar)
            except (TimeoutError, OSError, ValueError, asyncio.IncompleteReadError) as exc:
                _log.info("no symbols of a text (%s)", type(exc).__name__)
                await self.close()
                return []
            except asyncio.CancelledError:
                self.end()  # its answer must not be taken for that to the next question
                raise
            self._rest()
            return found

    def end(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if self._idle is not None:
            self._idle.cancel()
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    async def close(self) -> None:
        """End the process and wait for its end."""
        process = self._process
        self.end()
        if process is not None:
            await process.wait()

    async def _ask(self, text: str, grammar: str) -> list[Symbol]:
        process = await self._started()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"text": text, "grammar": grammar}).encode() + b"\n")
        await process.stdin.drain()
        answer = await process.stdout.readuntil(b"\n")
        return [Symbol(*one) for one in json.loads(answer)]

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *_PROGRAM,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=_MOST_ANSWER_BYTES,
            )
        return self._process

    def _rest(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(_IDLE_S, self.end)
