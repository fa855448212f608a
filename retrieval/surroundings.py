"""Reads what stands around hits."""

from collections.abc import Iterable

from funes_ls.indexer.dataset import reading_order
from funes_ls.indexer.memory import MemoryView, Row
from funes_ls.retrieval.streamed import WITHIN_SEQS


class Surroundings:
    """The rows around hits: enough for neighbours and for later snapshots of a streamed answer."""

    def __init__(self, memory: MemoryView, *, steps: int) -> None:
        """Look around in this memory, `steps` sequence steps on both sides."""
        self._memory = memory
        self._steps = max(steps, 0)
        self._rows: dict[str, dict[str, Row]] = {}

    def read(self, rows: Iterable[Row]) -> None:
        """Read the surroundings of some rows before they are asked for."""
        for row in rows:
            if self._steps or row.role == "assistant":
                last = row.seq + self._steps + (WITHIN_SEQS if row.role == "assistant" else 0)
                self._keep(
                    self._memory.session_rows(
                        row.session_id, first=row.seq - self._steps, last=last
                    )
                )

    def of(self, row: Row) -> list[Row]:
        """Return the known rows of a row's session in reading order."""
        return sorted(self._rows.get(row.session_id, {}).values(), key=reading_order)

    def _keep(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._rows.setdefault(row.session_id, {})[row.id] = row
