"""What a filter comes down to: sets of values that both legs test before they cut."""

from msgspec import Struct

from funes_ls.indexer.memory import Row


class Limits(Struct, frozen=True, kw_only=True):
    """Conditions on rows; None means none.

    Attributes:
        since_us: Inclusive; a row without any known time is outside once a side is set.
        until_us: Exclusive.
    """

    session_ids: frozenset[str] | None = None
    block_types: frozenset[str] | None = None
    tools: frozenset[str] | None = None
    harnesses: frozenset[str] | None = None
    since_us: int | None = None
    until_us: int | None = None

    @property
    def timed(self) -> bool:
        """Tell whether time matters."""
        return self.since_us is not None or self.until_us is not None

    @property
    def nothing(self) -> bool:
        """Tell whether no row can be within."""
        return self.session_ids is not None and not self.session_ids

    def holds(self, row: Row) -> bool:
        """Tell whether a row's time is within."""
        if not self.timed:
            return True
        if row.ts_us is None:
            return False
        after = self.since_us is None or row.ts_us >= self.since_us
        return after and (self.until_us is None or row.ts_us < self.until_us)
