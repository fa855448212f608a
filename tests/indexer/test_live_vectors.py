"""Vectors of sessions that are being written never wait for an idle moment, as others do."""

import itertools
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from funes_ls.indexer import live as live_module
from funes_ls.indexer import live_vectors, live_work, live_writer
from funes_ls.indexer.errors import BackendError
from funes_ls.indexer.live_vectors import TOUCHED_LATE_S, TOUCHED_MOVE_S, VectorWork
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.model import Chunk
from tests.indexer.living import DEADLINE_S, SmallEmbedder, living, until
from tests.indexer.making import row, rows, writing
from tests.sessions import append, record, write


class Work:
    """The vector work of an open memory, with a clock that stands still."""

    def __init__(self, memory: Memory) -> None:
        self.now = 0.0
        self.memory = memory
        self.embedder = SmallEmbedder()
        self.vectors = VectorWork(clock=lambda: self.now)
        self.moved: list[str] = []

    def write(self, chunks: list[Chunk]) -> None:
        self.memory.queue(chunks)
        self.memory.commit_words()
        self.vectors.add_touched([chunk.id for chunk in chunks])

    def step(self, *, interrupted: bool = False, may_move: bool = True) -> None:
        moved = self.vectors.touched_step(
            self.memory, self.embedder, interrupted=lambda: interrupted, may_move=may_move
        )
        self.moved += [one.text for one in moved.rows] if moved else []


@pytest.fixture
def work(funes_home: Path) -> Iterator[Work]:
    with writing(funes_home) as memory:
        yield Work(memory)


def test_what_is_dropped_on_its_way_comes_first_again(work: Work) -> None:
    work.write(rows(3))
    work.step(interrupted=True, may_move=False)
    work.vectors.forget()
    assert work.vectors.touched_due_s() == 0.0
    work.step()
    assert sorted(work.moved) == sorted(one.text for one in rows(3))


def test_what_may_have_failed_is_left_to_the_rest(work: Work) -> None:
    work.write(rows(3))
    work.step(interrupted=True, may_move=False)
    work.vectors.forget(keep_touched=False)
    assert work.vectors.touched_due_s() is None
    assert work.vectors.has_background(work.memory)


def test_a_row_that_changes_on_its_way_gets_the_vector_of_its_new_text(work: Work) -> None:
    work.write([row(1, "as it was")])
    work.step(may_move=False)
    work.memory.remove([row(1).id])
    work.write([row(1, "as it is now")])
    work.step()
    assert work.moved == ["as it is now"]
    assert not work.vectors.has_touched
    assert work.memory.catalog.pending_count() == 0


def test_of_too_many_rows_the_latest_come_first(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_vectors, "_MOST_TOUCHED", 4)
    work.vectors = VectorWork(clock=lambda: work.now)
    work.write(rows(6))
    work.write(rows(2, start=6))
    work.step()
    assert work.moved == [one.text for one in rows(4, start=4)]


def test_rows_that_come_all_the_time_are_moved_all_the_same(work: Work) -> None:
    """More come than are embedded, one at a time between two readings of what was written."""
    moved_at: list[float] = []
    for n in range(60):
        work.write(rows(2, start=2 * n))
        work.step(interrupted=True)
        work.now += 0.25
        if work.moved:
            moved_at.append(work.now)
            work.moved.clear()
    assert moved_at[0] <= TOUCHED_LATE_S + 0.5
    gaps = [later - sooner for sooner, later in itertools.pairwise(moved_at)]
    assert max(gaps) <= TOUCHED_LATE_S + TOUCHED_MOVE_S


def test_a_full_batch_waits_for_its_move_without_being_asked_again(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_vectors, "_TOUCHED_ROWS", 4)
    work.write(rows(1))
    work.step()
    work.write(rows(8, start=1))
    work.step()
    assert work.vectors.touched_due_s() == pytest.approx(TOUCHED_MOVE_S)
    assert work.vectors.touched_due_s(may_move=False) is None
    work.now += TOUCHED_MOVE_S
    assert work.vectors.touched_due_s() == 0.0


