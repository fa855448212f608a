"""The live index: what was written is found soon, in the order of how urgent it is."""

import sqlite3
import threading
import time
from pathlib import Path

import pytest

from funes_ls.indexer import live_work, live_writer, pipeline
from funes_ls.indexer.live_queue import LONGEST_S, QUIET_S, LiveQueue
from funes_ls.indexer.progress import IndexEvent
from funes_ls.indexer.traces import source_for
from funes_ls.indexer.watch import Watcher
from tests.indexer.living import DEADLINE_S, Living, living, until
from tests.indexer.making import reading
from tests.sessions import append, record, write


def test_a_job_reads_and_embeds_everything(funes_home: Path, projects: Path) -> None:
    for n in range(5):
        write(projects / "p" / f"s{n}.jsonl", [record(f"apple {n}", uuid=f"u{n}")])
    with living(funes_home, projects) as live:
        report = live.index.run(live.job()).result(DEADLINE_S)
        assert (report.words.sessions, report.words.new) == (5, 5)
        assert (report.vectors.embedded, report.left, report.stopped) == (5, 0, "")
        assert report.model == "test/small"
        assert sorted(live.found("apple")) == [f"s{n}" for n in range(5)]
    with reading(funes_home) as memory:
        assert memory.state().embedded == 5
        assert memory.turns == 5


def test_progress_counts_every_row_once(funes_home: Path, projects: Path) -> None:
    records = [record(f"apple {n}", uuid=f"u{n}") for n in range(600)]
    write(projects / "p" / "s.jsonl", records)
    told: list[tuple[int, int]] = []

    def watch(event: IndexEvent) -> None:
        if event.phase == "vectors":
            told.append((event.done, event.total))

    with living(funes_home, projects) as live:
        live.index.run(live.job(progress=watch)).result(DEADLINE_S)
    assert {total for _, total in told} == {600}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (600, 600)


def test_a_job_may_want_words_only_or_has_a_budget(funes_home: Path, projects: Path) -> None:
    path = write(projects / "p" / "s.jsonl", [record("apple", uuid="u1")])
    with living(funes_home, projects) as live:
        live.embedder.gate.clear()
        report = live.index.run(live.job(words_only=True)).result(DEADLINE_S)
        assert (report.stopped, report.left, report.vectors.embedded) == ("words_only", 1, 0)
        assert live.found("apple") == ["s"]
        append(path, [record("pear", uuid="u2")])
        live.embedder.gate.set()
        report = live.index.run(live.job(finish=False, budget_s=0.0)).result(DEADLINE_S)
        assert (report.words.new, report.stopped) in ((1, "budget"), (1, ""))


def test_a_limit_takes_the_newest(funes_home: Path, projects: Path) -> None:
    for n in range(4):
        write(projects / "p" / f"s{n}.jsonl", [record("a", uuid=f"u{n}")], mtime_s=1_000 + n)
    with living(funes_home, projects) as live:
        live.index.run(live.job(limit=2)).result(DEADLINE_S)
        assert sorted(live.found("a")) == ["s2", "s3"]


def test_a_touched_trace_is_found_by_words_then_has_vectors(
    funes_home: Path, projects: Path
) -> None:
    path = write(projects / "p" / "s.jsonl", [record("first words", uuid="u1")])
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        live.embedder.gate.clear()
        append(path, [record("banana bread", uuid="u2")])
        live.index.touch([path])
        until(lambda: live.found("banana") == ["s"], what="words")
        assert live.waiting() == 1
        live.embedder.gate.set()
        until(lambda: live.moved("banana bread"))
        assert live.waiting() == 0
    assert live.embedder.seen == ["first words", "banana bread"]


