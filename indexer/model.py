"""The words of the product as types: session, turn, block, chunk.

A trace is read into turns of blocks; a block is rendered and cut into chunks; a chunk is what is
stored, embedded and returned as a hit. Row rules and ids: docs/design.md, "Rows".
"""

import re
from pathlib import Path

from msgspec import Struct

from funes_ls.indexer.names import BLOCK_TYPES as BLOCK_TYPES  # for those who read the types
from funes_ls.indexer.names import HARNESSES as HARNESSES
from funes_ls.indexer.names import BlockType as BlockType

#: Embedding order: what people said, then what tools were asked, then what tools answered.
TIERS: dict[str, int] = {"text": 1, "thinking": 1, "tool_use": 2, "tool_result": 3}


_SURROGATE = re.compile("[\ud800-\udfff]")


def path_text(path: Path | str) -> str:
    r"""Return a path as text that can be stored and shown.

    File names need not be UTF-8; bytes that are not stand as `\xff`. Not for opening the file.
    """
    return _SURROGATE.sub(_escaped, str(path))


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


class Block(Struct, frozen=True, kw_only=True):
    """One typed part of a turn; `text` is verbatim, as the trace has it.

    Attributes:
        own: funes's own answer (a recall an agent ran); counted in `block_idx`, never stored.
    """

    block_type: BlockType
    text: str
    tool_name: str | None = None
    tool_use_id: str | None = None
    own: bool = False


class Turn(Struct, frozen=True, kw_only=True):
    """One message of a session.

    Attributes:
        seq: Index among the session's compat turns, file order, from 0; an extra turn carries
            the seq of the last compat turn before it.
        ts: The time as recorded ("" when there is none); see `funes_ls.indexer.times`.
        extra: True for a turn that the compat profile does not have.
        record: Index of the trace record it came from, for ids and messages.
        ext_blocks: What to store instead of `blocks` where the compat text is unusable
            (same ids); None almost always.
        compat_uuid: The compat turn id where it is not `turn_uuid`, None almost always.
    """

    session_id: str
    turn_uuid: str
    parent_uuid: str | None
    seq: int
    ts: str
    role: str
    blocks: tuple[Block, ...]
    workdir: str
    source_path: str
    harness: str
    record: int
    extra: bool = False
    ext_blocks: tuple[Block, ...] | None = None
    compat_uuid: str | None = None


class SessionMeta(Struct, kw_only=True):
    """What a trace says of its session beyond the rows; filled while reading, whole at its end.

    Attributes:
        session_id: The compat session id (file stem, or the id the trace declares).
        cwd: The raw working directory, "" when not recorded.
        remotes: Git remote URLs the trace itself records.
        parent_id: Session this one is a sub-agent or fork of, "" when none.
        link: How it relates to the parent: "subagent", "fork", "continuation" or "".
        title: First real prompt, at most 200 characters, one line.
        inner_id: The id the harness knows it by (for reopening), when it differs.
    """

    session_id: str
    harness: str
    cwd: str = ""
    remotes: list[str] = []
    branch: str = ""
    parent_id: str = ""
    link: str = ""
    title: str = ""
    inner_id: str = ""


class Problem(Struct, frozen=True, kw_only=True):
    """Something of a trace that could not be read; holds no trace text.

    Attributes:
        line: 1-based line, 0 when it concerns the whole source.
        kind: Stable slug: `bad_line`, `unreadable`, `too_long`, `bad_source`, …
        count: How many like it are meant, where naming each would be too many.
    """

    path: str
    kind: str
    message: str
    line: int = 0
    count: int = 1


class Chunk(Struct, frozen=True, kw_only=True):
    """A row of a memory without its vector (16 of the 17 columns), plus its time in UTC µs.

    Attributes:
        ts: As recorded by the trace.
        ts_us: `ts` as UTC microseconds, the nearest earlier turn's when it has none of its own,
            None when nothing is known. Not a column of the dataset.
    """

    id: str
    text: str
    session_id: str
    workdir: str
    turn_uuid: str
    parent_uuid: str | None
    seq: int
    ts: str
    role: str
    block_type: str
    tool_name: str | None
    source_path: str
    block_idx: int
    split_idx: int
    harness: str
    repo: str = ""
    ts_us: int | None = None
