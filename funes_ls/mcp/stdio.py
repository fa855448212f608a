"""Lines in on stdin, lines out on the stdout that there was; whatever else is printed is no answer.

Source: Model Context Protocol, "Transports", stdio: messages are lines, none holds a newline.
"""

import json
import os
import queue
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from funes_ls.indexer.errors import BackendError

#: Longest line that is taken; what a model asks is far shorter.
MAX_LINE_BYTES = 4 << 20
#: So many answers may wait for a client that does not read; then nothing more is read of it.
_MOST_WAITING = 1_000
_FLUSH_S = 2.0


class TooLong(ValueError):
    """A line was longer than is taken; it was left out."""


def taken_streams() -> tuple[BinaryIO, int]:
    """Return stdin, and a descriptor of stdout, which from now on leads to stderr.

    Raises:
        BackendError: stdout is closed.
    """
    try:
        out = os.dup(1)
    except OSError as exc:
        raise BackendError("Standard output is closed; an MCP server answers there.") from exc
    try:
        os.dup2(2, 1)
    except OSError:  # stderr is closed
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
    return os.fdopen(0, "rb", closefd=False), out


def on_signal_to_end(end: Callable[[], None]) -> None:
    """Have `end` called, on a thread of its own, when this process is told to end.

    The main thread may be about to wait for a line, where a handler of Python would run only after
    the next one; a descriptor is written to at once, whatever that thread does.
    """
    ours, wakes = socket.socketpair()
    wakes.setblocking(False)

    def wait() -> None:
        with wakes:  # kept open for as long as there is somebody to wake
            ours.recv(1)
            end()

    with suppress(ValueError):  # not the main thread: whoever runs us handles signals
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _handled_by_waking)
        threading.Thread(target=wait, name="signals", daemon=True).start()


def _handled_by_waking(_signal: int, _frame: object) -> None:
    pass


def lines_of(stream: BinaryIO) -> Iterator[bytes | TooLong]:
    """Yield lines without their ends, until there are no more; blank ones are left out."""
    while True:
        try:
            line = stream.readline(MAX_LINE_BYTES + 1)
        except (OSError, ValueError):
            return  # closed, or never open
        if not line:
            return
        if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            _skip_line(stream)
            yield TooLong()
        elif stripped := line.strip():
            yield stripped


def _skip_line(stream: BinaryIO) -> None:
    while (rest := stream.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
        pass


class Answers:
    """Writes messages from any thread, each a line; a client that reads late holds nobody up."""

    def __init__(self, out: int) -> None:
        """Write to a descriptor, on a thread of its own."""
        self._out = out
        self._waiting: queue.Queue[bytes | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name="answers", daemon=True)
        self._thread.start()

    def send(self, message: Any) -> None:
        """Have a message, or a batch of them, written."""
        # Escaped: no character of a passage can end the line.
        self._waiting.put(json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n")

    def close(self) -> None:
        """Write what is left, if somebody reads it."""
        try:
            self._waiting.put(None, timeout=_FLUSH_S)
        except queue.Full:
            return
        self._thread.join(_FLUSH_S)

    def _run(self) -> None:
        is_read = True
        while (data := self._waiting.get()) is not None:
            # A client that is gone has closed stdin too, which ends the server.
            is_read = is_read and self._written(data)

    def _written(self, data: bytes) -> bool:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._out, view) :]
        except OSError:
            return False
        return True
