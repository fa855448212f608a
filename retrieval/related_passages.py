"""Reads what was said in turns whose ids alone are known."""

from collections.abc import Mapping

from funes_ls.indexer.chunk import chunk_id, join_pieces
from funes_ls.indexer.memory import MemoryView, Row

#: Of a turn, so many blocks are looked at, and so many pieces of each.
_BLOCKS = 2
_PIECES = 2
#: What is read first of a turn.
_KINDS = ("text", "thinking", "tool_use", "tool_result")


def texts_of(memory: MemoryView, turns: Mapping[str, str]) -> dict[str, str]:
    """Return, by session, what was said in the turn that is named for it; "" for nothing."""
    ids = {
        session_id: [
            chunk_id(session_id, turn, block, piece)
            for block in range(_BLOCKS)
            for piece in range(_PIECES)
        ]
        for session_id, turn in turns.items()
    }
    # Most of these ids are nobody's, which the words index knows at once and the dataset does not.
    held = {row.id for row in memory.words.rows([one for many in ids.values() for one in many])}
    rows = {row.id: row for row in memory.rows(list(held))}
    return {
        session_id: _said([rows[one] for one in many if one in rows])
        for session_id, many in ids.items()
    }


def _said(rows: list[Row]) -> str:
    if not rows:
        return ""
    kind = min((row.block_type for row in rows), key=_KINDS.index)
    block = next(row.block_idx for row in rows if row.block_type == kind)
    return join_pieces([row.text for row in rows if row.block_idx == block])
