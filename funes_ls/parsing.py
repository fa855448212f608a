"""Shows what would be indexed of a trace, without storing anything."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from funes_ls.indexer.chunk import chunks_of
from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.home import expanded
from funes_ls.indexer.model import Chunk, Problem, Turn
from funes_ls.indexer.traces import TraceSource, Unit, detect, source_for


class ParsedUnit(Struct, frozen=True, kw_only=True):
    """A trace as a reader sees it: items come in file order."""

    source: TraceSource
    unit: Unit


def parse(path: Path, *, harness: str = "") -> Iterator[ParsedUnit | Problem]:
    """Yield the traces at a path, by name and age, without storing anything.

    Raises:
        UsageError: no such path, or an unknown harness.
    """
    path = expanded(path)
    if not path.exists():
        raise UsageError(f"No such path: {path}", kind="no_such_path")
    source = source_for(harness) if harness else detect(path)
    units: list[Unit] = []
    for unit in source.units(path):
        if isinstance(unit, Problem):
            yield unit
        else:
            units.append(unit)
    for unit in sorted(units, key=lambda one: (str(one.path), one.row, one.mtime_ns)):
        yield ParsedUnit(source=source, unit=unit)


def items_of(parsed: ParsedUnit) -> Iterator[Turn | Problem]:
    """Yield a trace's turns and problems in file order."""
    yield from parsed.source.read(parsed.unit)


def rows_of(turn: Turn, *, compat: bool) -> list[Chunk]:
    """Return the rows a turn gives: those of the compat profile, or those that are stored."""
    return [] if compat and turn.extra else list(chunks_of(turn, compat=compat))
