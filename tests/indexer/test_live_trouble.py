"""The live index when things go wrong: it says so, goes on, and leaves a whole memory."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from funes_ls.indexer import live as live_module
from funes_ls.indexer import live_memory, live_work, pipeline
from funes_ls.indexer.crash_marks import CrashMarks
from funes_ls.indexer.errors import BackendError, FunesError, MemoryStateError
from funes_ls.indexer.live_model import ModelLoader
from funes_ls.indexer.lock import writer_lock
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.model import Problem
from funes_ls.indexer.progress import IndexEvent
from funes_ls.indexer.traces import Unit, source_for
from tests.indexer.living import CLAUDE, DEADLINE_S, Living, living, until
from tests.indexer.making import reading, writing
from tests.sessions import append, record, write

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def script(code: str, **env: str) -> Iterator["subprocess.Popen[str]"]:
    """Run Python code that talks over its pipes, and end it."""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT)]), **env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


HOLDER = """
import sys
from pathlib import Path
from funes_ls.indexer.lock import writer_lock
with writer_lock(Path(sys.argv[1] if len(sys.argv) > 1 else __import__("os").environ["AT"])):
    print("held", flush=True)
    sys.stdin.readline()
print("free", flush=True)
"""


def test_another_writer_is_waited_for(funes_home: Path, projects: Path) -> None:
    """Statement 40: the second of two writers waits, says so, and goes on when it can."""
    write(projects / "p" / "s.jsonl", [record("apple", uuid="u1")])
    with script(HOLDER, AT=str(funes_home)) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        with living(funes_home, projects) as live:
            handle = live.index.run(live.job(wait_s=DEADLINE_S))
            hasty = live.index.run(live.job(wait_s=0.0))
            with pytest.raises(MemoryStateError) as refused:
                hasty.result(DEADLINE_S)
            assert refused.value.kind == "locked"
            state = live.index.state
            assert (state.phase, state.holds_lock, state.jobs) == ("waiting", False, 1)
            assert str(holder.pid) in state.note
            holder.stdin.write("\n")
            holder.stdin.flush()
            assert handle.result(DEADLINE_S).words.new == 1
            assert live.index.state.note == ""
            assert live.index.state.holds_lock


def test_a_request_that_waits_can_be_withdrawn(funes_home: Path, projects: Path) -> None:
    with script(HOLDER, AT=str(funes_home)) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with living(funes_home, projects) as live:
            handle = live.index.run(live.job(wait_s=DEADLINE_S))
            handle.cancel()
            assert handle.result(DEADLINE_S).stopped == "cancelled"


def test_the_lock_is_free_after_a_stop(funes_home: Path, projects: Path) -> None:
    write(projects / "p" / "s.jsonl", [record("apple", uuid="u1")])
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
    with writing(funes_home) as memory:
        assert memory.state().embedded == 1
    with pytest.raises(FunesError) as refused:
        live.index.run(live.job()).result(DEADLINE_S)
    assert refused.value.kind == "engine_stopping"


def test_stopped_in_the_middle_nothing_is_lost(funes_home: Path, projects: Path) -> None:
    for n in range(60):
        write(projects / "p" / f"s{n}.jsonl", [record(f"apple {n}", uuid=f"u{n}")])
    first = Living(funes_home, [(CLAUDE, projects)])
    first.embedder.most = 20
    first.index.start()
    handle = first.index.run(first.job())
    assert first.embedder.held.wait(DEADLINE_S)
    first.index.stop(wait_s=0.0)
    first.embedder.gate.set()
    assert first.index.stop(wait_s=DEADLINE_S)
    with pytest.raises(FunesError):
        handle.result(DEADLINE_S)
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        assert (live.total(), live.waiting()) == (60, 0)
    with reading(funes_home) as memory:
        rows = [row.id for n in range(60) for row in memory.session_rows(f"s{n}")]
        assert len(rows) == len(set(rows)) == memory.state().embedded == 60


def test_a_withdrawn_request_leaves_a_whole_memory(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statement 26."""
    monkeypatch.setattr(live_work, "STEP_S", 0.0)
    for n in range(200):
        write(projects / "p" / f"s{n}.jsonl", [record(f"apple {n}", uuid=f"u{n}")])
    with living(funes_home, projects) as live:
        handle = live.index.run(live.job(progress=lambda event: event.done > 9 and handle.cancel()))
        report = handle.result(DEADLINE_S)
        assert report.stopped == "cancelled"
        assert 0 < report.words.sessions < 200
        live.settle()
        assert live.total() == report.words.new
        assert live.waiting() == 0
        live.index.run(live.job()).result(DEADLINE_S)
        assert live.total() == 200


