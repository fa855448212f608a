"""Reading on from where the last reading stopped, and noticing when that no longer fits."""

import json
from pathlib import Path

import pytest

from funes_ls.indexer.model import Problem, Turn
from funes_ls.indexer.traces import Reading, Unit, lines, source_for, state
from tests.indexer.traces.reading import (
    read_in_steps,
    stored_texts,
    turns_of,
    unit_at,
    write_lines,
)
from tests.indexer.traces.records import claude, codex, codex_header, codex_text

SOURCE = source_for("claude")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def line(number: int, content: object, **more: object) -> bytes:
    return json.dumps(claude(number, content, **more)).encode() + b"\n"  # type: ignore[arg-type]


def read(path: Path, resume: bytes | None = None) -> tuple[list[str], Reading]:
    reading = SOURCE.read(unit_at(SOURCE, path), resume=resume)
    items = list(reading)
    assert not [item for item in items if isinstance(item, Problem)]
    return stored_texts(item for item in items if isinstance(item, Turn)), reading


def test_only_what_was_added_is_read(path: Path) -> None:
    path.write_bytes(line(1, "one"))
    _, first = read(path)
    path.write_bytes(line(1, "one") + line(2, "two"))
    texts, second = read(path, first.resume)
    assert (texts, second.restarted, second.offset) == (["two"], False, path.stat().st_size)
    assert read(path, second.resume)[0] == []


def test_a_torn_last_line_waits_and_is_no_problem(path: Path) -> None:
    whole = line(1, "one") + line(2, "two") + line(3, "three finished later")
    for cut in range(len(line(1, "one") + line(2, "two")), len(whole) - 2):
        path.write_bytes(whole[:cut])
        texts, reading = read(path)
        assert texts == ["one", "two"]
        assert reading.offset == len(line(1, "one") + line(2, "two"))
    path.write_bytes(whole)
    assert read(path, reading.resume)[0] == ["three finished later"]


def test_a_last_line_without_line_feed_is_taken_once(path: Path) -> None:
    path.write_bytes(line(1, "one") + line(2, "two")[:-1])
    texts, reading = read(path)
    assert texts == ["one", "two"]
    path.write_bytes(line(1, "one") + line(2, "two")[:-1] + b" \r\n" + line(3, "three"))
    texts, later = read(path, reading.resume)
    assert (texts, later.restarted) == (["three"], False)
    path.write_bytes(line(1, "one") + line(2, "two")[:-1] + line(3, "glued"))
    texts, later = read(path, reading.resume)
    assert (texts, later.restarted) == (["one", "two", "glued"], True)


@pytest.mark.parametrize(
    "data",
    [
        line(1, "one"),
        line(1, "ONE") + line(2, "two"),
        line(3, "new") + line(1, "one") + line(2, "two"),
        b"",
    ],
)
def test_a_file_that_was_rewritten_is_read_whole(path: Path, data: bytes) -> None:
    path.write_bytes(line(1, "one") + line(2, "two"))
    _, reading = read(path)
    path.write_bytes(data)
    texts, later = read(path, reading.resume)
    assert later.restarted
    assert texts == stored_texts(turns_of(SOURCE, path))


@pytest.mark.parametrize("resume", [b"\xc1 not a state", b"\x80", b"x" * 100])
def test_a_foreign_state_is_not_used(path: Path, resume: bytes) -> None:
    path.write_bytes(line(1, "one"))
    texts, reading = read(path, resume)
    assert (texts, reading.restarted) == (["one"], True)


def test_a_state_of_another_harness_is_not_used(path: Path) -> None:
    path.write_bytes(line(1, "one"))
    _, reading = read(path)
    other = source_for("pi")
    later = other.read(unit_at(other, path), resume=reading.resume)
    assert (list(later), later.restarted) == ([], True)


def test_an_edit_in_the_middle_of_a_big_trace_is_only_seen_at_its_ends(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "WHOLE_HASH_BYTES", 1000)
    monkeypatch.setattr(state, "END_HASH_BYTES", 400)
    data = b"".join(line(number, f"text {number:04d}") for number in range(20))
    path.write_bytes(data)
    _, reading = read(path)
    for at, seen in [(len(data) // 2, False), (10, True), (len(data) - 10, True)]:
        edited = bytearray(data)
        edited[at] = ord("X")
        path.write_bytes(bytes(edited))
        later = SOURCE.read(unit_at(SOURCE, path), resume=reading.resume)
        list(later)
        assert later.restarted is seen


def test_names_and_own_calls_are_known_to_the_next_reading(path: Path) -> None:
    asked = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "funes ask x"}}]
    other = [{"type": "tool_use", "id": "t2", "name": "Read", "input": {}}]
    path.write_bytes(line(1, asked, role="assistant") + line(2, other, role="assistant"))
    _, reading = read(path)
    answers = [
        {"type": "tool_result", "tool_use_id": "t1", "content": "an old passage"},
        {"type": "tool_result", "tool_use_id": "t2", "content": "a file"},
    ]
    path.write_bytes(path.read_bytes() + line(3, answers))
    texts, later = read(path, reading.resume)
    assert (texts, later.late_names) == (["[tool_result Read] a file"], False)


