"""Says anything at all to an engine, well formed or not, and reads what comes back."""

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from funes_ls.engine.address import read_address
from funes_ls.engine.client import open_socket
from funes_ls.engine.framing import Incoming, frame
from funes_ls.engine.inline import inline_connection
from funes_ls.protocol import PROTOCOL

WAIT_S = 20.0


class Talk:
    """One end of a connection to an engine."""

    def __init__(self, sock: socket.socket) -> None:
        """Talk over a connected socket."""
        self.socket = sock
        sock.settimeout(WAIT_S)
        self._incoming = Incoming()

    def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def body(self, body: bytes) -> None:
        """Send a body with its header."""
        self.raw(frame(body))

    def send(self, **message: Any) -> None:
        """Send a message."""
        self.body(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def ask(self, number: int | str, method: str, **params: Any) -> None:
        """Send a request."""
        self.send(id=number, method=method, params=params)

    def receive(self) -> dict[str, Any]:
        """Return the next message."""
        while (body := self._incoming.take()) is None:
            data = self.socket.recv(1 << 16)
            assert data, "the engine has hung up"
            self._incoming.add(data)
        message: dict[str, Any] = json.loads(body)
        assert message["jsonrpc"] == "2.0"
        return message

    def answer(self, number: int | str) -> dict[str, Any]:
        """Return the answer to a request, other messages passed over."""
        while (message := self.receive()).get("id") != number:
            assert "method" in message, message
        return message

    def asked(self, number: int | str, method: str, **params: Any) -> dict[str, Any]:
        """Return the answer to a request that is sent now."""
        self.ask(number, method, **params)
        return self.answer(number)

    def greet(self, **more: Any) -> dict[str, Any]:
        """Say hello."""
        params = {"version": "0", "protocol": PROTOCOL, "client": "test", **more}
        return self.asked("hello", "engine/hello", **params)

    def is_over(self) -> bool:
        """Read to the end and tell whether the engine hung up in good time."""
        with contextlib.suppress(ConnectionError):
            while self.socket.recv(1 << 16):
                pass
        return True


@contextlib.contextmanager
def talking(home: Path, *, greeted: bool = True, **hello: Any) -> Iterator[Talk]:
    """Give a connection to an engine of this process."""
    connection = inline_connection(home, os.environ)
    sock, _ = connection.detach()
    try:
        talk = Talk(sock)
        if greeted:
            talk.greet(**hello)
        yield talk
    finally:
        connection.close()


@contextlib.contextmanager
def talking_to_process(home: Path, *, greeted: bool = True) -> Iterator[Talk]:
    """Give a connection to the engine that runs for a home."""
    address = read_address(home)
    assert address is not None
    with open_socket(address) as sock:
        talk = Talk(sock)
        if greeted:
            talk.greet(token=address.token)
        yield talk
