"""Reading traces into the queue: growth, rewrites, collisions, moves; ids never move."""

from pathlib import Path

from funes_ls.indexer.chunk import chunk_id
from funes_ls.indexer.ingest import Ingested, ingest, is_current
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.model import Problem
from funes_ls.indexer.traces import Unit, source_for
from tests.sessions import append, record, tool_result, tool_use, write

CLAUDE = source_for("claude")
FILE_TIME_S = 1_770_000_000


def unit_of(path: Path, root: Path) -> Unit:
    found = [unit for unit in CLAUDE.units(root) if not isinstance(unit, Problem)]
    return next(unit for unit in found if unit.key == str(path))


def read(path: Path, root: Path, memory: Memory, *, thinking: bool = True) -> Ingested:
    return ingest(unit_of(path, root), CLAUDE, memory, thinking=thinking)


def texts(memory: Memory, session_id: str) -> list[str]:
    return [row.text for row in memory.session_rows(session_id)]


def test_a_session_is_queued_with_the_reference_ids(memory: Memory, projects: Path) -> None:
    path = write(projects / "p" / "s1.jsonl", [record("hello there", uuid="u1")])
    done = read(path, projects, memory)
    assert (done.session_id, done.new, done.total, done.removed) == ("s1", 1, 1, 0)
    [row] = memory.session_rows("s1")
    assert (row.id, row.text, row.embedded) == (chunk_id("s1", "u1", 0, 0), "hello there", False)


def test_growth_queues_only_what_is_new(memory: Memory, projects: Path) -> None:
    path = write(projects / "p" / "s1.jsonl", [record("one", uuid="u1")])
    read(path, projects, memory)
    append(path, [record("two", uuid="u2", role="assistant")])
    done = read(path, projects, memory)
    assert (done.new, done.total) == (1, 1)
    assert texts(memory, "s1") == ["one", "two"]
    session = memory.catalog.session("s1")
    assert session is not None
    assert (session.turns, session.chunks) == (2, 2)


def test_an_unchanged_trace_is_current(memory: Memory, projects: Path) -> None:
    path = write(projects / "p" / "s1.jsonl", [record("one", uuid="u1")])
    unit = unit_of(path, projects)
    assert not is_current(unit, memory.catalog.source(unit.key))
    read(path, projects, memory)
    assert is_current(unit, memory.catalog.source(unit.key))


def test_a_rewritten_trace_replaces_its_rows(memory: Memory, projects: Path) -> None:
    path = write(
        projects / "p" / "s1.jsonl",
        [record("kept", uuid="u1"), record("old text", uuid="u2"), record("gone", uuid="u3")],
    )
    read(path, projects, memory)
    write(path, [record("kept", uuid="u1"), record("new text, longer", uuid="u2")])
    done = read(path, projects, memory)
    assert texts(memory, "s1") == ["kept", "new text, longer"]
    assert (done.new, done.removed) == (1, 2)
    session = memory.catalog.session("s1")
    assert session is not None
    assert (session.turns, session.chunks) == (2, 2)


def test_an_emptied_trace_keeps_its_rows(memory: Memory, projects: Path) -> None:
    path = write(projects / "p" / "s1.jsonl", [record("one", uuid="u1")])
    read(path, projects, memory)
    write(path, [])
    done = read(path, projects, memory)
    assert (done.new, done.removed) == (0, 0)
    assert texts(memory, "s1") == ["one"]


def test_a_repeated_turn_id_with_other_text_gets_an_id_of_its_own(
    memory: Memory, projects: Path
) -> None:
    path = write(
        projects / "p" / "s1.jsonl", [record("first", uuid="u1"), record("second", uuid="u1")]
    )
    assert read(path, projects, memory).new == 2
    ids = {row.text: (row.id, row.turn_uuid) for row in memory.session_rows("s1")}
    assert ids == {
        "first": (chunk_id("s1", "u1", 0, 0), "u1"),
        "second": (chunk_id("s1", "s1-x1", 0, 0), "s1-x1"),
    }


def test_a_repeated_turn_with_the_same_text_is_one_row(memory: Memory, projects: Path) -> None:
    path = write(
        projects / "p" / "s1.jsonl", [record("same", uuid="u1"), record("same", uuid="u1")]
    )
    assert read(path, projects, memory).new == 1


def test_records_without_an_id_are_all_kept_apart(memory: Memory, projects: Path) -> None:
    records = [record(f"note {n}", uuid="") for n in range(3)]
    for one in records:
        del one["uuid"]
    path = write(projects / "p" / "s1.jsonl", records)
    assert read(path, projects, memory).new == 3
    assert sorted(texts(memory, "s1")) == ["note 0", "note 1", "note 2"]
    assert len({row.turn_uuid for row in memory.session_rows("s1")}) == 3


