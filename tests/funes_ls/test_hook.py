"""`funes hook`: the engine hears of a turn, and the turn neither waits nor sees anything of it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from funes_ls import hook
from funes_ls.engine import starts
from tests.e2e.cli import COMMAND, funes
from tests.e2e.engines import Engines, alive, until
from tests.sessions import append, record, write

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
    pytest.mark.timeout(120),
]

#: What a turn waits for a hook at most.
MOST_S = 0.1
_MOST_RUNS = 25
#: And where this machine is slow or crowded: so many times what Python itself takes.
_MOST_TIMES = 5


def fire(payload: Any, *, event: str = "Stop", agent: str = "claude", **env: str) -> float:
    """Run a hook as a process of its own and return how long it took; it may say nothing."""
    told = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    began = time.monotonic()
    ran = subprocess.run(
        [*COMMAND, "hook", agent, event],
        input=told,
        capture_output=True,
        env={**os.environ, **env},
        timeout=30,
    )
    seconds = time.monotonic() - began
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    return seconds


def nothing() -> float:
    """Start Python for nothing and return how long that took."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "pass"], check=True, timeout=30)
    return time.monotonic() - began


@pytest.fixture
def engines(own_home: Path, funes_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engines]:
    """Give the test a memory of one session and look after its engines."""
    write(trace(own_home), [record("the tide table is in Celsius", uuid="u1")])
    assert funes("index", "--yes").code == 0
    monkeypatch.delenv("FUNES_ENGINE")
    with Engines(funes_home, os.environ) as found:
        yield found


def trace(home: Path) -> Path:
    return home / ".claude" / "projects" / "-work-demo" / "s1.jsonl"


def turn(text: str, number: int) -> dict[str, Any]:
    return record(text, uuid=f"u{number}", ts=f"2026-03-02T10:{number:02d}:00.000Z")


def unwatched(home: Path) -> None:
    (home / "config.toml").write_text("[index]\nwatch = false\n", encoding="utf-8")


def test_a_turn_is_found_after_its_hook_though_nobody_watches(
    engines: Engines, own_home: Path, funes_home: Path
) -> None:
    unwatched(funes_home)
    assert engines.ask("engine/status")["watching"] == "off"
    append(trace(own_home), [turn("the harbour master keeps a heron", 2)])
    fire({"transcript_path": str(trace(own_home))})
    until(lambda: "the harbour master keeps a heron" in engines.recall("heron"))


def test_a_trace_is_read_where_the_agent_says_it_keeps_them(
    engines: Engines, own_home: Path, funes_home: Path
) -> None:
    unwatched(funes_home)
    engines.connect()
    elsewhere = own_home / "else where"
    path = elsewhere / "projects" / "-work-demo" / "s2.jsonl"
    write(path, [turn("the harbour master keeps a heron", 2)])
    fire({"transcript_path": str(path)}, CLAUDE_CONFIG_DIR=str(elsewhere))
    until(lambda: "the harbour master keeps a heron" in engines.recall("heron"))


def test_a_hook_and_the_watcher_take_each_turn_once(engines: Engines, own_home: Path) -> None:
    with engines.connect():
        for number in range(2, 7):
            append(trace(own_home), [turn(f"heron number {number} has landed", number)])
            fire({"transcript_path": str(trace(own_home))})
        wanted = sorted(f"heron number {number} has landed" for number in range(2, 7))
        until(lambda: set(wanted) <= set(engines.recall("heron landed", k=20)))
        fire({"transcript_path": str(trace(own_home))})
        until(lambda: not engines.ask("engine/status")["indexing"])
        assert engines.ask("funes/status")["chunks"] == 6
        assert sorted(engines.recall("heron landed", k=5)) == wanted


def test_without_an_engine_one_is_started_and_told(
    engines: Engines, own_home: Path, funes_home: Path
) -> None:
    unwatched(funes_home)
    assert engines.pid == 0
    append(trace(own_home), [turn("the harbour master keeps a heron", 2)])
    fire({"transcript_path": str(trace(own_home))}, event="SessionStart")
    until(lambda: engines.pid, what="an engine runs")
    until(lambda: "the harbour master keeps a heron" in engines.recall("heron"))


