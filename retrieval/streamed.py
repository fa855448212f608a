"""Finds the final text of an answer that a trace holds in growing snapshots."""

from collections.abc import Sequence

from funes_ls.indexer.chunk import join_pieces
from funes_ls.indexer.memory import Row

#: Snapshots of one answer follow one another within this many turns.
WITHIN_SEQS = 4


def final_form(row: Row, session: Sequence[Row]) -> Row:
    """Return the row of the last snapshot that goes on where this row's block ends.

    Only the assistant streams, and nothing else is said between two snapshots.

    Args:
        row: A row that may be of an unfinished snapshot.
        session: Rows of the same session around the row, ordered by (seq, block_idx, split_idx).
    """
    if row.role != "assistant" or row.block_type not in ("text", "thinking"):
        return row
    blocks = _blocks_after(row, session)
    text = _text(blocks.pop((row.seq, row.turn_uuid, row.block_idx), [row]))
    for pieces in blocks.values():
        longer = _text(pieces)
        if len(longer) > len(text) and longer.startswith(text):
            row, text = _matching_piece(row, pieces), longer
    return row


def _blocks_after(row: Row, session: Sequence[Row]) -> dict[tuple[int, str, int], list[Row]]:
    """Group the assistant's blocks of the row's kind, up to where someone else speaks."""
    blocks: dict[tuple[int, str, int], list[Row]] = {}
    for near in session:
        if not row.seq <= near.seq <= row.seq + WITHIN_SEQS:
            continue
        if near.role != "assistant":
            if near.seq > row.seq:
                break
            continue
        if near.block_type == row.block_type:
            blocks.setdefault((near.seq, near.turn_uuid, near.block_idx), []).append(near)
    return blocks


def _text(pieces: Sequence[Row]) -> str:
    return join_pieces([piece.text for piece in pieces])


def _matching_piece(row: Row, pieces: Sequence[Row]) -> Row:
    """Return the piece that holds the row's text, by place when the cuts fell elsewhere."""
    for piece in pieces:
        if row.text in piece.text:
            return piece
    return pieces[min(row.split_idx, len(pieces) - 1)]
