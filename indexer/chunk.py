"""Cuts turns into chunks: elide, render, split, and the id that depends on nothing else."""

import hashlib
import re
from collections.abc import Iterator, Sequence

from funes_ls.indexer.model import Block, Chunk, Turn

#: Unicode White_Space, which is not what `str.strip()` strips (that takes U+001C–001F too).
WHITESPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
MAX_CHARS = 1200
OVERLAP = 150
_HALF = MAX_CHARS // 2
_MARK = ";base64,"
_PAYLOAD = re.compile(r"[A-Za-z0-9+/=]+")
_NOT_IN_HEAD = re.compile(r"[\s,\"']")
_SCHEME_CHAR = re.compile(r"[A-Za-z0-9+.\-]")


def elide(text: str) -> str:
    """Return text with the payload of every inline base64 data URI replaced by `[elided]`."""
    mark = text.find(_MARK)
    if mark < 0:
        return text
    kept: list[str] = []
    done = searched = 0
    while mark >= 0:
        payload = mark + len(_MARK)
        run = _PAYLOAD.match(text, payload) if _is_data_head(text, searched, mark) else None
        searched = payload
        if run is not None:
            kept += (text[done:payload], "[elided]")
            done = searched = run.end()
        mark = text.find(_MARK, searched)
    kept.append(text[done:])
    return "".join(kept)


def _is_data_head(text: str, searched: int, mark: int) -> bool:
    head = text.rfind("data:", searched, mark)
    if head < 0 or _NOT_IN_HEAD.search(text, head + 5, mark):
        return False
    return head == 0 or _SCHEME_CHAR.match(text[head - 1]) is None


#: What `render` puts before what a tool was given or gave.
_LABEL = re.compile(r"\[tool_(?:use|result)(?: [^\]\n]*)?\] ")


def render(block: Block) -> str:
    """Return the text of a block as it is cut: tool blocks carry a label naming the tool."""
    if block.block_type == "tool_use":
        name = "None" if block.tool_name is None else block.tool_name
        return f"[tool_use {name}] {block.text}".strip(WHITESPACE)
    if block.block_type == "tool_result":
        label = "tool_result" if block.tool_name is None else f"tool_result {block.tool_name}"
        return f"[{label}] {block.text}".strip(WHITESPACE)
    return block.text


def parted(text: str) -> str:
    """Return a rendered text with its label on a line of its own, each character where it was."""
    label = _LABEL.match(text)
    return text if label is None else f"{text[: label.end() - 1]}\n{text[label.end() :]}"


def split(text: str) -> Iterator[str]:
    """Yield pieces of at most 1200 characters that overlap by up to 150, none of them blank."""
    text = text.strip(WHITESPACE)
    size = len(text)
    if size <= MAX_CHARS:
        if text:
            yield text
        return
    start = 0
    while True:
        end = _piece_end(text, start, size)
        piece = text[start:end].strip(WHITESPACE)
        if piece:
            yield piece
        if end >= size:
            return
        start = max(end - OVERLAP, start + 1)


def _piece_end(text: str, start: int, size: int) -> int:
    """Return where a piece ends: at a line or word in its second half where there is one."""
    end = min(start + MAX_CHARS, size)
    if end == size:
        return end
    at = text.rfind("\n", start, end)
    if at <= start + _HALF:
        at = text.rfind(" ", start, end)
    return at if at > start + _HALF else end


def chunk_id(session_id: str, turn_uuid: str, block_idx: int, split_idx: int) -> str:
    """Return the 16 hex digits that identify a chunk in every memory."""
    raw = f"{session_id}:{turn_uuid}:{block_idx}:{split_idx}"
    digest = hashlib.sha1(raw.encode("utf-8", "replace"), usedforsecurity=False)
    return digest.hexdigest()[:16]


def chunks_of(
    turn: Turn,
    *,
    compat: bool = False,
    session_id: str = "",
    repo: str = "",
    ts_us: int | None = None,
) -> Iterator[Chunk]:
    """Yield the chunks of a turn, in block and split order.

    Args:
        turn: The turn to cut.
        compat: True for the chunks of the compat profile (of a turn with `extra` False), False
            for those that are stored: funes's own answers left out, unusable text replaced.
        session_id: Session they are stored under where that is not the turn's; ids do not depend
            on it.
        repo: As in `Chunk`.
        ts_us: As in `Chunk`.
    """
    blocks = turn.blocks if compat or turn.ext_blocks is None else turn.ext_blocks
    uuid = turn.compat_uuid if compat and turn.compat_uuid is not None else turn.turn_uuid
    for block_idx, block in enumerate(blocks):
        if block.own and not compat:
            continue
        for split_idx, piece in enumerate(split(render_elided(block))):
            yield Chunk(
                id=chunk_id(turn.session_id, uuid, block_idx, split_idx),
                text=piece,
                session_id=session_id or turn.session_id,
                workdir=turn.workdir,
                turn_uuid=uuid,
                parent_uuid=turn.parent_uuid,
                seq=turn.seq,
                ts=turn.ts,
                role=turn.role,
                block_type=block.block_type,
                tool_name=block.tool_name,
                source_path=turn.source_path,
                block_idx=block_idx,
                split_idx=split_idx,
                harness=turn.harness,
                repo=repo,
                ts_us=ts_us,
            )


def render_elided(block: Block) -> str:
    """Return the rendered text of a block without inline binary payloads."""
    if _MARK not in block.text:
        return render(block)
    return render(
        Block(
            block_type=block.block_type,
            text=elide(block.text),
            tool_name=block.tool_name,
            tool_use_id=block.tool_use_id,
        )
    )


def join_pieces(pieces: Sequence[str]) -> str:
    """Return the text that pieces of one block were cut from, up to trimmed white space."""
    if not pieces:
        return ""
    parts = [pieces[0]]
    tail = pieces[0][-OVERLAP:]
    for piece in pieces[1:]:
        added = piece[_seam(tail, piece) :]
        parts.append(added)
        tail = (tail + added)[-OVERLAP:]
    return "".join(parts)


def _seam(tail: str, piece: str) -> int:
    """Return the length of the longest end of `tail` that `piece` begins with."""
    for length in range(min(len(tail), len(piece)), 0, -1):
        if piece.startswith(tail[-length:]):
            return length
    return 0
