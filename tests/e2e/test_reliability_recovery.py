"""Statements 39 to 44 of reliability: killed, doubled, crashing, large, missing, and not watched.

Each test names its statement. Every engine here is a process of its own; what goes wrong in one is
put there from outside, by code that its Python runs first.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.latency.processes import LanguageServer
from funes_ls.engine.client import EngineError
from tests.e2e.cli import COMMAND, stored
from tests.e2e.engines import (
    Asking,
    Engines,
    alive,
    held_lock,
    peak_rss_mb,
    raw_request,
    until,
    with_fault,
)
from tests.sessions import append, record, tool_result, write

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
    pytest.mark.timeout(180),
]

SESSIONS = 30
TURNS = 12


@pytest.fixture
def projects(own_home: Path) -> Path:
    return own_home / ".claude" / "projects"


@pytest.fixture
def engines(funes_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engines]:
    monkeypatch.delenv("FUNES_ENGINE")
    monkeypatch.setenv("FUNES_ENGINE_IDLE", "120")
    with Engines(funes_home, os.environ) as found:
        yield found


def history(projects: Path, *, sessions: int = SESSIONS) -> int:
    """Write sessions whose every turn has a word of its own; return how many turns."""
    for s in range(sessions):
        records = [
            record(f"session {s} turn {t} speaks of valve{s * 100 + t}", uuid=f"s{s}t{t}")
            for t in range(TURNS)
        ]
        write(projects / "p" / f"s{s}.jsonl", records, mtime_s=1_700_000_000 + s)
    return sessions * TURNS


def one_session(projects: Path, name: str, *texts: str) -> Path:
    records = [record(text, uuid=f"{name}-{n}") for n, text in enumerate(texts)]
    return write(projects / "p" / f"{name}.jsonl", records)


def found(engines: Engines, text: str) -> bool:
    """Tell whether the engine recalls a text by its words."""
    return any(text in hit for hit in engines.recall(text, vectorWeight=0.0))


def status(engines: Engines) -> dict[str, Any]:
    answer: dict[str, Any] = engines.ask("funes/status")
    return answer


def is_whole(engines: Engines, chunks: int) -> bool:
    told = status(engines)
    return (told["chunks"], told["words_only"]) == (chunks, 0)


def assert_each_once(home: Path, chunks: int) -> None:
    rows = stored(home)
    assert len(rows) == chunks
    assert len({row.id for row in rows}) == chunks
    assert all(row.embedded for row in rows)


# 39: kill -9 during indexing, restart: no duplicate or half-written turns, resumes.


@pytest.mark.parametrize("seed", range(4))
def test_39_killed_while_indexing(
    projects: Path, funes_home: Path, engines: Engines, seed: int
) -> None:
    chunks = history(projects)
    chance = random.Random(seed)
    for _ in range(3):
        run = Asking(engines.connect(), "funes/index", finish=True)
        until(lambda run=run: run.told or run.over, what="the index tells of its work")
        until_later(run, chance.random() * 0.6)
        engines.kill()
        run.join()
        assert run.error is None or run.error.kind == "engine_down"
    engines.ask("funes/index", finish=True)
    until(lambda: is_whole(engines, chunks), what="everything has its vector")
    engines.stop()
    assert_each_once(funes_home, chunks)


def until_later(run: Asking, seconds: float) -> None:
    """Return after a time, or as soon as the request is over."""
    ends = time.monotonic() + seconds
    while not run.over and time.monotonic() < ends:
        time.sleep(0.005)


def test_39_the_next_engine_goes_on_by_itself(
    projects: Path, funes_home: Path, engines: Engines
) -> None:
    chunks = history(projects)
    run = Asking(engines.connect(), "funes/index", finish=True)
    until(lambda: run.told or run.over, what="the index tells of its work")
    engines.kill()
    with engines.connect():  # starts the next one; nobody asks it to index
        until(lambda: is_whole(engines, chunks), seconds=60, what="the work was taken up again")
    engines.stop()
    assert_each_once(funes_home, chunks)


# 40: two servers on one memory: one writes, the other reads or waits; neither corrupts.


def test_40_a_second_engine_leaves_the_first_alone(projects: Path, engines: Engines) -> None:
    one_session(projects, "a", "the first engine stays")
    engines.ask("funes/index", finish=True)
    first = engines.pid
    second = subprocess.run(
        [sys.executable, "-m", "funes_ls.engine"],
        env=engines.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    assert second.returncode == 0, second.stderr
    assert engines.pid == first
    assert alive(first)
    assert found(engines, "the first engine stays")


def test_40_an_engine_and_a_process_of_its_own_write_in_turn(
    projects: Path, funes_home: Path, engines: Engines
) -> None:
    chunks = history(projects)
    run = Asking(engines.connect(), "funes/index", finish=True)
    until(lambda: run.told or run.over, what="the index tells of its work")
    other = subprocess.run(
        [*COMMAND, "index", "--yes", "--json"],
        env={**engines.env, "FUNES_ENGINE": "inline"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
    )
    if other.returncode:
        assert b"is being written by process" in other.stderr
    run.wait()
    until(lambda: is_whole(engines, chunks), what="everything has its vector")
    engines.stop()
    assert_each_once(funes_home, chunks)


def test_40_two_language_servers_share_one_engine(
    projects: Path, funes_home: Path, engines: Engines, tmp_path: Path
) -> None:
    """As one has with two editors, whose engine is then killed under both."""
    path = one_session(projects, "a", "two editors, one memory")
    engines.ask("funes/index", finish=True)
    with (
        LanguageServer(engines.env, str(tmp_path)) as first,
        LanguageServer(engines.env, str(tmp_path)) as second,
    ):
        editors = (first, second)
        assert [texts(one, "two editors") for one in editors] == [["two editors, one memory"]] * 2
        assert engines.ask("engine/status")["clients"] == 3
        append(path, [record("a turn for both editors", uuid="a-8")])
        for one in editors:
            until(
                lambda one=one: "a turn for both editors" in texts(one, "a turn for both editors")
            )
        engines.kill()
        for one in editors:
            assert "two editors, one memory" in texts(one, "two editors")
        assert engines.ask("engine/status")["clients"] == 3
    engines.stop()
    assert_each_once(funes_home, 2)


def texts(server: LanguageServer, query: str) -> list[str]:
    answer = server.request("funes/recall", {"query": query, "neighbors": 0})
    return [hit["text"] for hit in answer["hits"]]


# 41: a crash loop is bounded, and a start does not re-run the step that crashed it.

_DIES_AFTER_START = """
import os, signal, sys, threading, time
if "funes_ls.engine" in sys.orig_argv:
    with open({starts!r}, "a") as file:
        file.write("start\\n")
    def die():
        record = {record!r}
        for _ in range(2000):
            try:
                if f'"pid": {{os.getpid()}}' in open(record).read():
                    os.kill(os.getpid(), signal.SIGKILL)
            except OSError:
                pass
            time.sleep(0.01)
    threading.Thread(target=die, daemon=True).start()