def test_what_is_told_is_there_to_be_read(funes_home: Path, projects: Path) -> None:
    """A reader that looks when it is told sees the rows, and their vectors when they moved."""
    path = write(projects / "p" / "s.jsonl", [record("first", uuid="u1")])
    seen: list[tuple[int, int, int]] = []
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)

        def look(change: object) -> None:
            with reading(funes_home) as memory:
                state = memory.state()
                seen.append((memory.generation, state.words, state.embedded))

        live.on_change = look
        append(path, [record("second", uuid="u2")])
        live.index.touch([path])
        until(lambda: len(live.changes) >= 2 and live.waiting() == 0)
        until(lambda: len(seen) >= 2)
    assert [(words, embedded) for _, words, embedded in seen[:2]] == [(2, 1), (2, 2)]
    told = [change.generation for change in live.changes[-2:]]
    assert [generation for generation, _, _ in seen[:2]] == told
    assert [change.sessions for change in live.changes[-2:]] == [("s",), ("s",)]


def test_a_burst_of_writes_is_one_pass(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statement 21."""
    path = write(projects / "p" / "s.jsonl", [record("first", uuid="u0")])
    passes: list[str] = []
    read_one = live_work.read_one

    def counted(task: pipeline.Task, *args: object, **more: object) -> object:
        passes.append(task.unit.key)
        return read_one(task, *args, **more)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(live_work, "read_one", counted)
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        for n in range(200):
            append(path, [record(f"burst {n}", uuid=f"b{n}")])
            live.index.touch([path])
        until(lambda: live.total() == 201, what="all rows")
    assert 1 <= len(passes) <= 4


def test_debounce_waits_for_quiet_but_not_for_ever() -> None:
    now = [0.0]
    queue = LiveQueue(clock=lambda: now[0])
    path = Path("/traces/s.jsonl")
    queue.touch([path])
    assert queue.due() == []
    now[0] = QUIET_S
    assert queue.due() == [path]
    assert queue.due() == []
    began = now[0]
    while not queue.due():
        queue.touch([path])
        now[0] += QUIET_S / 3
        assert now[0] - began < 2 * LONGEST_S
    assert now[0] - began >= LONGEST_S


def test_a_flood_of_paths_becomes_one_look_at_everything() -> None:
    queue = LiveQueue()
    queue.touch(Path(f"/traces/{n}.jsonl") for n in range(50_000))
    assert queue.touched_count < 10_000
    assert queue.take_sweep()
    assert not queue.take_sweep()


def test_a_trace_that_is_gone_after_the_pause_is_no_trouble(
    funes_home: Path, projects: Path
) -> None:
    """Statement 22."""
    path = write(projects / "p" / "s.jsonl", [record("apple", uuid="u1")])
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        append(path, [record("pear", uuid="u2")])
        live.index.touch([path])
        path.unlink()
        other = write(projects / "p" / "t.jsonl", [record("plum", uuid="u3")])
        live.index.touch([other])
        until(lambda: live.found("plum") == ["t"])
        assert live.found("apple") == ["s"]
        assert live.index.state.problems == 0


def test_touched_traces_go_before_a_long_index(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of a live session come between two steps of everything else."""
    monkeypatch.setattr(live_work, "STEP_S", 0.0)
    for n in range(300):
        write(projects / "p" / f"s{n}.jsonl", [record(f"old {n}", uuid=f"u{n}")])
    live_path = projects / "p" / "live.jsonl"
    at: list[int] = []
    with living(funes_home, projects) as live:
        begun = threading.Event()

        def watch(event: object) -> None:
            if getattr(event, "phase", "") != "words" or begun.is_set():
                return
            begun.set()
            write(live_path, [record("freshest of all", uuid="l1")])
            live.index.touch([live_path])

        handle = live.index.run(live.job(progress=watch))
        live.on_change = lambda change: (
            at.append(handle.report.words.sessions) if "live" in change.sessions else None
        )
        handle.result(DEADLINE_S)
        until(lambda: at)
    assert 0 < at[0] < 300
    assert live.found("freshest") == ["live"]


def test_a_big_trace_is_read_beside_others(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace of its own group is left between turns, and read to its end all the same."""
    monkeypatch.setattr(live_work, "STEP_S", 0.0)
    monkeypatch.setattr(pipeline, "_GROUP_BYTES", 1_000)
    records = [record(f"turn {n} of the big one", uuid=f"b{n}") for n in range(3_000)]
    big = write(projects / "p" / "big.jsonl", records)
    small = projects / "p" / "small.jsonl"
    at: list[int] = []
    with living(funes_home, projects) as live:
        begun = threading.Event()

        def watch(event: object) -> None:
            if getattr(event, "phase", "") == "words" and not begun.is_set():
                begun.set()
                write(small, [record("a small one", uuid="s1")])
                append(big, [record("the very last", uuid="last")])
                live.index.touch([big, small])

        live.on_change = lambda change: at.append(live.sources())
        live.index.run(live.job(progress=watch, words_only=True)).result(DEADLINE_S)
        until(lambda: live.found("very last") == ["big"])
        assert live.total() == 3_002
    assert at[0] == 1, "the small one was read first"


def test_a_first_trace_that_is_long_does_not_hold_up_others(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_work, "_MOST_BYTES", 10_000)
    first = write(projects / "p" / "first.jsonl", [record("apple", uuid="u1")])
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        long = write(
            projects / "p" / "long.jsonl", [record("pear " * 50, uuid=f"l{n}") for n in range(90)]
        )
        append(first, [record("plum", uuid="u2")])
        live.index.touch([long, first])
        until(lambda: live.found("plum") == ["first"])
        until(lambda: live.total() == 92, what="the long one, by a look at every root")


def test_a_folder_that_comes_is_read(funes_home: Path, projects: Path) -> None:
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        write(projects / "q" / "deep" / "s.jsonl", [record("apple", uuid="u1")])
        live.index.touch([projects / "q"])
        until(lambda: live.found("apple") == ["s"])


def test_many_changed_traces_are_read_like_a_whole_root(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_work, "_MOST_UNITS", 5)
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        paths = [
            write(projects / "p" / f"s{n}.jsonl", [record("apple", uuid=f"u{n}")])
            for n in range(30)
        ]
        live.index.touch(paths)
        until(lambda: live.total() == 30)


def test_a_sweep_finds_what_was_missed(funes_home: Path, projects: Path) -> None:
    path = write(projects / "p" / "s.jsonl", [record("apple", uuid="u1")])
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        append(path, [record("pear", uuid="u2")])
        live.index.sweep()
        assert not live.index.state.is_idle
        until(lambda: live.found("pear") == ["s"])
        live.settle()


def test_nothing_is_read_before_somebody_asked(funes_home: Path, projects: Path) -> None:
    path = write(projects / "p" / "s.jsonl", [record("apple", uuid="u1")])
    with living(funes_home, projects) as live:
        live.index.sweep()
        live.index.touch([path])
        until(lambda: live.index.state.is_idle)
        assert not (funes_home / "memory").exists()
        live.index.run(live.job()).result(DEADLINE_S)
        assert live.found("apple") == ["s"]


def test_a_forgotten_session_stays_away(funes_home: Path, projects: Path) -> None:
    path = write(projects / "p" / "s.jsonl", [record("apple", uuid="u1")])
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        assert live.index.forget("s").result(DEADLINE_S) == 1
        assert live.changes[-1].sessions == ("s",)
        append(path, [record("pear", uuid="u2")])
        live.index.touch([path])
        live.index.run(live.job()).result(DEADLINE_S)
        assert live.found("apple") == live.found("pear") == []
        assert live.index.forget("nobody").result(DEADLINE_S) == 0


def test_old_vectors_wait_for_queries_but_not_for_ever(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = threading.Event()
    path = write(projects / "p" / "s.jsonl", [record("old", uuid="u1")])
    with living(funes_home, projects, busy=busy.is_set) as live:
        busy.set()
        live.index.run(live.job(words_only=True)).result(DEADLINE_S)
        until(lambda: live.loads)
        append(path, [record("live words", uuid="u2")])
        live.index.touch([path])
        until(lambda: live.moved("live words"), what="what is written now does not wait")
        assert live.embedder.seen == ["live words"]
        busy.clear()
        live.index.wake()
        until(lambda: live.moved("old"))
        busy.set()
        monkeypatch.setattr(live_writer, "_MOST_BUSY_S", 0.0)
        write(projects / "p" / "t.jsonl", [record("older", uuid="u3")])
        live.index.run(live.job(words_only=True)).result(DEADLINE_S)
        until(lambda: live.moved("older"))


def test_a_pass_over_whole_roots_lets_queries_go_first_but_not_for_ever(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question that comes ends the step under way; the next one waits until it is answered."""
    monkeypatch.setattr(live_work, "_MOST_BUSY_S", 600.0)
    for n in range(60):
        write(projects / "p" / f"s{n}.jsonl", [record(f"old {n}", uuid=f"u{n}")])
    busy = threading.Event()
    read: list[int] = []

    def watch(event: object) -> None:
        if getattr(event, "phase", "") == "words":
            read.append(1)
            if len(read) == 5:
                busy.set()

    with living(funes_home, projects, busy=busy.is_set) as live:
        handle = live.index.run(live.job(progress=watch, words_only=True))
        until(lambda: len(read) >= 5)
        time.sleep(0.3)
        assert len(read) == 5
        busy.clear()
        until(lambda: len(read) > 5)
        monkeypatch.setattr(live_work, "_MOST_BUSY_S", 0.01)
        busy.set()
        handle.result(DEADLINE_S)
        assert live.found("old 59")[0] == "s59"


def test_the_dataset_is_tidied_in_a_quiet_moment(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_writer, "_UNTIDY", 3)
    monkeypatch.setattr(live_writer, "_QUIET_S", 0.05)
    with living(funes_home, projects) as live:
        for n in range(4):
            write(projects / "p" / f"s{n}.jsonl", [record(f"apple {n}", uuid=f"u{n}")])
            live.index.run(live.job()).result(DEADLINE_S)

        until(lambda: live.untidy() < 3, what="tidied")
        live.settle()
        write(projects / "p" / "more.jsonl", [record("pear", uuid="m")])
        live.index.run(live.job()).result(DEADLINE_S)
        assert live.total() == 5
        assert live.waiting() == 0


def test_hermes_is_followed_by_its_log(funes_home: Path, own_home: Path) -> None:
    root = own_home / ".hermes"
    root.mkdir()
    db = sqlite3.connect(root / "state.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, cwd TEXT)")
    db.execute(
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, "
        "tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL)"
    )
    db.execute("INSERT INTO sessions VALUES ('h1', 'cli', '/work'), ('h2', 'cli', '/work')")
    insert = "INSERT INTO messages(session_id, role, content, timestamp) VALUES (?, 'user', ?, 1e9)"
    db.execute(insert, ("h1", "apple"))
    one = Living(funes_home, [(source_for("hermes"), root)])
    watcher = Watcher(one.places, one.index.touch, on_sweep=one.index.sweep)
    one.index.start()
    try:
        one.index.run(one.job()).result(DEADLINE_S)
        watcher.start()
        until(lambda: watcher.state.mode == "native")
        for n, session in enumerate(("h1", "h2", "h1")):
            db.execute(insert, (session, f"pear{n}"))
            until(lambda n=n, session=session: one.found(f"pear{n}") == [session])
        assert one.changes[-1].sessions in (("h1",), ("h2",))
    finally:
        assert watcher.stop() and one.index.stop(wait_s=DEADLINE_S)
        db.close()


def test_turns_are_counted_in_a_quiet_moment(
    funes_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def turns() -> int:
        with reading(funes_home) as memory:
            return memory.turns

    monkeypatch.setattr(live_writer, "_QUIET_S", 0.05)
    trace = write(projects / "p" / "s.jsonl", [record("one", uuid="u1")])
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        assert turns() == 1
        append(trace, [record("two", uuid="u2")])
        live.index.touch([trace])
        until(lambda: turns() == 2, what="counted")
