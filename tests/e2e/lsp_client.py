"""A language client for tests: over pipes or sockets, and strict about what the server sends."""

import contextlib
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from funes_ls.engine.framing import Incoming, frame

SERVER = [sys.executable, "-m", "funes_ls.server"]
ANSWER_S = 30.0
QUIET_S = 0.3
#: What real editors offer, as far as it matters here.
FULL: dict[str, Any] = {
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "didChangeConfiguration": {"dynamicRegistration": False},
        "codeLens": {"refreshSupport": True},
        "symbol": {"resolveSupport": {"properties": ["location.range"]}},
    },
    "textDocument": {
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}},
        "documentLink": {"tooltipSupport": True},
    },
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "experimental": {"funes": {"virtualDocuments": True}},
}


class LspError(Exception):
    """The server answered with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        """Keep it."""
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.error = error

    @property
    def kind(self) -> str:
        """Return the slug of what went wrong."""
        return str(self.error["data"]["kind"])


class LspClient:
    """One conversation; at its end nothing that the server sent may be left unlooked at.

    Attributes:
        answers: How requests of the server are answered, by method.
        served: Those that were, in order.
        unheard: Notifications that are dropped without being looked at.
    """

    def __init__(self, read: Callable[[], bytes], write: Callable[[bytes], Any]) -> None:
        """Speak through two functions; `read` returns nothing at the end."""
        self._read, self._write = read, write
        self._inbox: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._kept: list[dict[str, Any]] = []
        self._number = 0
        self._sending = threading.Lock()
        self.answers: dict[str, Callable[[Any], Any]] = {}
        self.served: list[tuple[str, Any]] = []
        self.unheard = {"funes/didIndex"}
        self.ended = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    # Sending.

    def send_bytes(self, data: bytes) -> None:
        """Send whatever it is."""
        with self._sending:
            self._write(data)

    def send(self, message: Any) -> None:
        """Send one message."""
        body = json.dumps(message).encode()
        self.send_bytes(frame(body))

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def begin(self, method: str, params: Any = None) -> int:
        """Send a request and return its id."""
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def request(self, method: str, params: Any = None, *, timeout_s: float = ANSWER_S) -> Any:
        """Return what the server answers.

        Raises:
            LspError: it answers with an error.
        """
        return self.answer(self.begin(method, params), timeout_s=timeout_s)

    # What came.

    def answer(self, number: int | None, *, timeout_s: float = ANSWER_S) -> Any:
        """Return the answer to a request that was begun.

        Raises:
            LspError: it is an error.
        """
        message = self.await_message(
            lambda one: "method" not in one and one.get("id") == number, timeout_s=timeout_s
        )
        if "error" in message:
            raise LspError(message["error"])
        return message["result"]

    def told(self, method: str, *, timeout_s: float = ANSWER_S) -> Any:
        """Return the params of the next notification of a method."""
        return self.await_message(lambda one: one.get("method") == method, timeout_s=timeout_s)[
            "params"
        ]

    def progress(self, token: Any, *, timeout_s: float = ANSWER_S) -> Any:
        """Return the next value told under a token."""
        message = self.await_message(
            lambda one: one.get("method") == "$/progress" and one["params"]["token"] == token,
            timeout_s=timeout_s,
        )
        return message["params"]["value"]

    def await_message(
        self, wanted: Callable[[dict[str, Any]], bool], *, timeout_s: float = ANSWER_S
    ) -> dict[str, Any]:
        """Return the first message that is wanted; others are kept."""
        for message in self._kept:
            if wanted(message):
                self._kept.remove(message)
                return message
        ends = time.monotonic() + timeout_s
        while (left := ends - time.monotonic()) > 0:
            try:
                got = self._inbox.get(timeout=left)
            except queue.Empty:
                break
            if got is None:
                self._inbox.put(None)
                raise AssertionError(f"the server has gone; kept: {self._kept}")
            if wanted(got):
                return got
            self._kept.append(got)
        raise AssertionError(f"no such message within {timeout_s} s; kept: {self._kept}")

    def waiting(self, method: str) -> list[Any]:
        """Take and return the params of all notifications of a method that have come."""
        self._drain()
        found = [one for one in self._kept if one.get("method") == method]
        self._kept = [one for one in self._kept if one.get("method") != method]
        return [one["params"] for one in found]

    def leftovers(self) -> list[dict[str, Any]]:
        """Return what came and was not looked at."""
        self._drain()
        return list(self._kept)

    def is_silent(self, *, for_s: float = QUIET_S) -> bool:
        """Return whether nothing comes for a while."""
        self._drain()
        before = len(self._kept)
        try:
            got = self._inbox.get(timeout=for_s)
        except queue.Empty:
            return True
        if got is None:
            self._inbox.put(None)
            return True
        self._kept.append(got)
        return len(self._kept) == before

    def _drain(self) -> None:
        while not self._inbox.empty():
            got = self._inbox.get()
            if got is None:
                self._inbox.put(None)
                return
            self._kept.append(got)

    def _listen(self) -> None:
        incoming = Incoming()
        with contextlib.suppress(OSError, ValueError):
            while data := self._read():
                incoming.add(data)
                while (body := incoming.take()) is not None:
                    self._take(json.loads(body))
        self.ended.set()
        self._inbox.put(None)

    def _take(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method in self.unheard:
            return
        if method in self.answers and "id" in message:
            self.served.append((method, message.get("params")))
            try:
                result = {"result": self.answers[method](message.get("params"))}
            except LspError as exc:
                result = {"error": exc.error}
            self.send({"jsonrpc": "2.0", "id": message["id"], **result})
            return
        self._inbox.put(message)

    # Common steps.

    def initialize(
        self,
        capabilities: Mapping[str, Any] | None = None,
        *,
        initialized: bool = True,
        **more: Any,
    ) -> Any:
        """Open the conversation and return the server's answer."""
        params = {
            "processId": os.getpid(),
            "rootUri": None,
            "capabilities": FULL if capabilities is None else capabilities,
            **more,
        }
        answer = self.request("initialize", params)
        if initialized:
            self.notify("initialized", {})
        return answer

    def open(self, uri: str, text: str, *, language: str = "python") -> None:
        """Open a document."""
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})