"""


def test_41_a_crash_loop_is_bounded(
    projects: Path, funes_home: Path, engines: Engines, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    code = _DIES_AFTER_START.format(
        starts=str(starts), record=str(funes_home / "run" / "engine.json")
    )
    engines.env = with_fault(engines.env, tmp_path / "fault", code)
    error = until(lambda: crash_once(engines), seconds=90, what="fronts stop starting it")
    assert error.kind == "engine_crashing"
    assert "engine.log" in error.hint
    count = len(starts.read_text(encoding="utf-8").splitlines())
    assert 2 <= count <= 6
    with pytest.raises(EngineError):
        engines.connect()
    assert len(starts.read_text(encoding="utf-8").splitlines()) == count


def crash_once(engines: Engines) -> EngineError | None:
    """Connect to an engine that will die; return the error that ends it, if it came."""
    try:
        with engines.connect(wait_s=3.0) as connection:
            connection.request("engine/status", {}, timeout_s=5)
    except EngineError as exc:
        return exc if exc.kind == "engine_crashing" else None
    return None


_DIES_AT_A_TRACE = """
import os, signal, sys
if "funes_ls.engine" in sys.orig_argv:
    from funes_ls.indexer import ingest
    real = ingest.ingest_steps
    def dying(unit, *args, **kwargs):
        if "poison" in str(unit.path):
            with open({deaths!r}, "a") as file:
                file.write("death\\n")
            os.kill(os.getpid(), signal.SIGKILL)
        return real(unit, *args, **kwargs)
    ingest.ingest_steps = dying
