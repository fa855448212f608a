"""A front's connection to its engine, started when none runs; standard library only.

Every wait has a limit: a slow or dead engine costs a front its patience, never its life.
"""

import itertools
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funes_ls import __version__
from funes_ls.engine.address import Address, private_dir, read_address, run_dir
from funes_ls.engine.framing import FramingError, Incoming, frame
from funes_ls.engine.peers import is_ours
from funes_ls.engine.starts import is_crashing
from funes_ls.indexer.errors import FunesError

if TYPE_CHECKING:
    from subprocess import Popen

#: The same number as `funes_ls.protocol.PROTOCOL`, whose import would cost the shim its speed.
PROTOCOL = 1
#: Variables by which a front says where harnesses keep their sessions, as it sees them.
HARNESS_ENV = (
    "HOME",
    "USERPROFILE",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "HERMES_HOME",
    "PI_CODING_AGENT_DIR",
    "XDG_CONFIG_HOME",
)
_HELLO_S = 5.0
_RECEIVED_BYTES = 1 << 16
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.005, 0.05
_CODE_OF_KIND = {"usage": -32602}

Watch = Callable[[Any], None]


class EngineError(FunesError):
    """The engine's answer is an error, or there is no engine to answer.

    Attributes:
        code: Of JSON-RPC; 0 when no engine answered. Then `kind` is `engine_down`,
            `engine_timeout`, `engine_newer` or `engine_crashing`.
    """

    kind = "engine_down"

    def __init__(self, message: str, *, code: int = 0, hint: str = "", kind: str = "") -> None:
        """Keep the code beside what a user is told."""
        super().__init__(message, hint=hint, kind=kind)
        self.code = code
        # What a caller asked wrongly ends a command as it does without an engine.
        self.exit_code = 2 if code == _CODE_OF_KIND["usage"] else 1


class Connection:
    """A connection to an engine; not for use by several threads at once."""

    def __init__(self, sock: socket.socket, *, on_close: Callable[[], None] | None = None) -> None:
        """Talk over a connected socket."""
        self._socket = sock
        self._incoming = Incoming()
        self._on_close = on_close
        self._numbers = itertools.count(1)
        self._asked: int | None = None
        self.hello: dict[str, Any] = {}

    def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        timeout_s: float,
        on_partial: Watch | None = None,
        on_progress: Watch | None = None,
    ) -> Any:
        """Return what the engine answers.

        Args:
            method: One of `protocol.METHODS`.
            params: As `protocol` has them, in camelCase.
            timeout_s: For the whole request.
            on_partial: Called with each answer so far.
            on_progress: Called with each begin, report and end of work.

        Raises:
            EngineError: the engine says no, or does not answer.
        """
        number = next(self._numbers)
        watches: dict[str, Watch] = {}
        sent = dict(params)
        for name, watch in (("partialResultToken", on_partial), ("workDoneToken", on_progress)):
            if watch is not None:
                sent[name] = f"{name}-{number}"
                watches[sent[name]] = watch
        self._asked = number
        deadline = time.monotonic() + timeout_s
        with self._named_failures(method):
            self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": sent})
            for message in self._messages(deadline):
                if message.get("id") == number and "method" not in message:
                    self._asked = None
                    return result_of(message)
                if message.get("method") == "$/progress":
                    told = message["params"]
                    watches.get(told["token"], _ignore)(told["value"])
        raise EngineError("The engine has closed the connection.", hint=_LOG_HINT)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell the engine something and expect nothing back."""
        with self._named_failures(method):
            self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def cancel(self) -> None:
        """Withdraw the request under way; its answer is still to be awaited."""
        if self._asked is not None:
            self.notify("$/cancelRequest", {"id": self._asked})

    def close(self) -> None:
        """Hang up."""
        self._socket.close()
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()

    def detach(self) -> tuple[socket.socket, bytes]:
        """Give the socket away, with what has been read of it and not been taken yet."""
        return self._socket, self._incoming.rest()

    def __enter__(self) -> "Connection":
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Hang up."""
        self.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        # Escaped: a lone half of a character is sent as what it is, and refused or mended there.
        self._socket.sendall(frame(json.dumps(message, separators=(",", ":")).encode("ascii")))

    def _messages(self, deadline: float) -> Iterator[dict[str, Any]]:
        while True:
            while (body := self._incoming.take()) is not None:
                yield json.loads(body)
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            data = self._socket.recv(_RECEIVED_BYTES)
            if not data:
                return
            self._incoming.add(data)

    @contextmanager
    def _named_failures(self, method: str) -> Iterator[None]:
        try:
            yield
        except TimeoutError as exc:
            raise EngineError(
                f"The engine has not answered {method} in time.",
                hint="See `funes engine logs`; `funes engine restart` starts it anew.",
                kind="engine_timeout",
            ) from exc
        except (OSError, ValueError, FramingError) as exc:
            raise EngineError("The engine is gone.", hint=_LOG_HINT) from exc


_LOG_HINT = "See `funes engine logs`."


def _ignore(_value: Any) -> None:
    """Take what nobody asked for."""


def result_of(message: dict[str, Any]) -> Any:
    """Return what an answer holds.

    Raises:
        EngineError: it is an error.
    """
    error = message.get("error")
    if error is None:
        return message.get("result")
    data = error.get("data") or {}
    raise EngineError(
        str(error.get("message", "")),
        code=int(error.get("code", 0)),
        hint=str(data.get("hint", "")),
        kind=str(data.get("kind", "failed")),
    )


