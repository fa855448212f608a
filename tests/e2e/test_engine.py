"""The engine as a process: started once, found, replaced, ended; nobody else's and no leak."""

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from funes_ls.engine import client as client_module
from funes_ls.engine.address import read_address
from funes_ls.engine.client import Connection, EngineError
from tests.e2e.engines import Asking, Engines, alive, log_of, until, with_fault
from tests.funes_ls.engine.talking import talking_to_process
from tests.sessions import append, record, write

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
    pytest.mark.timeout(90),
]
SAID = "the boiler whistles at noon"


@pytest.fixture
def engines(funes_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engines]:
    monkeypatch.delenv("FUNES_ENGINE")
    with Engines(funes_home, os.environ) as found:
        yield found


@pytest.fixture
def trace(own_home: Path) -> Path:
    path = own_home / ".claude" / "projects" / "p" / "s.jsonl"
    return write(path, [record(SAID, uuid="u-1")])


def test_fronts_that_start_at_once_share_one_engine(engines: Engines) -> None:
    found: list[Connection | EngineError] = []
    ready = threading.Barrier(6)

    def front() -> None:
        ready.wait()
        try:
            found.append(engines.connect())
        except EngineError as exc:
            found.append(exc)

    threads = [threading.Thread(target=front) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    pids = {one.hello["pid"] if isinstance(one, Connection) else str(one) for one in found}
    assert (len(found), pids) == (6, {engines.pid})
    until(lambda: engine_processes(engines.home) == {engines.pid}, what="the others have ended")


def engine_processes(home: Path) -> set[int]:
    """Return the engines that run for a home, whoever started them."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            env = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        named = f"FUNES_HOME={home}".encode()
        if b"funes_ls.engine" in words and named in env and alive(int(folder.name)):
            found.add(int(folder.name))
    return found


def test_an_engine_outlives_the_front_that_started_it(engines: Engines) -> None:
    code = (
        "import os; from pathlib import Path; from funes_ls.engine.client import connect\n"
        "connect(Path(os.environ['FUNES_HOME']), client='test')"
    )
    subprocess.run([sys.executable, "-c", code], env=engines.env, check=True, timeout=60)
    pid = engines.pid
    assert engines.ask("engine/status")["pid"] == pid
    state = Path(f"/proc/{pid}")
    assert (state / "cwd").resolve() == engines.home.resolve()
    for number in (0, 1, 2):
        assert (state / "fd" / str(number)).readlink() == Path(os.devnull)
    session = int((state / "stat").read_text(encoding="ascii").rpartition(")")[2].split()[3])
    assert session != os.getsid(0)


def test_the_run_folder_is_for_its_user_alone(engines: Engines) -> None:
    engines.connect()
    run = engines.home / "run"
    assert run.stat().st_mode & 0o777 == 0o700
    assert (run / "engine.sock").stat().st_mode & 0o777 == 0o600
    open_to_others = [
        str(path) for path in engines.home.rglob("*") if path.lstat().st_mode & 0o077
        and not path.is_dir()
    ]  # fmt: skip
    assert open_to_others == []


_OLDER = """
import sys
if "funes_ls.engine" in sys.orig_argv:
    import funes_ls
    funes_ls.__version__ = "0.0.1"
"""
_NEWER_PROTOCOL = """
import sys
if "funes_ls.engine" in sys.orig_argv:
    import funes_ls, funes_ls.protocol
    funes_ls.__version__ = "99.0.0"
    funes_ls.protocol.PROTOCOL = 99
"""
_NEWER = """
import sys
if "funes_ls.engine" in sys.orig_argv:
    import funes_ls
    funes_ls.__version__ = "99.0.0"
"""


def test_an_older_engine_is_replaced(engines: Engines, tmp_path: Path) -> None:
    older = subprocess.Popen(
        [sys.executable, "-m", "funes_ls.engine"],
        env=with_fault(engines.env, tmp_path / "older", _OLDER),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: read_address(engines.home), what="the older engine listens")
    with talking_to_process(engines.home, greeted=False) as talk:
        assert talk.greet()["result"]["version"] == "0.0.1"
        with engines.connect() as new:
            assert new.hello["version"] != "0.0.1"
            assert engines.pid != older.pid
        assert older.wait(5) == 0
        assert talk.is_over()


def test_an_engine_of_a_newer_protocol_is_left_alone_and_told_of(
    engines: Engines, tmp_path: Path
) -> None:
    engines.env = with_fault(engines.env, tmp_path / "newer", _NEWER_PROTOCOL)
    with pytest.raises(EngineError) as caught:
        engines.connect()
    assert caught.value.kind == "engine_newer"
    assert "99.0.0" in caught.value.message
    assert caught.value.hint
    assert alive(engines.pid)


def test_a_newer_engine_of_the_same_protocol_will_do(engines: Engines, tmp_path: Path) -> None:
    engines.env = with_fault(engines.env, tmp_path / "newer", _NEWER)
    assert engines.connect().hello["version"] == "99.0.0"


def test_a_socket_left_by_a_dead_engine_is_replaced(engines: Engines, trace: Path) -> None:
    engines.ask("funes/index", finish=True)
    first = engines.pid
    engines.kill()
    assert (engines.home / "run" / "engine.sock").exists()
    assert engines.recall(SAID) == [SAID]
    assert engines.pid != first


def test_a_record_of_a_process_that_is_no_engine(engines: Engines) -> None:
    engines.connect()
    engines.kill()
    path = engines.home / "run" / "engine.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**told, "pid": os.getpid()}), encoding="utf-8")
    assert engines.ask("engine/status")["pid"] not in (os.getpid(), told["pid"])


def test_without_start_there_is_no_engine(engines: Engines) -> None:
    with pytest.raises(EngineError) as caught:
        engines.connect(start=False)
    assert caught.value.kind == "engine_down"
    assert not (engines.home / "run").exists()


def test_an_engine_that_hangs_costs_a_front_its_patience_only(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_HELLO_S", 0.3)
    connection = engines.connect()
    os.kill(engines.pid, signal.SIGSTOP)
    try:
        with pytest.raises(EngineError) as asked:
            connection.request("engine/status", {}, timeout_s=0.3)
        with pytest.raises(EngineError) as greeted:
            engines.connect()
    finally:
        os.kill(engines.pid, signal.SIGCONT)
    assert (asked.value.kind, greeted.value.kind) == ("engine_timeout", "engine_timeout")
    assert "funes engine restart" in greeted.value.hint


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_within_a_second_and_leave_nothing(
    engines: Engines, own_home: Path, number: int
) -> None:
    for n in range(40):
        records = [record(f"turn {t} of {n}", uuid=f"{n}-{t}") for t in range(20)]
        write(own_home / ".claude" / "projects" / "p" / f"s{n}.jsonl", records)
    run = Asking(engines.connect(), "funes/index", finish=True)
    until(lambda: run.told or run.over, what="the index is under way")
    pid = engines.pid
    started = time.monotonic()
    os.kill(pid, number)
    until(lambda: not alive(pid), seconds=5, what="the engine has ended")
    assert time.monotonic() - started < 1.0
    assert read_address(engines.home) is None
    assert not (engines.home / "run" / "engine.sock").exists()
    engines.ask("funes/index", finish=True)
    until(lambda: engines.ask("funes/status")["words_only"] == 0, what="the work went on")
    assert engines.ask("funes/status")["chunks"] == 800
    assert "internal error" not in log_of(engines.home)


def test_it_ends_by_itself_but_not_while_somebody_is_there(engines: Engines) -> None:
    engines.env["FUNES_ENGINE_IDLE"] = "0.3"
    connection = engines.connect()
    pid = engines.pid
    with pytest.raises(AssertionError):
        until(lambda: not alive(pid), seconds=1.5)
    connection.close()
    until(lambda: not alive(pid), seconds=10, what="the idle engine has ended")
    assert read_address(engines.home) is None
    assert engines.ask("engine/status")["pid"] != pid


def test_it_is_asked_to_end(engines: Engines) -> None:
    with engines.connect() as connection:
        pid = engines.pid
        assert connection.request("engine/stop", {}, timeout_s=5) == {}
        until(lambda: not alive(pid), seconds=3, what="the engine has ended")


def test_over_tcp_only_who_has_the_token_is_heard(engines: Engines, trace: Path) -> None:
    engines.env["FUNES_ENGINE_TCP"] = "1"
    engines.ask("funes/index", finish=True)
    assert engines.recall(SAID) == [SAID]
    address = read_address(engines.home)
    assert address is not None and address.path == "" and address.token
    for token in ("", "0" * 64, address.token[:-1]):
        with talking_to_process(engines.home, greeted=False) as talk:
            error = talk.greet(token=token)["error"]
            assert error["data"]["kind"] == "token"
            assert address.token not in json.dumps(error)
            assert talk.is_over()
    with talking_to_process(engines.home, greeted=False) as talk:
        assert talk.asked(1, "funes/status")["error"]["code"] == -32002
    assert address.token not in log_of(engines.home)


def test_a_long_home_path_is_served_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUNES_ENGINE")
    home = tmp_path / ("long" * 25)
    home.mkdir()
    monkeypatch.setenv("FUNES_HOME", str(home))
    with Engines(home, os.environ) as engines:
        address = engines.ask("engine/status")["address"]
        assert not address.startswith(str(home))
        assert Path(address).parent.stat().st_mode & 0o777 == 0o700
    assert not Path(address).parent.exists()


@pytest.mark.skipif(os.name == "nt" or os.getuid() != 0, reason="only root can be another user")
def test_another_user_is_not_served_even_where_modes_let_him_in(
    engines: Engines, tmp_path: Path
) -> None:
    engines.connect()
    sock = engines.home / "run" / "engine.sock"
    assert as_nobody(sock) == "PermissionError"
    for folder in [*sock.parents][:-2]:
        folder.chmod(folder.stat().st_mode | 0o011)
    sock.chmod(0o666)
    assert as_nobody(sock) == "hung up"
    assert "refused" in log_of(engines.home)
    assert engines.ask("engine/status")["pid"] == engines.pid


def as_nobody(sock: Path) -> str:
    """Say hello as another user and return what came of it."""
    code = f"""
import os, socket
os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX); s.settimeout(10)
body = b'{{"jsonrpc":"2.0","id":1,"method":"engine/hello","params":{{"version":"0"}}}}'
try:
    s.connect({str(sock)!r})
    s.sendall(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
    print("answered" if s.recv(100) else "hung up")
except ConnectionError:
    print("hung up")
except OSError as exc:
    print(type(exc).__name__)
"""
    ran = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, timeout=30)
    return ran.stdout.decode().strip()


def test_a_socket_of_another_user_is_told_nothing(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines.connect()
    monkeypatch.setattr(client_module, "is_ours", lambda _sock: False)
    with pytest.raises(EngineError) as caught:
        engines.connect(start=False)
    assert caught.value.kind == "engine_down"


def test_what_a_front_asks_with_stays_its_own(engines: Engines, own_home: Path) -> None:
    for n in range(5):
        write(
            own_home / ".claude" / "projects" / "p" / f"s{n}.jsonl",
            [record(f"boiler number {n}", uuid=f"u-{n}")],
        )
    engines.env |= {"FUNES_K": "1", "FUNES_MEMORY": "/nowhere"}
    engines.ask("funes/index", finish=True)
    assert len(engines.recall("boiler")) == 5


def test_places_are_those_that_the_front_sees(engines: Engines, tmp_path: Path) -> None:
    engines.connect()
    other = tmp_path / "other"
    write(other / "projects" / "p" / "s.jsonl", [record(SAID, uuid="u-1")])
    engines.env["CLAUDE_CONFIG_DIR"] = str(other)
    assert engines.ask("funes/index", finish=True)["chunks"] == 1
    path = other / "projects" / "p" / "s.jsonl"
    append(path, [record("and it whistles again", uuid="u-2")])
    until(lambda: "and it whistles again" in engines.recall("whistles again"), what="it is watched")


def test_nothing_that_was_said_or_asked_is_logged(engines: Engines, trace: Path) -> None:
    engines.ask("funes/index", finish=True)
    engines.recall(SAID)
    for params in ({"query": SAID, "k": "x"}, {"query": SAID, "since": SAID}, {SAID: SAID}):
        with pytest.raises(EngineError):
            engines.ask("funes/recall", **params)
    with talking_to_process(engines.home) as talk:
        talk.body(SAID.encode())
        assert talk.receive()["error"]["code"] == -32700
        talk.ask(1, SAID)
        assert talk.answer(1)["error"]["code"] == -32601
    engines.stop()
    told = "".join(path.read_text(encoding="utf-8") for path in (engines.home / "logs").iterdir())
    assert "listens at" in told
    assert "boiler" not in told
    assert "whistles" not in told


def test_connections_that_come_and_go_leave_nothing(engines: Engines) -> None:
    keeps = engines.connect()
    fds = Path(f"/proc/{engines.pid}/fd")
    before = len(list(fds.iterdir()))
    address = read_address(engines.home)
    assert address is not None
    for _ in range(1_000):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(address.path)
            sock.sendall(b"Content-Le")
    until(
        lambda: keeps.request("engine/status", {}, timeout_s=5)["clients"] == 1,
        what="the others are forgotten",
    )
    assert len(list(fds.iterdir())) <= before + 5


def test_an_engine_whose_home_was_deleted_ends(engines: Engines) -> None:
    engines.connect()
    first = engines.pid
    shutil.rmtree(engines.home, ignore_errors=True)
    until(lambda: not alive(first), what="the engine of the deleted home is gone")
    engines.connect()
    assert engines.pid != first


def test_a_memory_deleted_under_an_engine_is_made_anew(engines: Engines, trace: Path) -> None:
    target = {"target": str(trace.parent), "wordsOnly": True}
    with engines.connect() as connection:
        connection.request("funes/index", target, timeout_s=40)
        shutil.rmtree(engines.home / "memory")
        report = connection.request("funes/index", target, timeout_s=40)
        assert (report["sessions"], report["chunks"]) == (1, 1)
        found = connection.request("funes/recall", {"query": "boiler whistles"}, timeout_s=40)
        assert [hit["text"] for hit in found["hits"]] == [SAID]


def test_a_home_that_an_engine_makes_is_for_its_user_alone(engines: Engines) -> None:
    engines.connect()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (engines.home, engines.home / "run")] == [
        0o700,
        0o700,
    ]
