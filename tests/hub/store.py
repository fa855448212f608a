"""A real S3 server on loopback, and a way to it on which things go wrong."""

import http.client
import os
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from msgspec import Struct

_START_S = 60.0
_SERVE = "import sys; from moto.server import main; main(['-H', '127.0.0.1', '-p', sys.argv[1]])"
#: Of one hop only.
_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length")


class S3Server:
    """Moto's server in a process of its own."""

    def __init__(self, log: Path) -> None:
        self.port = _free_port()
        env = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SERVE, str(self.port)], stdout=out, stderr=out, env=env
            )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    def _wait(self) -> None:
        ends = time.monotonic() + _START_S
        while time.monotonic() < ends and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the S3 server did not start")

    def bucket(self) -> str:
        """Make a bucket and return its name."""
        name = f"kb-{secrets.token_hex(6)}"
        assert self.ask("PUT", f"/{name}")[0] == 200
        return name

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send one request of our own; this server checks no signatures."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Fault(Struct):
    """What happens to the next requests that match, `times` of them."""

    method: str
    pattern: re.Pattern[str]
    times: int
    status: int = 0
    code: str = ""
    drop: bool = False
    truncate: int | None = None
    hold: threading.Event | None = None
    hit: int = 0


class Way:
    """A proxy to the S3 server: it counts, and fails on request."""

    def __init__(self, server: S3Server) -> None:
        self.server = server
        self.requests: list[tuple[str, str, int, int]] = []
        self.reached = threading.Event()
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        handler = type("BoundHandler", (_Handler,), {"way": self})
        self._proxy = _Proxy(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._proxy.server_address[1]}"
        self._thread = threading.Thread(target=self._proxy.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.mend()
        self._proxy.shutdown()
        self._proxy.server_close()
        self._thread.join(10.0)

    def env(self) -> dict[str, str]:
        """Return what leads a process here, with keys that were made up now."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": secrets.token_hex(8),
            "AWS_SECRET_ACCESS_KEY": secrets.token_hex(16),
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def fail(
        self,
        method: str,
        pattern: str,
        *,
        times: int = 1,
        status: int = 0,
        code: str = "",
        drop: bool = False,
        truncate: int | None = None,
        hold: bool = False,
    ) -> Fault:
        """Let the next matching requests go wrong; `hold` keeps them until `mend`."""
        gate = threading.Event() if hold else None
        fault = Fault(
            method,
            re.compile(pattern),
            times,
            status,
            code,
            drop=drop,
            truncate=truncate,
            hold=gate,
        )
        with self._lock:
            self._faults.append(fault)
        return fault

    def mend(self) -> None:
        with self._lock:
            for fault in self._faults:
                if fault.hold is not None:
                    fault.hold.set()
            self._faults.clear()

    def fault_for(self, method: str, path: str) -> Fault | None:
        with self._lock:
            for fault in self._faults:
                fits = fault.method in ("*", method) and fault.pattern.search(path)
                if fits and fault.hit < fault.times:
                    fault.hit += 1
                    return fault
        return None

    def note(self, method: str, path: str, status: int, size: int) -> None:
        with self._lock:
            self.requests.append((method, path, status, size))


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: object) -> None:
        """Pass over who hung up, or was killed."""


class _Handler(BaseHTTPRequestHandler):
    way: Way
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        body = self._read_body()
        fault = self.way.fault_for(self.command, self.path)
        if fault is not None and fault.hold is not None:
            self.way.reached.set()
            fault.hold.wait(60.0)
        if fault is not None and fault.drop:
            self.way.note(self.command, self.path, 0, 0)
            self.close_connection = True
            self.connection.close()
            return
        if fault is not None and fault.status:
            text = f"<Error><Code>{fault.code}</Code><Message>made to fail</Message></Error>"
            return self._send(fault.status, {"Content-Type": "application/xml"}, text.encode())
        self._forward(body, fault)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():  # trailers
            continue
        return b"".join(pieces)

    def _forward(self, body: bytes, fault: Fault | None) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.way.server.port, timeout=60)
        try:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            data = answer.read()
            given = {k: v for k, v in answer.getheaders() if k.lower() not in _HOP}
            length = answer.getheader("Content-Length")
            cut = fault.truncate if fault is not None else None
            self._send(answer.status, given, data, length=length, cut=cut)
        finally:
            connection.close()

    def _send(
        self,
        status: int,
        headers: dict[str, str],
        data: bytes,
        *,
        length: str | None = None,
        cut: int | None = None,
    ) -> None:
        sent = data if cut is None else data[:cut]
        self.way.note(self.command, self.path, status, len(sent))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        has_none = status in (204, 304)
        is_head = self.command == "HEAD"
        if not has_none:
            self.send_header("Content-Length", (length if is_head else None) or str(len(data)))
        self.end_headers()
        if not is_head:
            self.wfile.write(sent)
        if cut is not None:
            self.close_connection = True
