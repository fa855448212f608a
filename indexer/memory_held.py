"""Every vector of a dataset in memory, with the columns that rows are chosen by.

A vector is held as two bytes a number: the first alone is read to find what may be near, in half
the time that floats take, and both to tell how near it is, to about 1e-5. Many rows are looked
through by two threads.

What was read once is only ever added to: a search goes on over the rows it began with while rows
are appended behind them. After rows have left, everything is read again.
"""

import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from funes_ls.indexer.dataset import Dataset
from funes_ls.indexer.memory_columns import CODED, Columns, of_arrow, of_rows
from funes_ls.indexer.memory_freed import give_back
from funes_ls.indexer.memory_ids import RowIds
from funes_ls.indexer.model import Chunk

#: Up to here every vector is held, where the machine has room; beyond, the dataset itself is asked.
#: An index of its own takes ten times as long at 100,000 rows: docs/performance.md.
MOST_HELD = 1_500_000
#: Of the machine's memory vectors may take this share; what a row takes beside its vector, and what
#: a machine has that does not tell.
_SHARE = 1 / 6
_ROW_BYTES = 64
_USUAL_BYTES = 8 << 30
_READ = ("id", "vector", "seq", "ts", *CODED)
#: Rows that there is room for beyond those that are there, at least, and as a share of them. It
#: takes addresses only, no memory, until it is used.
_LEAST_ROOM = 16_384
_ROOM = 1 / 4
_BATCH_ROWS = 8192

#: Rows whose numbers are made floats at once: few enough to stay near the processor.
_BLOCK_ROWS = 2048
#: So many rows are looked through by two threads; with fewer, handing over takes what it saves.
_SHARED_FROM = 50_000
#: Rows of which the best stands for all, when it is looked for what the best ones have at least.
_GROUP_ROWS = 64
#: What the first byte of a number leaves is told in this many steps.
_STEPS = 254
#: Error of a score by first bytes, in standard deviations, within which rows are looked at again.
_DOUBT = 8.0
#: By how much the square of a vector's length may miss 1.
_UNEVEN = 1e-2

Vectors = NDArray[np.float32]
Places = NDArray[np.int64]


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
        self.ids = RowIds(rows)
        self.values: dict[str, dict[str, int]] = {name: {} for name in CODED}
        self._dim = dim
        self._make(rows)

    def _make(self, rows: int) -> None:
        self.first = np.empty((rows, self._dim), dtype=np.int8)
        self.second = np.empty((rows, self._dim), dtype=np.int8)
        self.scale = np.empty(rows, dtype=np.float32)
        self.seq = np.empty(rows, dtype=np.int64)
        self.times = np.empty(rows, dtype=np.float64)
        self.codes = {name: np.empty(rows, dtype=np.int32) for name in CODED}

    def add(self, columns: Columns, vectors: Vectors) -> None:
        """Put rows behind those that are there."""
        first, last = self.used, self.used + len(vectors)
        if last > len(self.seq):
            self._grow(last)
        self.first[first:last], self.second[first:last], self.scale[first:last] = _split(vectors)
        self.seq[first:last] = columns.seq
        self.times[first:last] = columns.times
        for name, known in self.values.items():
            codes, values = columns.coded[name]
            own = [known.setdefault(value, len(known)) for value in values]
            self.codes[name][first:last] = np.array(own, dtype=np.int32)[codes]
        self.ids.add(columns.ids)
        self.used = last

    def _grow(self, least: int) -> None:
        old, codes = self._arrays(), self.codes
        self._make(_with_room(least))
        for before, after in zip(old, self._arrays(), strict=True):
            after[: self.used] = before[: self.used]
        for name in CODED:
            self.codes[name][: self.used] = codes[name][: self.used]

    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self.first, self.second, self.scale, self.seq, self.times


