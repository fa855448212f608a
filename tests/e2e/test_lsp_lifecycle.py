"""The order of life: initialize, shutdown, exit; the end of input, of the parent, by signals."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.engines import Engines, until
from tests.e2e.lsp_client import LspError, Server, Servers, listening_socket, obliging

pytestmark = pytest.mark.timeout(90)


def refusal(ask: Callable[[], Any]) -> tuple[int, str]:
    with pytest.raises(LspError) as caught:
        ask()
    return caught.value.code, caught.value.kind


def test_s01_request_before_initialize_is_refused_and_notification_dropped(
    servers: Servers,
) -> None:
    server = obliging(servers.start())
    assert refusal(lambda: server.request("funes/status", {})) == (-32002, "not_initialized")
    assert refusal(lambda: server.request("shutdown")) == (-32002, "not_initialized")
    server.open("file:///work/early.py", "said too early")
    server.initialize()
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 4}}
    argument = {"uri": "file:///work/early.py", "range": place}
    params = {"command": "funes.recallSelection", "arguments": [argument]}
    with pytest.raises(LspError, match="not open"):
        server.request("workspace/executeCommand", params)
    assert server.shut() == 0


def test_s01_exit_before_initialize_ends_the_process(servers: Servers) -> None:
    server = servers.start()
    server.notify("exit")
    assert server.process.wait(10) == 1


def test_s02_second_initialize_is_refused(servers: Servers) -> None:
    server = servers.ready()
    assert refusal(lambda: server.initialize(initialized=False)) == (-32600, "invalid_request")
    assert server.request("funes/status", {})["state"] == "ready"


def test_s03_shutdown_answers_null_and_later_requests_are_invalid(servers: Servers) -> None:
    server = servers.ready()
    assert server.request("shutdown") is None
    assert refusal(lambda: server.request("funes/status", {})) == (-32600, "invalid_request")
    assert refusal(lambda: server.request("shutdown")) == (-32600, "invalid_request")
    assert server.process.poll() is None


def test_s04_exit_after_shutdown_is_0_and_without_is_1(servers: Servers) -> None:
    assert servers.ready().shut() == 0
    server = servers.ready()
    server.notify("exit")
    assert server.process.wait(10) == 1


def test_s05_exit_with_a_thread_at_work_is_quick_and_quiet(servers: Servers) -> None:
    server = servers.extended(
        """
    @ls.feature("test/slow")
    async def slow(params):
        await asyncio.to_thread(time.sleep, 8)
        return "late"
