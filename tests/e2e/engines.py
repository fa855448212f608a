"""Engines in processes of their own: started, watched, killed and gone at the end of a test."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from funes_ls.engine.address import read_address
from funes_ls.engine.client import Connection, EngineError, connect

ANSWER_S = 30.0
_END_S = 15.0
_TICK_S = 0.02


def until(ready: Callable[[], Any], *, seconds: float = 30.0, what: str = "") -> Any:
    """Return the first true value of `ready`, asked again and again.

    Raises:
        AssertionError: it was not true within the time.
    """
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if found := ready():
            return found
        time.sleep(_TICK_S)
    raise AssertionError(f"not within {seconds:g} s: {what or ready}")


def alive(pid: int) -> bool:
    """Tell whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


class Engines:
    """The engines of one home, and connections to them; all are gone at the end."""

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        """Look after the engines of a home."""
        self.home = home
        self.env = dict(env)
        self._connections: list[Connection] = []
        self._pids: set[int] = set()

    def connect(self, **more: Any) -> Connection:
        """Return a connection, an engine started when none runs."""
        options = {"client": "test", "wait_s": 20.0, "env": self.env, **more}
        connection = connect(self.home, **options)
        self._connections.append(connection)
        self._pids.add(self.pid)
        return connection

    @property
    def pid(self) -> int:
        """Return the process that listens, 0 when none has said so."""
        address = read_address(self.home)
        return address.pid if address else 0

    def ask(self, method: str, **params: Any) -> Any:
        """Return the answer to one request over a connection of its own."""
        with self.connect() as connection:
            return connection.request(method, params, timeout_s=ANSWER_S)

    def recall(self, query: str, **params: Any) -> list[str]:
        """Return the texts that answer a question."""
        return [hit["text"] for hit in self.ask("funes/recall", query=query, **params)["hits"]]

    def kill(self) -> None:
        """End the engine as a crash does."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid), what="the killed engine is gone")

    def stop(self) -> None:
        """End whatever engine of this home was seen, and see that it is gone."""
        for connection in self._connections:
            connection.close()
        self._connections.clear()
        for pid in self._pids | {self.pid} - {0}:
            with contextlib.suppress(ProcessLookupError):
                if alive(pid):
                    os.kill(pid, signal.SIGTERM)
        for pid in self._pids:
            _see_it_end(pid)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop them."""
        self.stop()


def _see_it_end(pid: int) -> None:
    ends = time.monotonic() + _END_S
    while alive(pid) and time.monotonic() < ends:
        time.sleep(_TICK_S)
    if alive(pid):
        os.kill(pid, signal.SIGKILL)


class Asking:
    """A request that runs beside the test."""

    def __init__(self, connection: Connection, method: str, **params: Any) -> None:
        """Send it."""
        self.told: list[Any] = []
        self.answer: Any = None
        self.error: EngineError | None = None
        self._connection = connection
        self._thread = threading.Thread(target=self._run, args=(method, params), daemon=True)
        self._thread.start()

    def _run(self, method: str, params: dict[str, Any]) -> None:
        try:
            self.answer = self._connection.request(
                method, params, timeout_s=300, on_progress=self.told.append
            )
        except EngineError as exc:
            self.error = exc

    @property
    def over(self) -> bool:
        """Tell whether it was answered or failed."""
        return not self._thread.is_alive()

    def join(self, seconds: float = 120.0) -> None:
        """Wait until it was answered or failed."""
        self._thread.join(seconds)
        assert self.over, "the request was not answered in time"

    def wait(self, seconds: float = 120.0) -> Any:
        """Return the answer.

        Raises:
            EngineError: the engine said no, or is gone.
        """
        self.join(seconds)
        if self.error is not None:
            raise self.error
        return self.answer


def with_fault(env: Mapping[str, str], folder: Path, code: str) -> dict[str, str]:
    """Return an environment in which every Python process runs some code before all else."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(code, encoding="utf-8")
    return {**env, "PYTHONPATH": str(folder)}


@contextlib.contextmanager
def held_lock(home: Path) -> Iterator[int]:
    """Hold the writer lock of a home from another process, whose id is given."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom funes_ls.indexer.lock import writer_lock\n"
        "with writer_lock(Path(sys.argv[1]), wait_s=20):\n"
        "    sys.stdout.write('held\\n')\n    sys.stdout.flush()\n    sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin is not None and holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"held\n"
        yield holder.pid
    finally:
        holder.stdin.close()
        holder.wait(20)
        holder.stdout.close()


def log_of(home: Path) -> str:
    """Return what the engines of a home have logged."""
    path = home / "logs" / "engine.log"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def peak_rss_mb(pid: int) -> float:
    """Return the most resident memory a process has had, in megabytes."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1000
    return 0.0


def raw_request(sock: socket.socket, message: dict[str, Any]) -> None:
    """Send one message without waiting for anything."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sock.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
