"""`funes hook AGENT EVENT`: tells the engine that a session has grown, and holds nobody up.

An agent calls it after each turn. It reads the event from stdin, passes the trace's path on, says
nothing and ends with 0 whatever happens. Where no engine runs, a process of its own starts one and
passes the path on then. Standard library only: it is all that a turn ever waits for.
"""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeGuard

from funes_ls.indexer.home import expanded, home_dir, make_private

#: Longest event that is looked at; what comes after is read and thrown away.
_MOST_BYTES = 8 << 20
_PIECE_BYTES = 1 << 16
_STDIN_S = 1.0
#: How long an engine that listens may take to read two short messages.
_SEND_S = 0.03
#: How long the process that starts an engine waits for it.
_START_S = 20.0
_TOUCH_S = 10.0
_MOST_PATH_CHARS = 4096
_LOG_BYTES = 200_000
LOG = "hook.log"
_PUSH = "import sys; from funes_ls.cli.push_later import main; sys.exit(main(sys.argv[1]))"


def main(argv: Sequence[str]) -> int:
    """Pass an event on; return 0 whatever happens."""
    env = os.environ
    agent, event = (*argv[:2], "", "")[:2]
    try:
        payload = event_of(_drained(0))
        home = home_dir(env).absolute()
        if not _is_wanted(home, env):
            return 0
        paths = traces_of(agent, payload, env)
        if not _touched(home, paths, env):
            _touch_later(home, paths, env)
        _push_later(home, agent, event, env)
    except BaseException as exc:
        _log(env, agent, event, exc)
    return 0


def event_of(text: bytes) -> Mapping[str, Any]:
    """Return what an agent says of an event, {} where it says nothing that can be read."""
    try:
        payload: Any = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return payload if isinstance(payload, dict) else {}


def traces_of(agent: str, payload: Mapping[str, Any], env: Mapping[str, str]) -> list[str]:
    """Return the traces that an event is about; a path may name no file yet."""
    named = [payload.get("transcript_path"), payload.get("agent_transcript_path")]
    if agent == "hermes":
        folder = env.get("HERMES_HOME", "").strip() or Path.home() / ".hermes"
        named.append(str(expanded(folder) / "state.db"))
    return [path for path in dict.fromkeys(named) if _is_path(path)]


def _is_path(value: Any) -> TypeGuard[str]:
    return (
        isinstance(value, str)
        and 0 < len(value) <= _MOST_PATH_CHARS
        and "\0" not in value
        and Path(value).is_absolute()
    )


def _drained(number: int) -> bytes:
    """Return the beginning of what a file descriptor holds, read to its end within a time."""
    import threading

    parts: list[bytes] = []
    size_bytes = 0

    def drain() -> None:
        nonlocal size_bytes
        with suppress(OSError):
            while part := os.read(number, _PIECE_BYTES):
                size_bytes += len(part)
                if size_bytes <= _MOST_BYTES:
                    parts.append(part)

    with suppress(OSError):
        if os.isatty(number):
            return b""
    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    reader.join(_STDIN_S)
    return b"".join(parts)


def _is_wanted(home: Path, env: Mapping[str, str]) -> bool:
    """Return whether there is a memory to keep current, and an engine may do so."""
    return env.get("FUNES_ENGINE") != "inline" and (home / "memory" / "catalog.db").exists()


def _touched(home: Path, paths: list[str], env: Mapping[str, str]) -> bool:
    """Pass paths on to the engine that runs; False when none does.

    Its answer is not awaited: it may be busy, and has all the time there is.
    """
    from funes_ls.engine.address import read_address
    from funes_ls.engine.client import hello_params, open_socket
    from funes_ls.engine.framing import frame

    address = read_address(home)
    if address is None:
        return False
    hello = {**hello_params("hook", notify=False, env=env), "token": address.token}
    sent = b"".join(
        frame(json.dumps({"jsonrpc": "2.0", **message}).encode("ascii"))
        for message in (
            {"id": 1, "method": "engine/hello", "params": hello},
            {"method": "engine/touch", "params": {"paths": paths}},
        )
    )
    try:
        with open_socket(address) as sock:
            sock.settimeout(_SEND_S)
            sock.sendall(sent)
            with suppress(OSError):
                sock.recv(_PIECE_BYTES)  # a goodbye before its answer would look like a fault
    except TimeoutError:
        return True  # it is there and has more to do than to listen; its own look will find it
    except OSError:
        return False
    return True


def _touch_later(home: Path, paths: list[str], env: Mapping[str, str]) -> None:
    """Have another process start the engine and pass the paths on to it, and do not wait."""
    from funes_ls.engine.starts import is_crashing

    if not is_crashing(home):
        _detached(home, ["-m", "funes_ls.hook"], json.dumps(paths).encode("ascii"), env)


def _push_later(home: Path, agent: str, event: str, env: Mapping[str, str]) -> None:
    """Where a session begins or ends, have another process publish it to the agent's memory."""
    from funes_ls.hub.binding import bound, is_boundary

    if is_boundary(event) and (memory := bound(home, agent)):
        _detached(home, ["-c", _PUSH, memory], b"", env)


def _detached(home: Path, words: list[str], told: bytes, env: Mapping[str, str]) -> None:
    """Start Python as a process of its own, and do not wait for it."""
    import subprocess

    options: dict[str, Any] = {"start_new_session": True}
    if os.name == "nt":
        options = {"creationflags": 0x00000008 | 0x00000200}  # detached, a group of its own
    process = subprocess.Popen(
        [sys.executable, "-P", *words],
        cwd=home,
        env={**env, "FUNES_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=True,
        **options,
    )
    process.returncode = 0  # nobody waits for it: no word about that at the end
    if process.stdin is not None:
        with process.stdin as stdin:
            stdin.write(told)


def start_and_touch(text: bytes, env: Mapping[str, str]) -> None:
    """Start the engine and pass on the paths that a hook has left; any time it takes."""
    from funes_ls.engine.client import connect

    paths: Any = json.loads(text)
    with connect(home_dir(env), client="hook", wait_s=_START_S, env=env) as connection:
        connection.request("engine/touch", {"paths": paths}, timeout_s=_TOUCH_S)


def _log(env: Mapping[str, str], agent: str, event: str, exc: BaseException) -> None:
    """Note where something went wrong; never what it was about."""
    import traceback

    with suppress(Exception):  # whatever it is, the turn goes on
        path = home_dir(env) / "logs" / LOG
        make_private(path.parent)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        told = "".join(traceback.format_tb(exc.__traceback__)) + type(exc).__name__
        is_full = path.exists() and path.stat().st_size > _LOG_BYTES
        with path.open("w" if is_full else "a", encoding="utf-8", errors="replace") as log:
            log.write(f"{stamp} {agent[:40]!r} {event[:40]!r} {told}\n")


if __name__ == "__main__":
    try:
        start_and_touch(sys.stdin.buffer.read(), os.environ)
    except BaseException as exc:
        _log(os.environ, "", "start", exc)
