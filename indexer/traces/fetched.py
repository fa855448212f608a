"""Reads traces that were fetched from elsewhere: they are known by where they come from."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from funes_ls.indexer.model import Problem, path_text
from funes_ls.indexer.traces.base import Reading, TraceSource, Unit


class FetchedSource:
    """The reader of a folder of fetched files, by what reads them when they are one's own.

    No path of this machine gets into rows, and a session that was fetched again from a newer state
    of the same place is the same one.
    """

    def __init__(self, source: TraceSource, root: Path, origin: str) -> None:
        """Read what lies below a root as what lies at an origin, such as `hf://datasets/a/b`."""
        self._source = source
        self._root = path_text(root)
        self._origin = origin

    @property
    def harness(self) -> str:
        """Return the harness whose sessions they are, "" for several."""
        return self._source.harness

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """Return nothing: it is fetched when it is asked for."""
        return []

    def units(self, root: Path) -> Iterator[Unit | Problem]:
        """Yield the sessions under the root."""
        for item in self._source.units(root):
            yield self._renamed(item)

    def units_at(self, root: Path, path: Path) -> list[Unit]:
        """Return nothing: what was fetched does not change."""
        return []

    def read(self, unit: Unit, *, resume: bytes | None = None) -> Reading:
        """Return a reading of a session."""
        return self._source.read(unit, resume=resume)

    def _renamed(self, item: Unit | Problem) -> Unit | Problem:
        if isinstance(item, Problem):
            return replace(item, path=self._there(item.path))
        return replace(
            item,
            key=self._there(item.key),
            container=self._there(item.container),
            shown=self._there(item.container or item.key),
            is_fetched=True,
        )

    def _there(self, path: str) -> str:
        inside = path.removeprefix(self._root)
        return f"{self._origin}{inside.replace(chr(92), '/')}" if inside != path else path
