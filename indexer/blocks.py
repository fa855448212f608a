"""Whole blocks, as they were before they were cut into chunks: from a session's stored rows."""

import itertools
from collections.abc import Iterable, Iterator

from msgspec import Struct

from funes_ls.indexer.chunk import join_pieces
from funes_ls.indexer.model import Chunk


class StoredBlock(Struct, frozen=True, kw_only=True):
    """A block of a turn as it is stored.

    Attributes:
        text: Trimmed, with the label of tool blocks, as it was cut.
        rows: Its chunks, by `split_idx`.
    """

    text: str
    rows: tuple[Chunk, ...]

    @property
    def key(self) -> str:
        """Return what names the block: the id of its first chunk."""
        return self.rows[0].id


def blocks_of_rows(rows: Iterable[Chunk]) -> Iterator[StoredBlock]:
    """Yield the blocks of rows, which come session by session in reading order."""
    by_block = itertools.groupby(
        rows, key=lambda row: (row.session_id, row.seq, row.turn_uuid, row.block_idx)
    )
    for _, group in by_block:
        parts = sorted(group, key=lambda row: row.split_idx)
        yield StoredBlock(text=join_pieces([part.text for part in parts]), rows=tuple(parts))