class Held:
    """The vectors of a dataset of one version; for any thread.

    Attributes:
        version: Of the dataset.
        seq: (n,) places in the session.
        times: (n,) UTC µs, NaN for rows without a time of their own.
    """

    def __init__(self, room: _Room, *, version: int) -> None:
        """See what is in the arrays now; use `read_all` and `extended`."""
        self._room = room
        self._rows = room.used
        self.version = version
        self._first = room.first[: self._rows]
        self._second = room.second[: self._rows]
        self._scale = room.scale[: self._rows]
        self.seq = room.seq[: self._rows]
        self.times = room.times[: self._rows]
        self._codes = {name: codes[: self._rows] for name, codes in room.codes.items()}

    def __len__(self) -> int:
        """Return how many rows there are."""
        return self._rows

    def nearest(
        self, query: Vectors, limit: int, *, among: Places | None = None
    ) -> tuple[Places, Vectors]:
        """Return the places of the rows nearest to a vector and their cosines, best first.

        Args:
            query: (dim,) float32, L2-normalised.
            limit: How many.
            among: Places of the rows that are looked at, None for all.
        """
        rough = self._rough(query, among)
        chosen = _best(rough, limit, self._doubt())
        places = chosen if among is None else among[chosen]
        scores = self.cosines(query, places)
        best = np.argsort(-scores, kind="stable")[:limit]
        return places[best], scores[best]

    def cosines(self, query: Vectors, places: Places) -> Vectors:
        """Return the cosine of each of some rows."""
        return np.asarray(self.vectors(places) @ query, dtype=np.float32)

    def vectors(self, places: Places) -> Vectors:
        """Return (len(places), dim) float32, within 1e-5 of what the dataset holds."""
        numbers = self._second[places].astype(np.float32)
        numbers *= np.float32(1 / _STEPS)
        numbers += self._first[places]
        numbers *= self._scale[places, None]
        return numbers

    def _rough(self, query: Vectors, among: Places | None) -> Vectors:
        """Return the cosines by the first bytes."""
        rows = self._rows if among is None else len(among)
        scores = np.empty(rows, dtype=np.float32)

        def look_through(start: int, end: int) -> None:
            block = np.empty((_BLOCK_ROWS, len(query)), dtype=np.float32)
            for at in range(start, end, _BLOCK_ROWS):
                to = min(at + _BLOCK_ROWS, end)
                part: Any = slice(at, to) if among is None else among[at:to]
                block[: to - at] = self._first[part]
                # No BLAS: its own threads get in the way of these, and take up to six times longer.
                np.einsum("ij,j->i", block[: to - at], query, out=scores[at:to])

        if rows < _SHARED_FROM:
            look_through(0, rows)
        else:
            other = _second_thread().submit(look_through, rows // 2, rows)
            look_through(0, rows // 2)
            other.result()
        scores *= self._scale if among is None else self._scale[among]
        return scores

    def _doubt(self) -> float:
        """Return by how much two scores of first bytes may at most be in the wrong order."""
        # What is rounded off is even between -1/2 and 1/2 of a step, in every number by itself.
        return float(self._scale.max(initial=0.0)) / 12**0.5 * _DOUBT * 2**0.5

    def ids(self, places: Iterable[int]) -> list[str]:
        """Return the ids of rows by place."""
        return self._room.ids.at(places)

    def places(self, ids: Sequence[str]) -> list[int | None]:
        """Return where the rows are, None for those that are not here."""
        found = self._room.ids.places(ids)
        return [at if at is not None and at < self._rows else None for at in found]

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
            version = dataset.version
            fresh = dataset.count() - len(self)
            if not only_added or fresh < 0 or self._room.used != len(self):
                return read_all(dataset)
            if _is_all(moved, fresh, self.version, dataset.version):
                for step in moved:
                    self._room.add(of_rows(step.rows), step.vectors)
            elif not self._read_behind(dataset, range(len(self), len(self) + fresh)):
                return read_all(dataset)
            if dataset.version != version:  # it was removed meanwhile, and rows with it
                return read_all(dataset)
            return Held(self._room, version=version)

    def _read_behind(self, dataset: Dataset, offsets: Sequence[int]) -> bool:
        """Read the rows behind those that are here; return whether these are they."""
        for start in range(0, len(offsets), _BATCH_ROWS):
            table = dataset.take(offsets[start : start + _BATCH_ROWS], _READ)
            columns, vectors = _parts(table, dataset.dim)
            if any(place is not None for place in self._room.ids.places(columns.ids)):
                return False
            self._room.add(columns, vectors)
        return True


def fits(dataset: Dataset) -> bool:
    """Return whether all vectors of a dataset are to be held on this machine."""
    room = _machine_bytes() * _SHARE / (2 * dataset.dim + _ROW_BYTES)
    return dataset.count() <= min(MOST_HELD, room)


@cache
def _machine_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows does not tell it this way
        return _USUAL_BYTES


def read_all(dataset: Dataset) -> Held:
    """Return every vector of a dataset."""
    try:
        return _read_all(dataset)
    except Exception:
        if not dataset.is_left_behind():
            raise
        return _read_all(dataset)


def _read_all(dataset: Dataset) -> Held:
    rows = dataset.count()
    room = _Room(dataset.dim, _with_room(rows))
    version = dataset.version
    for batch in dataset.scan(_READ, batch_rows=_BATCH_ROWS):
        room.add(*_parts(batch, dataset.dim))
    room.ids.settle()
    give_back()
    return Held(room, version=version)


def _with_room(rows: int) -> int:
    return rows + max(_LEAST_ROOM, int(rows * _ROOM))


def _is_all(moved: Sequence[Moved], rows: int, first: int, last: int) -> bool:
    """Tell whether the steps lead from one version to another without a gap."""
    versions = [step.version for step in moved]
    return versions == list(range(first + 1, last + 1)) and rows == sum(
        len(step.rows) for step in moved
    )


@cache
def _second_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="funes-vectors")


def _best(scores: Vectors, limit: int, doubt: float) -> Places:
    """Return where the best scores are, and those that miss them by no more than the doubt."""
    if limit >= len(scores):
        return np.arange(len(scores))
    among = np.arange(len(scores))
    groups = len(scores) // _GROUP_ROWS
    if limit < groups:
        # So many groups hold a row each that is as good as this, so the best rows are.
        best = scores[: groups * _GROUP_ROWS].reshape(groups, _GROUP_ROWS).max(axis=1)
        among = np.flatnonzero(scores >= np.partition(best, -limit)[-limit] - np.float32(doubt))
    found = scores[among]
    least = np.partition(found, -limit)[-limit] - doubt
    return np.asarray(among[found >= least])


def _split(vectors: Vectors) -> tuple[NDArray[np.int8], NDArray[np.int8], Vectors]:
    """Return the two bytes of each number, and what they are multiples of in each row."""
    largest = np.maximum(vectors.max(axis=1, initial=0.0), -vectors.min(axis=1, initial=0.0))
    scale = np.where(largest > 0.0, largest / 127, 1.0).astype(np.float32)
    numbers = vectors / scale[:, None]
    first = np.rint(numbers)
    numbers -= first
    numbers *= _STEPS
    second = np.rint(numbers, out=numbers)
    return first.astype(np.int8), second.astype(np.int8), scale


def _parts(table: Any, dim: int) -> tuple[Columns, Vectors]:
    """Return the columns and the vectors of an Arrow table or batch."""
    vectors = table.column("vector")
    parts = vectors.chunks if hasattr(vectors, "chunks") else [vectors]
    flat = [_numbers(part, dim) for part in parts]
    joined = np.concatenate(flat) if flat else np.zeros((0, dim), dtype=np.float32)
    return of_arrow(table), _of_length_one(joined)


def _numbers(part: Any, dim: int) -> Vectors:
    """Return the numbers of an Arrow array of vectors; a row without one is all zeros."""
    if not part.null_count:
        flat = part.flatten().to_numpy(zero_copy_only=False)
        return np.asarray(flat, dtype=np.float32).reshape(-1, dim)
    found = np.zeros((len(part), dim), dtype=np.float32)
    there = part.is_valid().to_numpy(zero_copy_only=False)
    found[there] = np.asarray(
        part.drop_null().flatten().to_numpy(zero_copy_only=False), dtype=np.float32
    ).reshape(-1, dim)
    return found


def _of_length_one(vectors: Vectors) -> Vectors:
    """Return vectors as they are, but for rows of another program that are no unit vectors.

    A longer one would be nearer than any to every question; what is no number, to none.
    """
    lengths = np.einsum("ij,ij->i", vectors, vectors)
    wrong = np.flatnonzero(~(np.abs(lengths - 1.0) < _UNEVEN))
    if len(wrong):
        vectors = vectors.copy()
        for at in wrong:
            row = vectors[at].astype(np.float64)
            length = float(np.sqrt(row @ row)) if np.isfinite(row).all() else 0.0
            vectors[at] = row / length if length > 0.0 else 0.0
    return vectors
