"""Arbitrary damage never stops a reader, and reading in steps still equals reading at once."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from funes_ls.indexer.chunk import chunks_of
from funes_ls.indexer.model import Problem, Turn
from funes_ls.indexer.traces import source_for
from tests.indexer.traces.reading import read_all, read_in_steps
from tests.indexer.traces.records import claude, sample

HARNESSES = ("claude", "codex", "pi")
#: What gets put into the middle of lines.
SPLINTERS = (
    b"\0" * 40,
    b"\n",
    b"\r\n",
    b"\xef\xbb\xbf",
    b"\\ud83d",
    b"NaN",
    b"\xff\xfe",
    b"{",
    b"}",
    b'"',
    b"[" * 200,
    b"\x1c",
    "\u2028".encode(),
    b"1e999",
    b"-0",
    b"null",
)

Damage = Callable[[random.Random, bytearray], None]


def put_splinter(chance: random.Random, data: bytearray) -> None:
    at = chance.randrange(len(data) + 1)
    data[at:at] = chance.choice(SPLINTERS)


def flip_byte(chance: random.Random, data: bytearray) -> None:
    if data:
        data[chance.randrange(len(data))] = chance.randrange(256)


def cut_out(chance: random.Random, data: bytearray) -> None:
    at = chance.randrange(len(data) + 1)
    del data[at : at + chance.randrange(1, 60)]


def repeat_part(chance: random.Random, data: bytearray) -> None:
    at = chance.randrange(len(data) + 1)
    data[at:at] = data[at : at + chance.randrange(1, 400)]


def damaged(chance: random.Random, harness: str) -> bytes:
    lines = sample(harness)
    if chance.random() < 0.3:
        chance.shuffle(lines)
    data = bytearray(b"".join(lines))
    for _ in range(chance.randrange(1, 8)):
        chance.choice((put_splinter, flip_byte, cut_out, repeat_part))(chance, data)
    return bytes(data)


def check_sound(turns: list[Turn], problems: list[Problem], data: bytes) -> None:
    compat = [turn for turn in turns if not turn.extra]
    assert [turn.seq for turn in compat] == list(range(len(compat)))
    for turn in turns:
        for chunk in chunks_of(turn):
            assert chunk.text.encode("utf-8")
            assert "\0" not in chunk.text
    for problem in problems:
        assert 0 < problem.line <= data.count(b"\n") + 1


@pytest.mark.parametrize("harness", HARNESSES)
def test_damaged_traces_are_read_alike_whole_and_in_steps(tmp_path: Path, harness: str) -> None:
    chance = random.Random(f"damage {harness}")
    source, path = source_for(harness), tmp_path / "session.jsonl"
    for _ in range(120):
        data = damaged(chance, harness)
        path.write_bytes(data)
        turns, problems, session = read_all(source, path)
        check_sound(turns, problems, data)
        cuts = sorted(chance.choices(range(len(data) + 1), k=3))
        in_steps, session_in_steps = read_in_steps(source, path, data, cuts)
        assert in_steps == turns, data
        assert session_in_steps == session, data


@pytest.mark.parametrize("harness", HARNESSES)
def test_noise_is_no_trace_and_no_crash(tmp_path: Path, harness: str) -> None:
    chance = random.Random(f"noise {harness}")
    source, path = source_for(harness), tmp_path / "session.jsonl"
    for size in (0, 1, 7, 5_000):
        path.write_bytes(chance.randbytes(size))
        turns, _, _ = read_all(source, path)
        assert turns == []


@pytest.mark.parametrize("harness", HARNESSES)
def test_records_of_the_wrong_shape_give_nothing(tmp_path: Path, harness: str) -> None:
    """Every value of every record in turn becomes something else."""
    source, path = source_for(harness), tmp_path / "session.jsonl"
    for line in sample(harness):
        for broken in _with_wrong_values(json.loads(line)):
            path.write_text(json.dumps(broken) + "\n", encoding="utf-8")
            turns, problems, _ = read_all(source, path)
            check_sound(turns, problems, path.read_bytes())
            assert problems == []


def _with_wrong_values(value: object) -> list[object]:
    wrong: list[object] = [None, True, 7, -1.5, "", "x", [], {}, [None, 3, ["x"]], {"type": "text"}]
    found: list[object] = list(wrong)
    if isinstance(value, dict):
        for key in value:
            found += [{**value, key: other} for other in _with_wrong_values(value[key])]
    if isinstance(value, list):
        for at in range(len(value)):
            found += [
                [*value[:at], other, *value[at + 1 :]] for other in _with_wrong_values(value[at])
            ]
    return found


def test_bad_lines_without_end_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    good, bad = json.dumps(claude(1, "hello")), "prose, not json\n"
    path.write_text(f"{bad}{good}\n{bad * 999}", encoding="utf-8")
    turns, problems, _ = read_all(source_for("claude"), path)
    assert len(turns) == 1
    assert [problem.line for problem in problems] == [1, *range(3, 102), 1001]
    assert sum(problem.count for problem in problems) == 1000


def test_a_file_of_something_else_is_one_problem(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    text = json.dumps([claude(1, "hello"), claude(2, "there")], indent=2)
    path.write_text(f"\n{text}\n", encoding="utf-8")
    turns, problems, _ = read_all(source_for("claude"), path)
    assert turns == []
    (problem,) = problems
    assert (problem.kind, problem.line) == ("bad_line", 2)
    assert problem.message == f"{problem.count} lines cannot be read, this one first."
    assert problem.count > 20