def test_reading_a_damaged_state_again_changes_nothing(memory: Memory, projects: Path) -> None:
    path = write(
        projects / "p" / "s1.jsonl", [record("first", uuid="u1"), record("second", uuid="u1")]
    )
    read(path, projects, memory)
    memory.catalog.forget_source(str(path))
    done = read(path, projects, memory)
    assert (done.new, done.removed) == (0, 0)
    assert sorted(texts(memory, "s1")) == ["first", "second"]


def test_two_living_files_of_one_name_are_two_sessions(memory: Memory, projects: Path) -> None:
    alpha = write(projects / "alpha" / "s1.jsonl", [record("alpha text", uuid="u1")])
    beta = write(
        projects / "beta" / "s1.jsonl",
        [record("beta text", uuid="u1"), record("beta only", uuid="u9")],
    )
    read(alpha, projects, memory)
    done = read(beta, projects, memory)
    assert done.session_id.startswith("s1@")
    assert texts(memory, "s1") == ["alpha text"]
    assert texts(memory, done.session_id) == ["beta text", "beta only"]
    rows = {row.text: row.id for row in memory.session_rows(done.session_id)}
    assert rows["beta only"] == chunk_id("s1", "u9", 0, 0)  # a free compat id does not move
    assert memory.catalog.session_count() == 2


def test_a_moved_trace_stays_one_session(memory: Memory, projects: Path) -> None:
    path = write(projects / "old" / "s1.jsonl", [record("one", uuid="u1")])
    read(path, projects, memory)
    moved = projects / "new" / "s1.jsonl"
    moved.parent.mkdir()
    path.rename(moved)
    append(moved, [record("two", uuid="u2")])
    done = read(moved, projects, memory)
    assert (done.session_id, done.new) == ("s1", 1)
    assert texts(memory, "s1") == ["one", "two"]
    session = memory.catalog.session("s1")
    assert session is not None
    assert (session.chunks, session.source_path) == (2, str(moved))


def test_a_copy_that_lives_beside_its_original_adds_nothing(memory: Memory, projects: Path) -> None:
    read(write(projects / "a" / "s1.jsonl", [record("one", uuid="u1")]), projects, memory)
    copy = write(projects / "b" / "s1.jsonl", [record("one", uuid="u1")])
    assert read(copy, projects, memory).new == 0
    assert memory.catalog.session_count() == 1


def test_without_thinking_the_block_numbers_stay(memory: Memory, projects: Path) -> None:
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "said"}]
    path = write(projects / "p" / "s1.jsonl", [record(content, uuid="u1", role="assistant")])
    read(path, projects, memory, thinking=False)
    [row] = memory.session_rows("s1")
    assert (row.text, row.block_idx, row.id) == ("said", 1, chunk_id("s1", "u1", 1, 0))


def test_a_run_without_thinking_takes_no_stored_thinking_back(
    memory: Memory, projects: Path
) -> None:
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "said"}]
    path = write(projects / "p" / "s1.jsonl", [record(content, uuid="u1", role="assistant")])
    read(path, projects, memory)
    memory.catalog.forget_source(str(path))
    read(path, projects, memory, thinking=False)
    assert sorted(texts(memory, "s1")) == ["hm", "said"]


def test_a_turn_without_a_time_takes_the_one_before_else_the_files(
    memory: Memory, projects: Path
) -> None:
    path = write(
        projects / "p" / "s1.jsonl",
        [
            record("first", uuid="u1", ts=None),
            record("second", uuid="u2", ts="2026-03-02T10:00:00Z"),
            record("third", uuid="u3", ts=None),
        ],
        mtime_s=FILE_TIME_S,
    )
    read(path, projects, memory)
    times = {row.text: row.ts_us for row in memory.session_rows("s1")}
    assert times["first"] == FILE_TIME_S * 1_000_000
    assert times["third"] == times["second"] == 1_772_445_600_000_000


def test_files_a_session_touched_are_noted(memory: Memory, projects: Path) -> None:
    path = write(
        projects / "p" / "s1.jsonl",
        [record(tool_use("Edit", {"file_path": "/w/a.py"}, id="t1"), uuid="u1", role="assistant")],
    )
    read(path, projects, memory)
    assert memory.catalog.files("s1") == ["/w/a.py"]


