"""A model hub on loopback: serves one repository the way clients of the real one ask for it."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from funes_ls.models.catalog import HUB_REPO, HUB_REVISION


class FakeHub(ThreadingHTTPServer):
    """Files by name, and the paths that were asked for."""

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files
        self.asked: list[str] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeHub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        data = self._answer()
        self.wfile.write(data)

    def _answer(self) -> bytes:
        self.server.asked.append(f"{self.command} {self.path}")
        prefix = f"/{HUB_REPO}/resolve/{HUB_REVISION}/"
        data = self.server.files.get(self.path.removeprefix(prefix), b"")
        self.send_response(200 if data else 404)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", HUB_REVISION)
        self.end_headers()
        return data

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def fake_hub(files: dict[str, bytes]) -> Iterator[FakeHub]:
    """Serve `files` while the context lasts."""
    hub = FakeHub(files)
    serving = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        serving.join()
        hub.server_close()