def test_a_reader_that_fails_costs_its_trace_only(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = write(projects / "p" / "bad.jsonl", [record("apple", uuid="u1")])
    good = write(projects / "p" / "good.jsonl", [record("pear", uuid="u2")])
    read = CLAUDE.read

    def failing(unit: Unit, *, resume: bytes | None = None) -> Any:
        if unit.path == bad.resolve():
            raise KeyError("some words of a session")
        return read(unit, resume=resume)

    monkeypatch.setattr(CLAUDE, "read", failing)
    with living(funes_home, projects) as live:
        report = live.index.run(live.job()).result(DEADLINE_S)
        assert (report.words.sessions, report.words.failed) == (1, 1)
        append(good, [record("plum", uuid="u3")])
        append(bad, [record("grape", uuid="u4")])
        live.index.touch([bad, good])
        until(lambda: live.found("plum") == ["good"])
        with reading(funes_home) as memory:
            (problem,) = memory.catalog.problems()
        assert (problem.path, problem.kind) == (str(bad), "failed")
        assert "KeyError" in problem.message and "words" not in problem.message
        monkeypatch.undo()
        live.index.sweep()
        until(lambda: live.found("grape") == ["bad"])


def test_without_a_model_words_go_on_and_it_is_tried_again(
    funes_home: Path, projects: Path
) -> None:
    """Statement 43."""
    path = write(projects / "p" / "s.jsonl", [record("apple", uuid="u1")])
    with living(funes_home, projects) as live:
        live.has_model = False
        report = live.index.run(live.job()).result(DEADLINE_S)
        assert (report.stopped, report.left) == ("no_model", 1)
        assert "No model" in report.note
        append(path, [record("pear", uuid="u2")])
        live.index.touch([path])
        until(lambda: live.found("pear") == ["s"])
        assert "No model" in live.index.state.note
        tries = live.loads
        live.has_model = True
        live.index.reload_model()
        until(lambda: live.waiting() == 0)
        assert live.loads == tries + 1
        assert live.index.state.note == ""


def test_the_model_is_tried_again_more_and_more_seldom(memory: Memory) -> None:
    now, loads, done = [0.0], [], threading.Event()

    def load(_memory: Memory) -> None:
        loads.append(now[0])

    loader = ModelLoader(load, on_done=done.set, clock=lambda: now[0])
    while now[0] < 4_000:
        done.clear()
        before = len(loads)
        assert loader.get(memory) is None
        if loader.is_loading or len(loads) > before:
            assert done.wait(DEADLINE_S)
        now[0] += 10
    waits = [after - before for before, after in itertools.pairwise(loads)]
    assert waits == [60, 120, 240, 480, 960, 1800]
    done.clear()
    loader.get(memory, now=True)
    assert done.wait(DEADLINE_S), "who asks does not wait"


def test_another_model_is_told_and_words_go_on(funes_home: Path, projects: Path) -> None:
    path = write(projects / "p" / "s.jsonl", [record("apple", uuid="u1")])
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        live.embedder.stamp = "test/other"
        append(path, [record("pear", uuid="u2")])
        live.index.touch([path])
        until(lambda: "test/other" in live.index.state.note)
        append(path, [record("plum", uuid="u3")])
        live.index.touch([path])
        until(lambda: live.found("plum") == ["s"])
        assert live.waiting() == 2


def test_a_failing_disk_interrupts_for_a_while(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "_PAUSE_S", 0.05)
    path = write(projects / "p" / "s.jsonl", [record("apple", uuid="u1")])
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        full = threading.Event()
        commit = Memory.commit_words

        def failing(memory: Memory, **more: Any) -> None:
            if full.is_set():
                raise BackendError("The disk is full.", kind="disk")
            commit(memory, **more)

        monkeypatch.setattr(Memory, "commit_words", failing)
        full.set()
        append(path, [record("pear", uuid="u2")])
        live.index.touch([path])
        until(lambda: live.index.state.note == "The disk is full.")
        full.clear()
        live.index.touch([path])
        until(lambda: live.found("pear") == ["s"])
        until(lambda: live.index.state.note == "")


def test_native_code_that_panics_does_not_end_the_thread(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PanicError(BaseException):
        pass

    monkeypatch.setattr(live_module, "_PAUSE_S", 0.05)
    path = write(projects / "p" / "s.jsonl", [record("apple", uuid="u1")])
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        units_of = live_work.units_of
        panics = [PanicError("secret words")]

        def panicking(*args: Any) -> Any:
            if panics:
                raise panics.pop()
            return units_of(*args)

        monkeypatch.setattr(live_work, "units_of", panicking)
        live.index.touch([path])
        until(lambda: not panics)
        append(path, [record("pear", uuid="u2")])
        live.index.touch([path])
        until(lambda: live.found("pear") == ["s"])
        assert "secret" not in live.index.state.note


def test_who_watches_may_fail(funes_home: Path, projects: Path) -> None:
    write(projects / "p" / "s.jsonl", [record("apple", uuid="u1")])
    with living(funes_home, projects) as live:

        def fail(_change: object) -> None:
            raise RuntimeError("told")

        live.on_change = fail
        assert live.index.run(live.job()).result(DEADLINE_S).vectors.embedded == 1


def test_nothing_to_read_is_an_error_of_the_request(funes_home: Path, projects: Path) -> None:
    with living(funes_home, projects) as live:
        gone = projects / "gone"
        handle = live.index.run(live.job())
        assert handle.result(DEADLINE_S).words.sessions == 0
        refused = live.index.run(type(handle.job)(places=[(source_for("hermes"), gone)]))
        refused.result(DEADLINE_S)

        def check(_memory: Memory) -> None:
            raise MemoryStateError("Another model.", kind="wrong_model")

        with pytest.raises(MemoryStateError, match="Another model"):
            live.index.run(live.job(check=check)).result(DEADLINE_S)
        assert live.index.state.holds_lock, "an error of one request is no reason to begin anew"


# A trace that ends the process


def unit(path: Path) -> Unit:
    found = next(iter(CLAUDE.units(path)))
    assert not isinstance(found, Problem)
    return found


def left_by_a_crash(run_dir: Path, one: Unit) -> None:
    """Leave what a process leaves that is killed while it reads a trace."""
    marks = CrashMarks(run_dir)
    with marks.reading(one):
        left = {path: path.read_bytes() for path in run_dir.iterdir() if path.is_file()}
    marks.close()
    for path, data in left.items():
        path.write_bytes(data)


def test_a_trace_that_killed_twice_is_passed_over_until_it_changes(
    funes_home: Path, projects: Path
) -> None:
    """Statement 41."""
    path = write(projects / "p" / "s.jsonl", [record("apple", uuid="u1")])
    write(projects / "p" / "t.jsonl", [record("pear", uuid="u2")])
    one, run_dir = unit(path), funes_home / "run"
    left_by_a_crash(run_dir, one)
    marks = CrashMarks(run_dir)
    assert not marks.is_fatal(one)
    marks.close()
    left_by_a_crash(run_dir, one)
    with living(funes_home, projects) as live:
        report = live.index.run(live.job()).result(DEADLINE_S)
        assert (report.words.sessions, report.words.failed) == (1, 1)
        with reading(funes_home) as memory:
            assert [problem.kind for problem in memory.catalog.problems()] == ["crashed"]
        append(path, [record("plum", uuid="u3")])
        live.index.touch([path])
        until(lambda: live.found("plum") == ["s"])
        with reading(funes_home) as memory:
            assert memory.catalog.problems() == []


def test_a_trace_read_to_its_end_is_innocent(funes_home: Path, projects: Path) -> None:
    one, run_dir = unit(write(projects / "s.jsonl", [record("a", uuid="u")])), funes_home / "run"
    left_by_a_crash(run_dir, one)
    marks = CrashMarks(run_dir)
    with marks.reading(one):
        pass
    marks.close()
    left_by_a_crash(run_dir, one)
    marks = CrashMarks(run_dir)
    assert not marks.is_fatal(one)
    marks.close()


@pytest.mark.parametrize("garbage", [b"", b"{", b"\xff" * 99, b"[1]"])
def test_marks_that_cannot_be_read_are_none(tmp_path: Path, garbage: bytes) -> None:
    for name in ("reading", "crashed.json"):
        (tmp_path / name).write_bytes(garbage)
    marks = CrashMarks(tmp_path)
    marks.close()


KILLED = """
import os, sys
from pathlib import Path
from tests.indexer.living import CLAUDE, Living
from funes_ls.indexer.live import LiveIndexer
from funes_ls.indexer import live_work

home, projects = Path(os.environ["AT"]), Path(os.environ["PROJECTS"])
if os.environ.get("KILLER"):
    read = CLAUDE.read
    def killing(unit, *, resume=None):
        if unit.path.name == os.environ["KILLER"]:
            os.kill(os.getpid(), 9)
        return read(unit, resume=resume)
    CLAUDE.read = killing
live = Living(home, [(CLAUDE, projects)])
live.index.start()
handle = live.index.run(live.job(progress=lambda event: print(event.phase, event.done, flush=True)))
handle.result(60)
print("done", flush=True)
live.index.stop()
"""


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_a_trace_that_kills_stops_the_third_start_no_more(funes_home: Path, projects: Path) -> None:
    for n in range(5):
        write(projects / "p" / f"s{n}.jsonl", [record(f"apple {n}", uuid=f"u{n}")])
    ends = []
    for _ in range(3):
        env = {"AT": str(funes_home), "PROJECTS": str(projects), "KILLER": "s2.jsonl"}
        with script(KILLED, **env) as run:
            out, _ = run.communicate(timeout=DEADLINE_S)
            ends.append((run.returncode, out.strip().endswith("done")))
    assert ends == [(-signal.SIGKILL, False), (-signal.SIGKILL, False), (0, True)]
    with reading(funes_home) as memory:
        assert memory.state().embedded == 4
        assert [problem.kind for problem in memory.catalog.problems()] == ["crashed"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("said", ["words 3", "words 40", "vectors", "vectors 20"])
def test_killed_at_any_point_nothing_is_lost_or_doubled(
    funes_home: Path, projects: Path, said: str
) -> None:
    """Statement 39."""
    for n in range(50):
        records = [record(f"apple {n} {t}", uuid=f"u{n}t{t}") for t in range(4)]
        write(projects / "p" / f"s{n}.jsonl", records)
    with script(KILLED, AT=str(funes_home), PROJECTS=str(projects)) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if line.startswith((said, "done")):
                break
        run.kill()
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        assert (live.total(), live.waiting()) == (200, 0)
    with reading(funes_home) as memory:
        rows = [row.id for n in range(50) for row in memory.session_rows(f"s{n}")]
        assert len(rows) == len(set(rows)) == memory.state().embedded == 200


def test_patience_with_the_lock_grows(funes_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    tries = []

    def refuse(_home: Path, **_more: Any) -> Any:
        tries.append(now[0])
        raise MemoryStateError("Locked.", kind="locked")

    monkeypatch.setattr(live_memory, "writer_lock", refuse)
    writable = live_memory.WritableMemory(funes_home, funes_home / "memory", clock=lambda: now[0])
    while now[0] < 100:
        assert writable.take() is None
        now[0] += 0.25
    waits = [after - before for before, after in itertools.pairwise(tries)]
    assert waits[:5] == [0.5, 1, 2, 4, 8]
    assert set(waits[5:]) == {15}


def test_a_session_forgotten_while_its_trace_is_read_stays_away(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_work, "STEP_S", 0.0)
    monkeypatch.setattr(pipeline, "_GROUP_BYTES", 1_000)
    records = [record(f"turn {n} of the big one", uuid=f"b{n}") for n in range(3_000)]
    write(projects / "p" / "big.jsonl", records)
    with living(funes_home, projects) as live:
        asked: list[Future[int]] = []

        def watch(event: IndexEvent) -> None:
            if event.phase == "words" and not asked:
                asked.append(live.index.forget("big"))

        live.index.run(live.job(progress=watch, words_only=True)).result(DEADLINE_S)
        assert asked[0].result(DEADLINE_S) == 3_000
        assert live.total() == 0


def test_roots_that_cannot_be_listed_are_told_of(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statement 43."""
    write(projects / "p" / "s.jsonl", [record("apple", uuid="u1")])
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)

        def refuse(_root: Path) -> Any:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(CLAUDE, "units", refuse)
        live.index.sweep()
        until(lambda: live.index.state.problems == 1)
        assert live.index.state.holds_lock
        with pytest.raises(BackendError, match="Permission denied"):
            live.index.run(live.job()).result(DEADLINE_S)
        monkeypatch.undo()
        assert live.index.run(live.job()).result(DEADLINE_S).words.current == 1


def test_waiting_for_another_writer_costs_no_time(tmp_path: Path) -> None:
    home, projects = tmp_path / "home", tmp_path / "projects"
    trace = write(projects / "p" / "s.jsonl", [record("one", uuid="u-1")])
    with living(home, projects) as live:
        live.index.run(live.job(words_only=True)).result(20)
    with writer_lock(home), living(home, projects) as live:
        live.index.touch([trace])
        until(lambda: live.index.state.phase == "waiting", what="it waits for the lock")
        began = time.process_time()
        threading.Event().wait(1.0)
        assert time.process_time() - began < 0.5
