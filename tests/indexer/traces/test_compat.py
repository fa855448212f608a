"""Every public trace gives exactly the rows an independent reader gives, whole and in steps."""

import gzip
import hashlib
import random
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from funes_ls.indexer.chunk import chunks_of
from funes_ls.indexer.model import Turn
from funes_ls.indexer.traces import Unit, source_for
from tests.indexer.traces.reading import read_in_steps, turns_of

Row = tuple[str, ...]
JSONL = ("claude_code", "codex", "pi")


@cache
def expected_rows(shared: Path) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = defaultdict(list)
    with gzip.open(shared / "traces" / "expected_rows.tsv.gz", "rb") as file:
        for line in file.read().decode("utf-8").split("\n")[1:]:
            name, *row = line.split("\t")
            if name:
                rows[name].append(tuple(row))
    return rows


def compat_rows(turns: Iterator[Turn] | list[Turn]) -> list[Row]:
    return [
        (
            chunk.id,
            str(chunk.seq),
            chunk.role,
            chunk.block_type,
            chunk.tool_name or "",
            chunk.ts,
            chunk.workdir,
            str(chunk.block_idx),
            str(chunk.split_idx),
            hashlib.sha1(chunk.text.encode("utf-8")).hexdigest()[:12],
        )
        for turn in turns
        if not turn.extra
        for chunk in chunks_of(turn, compat=True)
    ]


def traces_of(shared: Path, harness: str) -> list[Path]:
    folder = shared / "traces" / "real" / harness
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("harness", [*JSONL, "hermes"])
def test_rows_equal_those_of_the_independent_reader(shared: Path, harness: str) -> None:
    expected, source = expected_rows(shared), source_for(harness)
    paths = traces_of(shared, harness)
    assert paths
    for path in paths:
        units = [unit for unit in source.units(path) if isinstance(unit, Unit)]
        units.sort(key=lambda unit: unit.key)
        turns = [turn for unit in units for turn in source.read(unit) if isinstance(turn, Turn)]
        name = path.relative_to(shared / "traces").as_posix()
        assert compat_rows(turns) == expected.get(name, []), name


@pytest.mark.parametrize("harness", JSONL)
def test_reading_in_steps_equals_reading_at_once(
    shared: Path, tmp_path: Path, harness: str
) -> None:
    chance = random.Random(f"steps {harness}")
    source = source_for(harness)
    for number, original in enumerate(traces_of(shared, harness)):
        data = original.read_bytes()
        path = tmp_path / str(number) / original.name
        path.parent.mkdir()
        path.write_bytes(data)
        whole = turns_of(source, path)
        ends = [at + 1 for at, byte in enumerate(data) if byte == 0x0A]
        cuts = sorted(
            chance.sample(ends, min(len(ends), 3)) + chance.choices(range(len(data)), k=4)
        )
        turns, _ = read_in_steps(source, path, data, cuts)
        assert turns == whole, (original.name, cuts)


def test_both_parquet_layouts_give_the_same_rows(shared: Path) -> None:
    folder, source = shared / "traces" / "real" / "parquet" / "built", source_for("parquet")
    rows: list[list[Row]] = []
    for name in ("agent-traces-utf8.parquet", "agent-traces-large.parquet"):
        units = [unit for unit in source.units(folder / name) if isinstance(unit, Unit)]
        turns = [turn for unit in units for turn in source.read(unit) if isinstance(turn, Turn)]
        assert {turn.session_id for turn in turns} == {
            "claude-code-pomodoro-timer-claude_code",
            "transcript-claude_code",
            "pi_session-pi",
            "no-meta",
        }
        rows.append([row[:6] for row in compat_rows(turns)])
    assert rows[0] == rows[1]
    assert len(rows[0]) > 50
