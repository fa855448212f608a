"""`sessions.parquet`, beside a published dataset: what rows do not say of their sessions.

Other programs need not know it. Its metadata lists sessions that were taken back, by hash, so that
no machine sends them again.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from funes_ls.indexer.catalog import Session

_WITHDRAWN = b"funes_withdrawn"


class SessionFact(Struct, frozen=True, kw_only=True):
    """A session as it is published; times in UTC µs, names of homes folded."""

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
    subagent: bool = False


#: Fields of text, which the gate must see.
TEXTS = ("cwd", "workdir", "repo", "branch", "title", "parent_id", "link", "inner_id", "harness")
FIELDS = SessionFact.__struct_fields__


class Facts(Struct, kw_only=True):
    """What such a file holds.

    Attributes:
        sessions: By id.
        withdrawn: Hashes of sessions that were taken back.
    """

    sessions: dict[str, SessionFact] = {}
    withdrawn: set[str] = set()

    def is_withdrawn(self, session_id: str) -> bool:
        """Return whether a session was taken back."""
        return bool(self.withdrawn) and session_hash(session_id) in self.withdrawn

    def merged(self, own: Mapping[str, SessionFact]) -> "Facts":
        """Return these with others; what changes is whatever is new or has another title."""
        sessions = dict(self.sessions)
        for name, fact in own.items():
            before = sessions.get(name)
            if before is None or (fact.title and before.title != fact.title):
                sessions[name] = fact
        return Facts(sessions=sessions, withdrawn=self.withdrawn)


def session_hash(session_id: str) -> str:
    """Return what stands for a session that was taken back."""
    return hashlib.sha256(b"funes:" + session_id.encode("utf-8", "replace")).hexdigest()


def fact_of(session: Session, *, cwd: str, workdir: str) -> SessionFact:
    """Return what is published of a session, its paths as they may leave."""
    values = {name: getattr(session, name) for name in FIELDS}
    return SessionFact(**{**values, "cwd": cwd, "workdir": workdir})


def read_facts(path: Path) -> Facts:
    """Return what a file says; nothing where there is none or it is of another make."""
    import pyarrow.parquet as pq

    if not path.is_file():
        return Facts()
    try:
        table = pq.read_table(path)
        rows = table.to_pylist()
    except (OSError, ValueError):
        return Facts()
    listed = (table.schema.metadata or {}).get(_WITHDRAWN, b"").decode("ascii", "replace").split()
    facts = [fact for row in rows if (fact := _fact(row)) is not None]
    return Facts(sessions={fact.session_id: fact for fact in facts}, withdrawn=set(listed))


def _fact(row: dict[str, Any]) -> SessionFact | None:
    import msgspec

    try:
        known = {name: row[name] for name in FIELDS if row.get(name) is not None}
        return msgspec.convert(known, SessionFact)
    except msgspec.ValidationError:
        return None


def write_facts(path: Path, facts: Facts) -> None:
    """Write a file anew, small: sorted and compressed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [asdict(facts.sessions[name]) for name in sorted(facts.sessions)]
    metadata = {_WITHDRAWN: " ".join(sorted(facts.withdrawn)).encode()} if facts.withdrawn else None
    table = pa.Table.from_pylist(rows, schema=_schema().with_metadata(metadata))
    pq.write_table(table, path, compression="zstd", compression_level=9)


def _schema() -> Any:
    import pyarrow as pa

    def kind(name: str) -> Any:
        if name.endswith("_us"):
            return pa.int64()
        return pa.bool_() if name == "subagent" else pa.utf8()

    return pa.schema([pa.field(name, kind(name)) for name in FIELDS])


def without(facts: Facts, session_ids: Iterable[str]) -> Facts:
    """Return facts without some sessions, which are noted as taken back."""
    gone = set(session_ids)
    kept = {name: one for name, one in facts.sessions.items() if name not in gone}
    return Facts(sessions=kept, withdrawn=facts.withdrawn | {session_hash(one) for one in gone})
