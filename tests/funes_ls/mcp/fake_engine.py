"""An engine that does what a test says: answers late, refuses, dies."""

import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from funes_ls import __version__
from funes_ls.engine.framing import Incoming, frame
from funes_ls.engine.listening import listen

#: Takes a method and its params; returns the result, an exception to refuse with, or None to say
#: nothing.
Answer = Callable[[str, dict[str, Any]], Any]


class Refusal(Exception):
    """An error that the engine answers with."""

    def __init__(self, kind: str, message: str = "No.", hint: str = "") -> None:
        """Keep what is told."""
        super().__init__(message)
        self.told = {"code": -32803, "message": message, "data": {"kind": kind, "hint": hint}}


class Death(Exception):
    """The engine hangs up instead of answering."""


class FakeEngine:
    """Listens where the engine of a home does; each request is answered on a thread of its own."""

    def __init__(self, home: Path, answer: Answer) -> None:
        """Prepare to answer as told."""
        (home / "memory").mkdir(parents=True, exist_ok=True)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.withdrawn: list[Any] = []
        self._answer = answer
        self._socket, _ = listen(home)
        self._socket.settimeout(0.1)
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._open: list[socket.socket] = []

    def _accept(self) -> None:
        while not self._ends.is_set():
            try:
                sock, _ = self._socket.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            sock.settimeout(None)
            self._open.append(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        incoming = Incoming()
        lock = threading.Lock()

        def send(number: Any, **told: Any) -> None:
            body = json.dumps({"jsonrpc": "2.0", "id": number, **told}).encode()
            with lock:
                sock.sendall(frame(body))

        def work(number: Any, method: str, params: dict[str, Any]) -> None:
            try:
                result = self._answer(method, params)
            except Refusal as exc:
                send(number, error=exc.told)
            except Death:
                sock.shutdown(socket.SHUT_RDWR)
            else:
                if result is not None:
                    send(number, result=result)

        while data := _received(sock):
            incoming.add(data)
            while (body := incoming.take()) is not None:
                message = json.loads(body)
                number, method = message.get("id"), message["method"]
                if method == "engine/hello":
                    hello = {"version": __version__, "protocol": 1, "pid": 0, "home": ""}
                    send(number, result=hello)
                elif method == "$/cancelRequest":
                    self.withdrawn.append(message["params"]["id"])
                    cancelled = Refusal("cancelled", "The request was withdrawn.").told
                    send(message["params"]["id"], error={**cancelled, "code": -32800})
                else:
                    self.asked.append((method, message["params"]))
                    given = (number, method, message["params"])
                    threading.Thread(target=work, args=given, daemon=True).start()

    def __enter__(self) -> Self:
        """Begin to listen."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Hang up on everybody."""
        self._ends.set()
        for thread in self._threads:
            thread.join(5)
        self._socket.close()
        for sock in self._open:
            sock.close()


def _received(sock: socket.socket) -> bytes:
    try:
        return sock.recv(1 << 16)
    except OSError:
        return b""
