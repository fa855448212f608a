"""How bytes come from the client and go to it: standard streams, pipes and sockets."""

import asyncio
import contextlib
import logging
import os
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from funes_ls import protocol
from funes_ls.engine.framing import FramingError, Incoming, TooLong
from funes_ls.handlers.guard import Guarded
from funes_ls.indexer.errors import BackendError, UsageError

_log = logging.getLogger(__name__)
_READ_BYTES = 1 << 16
#: A client that leaves so much unread is not coming back.
_MOST_UNREAD_BYTES = 128 << 20
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class Channel(ABC):
    """Both directions of a connection to a client."""

    def __init__(self, read: asyncio.StreamReader) -> None:
        """Read from a stream that something feeds."""
        self.read = read

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Send; never waits."""

    @abstractmethod
    async def close(self, *, wait_s: float) -> None:
        """Send what is left within a time, and hang up."""


async def converse(channel: Channel, front: Guarded) -> None:
    """Take messages until the client hangs up, or nobody can tell where the next one begins."""
    incoming = Incoming()
    while data := await channel.read.read(_READ_BYTES):
        incoming.add(data)
        try:
            while (body := _taken(incoming, front)) is not None:
                front.take(body)
        except FramingError as exc:
            front.refuse_message(protocol.PARSE_ERROR, f"A message cannot be told apart: {exc}.")
            return


def _taken(incoming: Incoming, front: Guarded) -> bytes | None:
    while True:
        try:
            return incoming.take()
        except TooLong as exc:
            front.refuse_message(protocol.INVALID_REQUEST, f"Refused {exc}.")


class _Standard(Channel):
    """Standard input and output, each with a thread: neither side ever waits for the other."""

    def __init__(self) -> None:
        super().__init__(asyncio.StreamReader(limit=_MOST_UNREAD_BYTES))
        self._loop = asyncio.get_running_loop()
        self._in, self._out = _taken_aside()
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._unsent = 0
        self._counting = threading.Lock()
        self._broken = False
        threading.Thread(target=self._pump_in, name="stdin", daemon=True).start()
        self._writing = threading.Thread(target=self._pump_out, name="stdout", daemon=True)
        self._writing.start()

    def write(self, data: bytes) -> None:
        if not self._broken:
            self._count(len(data))
            self._queue.put(data)

    async def close(self, *, wait_s: float) -> None:
        self._queue.put(None)
        await asyncio.to_thread(self._writing.join, wait_s)

    def _pump_in(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # the loop may be over by then
            while data := os.read(self._in, _READ_BYTES):
                self._loop.call_soon_threadsafe(self.read.feed_data, data)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.read.feed_eof)

    def _pump_out(self) -> None:
        while (data := self._queue.get()) is not None:
            try:
                _write_all(self._out, data)
            except OSError:
                self._broken = True  # reading will end, too
            self._count(-len(data))

    def _count(self, size_bytes: int) -> None:
        with self._counting:
            self._unsent += size_bytes
            self._broken = self._broken or self._unsent > _MOST_UNREAD_BYTES


def _write_all(number: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(number, left) :]


def _taken_aside() -> tuple[int, int]:
    """Return stdin and stdout under other numbers; what prints from now on goes to stderr."""
    ours_in, ours_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no stderr
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
    os.close(nothing)
    if os.name == "nt":
        import msvcrt

        for number in (ours_in, ours_out):
            msvcrt.setmode(number, os.O_BINARY)  # type: ignore[attr-defined]  # Windows only
    return ours_in, ours_out


class _Socket(Channel):
    """A socket or a named pipe."""

    def __init__(self, read: asyncio.StreamReader, write: asyncio.StreamWriter) -> None:
        super().__init__(read)
        self._write = write

    def write(self, data: bytes) -> None:
        if self._write.is_closing():
            return
        self._write.write(data)
        if self._write.transport.get_write_buffer_size() > _MOST_UNREAD_BYTES:
            self._write.transport.abort()

    async def close(self, *, wait_s: float) -> None:
        self._write.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._write.wait_closed()


async def standard() -> Channel:
    """Return the channel over standard input and output."""
    return _Standard()


async def pipe(path: str) -> Channel:
    """Return the channel over a socket file, or a named pipe of Windows, that a client listens at.

    Raises:
        BackendError: nobody does.
    """
    try:
        if os.name == "nt":
            return await _named_pipe(path)
        return _Socket(*await asyncio.open_unix_connection(path))
    except OSError as exc:
        raise BackendError(f"Nobody listens at {path} ({exc.strerror or exc}).") from exc


async def _named_pipe(path: str) -> Channel:
    loop: Any = asyncio.get_running_loop()
    read = asyncio.StreamReader()
    watching = asyncio.StreamReaderProtocol(read)
    transport, _ = await loop.create_pipe_connection(lambda: watching, path)
    return _Socket(read, asyncio.StreamWriter(transport, watching, read, loop))


async def socket_of(port: int) -> Channel:
    """Return the channel over a port of this machine that a client listens at.

    Raises:
        BackendError: nobody does.
    """
    try:
        return _Socket(*await asyncio.open_connection("127.0.0.1", port))
    except OSError as exc:
        raise BackendError(f"Nobody listens at port {port} ({exc.strerror or exc}).") from exc


async def listening(host: str, port: int, *, announce: Callable[[str], None]) -> Channel:
    """Return the channel over the first connection to a port of this machine.

    Args:
        host: A name of this machine for itself.
        port: 0 for any that is free.
        announce: Called with the address as soon as it can be connected to.

    Raises:
        UsageError: the host can be reached from elsewhere.
        BackendError: the port is taken.
    """
    if host not in _LOOPBACK:
        raise UsageError(
            f"{host} may be reached from other machines; a memory is served on this one only.",
            hint="Use 127.0.0.1, or a tunnel that asks who is there.",
        )
    first: asyncio.Future[Channel] = asyncio.get_running_loop().create_future()

    def connected(read: asyncio.StreamReader, write: asyncio.StreamWriter) -> None:
        if first.done():
            write.close()
        else:
            first.set_result(_Socket(read, write))

    try:
        server = await asyncio.start_server(connected, host, port)
    except OSError as exc:
        raise BackendError(f"Cannot listen at port {port} ({exc.strerror or exc}).") from exc
    address = server.sockets[0].getsockname()
    announce(f"{address[0]}:{address[1]}")
    try:
        return await first
    finally:
        server.close()


def is_alive(pid: int) -> bool:
    """Return whether a process is there; asking does it no harm."""
    if pid <= 0:
        return False
    if os.name == "nt":
        return _is_alive_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it is somebody else's
    return True


def _is_alive_on_windows(pid: int) -> bool:
    import ctypes

    kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined]  # Windows only
    handle = kernel.OpenProcess(0x00100000, False, pid)  # SYNCHRONIZE
    if not handle:
        return bool(kernel.GetLastError() == 5)  # access denied: it is there
    try:
        return bool(kernel.WaitForSingleObject(handle, 0) == 0x102)  # still running
    finally:
        kernel.CloseHandle(handle)


async def until_gone(pid: int, *, every_s: float) -> None:
    """Return once a process is gone; one that is not there to begin with is never waited for.

    That one lives in another container, whose processes cannot be seen from here.
    """
    if not is_alive(pid):
        await asyncio.Event().wait()
    while is_alive(pid):
        await asyncio.sleep(every_s)
