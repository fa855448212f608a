"""Keeps the facts of one session while its trace is read."""

from funes_ls.indexer import facts_tables as tables
from funes_ls.indexer.calls.builder import FactsBuilder
from funes_ls.indexer.calls.rows import pieces_of_turn
from funes_ls.indexer.catalog import Catalog
from funes_ls.indexer.facts import has_facts
from funes_ls.indexer.facts_tables import CallFacts
from funes_ls.indexer.model import Turn


class SessionFacts:
    """The facts of a session whose trace is being read."""

    def __init__(
        self, catalog: Catalog, session_id: str, builder: FactsBuilder, *, anew: bool
    ) -> None:
        """Prepare; use `begun`."""
        self._catalog = catalog
        self._session_id = session_id
        self._builder = builder
        self._found: list[CallFacts] = []
        self._anew = anew
        self._is_begun = False

    @classmethod
    def begun(
        cls, catalog: Catalog, session_id: str, cwd: str, *, is_tail: bool
    ) -> "SessionFacts | None":
        """Return the facts of a session to be added to.

        None where the earlier part of the session has none: they come from its rows later.
        """
        if not has_facts(catalog):
            return None
        kept = tables.saved_state(catalog, session_id) if is_tail else b""
        if kept is None:
            return None
        return cls(catalog, session_id, FactsBuilder(cwd, kept), anew=not is_tail)

    def add(self, turn: Turn, *, turn_uuid: str, ts_us: int | None, thinking: bool) -> None:
        """Take a turn, under the id it is stored by."""
        for piece in pieces_of_turn(turn, turn_uuid=turn_uuid, ts_us=ts_us, thinking=thinking):
            self._found.extend(self._builder.add(piece))

    def flush(self) -> None:
        """Write what was found so far; until `finish` it counts as cut short."""
        if not self._is_begun:
            tables.begin(self._catalog, self._session_id, anew=self._anew)
            self._is_begun = True
        if self._found:
            tables.add(self._catalog, self._session_id, self._found)
            self._found = []

    def finish(self) -> None:
        """Write the rest, and that this is all; inside the transaction of the session's record."""
        self.flush()
        tables.finish(self._catalog, self._session_id, self._builder.state)
