"""What the tests of readers share: reading a whole trace, reading it in steps, writing records."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from funes_ls.indexer.chunk import chunks_of
from funes_ls.indexer.model import Problem, SessionMeta, Turn
from funes_ls.indexer.traces import TraceSource, Unit


def unit_at(source: TraceSource, path: Path) -> Unit:
    """Return the only unit of a file."""
    (unit,) = source.units(path)
    assert isinstance(unit, Unit)
    return unit


def read_all(source: TraceSource, path: Path) -> tuple[list[Turn], list[Problem], SessionMeta]:
    """Return the turns, the problems and the session of a file read whole."""
    reading = source.read(unit_at(source, path))
    items = list(reading)
    turns = [item for item in items if isinstance(item, Turn)]
    problems = [item for item in items if isinstance(item, Problem)]
    return turns, problems, reading.session


def turns_of(source: TraceSource, path: Path) -> list[Turn]:
    """Return the turns of a file read whole."""
    return read_all(source, path)[0]


def stored_texts(turns: Iterable[Turn]) -> list[str]:
    """Return the texts of the chunks that are stored."""
    return [chunk.text for turn in turns for chunk in chunks_of(turn)]


def read_in_steps(
    source: TraceSource, path: Path, data: bytes, cuts: Sequence[int]
) -> tuple[list[Turn], SessionMeta]:
    """Return the turns and the session of a file that grows to each cut and is read each time."""
    turns: list[Turn] = []
    state: bytes | None = None
    for cut in [*cuts, len(data)]:
        path.write_bytes(data[:cut])
        reading = source.read(unit_at(source, path), resume=state)
        added = [item for item in reading if isinstance(item, Turn)]
        if reading.late_names:
            reading = source.read(unit_at(source, path))
            turns = [item for item in reading if isinstance(item, Turn)]
        else:
            turns = added if reading.restarted else turns + added
        state = reading.resume
    return turns, reading.session


def write_lines(path: Path, *records: Any, end: str = "\n") -> Path:
    """Write records, one a line; a string is written as it is."""
    texts = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(text + end for text in texts).encode("utf-8"))
    return path