"""


def test_41_what_crashed_the_engine_is_not_read_again_and_again(
    projects: Path, engines: Engines, tmp_path: Path
) -> None:
    one_session(projects, "good", "a good session beside a bad one")
    one_session(projects, "poison", "whoever reads this dies")
    deaths = tmp_path / "deaths"
    code = _DIES_AT_A_TRACE.format(deaths=str(deaths))
    engines.env = with_fault(engines.env, tmp_path / "fault", code)
    with pytest.raises(EngineError):
        Asking(engines.connect(), "funes/index", finish=True).wait()
    until(lambda: names_problem(engines, "poison"), seconds=90, what="the trace is given up")
    assert 1 <= len(deaths.read_text(encoding="utf-8").splitlines()) <= 3
    until(lambda: found(engines, "a good session beside a bad one"), what="the others are read")
    engines.ask("funes/index", finish=True)
    assert len(deaths.read_text(encoding="utf-8").splitlines()) <= 3


def names_problem(engines: Engines, name: str) -> bool:
    """Tell whether a trace is listed as a problem by an engine that lives."""
    try:
        listed = engines.ask("funes/status", problems=True)
    except EngineError:
        return False
    return any(name in one["path"] for one in listed["problems"])


# 42: the peak of a full index of a large history stays below a stated cap.

#: Megabytes of resident memory an engine may take while it reads any history, words only; what it
#: has before (interpreter, libraries) included.
_CAP_MB = 450
#: Asked here: a test's own environment has no variable of ours.
_GIB = float(os.environ.get("FUNES_TEST_GB", "0"))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_42_memory_while_a_large_history_is_indexed(projects: Path, engines: Engines) -> None:
    """64 MB, or `FUNES_TEST_GB` times 1 GiB; one trace is a third of it, one line has 10 MB."""
    total_mb = int(_GIB * 1024) or 64
    large_history(projects, total_mb)
    with engines.connect() as connection:
        before = peak_rss_mb(engines.pid)
        report = connection.request("funes/index", {"wordsOnly": True}, timeout_s=800)
        assert report["chunks"] > 50 * total_mb
        peak = peak_rss_mb(engines.pid)
    assert before < peak < _CAP_MB
    assert found(engines, "needle after the long line")
    assert found(engines, "needle at the end of the large trace")


def large_history(projects: Path, total_mb: int) -> None:
    large = projects / "p" / "large.jsonl"
    large.parent.mkdir(parents=True)
    fill(large, total_mb // 3)
    append(large, [record("needle at the end of the large trace", uuid="large-end")])
    line = tool_result("word and word " * (10_000_000 // 14), id="toolu_1")
    append(projects / "p" / "line.jsonl", [record(line, uuid="line-0")])
    append(projects / "p" / "line.jsonl", [record("needle after the long line", uuid="line-1")])
    for n in range(max(1, (total_mb - total_mb // 3 - 10) // 2)):
        fill(projects / "p" / f"part-{n}.jsonl", 2)


def fill(path: Path, megabytes: int) -> None:
    """Write a trace of varied turns of about 4 kB each."""
    chance = random.Random(path.name)
    words = [f"{chance.getrandbits(40):x}" for _ in range(5000)]
    with path.open("w", encoding="utf-8") as file:
        for turn in range(megabytes * 250):
            text = " ".join(chance.choices(words, k=360))
            one = record(text, uuid=f"{path.stem}-{turn}", role=("user", "assistant")[turn % 2])
            file.write(json.dumps(one) + "\n")


# 43: missing or unreadable traces, a deleted model, a locked dataset degrade with a message.


def test_43_no_harness_has_left_anything(engines: Engines) -> None:
    with pytest.raises(EngineError, match="No agent has left sessions") as caught:
        engines.ask("funes/index", finish=True)
    assert caught.value.hint
    assert status(engines)["state"] == "missing"


def test_43_a_place_of_traces_that_is_no_folder(projects: Path, engines: Engines) -> None:
    write(
        projects.parents[1] / ".codex" / "sessions" / "s.jsonl",
        [{"type": "session_meta", "payload": {"id": "s", "cwd": "/w"}}],
    )
    projects.parent.mkdir(parents=True)
    os.mkfifo(projects)
    pid = engines.connect() and engines.pid
    engines.ask("funes/index", finish=True)
    assert names_problem(engines, ".claude")
    assert engines.pid == pid


def test_43_a_place_of_traces_that_goes_away(projects: Path, engines: Engines) -> None:
    path = one_session(projects, "a", "kept although its trace is gone")
    engines.ask("funes/index", finish=True)
    pid = engines.pid
    path.unlink()
    path.parent.rmdir()
    projects.rmdir()
    assert found(engines, "kept although its trace is gone")
    one_session(projects, "b", "the place has come back")
    until(lambda: found(engines, "the place has come back"), what="the new place is watched")
    assert engines.pid == pid


def test_43_the_model_is_deleted(
    projects: Path, engines: Engines, tiny_model: Path, tmp_path: Path
) -> None:
    model = copy_of(tiny_model, tmp_path / "model")
    engines.env["FUNES_MODEL"] = str(model)
    one_session(projects, "a", "words outlive the model")
    engines.ask("funes/index", finish=True)
    assert status(engines)["words_only"] == 0
    engines.stop()
    for file in sorted(model.iterdir()):
        file.unlink()
    answer = engines.ask("funes/recall", query="words outlive the model")
    assert [hit["text"] for hit in answer["hits"]] == ["words outlive the model"]
    assert answer["legs"]["vector"] == "no_model"
    assert answer["note"]
    one_session(projects, "b", "and new words come in all the same")
    until(lambda: found(engines, "and new words come in all the same"), what="new words")


def copy_of(model: Path, place: Path) -> Path:
    place.mkdir()
    for file in model.iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    return place


def test_43_another_process_holds_the_writer_lock(
    projects: Path, funes_home: Path, engines: Engines
) -> None:
    path = one_session(projects, "a", "read while another writes")
    engines.ask("funes/index", finish=True)
    engines.stop()
    with held_lock(funes_home) as holder:
        assert found(engines, "read while another writes")
        pid = engines.pid
        append(path, [record("written while another writes", uuid="a-9")])
        until(lambda: str(holder) in note(engines), what="the engine says who writes")
        assert not found(engines, "written while another writes")
    until(lambda: found(engines, "written while another writes"), what="the lock is taken")
    assert engines.pid == pid
    until(lambda: str(holder) not in note(engines), what="the note is gone")


def note(engines: Engines) -> str:
    said: str = engines.ask("engine/status")["note"]
    return said


# 44: polling where watching fails, and a look at start for what was missed.

_NO_WATCHES = """
import sys
if "funes_ls.engine" in sys.orig_argv:
    import errno, watchfiles._rust_notify as native
    Real = native.RustNotify
    def refusing(paths, debug=False, force_polling=False, *args, **kwargs):
        if not force_polling:
            raise OSError(errno.ENOSPC, "OS file watch limit reached")
        return Real(paths, debug, force_polling, *args, **kwargs)
    native.RustNotify = refusing
    import watchfiles.main
    watchfiles.main.RustNotify = refusing
