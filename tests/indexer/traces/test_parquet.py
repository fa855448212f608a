"""Parquet agent traces: one row a session, bad files, reading on."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funes_ls.indexer.chunk import chunks_of
from funes_ls.indexer.errors import TraceError
from funes_ls.indexer.model import Problem, Turn
from funes_ls.indexer.traces import Unit, source_for
from tests.indexer.traces.reading import stored_texts

SOURCE = source_for("parquet")


def write(path: Path, *rows: dict[str, Any], large: bool = False) -> Path:
    text = pa.large_string() if large else pa.string()
    names = list(dict.fromkeys(name for row in rows for name in row))
    kinds = {name: pa.list_(text) if name == "messages" else text for name in names}
    table = pa.table(
        {name: pa.array([row.get(name) for row in rows], kinds[name]) for name in names}
    )
    pq.write_table(table, path, row_group_size=2)
    return path


def row(session_id: str | None, *messages: Any, **more: Any) -> dict[str, Any]:
    texts = [m if m is None or isinstance(m, str) else json.dumps(m) for m in messages]
    return {"session_id": session_id, "messages": texts, **more}


def units_of(path: Path) -> list[Unit]:
    return [unit for unit in SOURCE.units(path) if isinstance(unit, Unit)]


def read(path: Path) -> list[Turn]:
    return [t for unit in units_of(path) for t in SOURCE.read(unit) if isinstance(t, Turn)]


USER = {"role": "user", "content": "why does it rotate"}
CALL = {
    "role": "assistant",
    "content": "on it",
    "reasoning_content": "hm",
    "tool_calls": [{"id": "c", "function": {"name": "bash", "arguments": {"p": 1e-7, "z": -0.0}}}],
}
ANSWER = {"role": "tool", "tool_call_id": "c", "content": "kiln.log"}


@pytest.mark.parametrize("large", [False, True])
def test_turns(tmp_path: Path, large: bool) -> None:
    path = write(
        tmp_path / "t.parquet",
        row("a", USER, "not json{", None, CALL, "7", {"role": "user", "content": [1]}, ANSWER),
        row(None, USER),
        row("b", USER, sent_at="2026", harness="codex", metadata='{"cwd": "/w/x"}', file_path="f"),
        large=large,
    )
    turns = read(path)
    assert [(t.turn_uuid, t.parent_uuid, t.seq, t.role) for t in turns] == [
        ("a-0", None, 0, "user"),
        ("a-1", "a-0", 1, "assistant"),
        ("a-2", "a-1", 2, "tool"),
        ("b-0", None, 0, "user"),
    ]
    assert [(b.block_type, b.text, b.tool_use_id) for b in turns[1].blocks] == [
        ("thinking", "hm", None),
        ("text", "on it", None),
        ("tool_use", '{"p":1e-7,"z":-0.0}', None),
    ]
    facets = [(t.ts, t.harness, t.workdir, t.source_path) for t in turns[2:]]
    assert facets == [("", "", "t", str(path)), ("2026", "codex", "-w-x", "f")]


def test_other_ways_to_hold_text(tmp_path: Path) -> None:
    """The hub marks messages as JSON; pandas stores few distinct values as a dictionary."""
    message = json.dumps(USER)
    table = pa.table(
        {
            "session_id": pa.array(["a", "b"]).dictionary_encode(),
            "messages": pa.array([[message], [message, None]], pa.list_(pa.string())).cast(
                pa.list_(pa.json_(pa.string()))
            ),
            "harness": pa.array(["codex", None]).dictionary_encode(),
            "sent_at": pa.array([1, 2]),
        }
    )
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    assert [(t.turn_uuid, t.harness, t.ts) for t in read(path)] == [
        ("a-0", "codex", ""),
        ("b-0", "", ""),
    ]


def test_what_a_tool_said_is_stored_as_its_result(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", row("a", CALL, ANSWER))
    answer = read(path)[1]
    assert [chunk.text for chunk in chunks_of(answer, compat=True)] == ["kiln.log"]
    (chunk,) = chunks_of(answer)
    assert (chunk.text, chunk.block_type, chunk.tool_name) == (
        "[tool_result bash] kiln.log",
        "tool_result",
        "bash",
    )
    assert chunk.id == next(iter(chunks_of(answer, compat=True))).id


def test_what_funes_answered_is_not_stored(tmp_path: Path) -> None:
    asked = {
        "role": "assistant",
        "tool_calls": [{"id": "c", "function": {"name": "funes_recall", "arguments": "{}"}}],
    }
    path = write(tmp_path / "t.parquet", row("a", USER, asked, ANSWER))
    assert stored_texts(read(path)) == ["why does it rotate"]


def test_many_rows_are_read_in_any_order(tmp_path: Path) -> None:
    rows = [row(f"s{n}", {"role": "user", "content": f"text {n}"}) for n in range(30)]
    path = write(tmp_path / "t.parquet", *rows)
    units = units_of(path)
    assert [unit.key for unit in units] == [f"{path}#s{n}" for n in range(30)]
    for unit in [*units[20:], *units[:3], units[2], units[1]]:
        (turn,) = SOURCE.read(unit)
        assert isinstance(turn, Turn)
        assert turn.blocks[0].text == f"text {unit.row}"


def test_a_session_id_that_comes_twice_is_two_units(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", row("a", USER), row("a", USER, CALL))
    assert [unit.key for unit in units_of(path)] == [f"{path}#a", f"{path}#a#1"]


def test_a_row_that_grew_is_read_on(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", row("a", USER))
    reading = SOURCE.read(units_of(path)[0])
    assert len(list(reading)) == 1
    write(path, row("a", USER, CALL))
    later = SOURCE.read(units_of(path)[0], resume=reading.resume)
    assert [getattr(turn, "turn_uuid", "") for turn in later] == ["a-1"]
    assert (later.restarted, later.session.title) == (False, "why does it rotate")
    write(path, row("a", ANSWER, CALL))
    again = SOURCE.read(units_of(path)[0], resume=later.resume)
    assert [getattr(turn, "turn_uuid", "") for turn in again] == ["a-0", "a-1"]
    assert again.restarted


@pytest.mark.parametrize("make", ["garbage", "empty", "no_messages", "wrong_kind"])
def test_a_file_without_agent_traces(tmp_path: Path, make: str) -> None:
    path = tmp_path / "t.parquet"
    if make == "garbage":
        path.write_bytes(b"PAR1 not really PAR1")
    elif make == "empty":
        path.write_bytes(b"")
    elif make == "no_messages":
        write(path, {"session_id": "a"})
    else:
        pq.write_table(pa.table({"session_id": ["a"], "messages": [7]}), path)
    with pytest.raises(TraceError):
        list(SOURCE.units(path))
    (problem,) = SOURCE.units(tmp_path)
    assert isinstance(problem, Problem)
    assert problem.kind == "bad_source"


def test_a_file_that_vanished_is_a_problem(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", row("a", USER))
    (unit,) = units_of(path)
    path.unlink()
    reading = SOURCE.read(unit)
    assert [getattr(item, "kind", "") for item in reading] == ["unreadable"]
    assert (reading.failed, reading.resume) == (True, b"")