class Server(LspClient):
    """A server in a process of its own, and the client that speaks with it."""

    def __init__(self, process: "subprocess.Popen[bytes]", stderr: Path, **how: Any) -> None:
        """Speak with a process, over its standard streams or what is given."""
        self.process = process
        self.stderr = stderr
        self._socket: socket.socket | None = how.get("sock")
        super().__init__(
            how.get("read") or self._read_stdout, how.get("write") or self._write_stdin
        )

    def _read_stdout(self) -> bytes:
        assert self.process.stdout is not None
        return os.read(self.process.stdout.fileno(), 1 << 16)

    def _write_stdin(self, data: bytes) -> None:
        stream: IO[bytes] | None = self.process.stdin
        assert stream is not None
        stream.write(data)
        stream.flush()

    def shut(self) -> int:
        """End the conversation as an editor does and return the exit code."""
        assert self.request("shutdown") is None
        self.notify("exit")
        return self.process.wait(10)

    @property
    def log(self) -> str:
        """Return what the server wrote to stderr."""
        return self.stderr.read_text(encoding="utf-8", errors="replace")

    def close(self) -> None:
        """End the process, whatever state it is in."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self.ended.wait(10)
        for stream in (self.process.stdin, self.process.stdout, self._socket):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


#: A server with more in it than is shipped.
EXTENDED = """
import asyncio, os, subprocess, sys, threading, time
from funes_ls.handlers import serving
from funes_ls.server import main
make = serving.make_front
def made(env):
    ls = make(env)
{code}
    return ls
serving.make_front = made
sys.exit(main([]))
"""


def obliging(server: Server) -> Server:
    """Have a client answer what a server may ask; it has no settings of its own."""
    server.answers["workspace/configuration"] = lambda params: [None] * len(params["items"])
    server.answers["window/showDocument"] = lambda _params: {"success": True}
    server.answers["workspace/codeLens/refresh"] = lambda _params: None
    server.answers["window/workDoneProgress/create"] = lambda _params: None
    return server


class Servers:
    """Starts servers of one environment, and sees that each has said nothing that nobody heard."""

    def __init__(self, env: Mapping[str, str], folder: Path) -> None:
        """Keep their logs in a folder."""
        self.env = dict(env)
        self._folder = folder
        self._started: list[Server] = []

    def start(self, *arguments: str, **how: Any) -> Server:
        """Start a server on its standard streams; see `spawn`."""
        return self._added(Server(*self.spawn(*arguments, **how)))

    def ready(self, capabilities: Mapping[str, Any] | None = None, **more: Any) -> Server:
        """Start a server and open the conversation; its settings are asked for and are none."""
        server = obliging(self.start())
        server.initialize(capabilities, **more)
        return server

    def extended(self, code: str) -> Server:
        """Start a server to which code adds; it sees it as `ls` before anything comes in."""
        return obliging(self.start(command=[sys.executable, "-c", EXTENDED.format(code=code)]))

    def spawn(
        self,
        *arguments: str,
        cwd: Path | None = None,
        command: Sequence[str] = SERVER,
    ) -> "tuple[subprocess.Popen[bytes], Path]":
        """Start a process and return it with the file of its stderr."""
        stderr = self._folder / f"stderr-{len(self._started)}-{time.monotonic_ns()}"
        with stderr.open("wb") as log:
            process = subprocess.Popen(
                [*command, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self.env,
                cwd=cwd or self._folder,
            )
        return process, stderr

    def over_socket(
        self, sock: socket.socket, process: "subprocess.Popen[bytes]", stderr: Path
    ) -> Server:
        """Speak with a process over a socket."""
        sock.settimeout(None)
        found = Server(
            process, stderr, sock=sock, read=lambda: sock.recv(1 << 16), write=sock.sendall
        )
        return self._added(found)

    def _added(self, server: Server) -> Server:
        self._started.append(server)
        return server

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """End all servers; none may have said what was not looked at, or have logged a crash."""
        left = []
        for server in self._started:
            left += server.leftovers()
            server.close()
        if kind is None:
            assert not left, left
            for server in self._started:
                assert "Traceback" not in server.log


@contextlib.contextmanager
def listening_socket(family: int, address: Any) -> Iterator[socket.socket]:
    """Listen as an editor does for its server."""
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.bind(address)
        sock.listen(1)
        sock.settimeout(20)
        yield sock
