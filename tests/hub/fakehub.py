"""A Hub on loopback for the real `huggingface_hub` client: protocol, failures, and a full record.

    with FakeHub(tmp_path / "hub") as hub:
        token = hub.token("acme")
        run(..., env={**os.environ, **hub.env(tmp_path / "hf", token)})

The client reads `HF_ENDPOINT` once, when it is imported: run it in a process of its own, or give
it `endpoint=hub.url`. Everything that reaches the Hub stays on disk below its root, what was never
committed too, so that a test can look for what must not have left.
"""

import re
import secrets
import threading
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Self

import msgspec
from msgspec import Struct

from tests.hub.fakehub_http import Handler
from tests.hub.fakehub_repos import CONVERTED, Disk, Entry, Repo

#: No test waits longer for a request that it holds.
_HELD_S = 60.0


class Account(Struct, frozen=True):
    """Whose token it is, and what it may do."""

    user: str
    role: str = "write"
    orgs: tuple[str, ...] = ()

    def is_of(self, owner: str) -> bool:
        return owner == self.user or owner in self.orgs


class Request(Struct, frozen=True):
    """One request as it was answered; `status` 0 is a connection that was dropped."""

    method: str
    path: str
    status: int
    received: int
    sent: int
    has_token: bool


class Fault(Struct):
    """What happens to the next requests that match, `times` of them."""

    method: str
    pattern: re.Pattern[str]
    times: int
    status: int = 0
    headers: dict[str, str] = {}
    body: bytes = b""
    drop: bool = False
    truncate: int | None = None
    delay_s: float = 0.0
    done: bool = False
    hit: int = 0


