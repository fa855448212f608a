"""`funes add` before a person: what is asked, what a no means, and the first look at sessions."""

import contextlib
import os
import pty
import select
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from funes_ls.cli import first_index
from tests.e2e.cli import COMMAND, funes, funes_process
from tests.e2e.engines import Engines, until
from tests.sessions import record, write

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="a terminal"),
    pytest.mark.timeout(120),
]

SAMPLES = Path(__file__).resolve().parents[2] / "traces" / "home"
CONFIG = '{\n\t// mine\n\t"mcpServers": {},\n}\n'


@pytest.fixture
def cursor(own_home: Path) -> Path:
    """Give the test a Cursor and return its file of servers."""
    path = own_home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(CONFIG)
    return path


def at_terminal(*argv: str, answers: list[str]) -> tuple[int, str]:
    """Run a command at a terminal, answering each question as it comes; return code and screen."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(COMMAND[0], [*COMMAND, *argv])
    screen = ""
    asked = 0
    ends = time.monotonic() + 60
    with contextlib.suppress(OSError):  # the terminal is gone with the command
        while time.monotonic() < ends:
            if select.select([terminal], [], [], 0.1)[0]:
                screen += os.read(terminal, 65536).decode("utf-8", "replace")
            if asked < len(answers) and screen.count("/N] ") + screen.count("/n] ") > asked:
                os.write(terminal, f"{answers[asked]}\n".encode())
                asked += 1
    is_late = time.monotonic() >= ends
    if is_late:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert not is_late, f"not done in time: {screen}"
    return os.waitstatus_to_exitcode(status), screen


def test_a_no_to_the_first_look_installs_nothing(cursor: Path, funes_home: Path) -> None:
    code, screen = at_terminal("add", "cursor", answers=["n"])
    assert code == 1
    assert "Nothing was installed" in screen
    assert cursor.read_text() == CONFIG
    assert not (funes_home / "agents").exists()
    assert not (funes_home / "memory").exists()


def test_the_plan_is_shown_and_a_no_changes_nothing(cursor: Path, funes_home: Path) -> None:
    code, screen = at_terminal("add", "cursor", answers=["y", "n"])
    assert code == 1
    assert str(cursor) in screen
    assert '"funes": {' in screen
    assert "Nothing was changed" in screen
    assert cursor.read_text() == CONFIG
    assert not (funes_home / "memory").exists()


def test_return_is_a_yes(cursor: Path, own_home: Path) -> None:
    shutil.copytree(SAMPLES, own_home, dirs_exist_ok=True)
    code, screen = at_terminal("add", "cursor", answers=["", ""])
    assert code == 0, screen
    assert "findable by words" in screen
    assert '"funes"' in cursor.read_text()
    assert funes_process("recall", "partitions").code == 0
    code, screen = at_terminal("remove", "cursor", answers=["n"])
    assert code == 1
    assert '"funes"' in cursor.read_text()
    code, screen = at_terminal("remove", "cursor", answers=["y"])
    assert code == 0, screen
    assert cursor.read_text() == CONFIG


def test_words_are_there_at_once_and_vectors_follow_by_themselves(
    cursor: Path, own_home: Path, funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(SAMPLES, own_home, dirs_exist_ok=True)
    monkeypatch.delenv("FUNES_ENGINE")
    with Engines(funes_home, os.environ) as engines:
        ran = funes_process("add", "cursor", "--yes")
        assert ran.code == 0, ran.err
        assert "findable by words" in ran.err
        until(lambda: engines.ask("funes/status")["words_only"] == 0, what="all have vectors")


def test_an_engine_that_cannot_start_keeps_nobody_from_adding(
    cursor: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(SAMPLES, own_home, dirs_exist_ok=True)
    monkeypatch.delenv("FUNES_ENGINE")
    broken = own_home / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import sys\nif sys.orig_argv[-1] == 'funes_ls.engine':\n    raise SystemExit(3)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(broken))
    ran = funes("add", "cursor", "--yes")
    assert ran.code == 0, ran.err
    assert "ended as it started" in ran.err
    assert "funes index" in ran.out
    assert '"funes"' in cursor.read_text()
    assert funes("recall", "--no-engine", "partitions").out != "no results\n"


def test_vectors_that_take_long_are_left_to_the_engine_with_an_estimate(
    cursor: Path, own_home: Path, funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [record(f"heron {n} of the harbour " * 30, uuid=f"u{n}") for n in range(400)]
    write(own_home / ".claude" / "projects" / "-work-demo" / "s.jsonl", records)
    monkeypatch.delenv("FUNES_ENGINE")
    slow = own_home / "slow"
    slow.mkdir()
    (slow / "sitecustomize.py").write_text(_SLOW)
    monkeypatch.setenv("PYTHONPATH", str(slow))
    monkeypatch.setattr(first_index, "_LOOK_S", 5.0)
    with Engines(funes_home, os.environ) as engines:
        ran = funes("add", "cursor", "--yes")
        assert ran.code == 0, ran.err
        assert "in the background, for about" in ran.out
        assert "funes engine status" in ran.out
        left = engines.ask("funes/status")["words_only"]
        assert left > 0
        until(lambda: engines.ask("funes/status")["words_only"] < left, what="the engine goes on")


#: Makes every vector of the engine's take its time.
_SLOW = """
import sys, threading, time


def slow_down():
    while "funes_ls.indexer.embedding" not in sys.modules:
        time.sleep(0.01)
    module = sys.modules["funes_ls.indexer.embedding"]
    while not hasattr(module, "load"):
        time.sleep(0.01)
    plain = module.load

    def load(*args, **more):
        embedder = plain(*args, **more)
        encode_iter = embedder.encode_iter

        def slowly(texts):
            for one in encode_iter(texts):
                time.sleep(0.05)
                yield one

        embedder.encode_iter = slowly
        return embedder

    module.load = load


if sys.orig_argv[-1] == "funes_ls.engine":
    threading.Thread(target=slow_down, daemon=True).start()
"""