"""


def test_44_polling_where_native_watching_fails(
    projects: Path, engines: Engines, tmp_path: Path
) -> None:
    engines.env = with_fault(engines.env, tmp_path / "fault", _NO_WATCHES)
    path = one_session(projects, "a", "watched by looking")
    engines.ask("funes/index", finish=True)
    until(lambda: watching(engines) == "polling", what="the watcher polls")
    assert note(engines)
    append(path, [record("a turn that only polling sees", uuid="a-9")])
    until(lambda: found(engines, "a turn that only polling sees"), what="polling sees it")


def test_44_native_watching_is_the_rule(projects: Path, engines: Engines) -> None:
    path = one_session(projects, "a", "watched by the system")
    engines.ask("funes/index", finish=True)
    until(lambda: watching(engines) == "native", what="the watcher runs")
    append(path, [record("a turn the system tells of", uuid="a-9")])
    until(lambda: found(engines, "a turn the system tells of"), what="the turn is seen")


def watching(engines: Engines) -> str:
    said: str = engines.ask("engine/status")["watching"]
    return said


def test_44_a_start_catches_what_was_missed(projects: Path, engines: Engines) -> None:
    path = one_session(projects, "a", "read before the engine ended")
    engines.ask("funes/index", finish=True)
    engines.stop()
    append(path, [record("written while nobody watched", uuid="a-9")])
    one_session(projects, "b", "a whole session that nobody watched")
    with engines.connect():
        until(lambda: found(engines, "written while nobody watched"), what="the grown trace")
        until(lambda: found(engines, "a whole session that nobody watched"), what="the new one")


# Bad surroundings.

_NO_SOCKETS = """
import errno, os, socket
real = socket.socket.bind
def bind(self, address):
    if self.family == socket.AF_UNIX and os.fsdecode(address).startswith({home!r}):
        raise OSError(errno.{name}, os.strerror(errno.{name}))
    return real(self, address)