class Gate:
    """Holds a request until it is let go, so that a test can act in the middle of one."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._open = threading.Event()

    def hold(self) -> None:
        self.reached.set()
        self._open.wait(_HELD_S)

    def release(self) -> None:
        self._open.set()


class FakeHub:
    """The server: repositories, accounts, failures to come, and what was asked.

    Blobs are served by a host of another name than the API's, as on the real Hub: what comes with
    a redirect to the same host is lost on the client, and its token goes along.
    """

    def __init__(
        self, root: Path, *, multipart_over: int | None = None, part_size: int = 5_000_000
    ) -> None:
        self.disk = Disk(root)
        self.repos: dict[tuple[str, str], Repo] = {}
        self.accounts: dict[str, Account] = {}
        self.requests: list[Request] = []
        self.parts: dict[str, dict[int, Path]] = {}
        self.multipart_over, self.part_size = multipart_over, part_size
        self.page = 1000
        self.lock = threading.RLock()
        self._faults: list[Fault] = []
        self._gates: list[tuple[str, re.Pattern[str], Gate]] = []
        handler = type("BoundHandler", (Handler,), {"hub": self})
        self._servers = [_Server(("127.0.0.1", 0), handler) for _ in range(2)]
        self._threads: list[threading.Thread] = []
        api, blobs = (server.server_address[1] for server in self._servers)
        self.url, self.blobs_url = f"http://127.0.0.1:{api}", f"http://localhost:{blobs}"

    def __enter__(self) -> Self:
        for server in self._servers:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Answer nobody any more; the next connection is refused."""
        for _, _, gate in self._gates:
            gate.release()
        for server in self._servers:
            if self._threads:
                server.shutdown()
            server.server_close()
        for thread in self._threads:
            thread.join(10.0)
        self._threads = []

    # Who may come

    def token(self, user: str, role: str = "write", *, orgs: tuple[str, ...] = ()) -> str:
        """Return a new token of a user, made up now."""
        made = "hf" + "_" + secrets.token_hex(17)
        self.accounts[made] = Account(user, role, orgs)
        return made

    def env(self, hf_home: Path, token: str = "") -> dict[str, str]:
        """Return what leads a process to this Hub and nowhere else."""
        env = {
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(hf_home),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_UPDATE_CHECK": "1",
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
        }
        return {**env, "HF_TOKEN": token} if token else env

    # What is there

    def add_repo(self, name: str, *, kind: str = "dataset", private: bool = False) -> Repo:
        """Make a repository as its owner would have."""
        repo = Repo(kind, name, private=private, disk=self.disk)
        self.repos[kind, name] = repo
        return repo

    def repo(self, name: str, *, kind: str = "dataset") -> Repo:
        """Return a repository."""
        return self.repos[kind, name]

    def upload(
        self, name: str, folder: Path, *, below: str = "", branch: str = "main", title: str = "data"
    ) -> str:
        """Commit a folder as the whole of a branch and return the commit."""
        repo = self.repos.get(("dataset", name)) or self.add_repo(name)
        tree: dict[str, Entry] = {}
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                data, at = path.read_bytes(), path.relative_to(folder).as_posix()
                put = self.disk.put_lfs if is_lfs(at, data) else self.disk.put_plain
                tree[f"{below}/{at}" if below else at] = put(data)
        return repo.add_commit(branch, title, tree, by=repo.owner, whole=branch == CONVERTED)

    def checkout(self, name: str, target: Path, *, revision: str = "main") -> Path:
        """Write the files of a revision into a folder and return it."""
        for path, entry in self.repo(name).tree(revision).items():
            file = target / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self.disk.read(entry))
        return target

    def holding(self, *needles: str) -> list[str]:
        """Return where any of these texts stands in what ever reached the Hub, byte for byte.

        What a dataset holds may be compressed: open it too.
        """
        wanted = [needle.encode() for needle in needles]
        return [
            name
            for name, data in self.disk.everything()
            if any(needle in data for needle in wanted)
        ]

    # What goes wrong

    def fail(
        self,
        method: str,
        pattern: str,
        *,
        times: int = 1,
        status: int = 0,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        drop: bool = False,
        truncate: int | None = None,
        delay_s: float = 0.0,
        done: bool = False,
    ) -> Fault:
        """Let the next matching requests go wrong, and return the fault, which counts them.

        Args:
            method: `GET`, …, or `*`.
            pattern: Regular expression, looked for in path and query.
            times: How many of them.
            status: Answer this instead; 0 answers as ever, late or cut off.
            headers: Of that answer.
            body: Of that answer.
            drop: Close the connection without a word.
            truncate: Send so many bytes of the body that was promised.
            delay_s: Wait first.
            done: Do what was asked all the same: only the answer is lost.
        """
        fault = Fault(
            method=method,
            pattern=re.compile(pattern),
            times=times,
            status=status,
            headers=headers or {},
            body=body,
            drop=drop,
            truncate=truncate,
            delay_s=delay_s,
            done=done,
        )
        with self.lock:
            self._faults.append(fault)
        return fault

    def hold(self, method: str, pattern: str) -> Gate:
        """Hold the next matching request; `reached` tells when it has come."""
        gate = Gate()
        with self.lock:
            self._gates.append((method, re.compile(pattern), gate))
        return gate

    def mend(self) -> None:
        """Forget failures that have not happened yet, let go what is held."""
        with self.lock:
            self._faults.clear()
            for _, _, gate in self._gates:
                gate.release()
            self._gates.clear()

    def fault_for(self, method: str, path: str) -> Fault | None:
        """Return what is to go wrong with this request, counted."""
        with self.lock:
            for fault in self._faults:
                if fault.hit < fault.times and _matches(fault.method, fault.pattern, method, path):
                    fault.hit += 1
                    return fault
        return None

    def gate_for(self, method: str, path: str) -> Gate | None:
        """Return what holds this request, once."""
        with self.lock:
            for at, (wanted, pattern, gate) in enumerate(self._gates):
                if _matches(wanted, pattern, method, path):
                    del self._gates[at]
                    return gate
        return None

    # What was asked

    def asked(self, method: str = "", pattern: str = "") -> list[Request]:
        """Return the requests so far, those that match."""
        with self.lock:
            seen = list(self.requests)
        return [
            one
            for one in seen
            if method in ("", one.method) and (not pattern or re.search(pattern, one.path))
        ]

    def during(self, action: Callable[[], object]) -> list[Request]:
        """Return the requests that came while something was done."""
        start = len(self.requests)
        action()
        return self.requests[start:]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: object) -> None:
        """Pass over who hung up."""


def _matches(wanted: str, pattern: re.Pattern[str], method: str, path: str) -> bool:
    return wanted in ("*", method) and pattern.search(path) is not None


#: Endings the Hub keeps in LFS by its standard attributes.
_LFS = (".lance", ".idx", ".txn", ".manifest", ".bin", ".parquet", ".arrow", ".gz", ".zst", ".zip")


def is_lfs(path: str, sample: bytes, size: int = 0) -> bool:
    """Tell whether the Hub keeps a file in LFS."""
    return path.endswith(_LFS) or b"\0" in sample[:512] or max(size, len(sample)) > 10_000_000


def moved(requests: list[Request]) -> int:
    """Return how many bytes of bodies these requests moved, both ways."""
    return sum(one.received + one.sent for one in requests)


def told(requests: list[Request]) -> Iterator[str]:
    """Give requests as text, for the message of a failed test."""
    for one in requests:
        yield f"{one.status} {one.method} {one.path} +{one.received} -{one.sent}"


def as_json(value: object) -> bytes:
    """Return a body."""
    return msgspec.json.encode(value)