def test_a_name_that_comes_after_its_answer_is_told(path: Path) -> None:
    answer = [{"type": "tool_result", "tool_use_id": "t1", "content": "out"}]
    call = [{"type": "tool_use", "id": "t1", "name": "Glob", "input": {}}]
    path.write_bytes(line(1, answer))
    texts, reading = read(path)
    assert texts == ["[tool_result] out"]
    path.write_bytes(path.read_bytes() + line(2, call, role="assistant"))
    _, later = read(path, reading.resume)
    assert later.late_names
    assert read(path)[0][0] == "[tool_result Glob] out"
    call[0]["name"] = "Grep"
    path.write_bytes(path.read_bytes() + line(3, call, role="assistant"))
    assert read(path, read(path)[1].resume)[1].late_names is False
    assert read(path, later.resume)[1].late_names


def test_a_work_directory_learnt_late_makes_it_read_whole(path: Path) -> None:
    path.write_bytes(line(1, "one", cwd=None))
    _, reading = read(path)
    path.write_bytes(path.read_bytes() + line(2, "two"))
    texts, later = read(path, reading.resume)
    assert (texts, later.restarted) == (["one", "two"], True)
    assert {turn.workdir for turn in turns_of(SOURCE, path)} == {"-work-demo"}


def test_a_codex_id_learnt_late_makes_it_read_whole(path: Path) -> None:
    source = source_for("codex")
    data = b"".join(
        json.dumps(record).encode() + b"\n"
        for record in (codex_text(1, "one"), codex_header("the-id"), codex_text(2, "two"))
    )
    turns, session = read_in_steps(source, path, data, [data.index(b"\n") + 1])
    assert [turn.turn_uuid for turn in turns] == ["the-id-0", "the-id-1"]
    assert session.session_id == "the-id"


def test_a_line_too_long_to_hold_is_passed_over(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 3 << 20)
    path.write_bytes(line(1, "one") + line(2, "x" * (4 << 20)) + line(3, "three"))
    items = list(SOURCE.read(unit_at(SOURCE, path)))
    assert stored_texts(item for item in items if isinstance(item, Turn)) == ["one", "three"]
    (problem,) = [item for item in items if isinstance(item, Problem)]
    assert (problem.kind, problem.line) == ("too_long", 2)
    path.write_bytes(line(1, "one") + line(2, "x" * (4 << 20))[:-1])
    texts, reading = read(path)
    assert (texts, reading.offset) == (["one"], len(line(1, "one")))


def test_a_long_line_is_read(path: Path) -> None:
    path.write_bytes(line(1, "one") + line(2, "word " * (1 << 19)) + line(3, "three"))
    texts, _ = read(path)
    assert (texts[0], texts[-1]) == ("one", "three")
    assert len(texts) > 2000


def test_a_state_knows_no_more_than_the_latest_names(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_for("codex")
    monkeypatch.setattr(state, "MAX_NAMES", 2)

    def called(number: int) -> dict[str, object]:
        return {"type": "function_call", "name": f"tool{number}", "call_id": f"c{number}"}

    def answered(number: int) -> dict[str, object]:
        return {"type": "function_call_output", "call_id": f"c{number}", "output": "out"}

    records = [codex(number, called(number)) for number in range(5)]
    write_lines(path, *records)
    reading = source.read(unit_at(source, path))
    assert len(list(reading)) == 5
    write_lines(path, *records, codex(6, answered(1)), codex(7, answered(4)))
    later = source.read(unit_at(source, path), resume=reading.resume)
    names = [turn.blocks[0].tool_name for turn in later if isinstance(turn, Turn)]
    assert names == [None, "tool4"]
    whole = [turn.blocks[0].tool_name for turn in turns_of(source, path)]
    assert whole[5:] == ["tool1", "tool4"]


def test_the_unit_of_a_file_tells_its_size_and_time(path: Path) -> None:
    path.write_bytes(line(1, "one"))
    unit = unit_at(SOURCE, path)
    info = path.stat()
    assert isinstance(unit, Unit)
    assert (unit.size, unit.mtime_ns, unit.inode) == (info.st_size, info.st_mtime_ns, info.st_ino)
