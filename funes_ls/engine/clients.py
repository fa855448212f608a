"""One client's connection, seen from the engine: what comes in, what goes out, how fast."""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from funes_ls import protocol
from funes_ls.engine import messages
from funes_ls.engine.framing import FramingError, Incoming, TooLong

if TYPE_CHECKING:
    from funes_ls.engine.dispatch import Request

_log = logging.getLogger(__name__)
#: What a client may leave unread before it is dropped, and for how long it may read nothing.
MOST_UNREAD_BYTES = 64 << 20
SLOW_S = 15.0
#: A client that has not said hello in this time is dropped.
HELLO_S = 10.0
#: A client that was not understood may go on talking for so long.
_FAREWELL_S = 0.3
#: Notifications of progress wait for nobody: they are left out above this.
_BUSY_BYTES = 1 << 20
#: Read ahead of a client at most.
READ_AHEAD_BYTES = 256 << 10

_numbers = itertools.count(1)


class Client:
    """A connection: who is there, what it has asked and what it is sent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talk over two ends of a connection."""
        self.number = next(_numbers)
        self.kind = ""
        self.greeted = False
        self.wants_news = False
        self.env: dict[str, str] = {}
        self.asked: dict[str | int, Request] = {}
        self._reader = reader
        self._writer = writer
        self._sending = asyncio.Lock()

    async def serve(self, take: Callable[["Client", bytes], None]) -> None:
        """Hand every body over until the connection ends."""
        incoming = Incoming()
        try:
            async with asyncio.timeout(HELLO_S) as limit:
                while data := await self._reader.read(READ_AHEAD_BYTES):
                    incoming.add(data)
                    while (body := self._taken(incoming)) is not None:
                        take(self, body)
                        if self.greeted:
                            limit.reschedule(None)
            if not incoming.is_between:
                raise FramingError("the stream ends inside a message")
        except FramingError as exc:
            _log.info("client %d: lost the framing (%s)", self.number, exc)
            await self._farewell("The message has no readable Content-Length header.")
        except TimeoutError:
            _log.info("client %d: said no hello", self.number)
        except ConnectionError:
            pass  # it has hung up, perhaps in the middle of a message

    def _taken(self, incoming: Incoming) -> bytes | None:
        while True:
            try:
                return incoming.take()
            except TooLong as exc:
                self.send(
                    messages.error(
                        None, protocol.INVALID_REQUEST, f"Refused: {exc}.", kind="too_long"
                    )
                )

    async def _farewell(self, message: str) -> None:
        self.send(messages.error(None, protocol.PARSE_ERROR, message, kind="framing"))
        await self.drained()
        # What it is still sending is read and dropped: hanging up on it would take the word away.
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(_FAREWELL_S):
                while await self._reader.read(READ_AHEAD_BYTES):
                    pass

    def send(self, data: bytes) -> None:
        """Send a message; a client that does not read is dropped."""
        if self._writer.is_closing():
            return
        self._writer.write(data)
        if self.unread_bytes > MOST_UNREAD_BYTES:
            self.drop("reads nothing")

    def send_if_reading(self, data: bytes) -> None:
        """Send a message that may as well be left out, if the client keeps up."""
        if self.unread_bytes < _BUSY_BYTES:
            self.send(data)

    async def drained(self) -> None:
        """Wait until the client has read most of what it was sent; drop it if it does not."""
        try:
            async with self._sending, asyncio.timeout(SLOW_S):
                await self._writer.drain()
        except TimeoutError:
            self.drop("reads too slowly")
        except ConnectionError:
            return

    @property
    def unread_bytes(self) -> int:
        """Return how much was sent and not read."""
        return self._writer.transport.get_write_buffer_size()

    def drop(self, reason: str) -> None:
        """End the connection at once."""
        if not self._writer.transport.is_closing():
            _log.warning("client %d is dropped: it %s", self.number, reason)
        self._writer.transport.abort()

    async def close(self) -> None:
        """End the connection once what was sent is gone, but do not wait for long."""
        self._writer.close()
        try:
            async with asyncio.timeout(0.2):
                await self._writer.wait_closed()
        except (TimeoutError, ConnectionError):
            self._writer.transport.abort()
