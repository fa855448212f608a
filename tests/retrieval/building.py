"""Builds small real memories (tantivy, SQLite, Lance) for the tests of the read path."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from funes_ls.indexer.catalog import Session
from funes_ls.indexer.chunk import chunk_id
from funes_ls.indexer.embedding import Embedder
from funes_ls.indexer.memory import Memory, open_memory
from funes_ls.indexer.model import Chunk
from funes_ls.indexer.times import parse_ts

T0 = "2026-03-02T10:00:00Z"
NOW_US = 1_773_100_800_000_000  # 2026-03-10T00:00:00Z


def said(
    session_id: str,
    seq: int,
    text: str,
    *,
    role: str = "user",
    block_type: str = "text",
    turn: str = "",
    ts: str = T0,
    tool: str | None = None,
    harness: str = "claude_code",
    workdir: str = "-work-demo",
    block: int = 0,
    split: int = 0,
    repo: str = "",
) -> Chunk:
    """Return a row of a turn; `turn` is made up from the session and place when not given."""
    turn = turn or f"turn-{session_id}-{seq}"
    return Chunk(
        id=chunk_id(session_id, turn, block, split),
        text=text,
        session_id=session_id,
        workdir=workdir,
        turn_uuid=turn,
        parent_uuid=None,
        seq=seq,
        ts=ts,
        role=role,
        block_type=block_type,
        tool_name=tool,
        source_path=f"/traces/{session_id}.jsonl",
        block_idx=block,
        split_idx=split,
        harness=harness,
        repo=repo,
        ts_us=parse_ts(ts),
    )


@contextmanager
def memory_of(
    home: Path,
    rows: Iterable[Chunk],
    *,
    sessions: Sequence[Session] = (),
    files: dict[str, list[str]] | None = None,
    embedder: Embedder | None = None,
    waiting: Iterable[str] = (),
) -> Iterator[Memory]:
    """Give a memory of rows, all embedded when there is an embedder, but for `waiting` sessions."""
    by_session: dict[str, list[Chunk]] = {}
    for row in rows:
        by_session.setdefault(row.session_id, []).append(row)
    known = {session.session_id: session for session in sessions}
    with open_memory(home / "memory", derived=home / "derived", writable=True) as memory:
        for session_id, said_there in by_session.items():
            memory.catalog.put_session(
                known.pop(session_id, None) or Session(session_id=session_id, harness="claude_code")
            )
            memory.queue(said_there)
        for session_id, paths in (files or {}).items():
            memory.catalog.put_files(session_id, paths)
        memory.commit_words()
        if embedder is not None:
            _embed(memory, embedder, set(waiting))
        yield memory


def _embed(memory: Memory, embedder: Embedder, waiting: set[str]) -> None:
    rows = [row for row in memory.catalog.next_pending(10_000) if row.session_id not in waiting]
    if rows:
        memory.move(rows, embedder.encode([row.text for row in rows]), stamp=embedder.stamp)