def connect(
    home: Path,
    *,
    client: str,
    start: bool = True,
    wait_s: float = 10.0,
    notify: bool = False,
    env: Mapping[str, str] = os.environ,
) -> Connection:
    """Return a connection to the engine of a home, started or replaced when need be.

    Args:
        home: The funes home.
        client: What this front is: `cli`, `lsp`, `mcp`, `hook`.
        start: Start an engine when none runs.
        wait_s: How long to wait for it in all.
        notify: Whether notifications are wanted.
        env: The front's environment; where harnesses keep sessions is passed on.

    Raises:
        EngineError: no engine runs or can be started, or it is of a newer protocol.
    """
    deadline = time.monotonic() + wait_s
    hello = hello_params(client, notify=notify, env=env)
    if env.get("FUNES_ENGINE") == "inline":
        from funes_ls.engine.inline import inline_connection

        return _greeted(inline_connection(home, env), hello)
    found = _greet(home, hello)
    if found is not None and not _is_older(found.hello):
        return _agreed(found)
    if found is not None:
        _ask_to_end(found)
    if not start:
        raise EngineError("No engine runs for this home.", hint="`funes status` starts one.")
    process = _spawn(home, env)
    wait = _FIRST_WAIT_S
    while time.monotonic() < deadline:
        time.sleep(wait)
        wait = min(wait * 1.5, _LONGEST_WAIT_S)
        code = process.poll()  # before asking: one that ends well has found another that runs
        found = _greet(home, hello)
        if found is not None and not _is_older(found.hello):
            return _agreed(found)
        if found is not None:
            found.close()
        _refuse_if_crashing(home)
        if code:
            raise EngineError("The engine ended as it started.", hint=_LOG_HINT)
    raise EngineError(
        f"The engine did not start within {wait_s:g} s.", hint=_LOG_HINT, kind="engine_timeout"
    )


def hello_params(client: str, *, notify: bool, env: Mapping[str, str]) -> dict[str, Any]:
    """Return the params of `engine/hello`, without the token."""
    return {
        "version": __version__,
        "protocol": PROTOCOL,
        "client": client,
        "pid": os.getpid(),
        "notify": notify,
        "env": {name: env[name] for name in HARNESS_ENV if env.get(name)},
    }


def _greet(home: Path, hello: dict[str, Any]) -> Connection | None:
    """Return a connection that has said hello, None when nobody is there."""
    address = read_address(home)
    if address is None:
        return None
    try:
        connection = Connection(open_socket(address))
    except OSError:
        return None
    try:
        return _greeted(connection, {**hello, "token": address.token})
    except EngineError as exc:
        if exc.kind != "engine_down":
            raise
        return None


def _greeted(connection: Connection, hello: dict[str, Any]) -> Connection:
    try:
        connection.hello = connection.request("engine/hello", hello, timeout_s=_HELLO_S)
    except BaseException:
        connection.close()
        raise
    return connection


def open_socket(address: Address) -> socket.socket:
    """Return a socket connected to an address.

    Raises:
        OSError: nobody listens there.
    """
    if address.path:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        where: Any = address.path
    else:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        where = ("127.0.0.1", address.port)
    sock.settimeout(_HELLO_S)
    try:
        sock.connect(where)
        if not is_ours(sock):
            raise PermissionError("another user listens there")
    except OSError:
        sock.close()
        raise
    return sock


def _is_older(hello: dict[str, Any]) -> bool:
    """Return whether the engine that answered is to be replaced by one of this version."""
    theirs = (int(hello.get("protocol", 0)), _numbers_of(str(hello.get("version", ""))))
    return theirs < (PROTOCOL, _numbers_of(__version__))


def _numbers_of(version: str) -> tuple[int, ...]:
    parts = version.split("+")[0].split(".")
    return tuple(int(part) for part in parts if part.isdigit())


def _agreed(connection: Connection) -> Connection:
    if int(connection.hello.get("protocol", 0)) > PROTOCOL:
        connection.close()
        raise EngineError(
            f"The engine is of version {connection.hello.get('version')}, newer than this program.",
            hint="Update this program, or run `funes engine stop`.",
            kind="engine_newer",
        )
    return connection


def _ask_to_end(connection: Connection) -> None:
    """Ask an engine to end; it may be gone before it has answered."""
    try:
        connection.request("engine/stop", {"reason": "replaced"}, timeout_s=_HELLO_S)
    except EngineError:
        pass
    finally:
        connection.close()


def _refuse_if_crashing(home: Path) -> None:
    if is_crashing(home):
        raise EngineError(
            "The engine has died several times within minutes and is not started again for now.",
            hint=f"See {home / 'logs' / 'engine.log'}, then run `funes engine restart`.",
            kind="engine_crashing",
        )


def _spawn(home: Path, env: Mapping[str, str]) -> "Popen[bytes]":
    """Start an engine that outlives this process; of several started at once one stays."""
    import subprocess  # in use alone: most fronts find an engine that runs
    import threading

    _refuse_if_crashing(home)
    private_dir(run_dir(home))
    options: dict[str, Any] = {"start_new_session": True}
    if os.name == "nt":
        options = {"creationflags": 0x00000008 | 0x00000200}  # detached, a group of its own
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "funes_ls.engine"],
            cwd=home,
            env={**env, "FUNES_HOME": str(home.absolute())},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=True,
            **options,
        )
    except OSError as exc:
        raise EngineError(f"The engine cannot be started ({exc.strerror or exc}).") from exc
    # Its end is taken note of, or it would stay in the system's list as long as this process.
    threading.Thread(target=process.wait, daemon=True).start()
    return process
