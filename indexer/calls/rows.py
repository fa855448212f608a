"""From stored rows, or from a turn as it is read, to the blocks that facts are derived from."""

import itertools
import re
from collections.abc import Iterable, Iterator

from funes_ls.indexer.calls.builder import Piece
from funes_ls.indexer.chunk import WHITESPACE, join_pieces, render_elided
from funes_ls.indexer.model import Chunk, Turn

_LABEL = re.compile(r"\[tool_(?:use|result)(?: [^\]\n]*)?\] ?")


def pieces_of_rows(rows: Iterable[Chunk]) -> Iterator[Piece]:
    """Yield the blocks of a session's rows, which come in reading order."""
    by_block = itertools.groupby(rows, key=lambda row: (row.seq, row.turn_uuid, row.block_idx))
    for _, group in by_block:
        parts = sorted(group, key=lambda row: row.split_idx)
        row = parts[0]
        text = join_pieces([part.text for part in parts])
        yield Piece(
            turn_uuid=row.turn_uuid,
            parent_uuid=row.parent_uuid,
            seq=row.seq,
            block_idx=row.block_idx,
            ts_us=row.ts_us,
            role=row.role,
            block_type=row.block_type,
            tool_name=row.tool_name,
            tool_use_id=None,
            text=_unlabelled(text, row.block_type, row.tool_name),
        )


def pieces_of_turn(
    turn: Turn, *, turn_uuid: str, ts_us: int | None, thinking: bool = True
) -> Iterator[Piece]:
    """Yield the blocks of a turn that are stored, as rows would give them."""
    blocks = turn.blocks if turn.ext_blocks is None else turn.ext_blocks
    for block_idx, block in enumerate(blocks):
        if block.own or (block.block_type == "thinking" and not thinking):
            continue
        text = render_elided(block).strip(WHITESPACE)
        if text:
            yield Piece(
                turn_uuid=turn_uuid,
                parent_uuid=turn.parent_uuid,
                seq=turn.seq,
                block_idx=block_idx,
                ts_us=ts_us,
                role=turn.role,
                block_type=block.block_type,
                tool_name=block.tool_name,
                tool_use_id=block.tool_use_id,
                text=_unlabelled(text, block.block_type, block.tool_name),
            )


def _unlabelled(text: str, block_type: str, tool_name: str | None) -> str:
    if block_type not in ("tool_use", "tool_result"):
        return text
    if block_type == "tool_use":
        label = f"[tool_use {'None' if tool_name is None else tool_name}]"
    else:
        label = "[tool_result]" if tool_name is None else f"[tool_result {tool_name}]"
    text = text.removeprefix(label) if text.startswith(label) else _LABEL.sub("", text, count=1)
    return text.strip(WHITESPACE)
