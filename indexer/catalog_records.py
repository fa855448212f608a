"""What the catalog keeps of sessions and of the traces they are read from."""

from msgspec import Struct


class Session(Struct, frozen=True, kw_only=True):
    """What is known of one session; times in UTC µs.

    Attributes:
        repo: `owner/name` of every git remote, sorted, space-joined; "" when unresolved.
        time_source: How the times are known: `recorded`, `file` or "" (unknown).
        turns: Turns with at least one row.
        chunks: Rows, embedded or not.
        updated_at: When this record was last written, UTC µs.
    """

    session_id: str
    harness: str = ""
    cwd: str = ""
    workdir: str = ""
    repo: str = ""
    branch: str = ""
    title: str = ""
    started_us: int | None = None
    ended_us: int | None = None
    time_source: str = ""
    parent_id: str = ""
    link: str = ""
    inner_id: str = ""
    source_path: str = ""
    source_key: str = ""
    subagent: bool = False
    turns: int = 0
    chunks: int = 0
    updated_at: int = 0


class Source(Struct, frozen=True, kw_only=True):
    """How far one trace has been read.

    Attributes:
        key: Stable id of the trace, as its reader gives it.
        size: Bytes at the last read (Hermes: messages).
        tier: 1 text, 2 also tool calls, 3 also tool results.
        resume: The reader's own state, opaque here; None reads the trace whole next time.
    """

    key: str
    harness: str
    path: str
    session_id: str
    size: int
    mtime_ns: int
    inode: int
    tier: int = 3
    resume: bytes | None = None
    updated_at: int = 0
