"""Opens the socket that fronts connect to, where only this user can reach it."""

import contextlib
import logging
import os
import secrets
import socket
import stat
from pathlib import Path

from funes_ls import __version__
from funes_ls.engine.address import (
    Address,
    private_dir,
    read_address,
    run_dir,
    socket_places,
    uses_tcp,
    write_address,
)
from funes_ls.indexer.errors import BackendError

_log = logging.getLogger(__name__)
_BACKLOG = 128
_TOKEN_BYTES = 32


def listen(home: Path) -> tuple[socket.socket, Address]:
    """Return a listening socket and its address, written down for fronts to find.

    The caller is the one engine of the home: a socket that lies in the way is of a dead one.

    Raises:
        BackendError: kind `disk` or `no_socket`: nowhere can be listened at.
    """
    private_dir(run_dir(home))
    _sweep(home)
    sock, address = _loopback() if uses_tcp() else _unix(home)
    sock.listen(_BACKLOG)
    sock.setblocking(False)
    write_address(home, address)
    return sock, address


def _sweep(home: Path) -> None:
    """Take away the socket of an engine that died, wherever it was."""
    address = read_address(home)
    if address is not None and address.path:
        with contextlib.suppress(OSError):
            _remove_socket(Path(address.path))


def _loopback() -> tuple[socket.socket, Address]:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "nt":  # or another program could listen at the same port
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)  # type: ignore[attr-defined, unused-ignore]  # Windows only
        sock.bind(("127.0.0.1", 0))
    except OSError:
        sock.close()
        raise
    token = secrets.token_hex(_TOKEN_BYTES)
    return sock, _address(path="", port=sock.getsockname()[1], token=token)


def _unix(home: Path) -> tuple[socket.socket, Address]:
    for place in socket_places(home):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            private_dir(place.parent)
            _remove_socket(place)
            sock.bind(os.fspath(place))
            place.chmod(0o600)
        except (OSError, BackendError) as exc:
            sock.close()
            _log.info("no socket at %s (%s)", place, type(exc).__name__)
        else:
            return sock, _address(path=str(place), port=0, token="")
    raise BackendError(
        "There is no place for the engine's socket.",
        hint="Set FUNES_HOME to a directory on a local disk.",
        kind="no_socket",
    )


def _remove_socket(path: Path) -> None:
    """Remove what a dead engine left; anything but a socket stays, and binding fails."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()


def _address(*, path: str, port: int, token: str) -> Address:
    return Address(path=path, port=port, token=token, pid=os.getpid(), version=__version__)
