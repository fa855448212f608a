"""Who is at the other end of a socket; standard library only."""

import os
import socket
import struct
import sys

_LOCAL_PEERCRED = 1  # macOS and the BSDs, at level 0


def is_ours(sock: socket.socket) -> bool:
    """Return whether the other end is a process of this user, as far as the system tells.

    A loopback port tells nothing; there a token stands in for it.
    """
    uid = peer_uid(sock)
    return uid is None or uid == os.getuid()


def peer_pid(sock: socket.socket) -> int | None:
    """Return the process at the other end of a Unix socket, None where the system does not tell."""
    found = _credentials(sock)
    return None if found is None else found[0]


def _credentials(sock: socket.socket) -> tuple[int, int, int] | None:
    """Return process, user and group of the other end, where Linux tells."""
    if os.name == "nt" or sock.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return None
    try:
        data = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    except OSError:
        return None
    pid, uid, gid = struct.unpack("3i", data)
    return pid, uid, gid


def peer_uid(sock: socket.socket) -> int | None:
    """Return the user of the other end of a Unix socket, None where the system does not tell."""
    found = _credentials(sock)
    if found is not None:
        return found[1]
    if os.name == "nt" or sock.family != socket.AF_UNIX:
        return None
    try:
        if sys.platform == "darwin" or "bsd" in sys.platform:
            data = sock.getsockopt(0, _LOCAL_PEERCRED, 76)
            return int(struct.unpack_from("II", data)[1])
    except OSError:
        return None
    return None
