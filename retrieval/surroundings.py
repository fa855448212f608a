"""Reads what stands around hits, for all of them at once where the memory allows."""

from collections.abc import Iterable

from funes_ls.indexer.dataset import reading_order
from funes_ls.indexer.memory import Memory, Row
from funes_ls.retrieval.streamed import WITHIN_SEQS
from funes_ls.retrieval.vector import held


class Surroundings:
    """The rows around hits: enough for neighbours and for later snapshots of a streamed answer."""

    def __init__(self, memory: Memory, *, steps: int) -> None:
        """Look around in this memory, `steps` sequence steps on both sides."""
        self._memory = memory
        self._steps = max(steps, 0)
        self._rows: dict[str, dict[str, Row]] = {}

    def read(self, rows: Iterable[Row]) -> None:
        """Read the surroundings of some rows before they are asked for."""
        wanted = [row for row in rows if self._steps or row.role == "assistant"]
        vectors = held(self._memory)
        if vectors is None and self._memory.dataset is not None:
            for session_id in {row.session_id for row in wanted}:
                self._keep(self._memory.session_rows(session_id))
            return
        ids: list[str] = []
        for row in wanted:
            first, last = row.seq - self._steps, row.seq + self._steps
            if row.role == "assistant":
                last += WITHIN_SEQS
            if vectors is not None:
                ids += vectors.near(row.session_id, first, last)
            ids += self._waiting(row.session_id, first, last)
        self._keep(self._memory.rows(list(dict.fromkeys(ids))))

    def of(self, row: Row) -> list[Row]:
        """Return the known rows of a row's session in reading order."""
        return sorted(self._rows.get(row.session_id, {}).values(), key=reading_order)

    def _waiting(self, session_id: str, first: int, last: int) -> list[str]:
        if not self._memory.catalog.has_pending(session_id):
            return []
        waiting = self._memory.catalog.pending_session(session_id)
        return [chunk.id for chunk in waiting if first <= chunk.seq <= last]

    def _keep(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._rows.setdefault(row.session_id, {})[row.id] = row
