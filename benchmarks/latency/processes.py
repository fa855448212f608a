"""The processes that are measured: an engine of its own, a language server, commands."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from funes_ls.engine.client import Connection, connect

_ANSWER_S = 60.0
_END_S = 20.0
_PATIENCE_S = 60.0
_MB = 1e6


def environment(home: Path, user: Path) -> dict[str, str]:
    """Return the variables of a person whose funes home and home directory are these."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("FUNES_") or name == "FUNES_RULES_CACHE"
    }
    return {**kept, "HOME": str(user), "FUNES_HOME": str(home)}


def command(name: str) -> list[str]:
    """Return how an installed command of this environment is run."""
    return [str(Path(sys.executable).with_name(name))]


def rss_mb(pid: int, kind: str = "VmRSS") -> float:
    """Return the resident memory of a process in megabytes; 0 where the system does not tell.

    Args:
        pid: The process.
        kind: `VmRSS` for all of it, `RssAnon` for what is not a file's (which the system can drop).
    """
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{kind}:"):
                return int(line.split()[1]) * 1024 / _MB
    return 0.0


class Engine:
    """An engine that this program started and ends."""

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        """Start one for a home in which none runs."""
        self.home = home
        self.env = dict(env)
        self.started_at = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "funes_ls.engine"],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def connect(self) -> Connection:
        """Return a connection as soon as the engine takes one."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return connect(self.home, client="bench", start=False, wait_s=1.0, env=self.env)
            except Exception:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.005)

    def rss_mb(self) -> float:
        """Return its resident memory in megabytes."""
        return rss_mb(self.process.pid)

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        try:
            self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()


class Refused(Exception):
    """The language server answered with an error; `code` is that of LSP."""

    def __init__(self, method: str, error: dict[str, Any]) -> None:
        """Keep what it said."""
        super().__init__(f"{method}: {error.get('message')}")
        self.code = int(error.get("code", 0))


class LanguageServer:
    """A `funes-ls` over stdio, and the least a client must do."""

    def __init__(self, env: Mapping[str, str], folder: str) -> None:
        """Start one and initialize it."""
        self.process = subprocess.Popen(
            command("funes-ls"),
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._answers: dict[int, queue.Queue[dict[str, Any]]] = {}
        self._last = 0
        self._sending = threading.Lock()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        capabilities = {"textDocument": {"hover": {"contentFormat": ["markdown"]}}}
        folders = [{"uri": f"file://{folder}", "name": "bench"}]
        self.request(
            "initialize",
            {"processId": os.getpid(), "capabilities": capabilities, "workspaceFolders": folders},
        )
        self.notify("initialized", {})

    def open(self, path: str, text: str) -> str:
        """Open a document and return its URI."""
        uri = Path(path).as_uri()
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return uri

    def request(self, method: str, params: Any) -> Any:
        """Return the answer to a request.

        Raises:
            Refused: the server answered with an error.
        """
        self._last += 1
        number = self._last
        self._answers[number] = queue.Queue()
        self._send({"id": number, "method": method, "params": params})
        answer = self._answers[number].get(timeout=_ANSWER_S)
        del self._answers[number]
        if "error" in answer:
            raise Refused(method, answer["error"])
        return answer.get("result")

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def rss_mb(self) -> float:
        """Return its resident memory in megabytes."""
        return rss_mb(self.process.pid)

    def stop(self) -> None:
        """Shut it down as a client does."""
        try:
            self.request("shutdown", None)
            self.notify("exit", None)
            self.process.wait(_END_S)
        except (OSError, Refused, queue.Empty, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self._listener.join(_END_S)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        with self._sending:
            self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            self.process.stdin.flush()

    def _listen(self) -> None:
        for message in self._messages():
            if "method" in message and "id" in message:
                # Nothing was offered, so whatever is asked for may be nothing.
                self._send({"id": message["id"], "result": None})
            elif "id" in message:
                self._answers[message["id"]].put(message)

    def _messages(self) -> Iterator[dict[str, Any]]:
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            length = 0
            while header.strip():
                name, _, value = header.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
                header = stream.readline()
            yield json.loads(stream.read(length))

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()
