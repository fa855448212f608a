"""Makes the facts that a memory lacks, bit by bit while nothing else is to be done."""

from collections.abc import Iterator

from funes_ls.indexer.calls.rebuild import rebuild_steps
from funes_ls.indexer.facts_tables import missing
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.redaction import record
from funes_ls.indexer.redaction.base import Redaction


class FactsWork:
    """Used by the writing thread."""

    def __init__(self) -> None:
        """Begin with nothing under way."""
        self._steps: Iterator[str] | None = None
        self._done_at = -1

    def forget(self) -> None:
        """Let go of what is under way: the memory is another one, or was changed by others."""
        self._steps, self._done_at = None, -1

    def step(self, memory: Memory, redaction: Redaction | None = None) -> float | None:
        """Take a step; return 0 while there may be more, None when there is nothing to do.

        Raises:
            ScannerError: the rows may hold secrets, and nobody can tell.
        """
        if self._steps is None:
            if self._done_at == memory.generation:
                return None
            if not missing(memory.catalog, 1):
                self._done_at = memory.generation
                return None
            self._steps = rebuild_steps(memory, clean=record.cleaner(memory.catalog, redaction))
        if next(self._steps, None) is not None:
            return 0.0
        self._steps, self._done_at = None, memory.generation
        return None