def test_what_funes_answered_is_not_stored(memory: Memory, projects: Path) -> None:
    path = write(
        projects / "p" / "s1.jsonl",
        [
            record("what did we decide", uuid="u1"),
            record(
                tool_use("mcp__funes__recall", {"query": "decide"}, id="t1"),
                uuid="u2",
                role="assistant",
            ),
            record(tool_result("an old passage", id="t1"), uuid="u3"),
        ],
    )
    read(path, projects, memory)
    assert texts(memory, "s1") == ["what did we decide"]


def test_problems_are_listed_by_place(memory: Memory, projects: Path) -> None:
    path = write(projects / "p" / "s1.jsonl", [record("one", uuid="u1")])
    with path.open("ab") as file:
        file.write(b"{not json}\n")
    append(path, [record("two", uuid="u2")])
    done = read(path, projects, memory)
    assert [(one.line, one.kind) for one in done.problems] == [(2, "bad_line")]
    assert [one.line for one in memory.catalog.problems()] == [2]
    assert texts(memory, "s1") == ["one", "two"]


def test_a_forgotten_session_does_not_come_back(memory: Memory, projects: Path) -> None:
    path = write(projects / "p" / "s1.jsonl", [record("one", uuid="u1")])
    read(path, projects, memory)
    assert memory.forget_session("s1") == 1
    append(path, [record("two", uuid="u2")])
    assert read(path, projects, memory).new == 0
    assert texts(memory, "s1") == []
    assert memory.catalog.session("s1") is None


def test_copied_turns_count_once_and_short_ids_by_session(memory: Memory, projects: Path) -> None:
    long = "aaaaaaaa-0000-4000-8000-000000000001"
    for name in ("s1", "s2"):
        records = [record("same", uuid=long), record("short id", uuid="7")]
        read(write(projects / "p" / f"{name}.jsonl", records), projects, memory)
    assert memory.turns == 4  # until somebody has time to count
    memory.count_turns()
    assert memory.turns == 3
    append(projects / "p" / "s1.jsonl", [record("another", uuid="8")])
    read(projects / "p" / "s1.jsonl", projects, memory)
    assert memory.turns == 4
    assert memory.forget_session("s2") == 2
    memory.count_turns()
    assert memory.turns == 3


def test_rows_a_killed_run_left_are_taken_up(memory: Memory, projects: Path) -> None:
    path = write(projects / "p" / "s1.jsonl", [record("one", uuid="u1"), record("two", uuid="u2")])
    read(path, projects, memory)
    with memory.catalog.transaction():  # as if the run died before it noted what it had read
        memory.catalog.forget_source(str(path))
        memory.catalog.forget_session("s1")
    assert memory.catalog.session("s1") is None
    write(path, [record("one", uuid="u1"), record("two, changed", uuid="u2")])
    assert read(path, projects, memory).removed == 1
    assert texts(memory, "s1") == ["one", "two, changed"]
    session = memory.catalog.session("s1")
    assert session is not None
    assert (session.chunks, session.turns) == (2, 2)


def test_growth_that_says_nothing_keeps_the_count(memory: Memory, projects: Path) -> None:
    path = write(projects / "p" / "s1.jsonl", [record("one", uuid="u1"), record("two", uuid="u2")])
    read(path, projects, memory)
    append(path, [{"type": "summary", "summary": "a title"}])
    read(path, projects, memory)
    append(path, [record("three", uuid="u3")])
    read(path, projects, memory)
    session = memory.catalog.session("s1")
    assert session is not None
    assert (session.turns, session.chunks) == (3, 3)


def test_an_emptied_and_refilled_trace_is_a_rewritten_one(memory: Memory, projects: Path) -> None:
    path = write(projects / "p" / "s1.jsonl", [record("one", uuid="u1"), record("two", uuid="u2")])
    read(path, projects, memory)
    write(path, [])
    read(path, projects, memory)
    append(path, [record("three", uuid="u3")])
    read(path, projects, memory)
    session = memory.catalog.session("s1")
    assert session is not None
    assert texts(memory, "s1") == ["three"]
    assert session.chunks == 1


def test_a_folder_with_a_number_sign_is_a_folder(memory: Memory, projects: Path) -> None:
    path = write(
        projects / "c#" / "s1.jsonl", [record("one", uuid="u1", ts=None)], mtime_s=FILE_TIME_S
    )
    read(path, projects, memory)
    assert [row.ts_us for row in memory.session_rows("s1")] == [FILE_TIME_S * 1_000_000]
    moved = projects / "d#" / "s1.jsonl"
    moved.parent.mkdir()
    path.rename(moved)
    assert read(moved, projects, memory).session_id == "s1"
