"""Facts of stored rows equal those of the traces, on sample sessions and on public ones."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from funes_ls.indexer.calls.builder import FactsBuilder, Piece
from funes_ls.indexer.calls.rows import pieces_of_rows, pieces_of_turn
from funes_ls.indexer.chunk import chunks_of
from funes_ls.indexer.dataset import reading_order
from funes_ls.indexer.facts_tables import CallFacts
from funes_ls.indexer.model import Turn
from funes_ls.indexer.times import parse_ts
from funes_ls.indexer.traces import Unit, source_for

HOME = Path(__file__).resolve().parents[1] / "traces" / "home"
PLACES = {
    "claude": ".claude/projects",
    "codex": ".codex/sessions",
    "pi": ".pi/agent/sessions",
    "hermes": ".hermes",
}


def sessions(root: Path, harness: str) -> Iterator[tuple[str, list[Turn]]]:
    source = source_for(harness)
    for unit in source.units(root):
        if isinstance(unit, Unit):
            reading = source.read(unit)
            turns = [turn for turn in reading if isinstance(turn, Turn)]
            if not reading.late_names:
                yield reading.session.cwd, turns


def of_trace(cwd: str, turns: list[Turn]) -> list[CallFacts]:
    pieces = (
        piece
        for turn in turns
        for piece in pieces_of_turn(turn, turn_uuid=turn.turn_uuid, ts_us=parse_ts(turn.ts))
    )
    return facts(cwd, pieces)


def of_rows(cwd: str, turns: list[Turn]) -> list[CallFacts]:
    rows = [row for turn in turns for row in chunks_of(turn, ts_us=parse_ts(turn.ts))]
    return facts(cwd, pieces_of_rows(sorted(rows, key=reading_order)))


def facts(cwd: str, pieces: Iterator[Piece]) -> list[CallFacts]:
    builder = FactsBuilder(cwd)
    found = [one for piece in pieces for one in builder.add(piece)]
    return sorted(found, key=lambda one: (one.at.seq, one.at.turn_uuid, one.at.block_idx))


@pytest.mark.parametrize("harness", sorted(PLACES))
def test_samples(harness: str) -> None:
    count = 0
    for cwd, turns in sessions(HOME / PLACES[harness], harness):
        given = of_trace(cwd, turns)
        assert of_rows(cwd, turns) == given
        count += sum(len(one.events) for one in given)
    assert count > 5


@pytest.mark.timeout(120)
def test_public_traces(shared: Path) -> None:
    """Rows do not hold which answer is whose: parallel calls in no order may be taken wrongly."""
    same = other = 0
    for harness in ("claude_code", "codex", "pi", "hermes"):
        name = "claude" if harness == "claude_code" else harness
        for cwd, turns in sessions(shared / "traces" / "real" / harness, name):
            given, made = of_trace(cwd, turns), of_rows(cwd, turns)
            same += sum(one in given for one in made)
            other += sum(one not in given for one in made)
    assert same > 1_000
    assert other < same / 500
