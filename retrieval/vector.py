"""The vector leg: exact search over every vector in memory, the dataset's own index beyond that."""

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from funes_ls.indexer.dataset import Dataset
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.times import parse_ts
from funes_ls.retrieval.fuse import Leg
from funes_ls.retrieval.limits import Limits

if TYPE_CHECKING:
    import pyarrow as pa

#: Up to here every vector is held and compared; beyond, the dataset's index is asked.
EXACT_ROWS = 300_000
#: How many more rows to ask the index for when a limit can only be checked afterwards.
_OVERSHOOT = 4
_COLUMNS = ("session_id", "block_type", "tool_name", "harness", "seq", "ts")

Vector = NDArray[np.float32]
Mask = NDArray[np.bool_]


class Codes(Struct, frozen=True, kw_only=True):
    """A text column as numbers: `values[codes[i]]` is the text of row i."""

    codes: NDArray[np.int32]
    values: list[str]


class Exact:
    """Every vector of a memory as it was once, with what its rows are filtered by."""

    def __init__(self, dataset: Dataset, *, generation: int) -> None:
        """Read every vector of the dataset of a memory of that generation."""
        matrix = dataset.matrix(_COLUMNS)
        self.generation = generation
        self.ids = np.array(matrix.ids, dtype="U")
        self.vectors = matrix.vectors
        self._columns = matrix.columns
        self._codes: dict[str, Codes] = {}
        self._times: NDArray[np.float64] | None = None
        self._by_id: NDArray[np.int64] | None = None
        self._session_codes: dict[str, int] | None = None
        self._seq: NDArray[np.int64] | None = None

    def search(self, query: Vector, limits: Limits, limit: int, memory: Memory) -> Leg:
        """Return the rows nearest to a query among those within the limits."""
        rows = self._allowed(limits, memory)
        vectors = self.vectors if rows is None else self.vectors[rows]
        scores = vectors @ query
        best = _top(scores, limit)
        chosen = best if rows is None else rows[best]
        return Leg(ids=self.ids[chosen].tolist(), scores=scores[best].astype(np.float64))

    def cosines(self, query: Vector, ids: Sequence[str]) -> dict[str, float]:
        """Return the cosine of each of the rows that has a vector."""
        if not len(self.ids) or not ids:
            return {}
        if self._by_id is None:
            self._by_id = np.argsort(self.ids, kind="stable")
        asked = np.array(ids, dtype="U")
        at = np.searchsorted(self.ids, asked, sorter=self._by_id)
        rows = self._by_id[np.minimum(at, len(self.ids) - 1)]
        there = self.ids[rows] == asked
        scores = self.vectors[rows[there]] @ query
        return dict(zip(asked[there].tolist(), scores.tolist(), strict=True))

    def near(self, session_id: str, first: int, last: int) -> list[str]:
        """Return the ids of a session's rows whose `seq` is in `[first, last]`, in any order."""
        sessions = self._coded("session_id")
        if self._session_codes is None:
            self._session_codes = {value: code for code, value in enumerate(sessions.values)}
            self._seq = self._columns["seq"].to_numpy().astype(np.int64)
        code = self._session_codes.get(session_id)
        if code is None or self._seq is None:
            return []
        inside = (sessions.codes == code) & (self._seq >= first) & (self._seq <= last)
        return list(self.ids[inside].tolist())

    def _allowed(self, limits: Limits, memory: Memory) -> NDArray[np.int64] | None:
        mask: Mask | None = None
        for name, wanted in (
            ("session_id", limits.session_ids),
            ("block_type", limits.block_types),
            ("tool_name", limits.tools),
            ("harness", limits.harnesses),
        ):
            if wanted is not None:
                mask = _both(mask, self._is_in(name, wanted))
        if limits.timed:
            mask = _both(mask, self._in_time(limits, memory))
        return None if mask is None else np.flatnonzero(mask)

    def _is_in(self, name: str, wanted: frozenset[str]) -> Mask:
        column = self._coded(name)
        keep = np.fromiter((value in wanted for value in column.values), dtype=np.bool_)
        return keep[column.codes] if len(keep) else np.zeros(len(self.ids), dtype=np.bool_)

    def _in_time(self, limits: Limits, memory: Memory) -> Mask:
        if self._times is None:
            self._times = self._row_times(memory)
        mask = ~np.isnan(self._times)
        if limits.since_us is not None:
            mask &= self._times >= limits.since_us
        if limits.until_us is not None:
            mask &= self._times < limits.until_us
        return mask

    def _coded(self, name: str) -> Codes:
        if name not in self._codes:
            self._codes[name] = _encode(self._columns, name, len(self.ids))
        return self._codes[name]

    def _row_times(self, memory: Memory) -> NDArray[np.float64]:
        """Return UTC µs per row; a row without a time has that of the row before in its session."""
        stamps = self._coded("ts")
        parsed = np.array([_time(ts) for ts in stamps.values], dtype=np.float64)
        times = parsed[stamps.codes] if len(parsed) else np.zeros(0)
        if not np.isnan(times).any():
            return times
        sessions = self._coded("session_id")
        starts = {s.session_id: s.started_us for s in memory.catalog.sessions()}
        first = np.array(
            [_nan(starts.get(session_id)) for session_id in sessions.values], dtype=np.float64
        )
        seq = self._columns["seq"].to_numpy().astype(np.int64)
        return filled_forward(times, sessions.codes, seq, first)


