"""Attaches what was said right before and after a hit."""

from collections.abc import Sequence

from funes_ls.indexer.memory import Row
from funes_ls.retrieval.answers import Neighbor


def neighbours(row: Row, session: Sequence[Row], *, steps: int) -> tuple[Neighbor, ...]:
    """Return the blocks of the session within `steps` of the hit's `seq`, not of its own turn.

    Each block comes as its first piece: a neighbour says where to look, `get` shows it whole.

    Args:
        row: The hit.
        session: Rows of the hit's session around it, in order.
        steps: 0 or less gives none.
    """
    if steps <= 0:
        return ()
    return tuple(
        Neighbor(
            session_id=near.session_id,
            turn_uuid=near.turn_uuid,
            seq=near.seq,
            ts=near.ts,
            role=near.role,
            block_type=near.block_type,
            tool_name=near.tool_name,
            text=near.text,
        )
        for near in session
        if near.split_idx == 0
        and abs(near.seq - row.seq) <= steps
        and (near.turn_uuid, near.seq) != (row.turn_uuid, row.seq)
    )
