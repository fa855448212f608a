"""Every vector of a dataset in memory, with the columns that rows are chosen by.

What was read once is only ever added to: a search goes on over the rows it began with while rows
are appended behind them. After rows have left, everything is read again.
"""

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from funes_ls.indexer.dataset import Dataset
from funes_ls.indexer.model import Chunk
from funes_ls.indexer.times import parse_ts

#: Columns that rows are chosen by.
CODED = ("session_id", "block_type", "tool_name", "harness")
_READ = ("id", "vector", "seq", "ts", *CODED)
#: Rows that there is room for beyond those that are there, at least, and as a share of them. It
#: takes addresses only, no memory, until it is used.
_LEAST_ROOM = 16_384
_ROOM = 1 / 4
_BATCH_ROWS = 8192

Vectors = NDArray[np.float32]


class Moved(Struct, frozen=True, kw_only=True):
    """Rows that went into the dataset in one step.

    Attributes:
        rows: The rows.
        vectors: (len(rows), dim) float32, L2-normalised.
        version: Of the dataset after the step; 0 when it is not known.
    """

    rows: Sequence[Chunk]
    vectors: Vectors
    version: int = 0


class Codes(Struct, frozen=True, kw_only=True):
    """A text column as numbers: `values[codes[i]]` is the text of row i."""

    codes: NDArray[np.int32]
    values: list[str]


class _Room:
    """Arrays with room at their end, and what was ever put into them."""

    def __init__(self, dim: int, rows: int) -> None:
        self.lock = threading.Lock()
        self.used = 0
        self.ids: list[str] = []
        self.places: dict[str, int] = {}
        self.values: dict[str, dict[str, int]] = {name: {} for name in CODED}
        self._dim = dim
        self._make(rows)

    def _make(self, rows: int) -> None:
        self.vectors: Vectors = np.empty((rows, self._dim), dtype=np.float32)
        self.seq = np.empty(rows, dtype=np.int64)
        self.times = np.empty(rows, dtype=np.float64)
        self.codes = {name: np.empty(rows, dtype=np.int32) for name in CODED}

    def add(self, columns: dict[str, list[Any]], vectors: Vectors) -> None:
        """Put rows behind those that are there."""
        first, last = self.used, self.used + len(vectors)
        if last > len(self.vectors):
            self._grow(last)
        self.vectors[first:last] = vectors
        self.seq[first:last] = [seq or 0 for seq in columns["seq"]]
        self.times[first:last] = [_time(ts) for ts in columns["ts"]]
        for name, known in self.values.items():
            values = columns.get(name) or [""] * len(vectors)
            self.codes[name][first:last] = [
                known.setdefault(value or "", len(known)) for value in values
            ]
        for place, id_ in enumerate(columns["id"], start=first):
            self.places[id_] = place
        self.ids += columns["id"]
        self.used = last

    def _grow(self, least: int) -> None:
        old = (self.vectors, self.seq, self.times, self.codes)
        self._make(_with_room(least))
        used = self.used
        self.vectors[:used], self.seq[:used], self.times[:used] = (part[:used] for part in old[:3])
        for name in CODED:
            self.codes[name][:used] = old[3][name][:used]


class Held:
    """The vectors of a dataset of one version; for any thread.

    Attributes:
        version: Of the dataset.
        vectors: (n, dim) float32.
        seq: (n,) places in the session.
        times: (n,) UTC µs, NaN for rows without a time of their own.
    """

    def __init__(self, room: _Room, *, version: int) -> None:
        """See what is in the arrays now; use `read_all` and `extended`."""
        self._room = room
        self._rows = room.used
        self.version = version
        self.vectors = room.vectors[: self._rows]
        self.seq = room.seq[: self._rows]
        self.times = room.times[: self._rows]
        self._codes = {name: codes[: self._rows] for name, codes in room.codes.items()}

    def __len__(self) -> int:
        """Return how many rows there are."""
        return self._rows

    def ids(self, places: Iterable[int]) -> list[str]:
        """Return the ids of rows by place."""
        ids = self._room.ids
        return [ids[place] for place in places]

    def places(self, ids: Sequence[str]) -> list[int | None]:
        """Return where the rows are, None for those that are not here."""
        known = self._room.places
        return [
            at if (at := known.get(id_)) is not None and at < self._rows else None for id_ in ids
        ]

    def coded(self, name: str) -> Codes:
        """Return one of the `CODED` columns."""
        return Codes(codes=self._codes[name], values=list(self._room.values[name]))

    def extended(self, dataset: Dataset, *, only_added: bool, moved: Sequence[Moved]) -> "Held":
        """Return what a later version of the dataset holds, read as far as it is new.

        Args:
            dataset: The later version.
            only_added: No row has left since, nor come back another.
            moved: What was appended since, as far as the caller has it.
        """
        with self._room.lock:
            fresh = dataset.count() - len(self)
            if not only_added or fresh < 0 or self._room.used != len(self):
                return read_all(dataset)
            if _is_all(moved, fresh, self.version, dataset.version):
                for step in moved:
                    self._room.add(_columns_of(step.rows), step.vectors)
            elif not self._read_behind(dataset, range(len(self), len(self) + fresh)):
                return read_all(dataset)
            return Held(self._room, version=dataset.version)

    def _read_behind(self, dataset: Dataset, offsets: Sequence[int]) -> bool:
        """Read the rows behind those that are here; return whether these are they."""
        for start in range(0, len(offsets), _BATCH_ROWS):
            table = dataset.take(offsets[start : start + _BATCH_ROWS], _READ)
            columns, vectors = _parts(table, dataset.dim)
            if any(id_ in self._room.places for id_ in columns["id"]):
                return False
            self._room.add(columns, vectors)
        return True


def read_all(dataset: Dataset) -> Held:
    """Return every vector of a dataset."""
    rows = dataset.count()
    room = _Room(dataset.dim, _with_room(rows))
    version = dataset.version
    for batch in dataset.scan(_READ, batch_rows=_BATCH_ROWS):
        room.add(*_parts(batch, dataset.dim))
    dataset.release()
    return Held(room, version=version)


def _with_room(rows: int) -> int:
    return rows + max(_LEAST_ROOM, int(rows * _ROOM))


def _is_all(moved: Sequence[Moved], rows: int, first: int, last: int) -> bool:
    """Tell whether the steps lead from one version to another without a gap."""
    versions = [step.version for step in moved]
    return versions == list(range(first + 1, last + 1)) and rows == sum(
        len(step.rows) for step in moved
    )


def _columns_of(rows: Sequence[Chunk]) -> dict[str, list[Any]]:
    names = (name for name in _READ if name != "vector")
    return {name: [getattr(row, name) for row in rows] for name in names}


def _parts(table: Any, dim: int) -> tuple[dict[str, list[Any]], Vectors]:
    """Return the columns and the vectors of an Arrow table or batch."""
    columns = {
        name: table.column(name).to_pylist()
        for name in table.schema.names
        if name in _READ and name != "vector"
    }
    vectors = table.column("vector")
    parts = vectors.chunks if hasattr(vectors, "chunks") else [vectors]
    flat = [part.flatten().to_numpy(zero_copy_only=False) for part in parts]
    joined = np.concatenate(flat) if flat else np.zeros(0)
    return columns, np.asarray(joined, dtype=np.float32).reshape(-1, dim)


def _time(ts: str | None) -> float:
    found = parse_ts(ts or "")
    return float("nan") if found is None else float(found)