socket.socket.bind = bind
"""


@pytest.mark.parametrize("name", ["EOPNOTSUPP", "EPERM", "EINVAL"])
def test_a_home_on_a_disk_without_sockets(
    projects: Path, funes_home: Path, engines: Engines, tmp_path: Path, name: str
) -> None:
    code = _NO_SOCKETS.format(home=str(funes_home), name=name)
    engines.env = with_fault(engines.env, tmp_path / "fault", code)
    one_session(projects, "a", "a home on a network disk")
    engines.ask("funes/index", finish=True)
    assert found(engines, "a home on a network disk")
    address = engines.ask("engine/status")["address"]
    assert not address.startswith(str(funes_home))
    place = Path(address)
    assert (place.parent.stat().st_mode & 0o077, place.stat().st_mode & 0o077) == (0, 0)
    engines.stop()
    assert not place.exists()


_JUMPS = """
import os, sys, time
if "funes_ls.engine" in sys.orig_argv:
    real, real_ns = time.time, time.time_ns
    def shift():
        try:
            return float(open({path!r}).read() or 0)
        except (OSError, ValueError):
            return 0.0
    time.time = lambda: real() + shift()
    time.time_ns = lambda: real_ns() + int(shift() * 1e9)
"""


@pytest.mark.parametrize("jump_s", [-86_400.0 * 400, 86_400.0 * 400])
def test_a_clock_that_jumps(
    projects: Path, engines: Engines, tmp_path: Path, jump_s: float
) -> None:
    clock = tmp_path / "clock"
    code = _JUMPS.format(path=str(clock))
    engines.env = with_fault(engines.env, tmp_path / "fault", code)
    path = one_session(projects, "a", "before the jump")
    engines.ask("funes/index", finish=True)
    pid = engines.pid
    clock.write_text(str(jump_s), encoding="ascii")
    append(path, [record("after the jump", uuid="a-8")])
    os.utime(path, (time.time() + jump_s, time.time() + jump_s))
    until(lambda: found(engines, "after the jump"), what="words after the jump")
    until(lambda: status(engines)["words_only"] == 0, what="vectors after the jump")
    assert found(engines, "before the jump")
    clock.write_text("0", encoding="ascii")
    append(path, [record("after the jump back", uuid="a-9")])
    until(lambda: found(engines, "after the jump back"), what="words after the jump back")
    assert engines.pid == pid


def test_an_engine_killed_mid_request(projects: Path, engines: Engines) -> None:
    chunks = history(projects)
    run = Asking(engines.connect(), "funes/index", finish=True)
    until(lambda: run.told, what="the request is under way")
    started = time.monotonic()
    engines.kill()
    with pytest.raises(EngineError) as caught:
        run.wait(10)
    assert (caught.value.kind, time.monotonic() - started < 5) == ("engine_down", True)
    assert "gone" in caught.value.message or "closed" in caught.value.message
    until(lambda: is_whole(engines, chunks), seconds=60, what="the next engine goes on")


def test_a_client_that_dies_mid_request(projects: Path, engines: Engines) -> None:
    one_session(projects, "a", "others are served on")
    engines.ask("funes/index", finish=True)
    for _ in range(5):
        connection = engines.connect()
        raw_request(
            connection._socket, {"id": 7, "method": "funes/recall", "params": {"query": "a"}}
        )
        connection.close()
    assert found(engines, "others are served on")
    until(lambda: engines.ask("engine/status")["clients"] == 1, what="the dead are forgotten")