@pytest.mark.parametrize("state", ["running", "none", "frozen"])
def test_no_turn_waits_for_long(engines: Engines, own_home: Path, state: str) -> None:
    payload = {"transcript_path": str(trace(own_home)), "last_assistant_message": "x" * 100_000}
    if state != "none":
        engines.connect()
        if state == "frozen":
            os.kill(engines.pid, signal.SIGSTOP)
    spent: list[float] = []
    bare: list[float] = []
    try:
        # The best of some: what else this machine does is no matter of the hook's.
        while len(spent) < _MOST_RUNS and min(spent, default=1.0) >= MOST_S:
            bare.append(nothing())
            spent.append(fire(payload))
    finally:
        if state == "frozen":
            os.kill(engines.pid, signal.SIGCONT)
    assert min(spent) < max(MOST_S, _MOST_TIMES * min(bare)), (spent, bare)
    until(lambda: engines.pid, what="an engine runs, so that it is ended")


PAYLOADS = [
    b"",
    b"not json",
    b"[]",
    b"\xff\xfe{",
    b'{"transcript_path": null}',
    b'{"transcript_path": 7}',
    b'{"transcript_path": "relative.jsonl"}',
    b'{"transcript_path": "/no/such/file.jsonl"}',
    b'{"transcript_path": "/nul\\u0000.jsonl"}',
    b'{"transcript_path": "/lone\\ud800.jsonl"}',
    b'{"transcript_path": "/' + b"x" * 100_000 + b'"}',
    b"[" * 200_000,
    b'{"last_assistant_message": "' + b"x" * (9 << 20) + b'"}',
]


def test_whatever_an_agent_says_the_hook_is_silent(engines: Engines) -> None:
    engines.connect()
    pid = engines.pid
    for payload in PAYLOADS:
        fire(payload)
    assert engines.ask("engine/status")["pid"] == pid


@pytest.mark.parametrize("words", [[], ["claude"], ["claude", "Stop", "more"], ["", ""]])
def test_whatever_it_is_called_with_the_hook_is_silent(words: list[str], own_home: Path) -> None:
    ran = subprocess.run([*COMMAND, "hook", *words], input=b"{}", capture_output=True, timeout=30)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_without_a_memory_nothing_is_made(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUNES_ENGINE")
    fire({"transcript_path": str(trace(own_home))})
    assert not (own_home / ".funes").exists()


def test_an_engine_that_cannot_start_costs_no_turn_anything(
    engines: Engines, own_home: Path, funes_home: Path
) -> None:
    (funes_home / "run").mkdir(exist_ok=True)
    for _ in range(starts.MAX_CRASHES + 2):
        starts.note_start(funes_home)
    fire({"transcript_path": str(trace(own_home))})
    assert engines.pid == 0
    starts.forget_crashes(funes_home)
    fire({"transcript_path": str(trace(own_home))}, PYTHONPATH=str(_broken(own_home)))
    log = funes_home / "logs" / hook.LOG
    until(log.exists, what="the failure is in the log")
    assert engines.pid == 0


def _broken(home: Path) -> Path:
    """Return a folder with which no engine starts."""
    folder = home / "broken"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import sys\nif sys.orig_argv[-1] == 'funes_ls.engine':\n    raise SystemExit(3)\n"
    )
    return folder


def test_the_log_says_where_and_nothing_of_the_session(
    own_home: Path, funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = " ".join(["the harbour master keeps a", "heron"])

    def fail(*_: Any) -> Any:
        raise ValueError(said)

    monkeypatch.setattr(hook, "event_of", fail)
    monkeypatch.setattr(hook, "_drained", lambda _number: b"")
    assert hook.main(["claude", "Stop"]) == 0
    log = (funes_home / "logs" / hook.LOG).read_text()
    assert "ValueError" in log
    assert said not in log
    for _ in range(3):
        (funes_home / "logs" / hook.LOG).write_text("x" * 300_000)
        assert hook.main(["claude", "Stop"]) == 0
    assert len((funes_home / "logs" / hook.LOG).read_text()) < 10_000


def test_hermes_names_no_trace_and_its_database_is_meant() -> None:
    env = {"HERMES_HOME": "/h"}
    assert hook.traces_of("hermes", {"session_id": "s"}, env) == ["/h/state.db"]
    assert hook.traces_of(
        "claude", {"transcript_path": "/a", "agent_transcript_path": "/b"}, {}
    ) == [
        "/a",
        "/b",
    ]


def test_no_process_is_left(engines: Engines, own_home: Path) -> None:
    fire({"transcript_path": str(trace(own_home))})
    until(lambda: engines.pid, what="an engine runs")
    until(lambda: not _hooks(own_home), what="who started it is gone")
    assert alive(engines.pid)


def _hooks(home: Path) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            env = (folder / "environ").read_bytes() if b"funes_ls.hook" in words else b""
        except OSError:
            continue
        if f"HOME={home}".encode() in env.split(b"\0"):
            found.append(int(folder.name))
    return found