"""
    )
    server.initialize()
    slow = server.begin("test/slow", {})
    began = time.monotonic()
    assert server.request("shutdown") is None
    server.notify("exit")
    assert server.process.wait(10) == 0
    assert time.monotonic() - began < 3
    with pytest.raises(LspError) as caught:
        server.answer(slow)
    assert caught.value.code == -32800
    assert len(server.log) < 1000


@pytest.mark.parametrize("shut", [True, False])
def test_s06_end_of_input_ends_the_process(servers: Servers, shut: bool) -> None:
    server = servers.ready()
    if shut:
        server.request("shutdown")
    assert server.process.stdin is not None
    server.process.stdin.close()
    assert server.process.wait(10) == (0 if shut else 1)


@pytest.mark.parametrize("named", ["initialize", "argument"])
def test_s07_end_of_the_parent_ends_the_server(servers: Servers, named: str) -> None:
    parent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        if named == "argument":
            server = obliging(servers.start(f"--clientProcessId={parent.pid}"))
            server.initialize(processId=None)
        else:
            server = servers.ready(processId=parent.pid)
        assert server.request("funes/status", {})["state"] == "ready"
    finally:
        parent.kill()
        parent.wait(10)
    assert server.process.wait(5) == 1


def test_s07_a_parent_that_cannot_be_seen_is_not_waited_for(servers: Servers) -> None:
    server = servers.ready(processId=2**22 + 17)
    with pytest.raises(subprocess.TimeoutExpired):
        server.process.wait(3)
    assert server.request("funes/status", {})["state"] == "ready"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_s08_signals_end_the_server_within_a_second(
    servers: Servers, served: Engines, number: signal.Signals
) -> None:
    server = servers.ready()
    before = server.request("funes/status", {})
    began = time.monotonic()
    os.kill(server.process.pid, number)
    assert server.process.wait(5) == 128 + number
    assert time.monotonic() - began < 1
    assert served.ask("funes/status")["chunks"] == before["chunks"]


def test_s09_nothing_is_said_before_the_initialize_result(servers: Servers) -> None:
    server = servers.start()
    wrong = {"nonsense": 1}
    server.begin("initialize", {"capabilities": {}, "initializationOptions": wrong})
    first = server.await_message(lambda _: True)
    assert first.get("id") == 1 and "result" in first, first
    assert server.is_silent()
    server.notify("initialized", {})
    assert "nonsense" in server.told("window/showMessage")["message"]


@pytest.mark.parametrize(
    ("program", "how"),
    [
        *(("funes-ls", how) for how in ("stdio", "default", "pipe", "socket", "port", "tcp")),
        *(("funes serve", how) for how in ("stdio", "pipe", "port")),
    ],
)
def test_s10_every_transport(servers: Servers, tmp_path: Path, program: str, how: str) -> None:
    bin_dir = Path(sys.executable).parent
    command = [str(bin_dir / program.split()[0]), *program.split()[1:]]
    server = obliging(TRANSPORTS[how](servers, tmp_path, command))
    answer = server.initialize(processId=None)
    assert answer["serverInfo"]["name"] == "funes-ls"
    assert server.request("funes/status", {})["state"] == "ready"
    assert server.shut() == 0


def over_stdio(servers: Servers, _folder: Path, command: list[str]) -> Server:
    return servers.start("--stdio", command=command)


def over_default(servers: Servers, _folder: Path, command: list[str]) -> Server:
    return servers.start(command=command)


def over_pipe(servers: Servers, folder: Path, command: list[str]) -> Server:
    path = folder / "editor.sock"
    with listening_socket(socket.AF_UNIX, str(path)) as listening:
        process, stderr = servers.spawn(f"--pipe={path}", command=command)
        return servers.over_socket(listening.accept()[0], process, stderr)


def over_socket(servers: Servers, _folder: Path, command: list[str]) -> Server:
    with listening_socket(socket.AF_INET, ("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        process, stderr = servers.spawn(f"--socket={port}", command=command)
        return servers.over_socket(listening.accept()[0], process, stderr)


def over_port(servers: Servers, _folder: Path, command: list[str]) -> Server:
    return _connected(servers, *servers.spawn("--port", "0", command=command))


def over_tcp(servers: Servers, _folder: Path, command: list[str]) -> Server:
    return _connected(servers, *servers.spawn("--tcp", "127.0.0.1:0", command=command))


def _connected(servers: Servers, process: "subprocess.Popen[bytes]", stderr: Path) -> Server:
    said = until(lambda: "listening at" in (text := stderr.read_text()) and text)
    port = int(said.rpartition(":")[2])
    sock = socket.create_connection(("127.0.0.1", port), timeout=10)
    return servers.over_socket(sock, process, stderr)


TRANSPORTS: dict[str, Callable[[Servers, Path, list[str]], Server]] = {
    "stdio": over_stdio,
    "default": over_default,
    "pipe": over_pipe,
    "socket": over_socket,
    "port": over_port,
    "tcp": over_tcp,
}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tcp", "0.0.0.0:7777"], "may be reached from other machines"),
        (["--tcp", "nowhere"], "is no HOST:PORT"),
        (["--pipe=/nowhere/at/all"], "Nobody listens at /nowhere/at/all"),
        (["--socket=1"], "Nobody listens at port 1"),
    ],
)
def test_addresses_that_cannot_be_used_are_named(
    servers: Servers, arguments: list[str], said: str
) -> None:
    process, stderr = servers.spawn(*arguments)
    try:
        assert process.wait(20) in (1, 2)
        assert said in stderr.read_text()
    finally:
        process.kill()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()
