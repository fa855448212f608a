"""Reads what was said in turns whose ids alone are known."""

from collections.abc import Collection, Sequence

from funes_ls.indexer.chunk import chunk_id, join_pieces
from funes_ls.indexer.memory import MemoryView, Row

#: A session and a turn of it.
TurnKey = tuple[str, str]
#: Of a turn, so many blocks are looked at, and so many pieces of each.
_BLOCKS = 8
_PIECES = 2


def turn_texts(
    memory: MemoryView, turns: Collection[TurnKey], *, kinds: Sequence[str], last: bool = False
) -> dict[TurnKey, str]:
    """Return what was said in each turn, "" where nothing is known.

    Args:
        memory: One moment of it.
        turns: Whose texts are wanted; "" for a turn has none.
        kinds: Types of blocks, the first that a turn has is taken.
        last: Of several blocks of that type take the last one, not the first.
    """
    ids = {turn: _ids(*turn) if turn[1] else [] for turn in turns}
    every = [id_ for many in ids.values() for id_ in many]
    rows = {row.id: row for row in memory.rows(every, guessed=True)}
    return {
        turn: _said([rows[id_] for id_ in many if id_ in rows], kinds, last=last)
        for turn, many in ids.items()
    }


def _ids(session_id: str, turn_uuid: str) -> list[str]:
    """Return the ids that the first pieces of a turn's first blocks have, if there are such."""
    return [
        chunk_id(session_id, turn_uuid, block, piece)
        for block in range(_BLOCKS)
        for piece in range(_PIECES)
    ]


def _said(rows: Sequence[Row], kinds: Sequence[str], *, last: bool) -> str:
    for kind in kinds:
        blocks = [row.block_idx for row in rows if row.block_type == kind]
        if blocks:
            block = blocks[-1] if last else blocks[0]
            return join_pieces([row.text for row in rows if row.block_idx == block])
    return ""
