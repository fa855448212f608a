"""The vector leg: exact search over every vector in memory, the dataset's own index beyond that."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from funes_ls.indexer.dataset import Dataset
from funes_ls.indexer.memory import MemoryView
from funes_ls.indexer.memory_held import Held
from funes_ls.retrieval.fuse import Leg
from funes_ls.retrieval.limits import Limits

#: How many more rows to ask the index for when a limit can only be checked afterwards.
_OVERSHOOT = 4

Vector = NDArray[np.float32]
Mask = NDArray[np.bool_]


class Exact:
    """Every vector of a memory as it was once, with what its rows are filtered by."""

    def __init__(self, held: Held, memory: MemoryView) -> None:
        """Search what is held of a memory."""
        self._held = held
        self._memory = memory

    def search(self, query: Vector, limits: Limits, limit: int) -> Leg:
        """Return the rows nearest to a query among those within the limits."""
        places, scores = self._held.nearest(query, limit, among=self._allowed(limits))
        return Leg(ids=self._held.ids(places.tolist()), scores=scores.astype(np.float64))

    def cosines(self, query: Vector, ids: Sequence[str]) -> dict[str, float]:
        """Return the cosine of each of the rows that has a vector."""
        found = zip(ids, self._held.places(ids), strict=True)
        there = {id_: place for id_, place in found if place is not None}
        if not there:
            return {}
        scores = self._held.cosines(query, np.array(list(there.values())))
        return dict(zip(there, scores.tolist(), strict=True))

    def _allowed(self, limits: Limits) -> NDArray[np.int64] | None:
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
            mask = _both(mask, self._in_time(limits))
        return None if mask is None else np.flatnonzero(mask)

    def _is_in(self, name: str, wanted: frozenset[str]) -> Mask:
        column = self._held.coded(name)
        keep = np.fromiter((value in wanted for value in column.values), dtype=np.bool_)
        return keep[column.codes] if len(keep) else np.zeros(len(self._held), dtype=np.bool_)

    def _in_time(self, limits: Limits) -> Mask:
        times = self._row_times()
        mask = ~np.isnan(times)
        if limits.since_us is not None:
            mask &= times >= limits.since_us
        if limits.until_us is not None:
            mask &= times < limits.until_us
        return mask

    def _row_times(self) -> NDArray[np.float64]:
        """Return UTC µs per row; a row without a time has that of the row before in its session."""
        held = self._held
        if not np.isnan(held.times).any():
            return held.times
        sessions = held.coded("session_id")
        starts = {s.session_id: s.started_us for s in self._memory.catalog.sessions()}
        first = np.array(
            [_nan(starts.get(session_id)) for session_id in sessions.values], dtype=np.float64
        )
        return filled_forward(held.times, sessions.codes, held.seq, first)


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


def exact(memory: MemoryView) -> Exact | None:
    """Return every vector of a memory as it is now; None for a big one, and without a dataset."""
    held = memory.vectors()
    return None if held is None else Exact(held, memory)


def search_vectors(memory: MemoryView, query: Vector, limits: Limits, limit: int) -> Leg:
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
        return whole.search(query, limits, limit)
    return _ask_index(memory, dataset, query, limits, limit)


def cosines(memory: MemoryView, query: Vector, ids: Sequence[str]) -> dict[str, float]:
    """Return the cosine of each chunk that has a vector, for chunks the words leg found."""
    whole = exact(memory)
    if whole is not None:
        return whole.cosines(query, ids)
    if memory.dataset is None or not ids:
        return {}
    where = f"id IN ({_quoted(ids)})"
    return dict(memory.dataset.nearest(query, len(ids), where=where))


def _ask_index(
    memory: MemoryView, dataset: Dataset, query: Vector, limits: Limits, limit: int
) -> Leg:
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


def _both(mask: Mask | None, other: Mask) -> Mask:
    return other if mask is None else mask & other


def _nan(value: int | None) -> float:
    return float("nan") if value is None else float(value)
