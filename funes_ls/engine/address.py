"""Where a home's engine listens, written down in `run/engine.json`; standard library only.

A Unix socket in a directory that only its user can enter. Where a path is too long for one, or the
disk knows no sockets (many network disks), it lies in a private directory of the system's temporary
place instead. Windows, and `FUNES_ENGINE_TCP=1`, take loopback TCP with a token in that file.
"""

import contextlib
import json
import os
import stat
from pathlib import Path
from typing import Any, NamedTuple

from funes_ls.indexer.errors import BackendError
from funes_ls.indexer.home import make_private

SOCKET = "engine.sock"
RECORD = "engine.json"
LOCK = "engine.lock"
#: Bytes of a socket's path that every system takes (macOS has 104 with the final zero).
MAX_PATH_BYTES = 100


class Address(NamedTuple):
    """Where to connect, and what the engine said of itself when it began to listen.

    Attributes:
        path: Of a Unix socket; "" for TCP.
        port: On 127.0.0.1; 0 for a Unix socket.
        token: To be shown in `engine/hello`; "" where the socket's own mode guards it.
    """

    path: str
    port: int
    token: str
    pid: int
    version: str

    def __str__(self) -> str:
        """Return the address as a person reads it; never the token."""
        return self.path or f"127.0.0.1:{self.port}"


def uses_tcp() -> bool:
    """Return whether the engine listens on loopback TCP here."""
    return os.name == "nt" or os.environ.get("FUNES_ENGINE_TCP") == "1"


def run_dir(home: Path) -> Path:
    """Return the directory of sockets and locks."""
    return home / "run"


def read_address(home: Path) -> Address | None:
    """Return where the engine of a home listened last, None when none did or it ended well."""
    try:
        with (run_dir(home) / RECORD).open(encoding="utf-8") as file:
            if os.name != "nt" and os.fstat(file.fileno()).st_uid != _uid():
                return None  # somebody else's: nothing is to be told to it
            record: Any = json.load(file)
        return Address(
            path=str(record["path"]),
            port=int(record["port"]),
            token=str(record["token"]),
            pid=int(record["pid"]),
            version=str(record["version"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_address(home: Path, address: Address) -> None:
    """Write down, for this user alone and in one step, where the engine listens."""
    path = run_dir(home) / RECORD
    draft = path.with_suffix(f".{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        json.dump(address._asdict(), out)
    draft.replace(path)


def forget_address(home: Path, pid: int) -> None:
    """Take the record and the socket away, if they are still those of this process."""
    address = read_address(home)
    if address is None or address.pid != pid:
        return
    (run_dir(home) / RECORD).unlink(missing_ok=True)
    if address.path:
        sock = Path(address.path)
        sock.unlink(missing_ok=True)
        if sock.parent != run_dir(home):
            with contextlib.suppress(OSError):
                sock.parent.rmdir()


def socket_places(home: Path) -> list[Path]:
    """Return where the socket may be put, best first; each directory exists and is private.

    Raises:
        BackendError: kind `disk`: a directory of that name is somebody else's.
    """
    # Imported in use: fronts only read addresses, and these cost them their speed.
    import hashlib
    import tempfile

    places = [private_dir(run_dir(home)) / SOCKET]
    name = hashlib.sha256(os.fsencode(home.absolute())).hexdigest()[:16]
    # The last for a temporary place with a long name, as sandboxes and agents make them.
    bases = (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp")
    for base in dict.fromkeys(bases):
        if base and Path(base).is_dir():
            places.append(Path(base) / f"funes-{_uid()}-{name}" / SOCKET)
    return [place for place in places if len(os.fsencode(place)) <= MAX_PATH_BYTES]


def private_dir(path: Path) -> Path:
    """Return a directory that only its user can enter, made when absent.

    Raises:
        BackendError: kind `disk`: it is not ours, not a directory, or cannot be made.
    """
    try:
        make_private(path)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or (os.name != "nt" and found.st_uid != _uid()):
            raise BackendError(
                f"{path} is not a directory of yours; the engine will not use it.",
                hint="Remove it, or set FUNES_HOME to a directory of your own.",
                kind="disk",
            )
        if os.name != "nt" and found.st_mode & 0o077:
            path.chmod(0o700)
    except OSError as exc:
        raise BackendError(
            f"Cannot write under {path} ({exc.strerror or exc}).",
            hint="Make it writable, or set FUNES_HOME to a directory that is.",
            kind="disk",
        ) from exc
    return path


def _uid() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0