@pytest.fixture
def never_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let vectors of old sessions wait for ever: what gets one did not wait for an idle moment."""
    monkeypatch.setattr(live_writer, "_MOST_BUSY_S", float("inf"))


@pytest.mark.usefixtures("never_idle")
def test_a_look_at_every_root_that_comes_first_takes_nothing_away(
    funes_home: Path, projects: Path
) -> None:
    """The trace is current when its own turn comes; its new rows come first all the same."""
    busy = threading.Event()
    paths = [write(projects / "p" / f"{n}.jsonl", [record("first", uuid=f"u{n}")]) for n in "ab"]
    with living(funes_home, projects, busy=busy.is_set) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        busy.set()
        append(paths[0], [record("live words", uuid="u2", ts=datetime.now(UTC).isoformat())])
        append(paths[1], [record("old words", uuid="u2", ts="2026-03-02T10:00:00Z")])
        live.index.sweep()
        until(lambda: sorted(live.found("words")) == ["a", "b"])
        assert live.waiting() == 2
        live.index.touch(paths)
        until(lambda: live.moved("live words"))
        assert live.embedder.seen == ["first", "live words"]


@pytest.mark.usefixtures("never_idle")
@pytest.mark.parametrize("drop", ["a session is forgotten", "the model is loaded anew"])
def test_vectors_under_way_survive_what_drops_them(
    funes_home: Path, projects: Path, drop: str
) -> None:
    busy = threading.Event()
    path = write(projects / "p" / "s.jsonl", [record("first", uuid="u1")])
    write(projects / "p" / "t.jsonl", [record("unwanted", uuid="u1")])
    with living(funes_home, projects, busy=busy.is_set) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        busy.set()
        live.embedder.most = len(live.embedder.seen) + 1
        append(path, [record(f"live {n}", uuid=f"l{n}") for n in range(3)])
        live.index.touch([path])
        assert live.embedder.held.wait(DEADLINE_S)
        if drop == "a session is forgotten":
            forgotten = live.index.forget("t")
        else:
            live.index.reload_model()
        live.embedder.most = None
        live.embedder.gate.set()
        if drop == "a session is forgotten":
            assert forgotten.result(DEADLINE_S) == 1
        until(lambda: all(live.moved(f"live {n}") for n in range(3)))


@pytest.mark.usefixtures("never_idle")
def test_a_disk_that_fails_between_two_traces_costs_time_only(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "_PAUSE_S", 0.01)
    busy = threading.Event()
    paths = [write(projects / "p" / f"{n}.jsonl", [record(f"a{n}", uuid="u1")]) for n in range(2)]
    read_one, failed = live_work.read_one, threading.Event()

    def failing(task: object, *args: object, **more: object) -> object:
        if task.unit.key.endswith("1.jsonl") and not failed.is_set():  # type: ignore[attr-defined]
            failed.set()
            raise BackendError("no room", kind="disk")
        return read_one(task, *args, **more)  # type: ignore[arg-type]  # as it was called

    with living(funes_home, projects, busy=busy.is_set) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        busy.set()
        monkeypatch.setattr(live_work, "read_one", failing)
        for n, path in enumerate(paths):
            append(path, [record(f"live {n}", uuid="u2")])
        live.index.touch(paths)
        until(lambda: live.moved("live 0") and live.moved("live 1"))
        assert failed.is_set()


@pytest.mark.usefixtures("never_idle")
def test_vectors_are_made_while_the_dataset_is_tidied(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the move waits for the end of it."""
    monkeypatch.setattr(live_writer, "_UNTIDY", 1)
    monkeypatch.setattr(live_writer, "_QUIET_S", 0.0)
    began, may_end = threading.Event(), threading.Event()
    tidy = Memory.tidy

    def slow(memory: Memory) -> None:
        began.set()
        assert may_end.wait(DEADLINE_S)
        tidy(memory)

    monkeypatch.setattr(Memory, "tidy", slow)
    path = write(projects / "p" / "s.jsonl", [record("first", uuid="u1")])
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        assert began.wait(DEADLINE_S)
        append(path, [record("live words", uuid="u2")])
        live.index.touch([path])
        until(lambda: "live words" in live.embedder.seen)
        assert not live.moved("live words")
        may_end.set()
        until(lambda: live.moved("live words"))


def test_the_slice_that_queries_owe_is_a_whole_one(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row every few seconds would be as good as none."""
    monkeypatch.setattr(live_writer, "_MOST_BUSY_S", 0.05)
    records = [record(f"old {n}", uuid=f"u{n}") for n in range(200)]
    write(projects / "p" / "s.jsonl", records)
    with living(funes_home, projects, busy=lambda: True) as live:
        live.index.run(live.job(words_only=True)).result(DEADLINE_S)
        until(lambda: live.waiting() == 0)
        assert len(live.embedder.seen) == 200
        assert live.embedder.calls < 20