def filled_forward(
    times: NDArray[np.float64],
    sessions: NDArray[np.int32],
    seq: NDArray[np.int64],
    first: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return times with each NaN replaced by the nearest earlier time of its session.

    Args:
        times: (n,) UTC µs or NaN, any order.
        sessions: (n,) index into `first`.
        seq: (n,) place in the session.
        first: (m,) what rows before a session's first known time get.
    """
    order = np.lexsort((seq, sessions))
    sorted_times, sorted_sessions = times[order], sessions[order]
    index = np.arange(len(order))
    known = np.where(np.isnan(sorted_times), -1, index)
    begins = np.r_[True, sorted_sessions[1:] != sorted_sessions[:-1]]
    start = np.maximum.accumulate(np.where(begins, index, 0))
    last = np.maximum.accumulate(known)
    reached = last >= start
    result = np.empty_like(times)
    result[order] = np.where(reached, sorted_times[np.maximum(last, 0)], first[sorted_sessions])
    return result


_EXACT: weakref.WeakKeyDictionary[Dataset, Exact] = weakref.WeakKeyDictionary()


def held(memory: Memory) -> Exact | None:
    """Return every vector of a memory as it is now, if they have been read already."""
    kept = _EXACT.get(memory.dataset) if memory.dataset is not None else None
    # The generation, not the dataset's version: that one takes the disk to answer.
    return kept if kept is not None and kept.generation == memory.generation else None


def exact(memory: Memory) -> Exact | None:
    """Return every vector of a memory as it is now; None for a big one, and without a dataset."""
    kept = held(memory)
    if kept is not None or memory.dataset is None:
        return kept
    generation = memory.generation
    if memory.dataset.count() > EXACT_ROWS:
        return None
    _EXACT[memory.dataset] = Exact(memory.dataset, generation=generation)
    return _EXACT[memory.dataset]


def search_vectors(memory: Memory, query: Vector, limits: Limits, limit: int) -> Leg:
    """Return the chunks nearest to a query vector within the limits, scores are cosines.

    Args:
        memory: One with a dataset.
        query: (dim,) float32, L2-normalised.
        limits: Which rows may be found; applied before the cut.
        limit: How many.
    """
    dataset = memory.dataset
    if dataset is None or limits.nothing:
        return Leg(ids=[], scores=np.zeros(0))
    whole = exact(memory)
    if whole is not None:
        return whole.search(query, limits, limit, memory)
    return _ask_index(memory, dataset, query, limits, limit)


def cosines(memory: Memory, query: Vector, ids: Sequence[str]) -> dict[str, float]:
    """Return the cosine of each chunk that has a vector, for chunks the words leg found."""
    whole = exact(memory)
    if whole is not None:
        return whole.cosines(query, ids)
    if memory.dataset is None or not ids:
        return {}
    where = f"id IN ({_quoted(ids)})"
    return dict(memory.dataset.nearest(query, len(ids), where=where))


def _ask_index(memory: Memory, dataset: Dataset, query: Vector, limits: Limits, limit: int) -> Leg:
    found = dataset.nearest(
        query, limit * (_OVERSHOOT if limits.timed else 1), where=_condition(limits)
    )
    if limits.timed:
        inside = {row.id for row in memory.rows([id_ for id_, _ in found]) if limits.holds(row)}
        found = [pair for pair in found if pair[0] in inside][:limit]
    return Leg(
        ids=[id_ for id_, _ in found], scores=np.array([score for _, score in found], dtype=float)
    )


def _condition(limits: Limits) -> str:
    """Return the limits as SQL, all but the times, whose spelling differs from row to row."""
    columns = {
        "session_id": limits.session_ids,
        "block_type": limits.block_types,
        "tool_name": limits.tools,
        "harness": limits.harnesses,
    }
    return " AND ".join(
        f"{name} IN ({_quoted(sorted(wanted))})"
        for name, wanted in columns.items()
        if wanted is not None
    )


def _quoted(values: Sequence[str]) -> str:
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


def _encode(table: "pa.Table", name: str, rows: int) -> Codes:
    """Return a column as codes; one that older memories lack is "" throughout."""
    if name not in table.column_names:
        return Codes(codes=np.zeros(rows, dtype=np.int32), values=[""])
    column = table[name].combine_chunks().fill_null("").dictionary_encode()
    codes = column.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    return Codes(codes=codes, values=column.dictionary.to_pylist())


def _top(scores: Vector, limit: int) -> NDArray[np.int64]:
    """Return the places of the highest scores, highest first."""
    if limit < len(scores):
        part = np.argpartition(-scores, limit)[:limit]
    else:
        part = np.arange(len(scores))
    return part[np.argsort(-scores[part], kind="stable")]


def _both(mask: Mask | None, other: Mask) -> Mask:
    return other if mask is None else mask & other


def _time(ts: str) -> float:
    return _nan(parse_ts(ts))


def _nan(value: int | None) -> float:
    return float("nan") if value is None else float(value)
