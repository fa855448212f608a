"""The tables of file facts inside the catalog, and how they are written.

A session's facts are whole when its record in `facts_sessions` has the present `VERSION`; what has
another one was cut short or made by an older program, and is made anew from the stored rows.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from funes_ls.indexer.catalog import Catalog
from funes_ls.indexer.catalog_filters import last_name
from funes_ls.indexer.facts import KINDS, FileEvent, flags, has_facts, pack, unpack
from funes_ls.indexer.facts_lines import is_weak, key_hash, line_key, split_lines

#: Grows when facts are derived otherwise than before.
VERSION = 6
_UNFINISHED = 0
_MOST_COMMAND_CHARS = 4_000


class Provenance(Struct, frozen=True, kw_only=True):
    """Which call facts come from; see `funes_ls.indexer.facts.StoredEvent`."""

    turn_uuid: str
    seq: int
    block_idx: int
    ts_us: int | None
    ask_turn_uuid: str
    reason_turn_uuid: str


class CallFacts(Struct, frozen=True, kw_only=True):
    """What one call comes to.

    Attributes:
        command: What was run, "" for a call that is no command.
    """

    at: Provenance
    events: tuple[FileEvent, ...] = ()
    command: str = ""
    exit_status: int | None = None


def saved_state(catalog: Catalog, session_id: str) -> bytes | None:
    """Return what the builder of a session's facts kept, None unless the facts are whole."""
    found = has_facts(catalog) and catalog.select(
        "SELECT state FROM facts_sessions WHERE session_id = ? AND version = ?",
        (session_id, VERSION),
    )
    return (found[0][0] or b"") if found else None


def missing(catalog: Catalog, limit: int = -1) -> list[str]:
    """Return sessions whose facts are still to be made from their rows, newest first."""
    if not has_facts(catalog):
        return []
    found = catalog.select(
        "SELECT session_id FROM sessions LEFT JOIN facts_sessions f USING (session_id) "
        "WHERE f.version IS NULL OR f.version != ? "
        "ORDER BY coalesce(ended_us, started_us, 0) DESC LIMIT ?",
        (VERSION, limit),
    )
    return [row[0] for row in found]


def begin(catalog: Catalog, session_id: str, *, anew: bool) -> None:
    """Say that a session's facts are being changed; anew, those there are are dropped."""
    with catalog.transaction():
        if anew:
            forget(catalog, session_id)
        catalog.change(
            "INSERT INTO facts_sessions(session_id, version) VALUES (?, ?) "
            "ON CONFLICT(session_id) DO UPDATE SET version = excluded.version",
            (session_id, _UNFINISHED),
        )


def outdate(catalog: Catalog, session_id: str) -> None:
    """Say that a session's facts are to be made anew from its rows, which have changed."""
    if has_facts(catalog):
        catalog.change(
            "UPDATE facts_sessions SET version = ? WHERE session_id = ?", (_UNFINISHED, session_id)
        )


def is_begun(catalog: Catalog, session_id: str) -> bool:
    """Return whether facts can be added to a session's: `begin` was called and nobody forgot it."""
    return bool(catalog.select("SELECT 1 FROM facts_sessions WHERE session_id = ?", (session_id,)))


def finish(catalog: Catalog, session_id: str, state: bytes) -> None:
    """Say that a session's facts are whole, and keep from where its builder goes on."""
    with catalog.transaction():
        catalog.change(
            "UPDATE facts_sessions SET version = ?, state = ? WHERE session_id = ?",
            (VERSION, state, session_id),
        )


def add(catalog: Catalog, session_id: str, found: Iterable[CallFacts]) -> None:
    """Add facts of calls to those of a session; those that are known already stay."""
    with catalog.transaction():
        session = _session(catalog, session_id)
        for call in found:
            _add_call(catalog, session, call)


def _add_call(catalog: Catalog, session: int, call: CallFacts) -> None:
    at = call.at
    if call.command:
        catalog.change(
            "INSERT OR IGNORE INTO facts_commands VALUES (?, ?, ?, ?, ?, ?, ?)",
            (session, at.seq, at.block_idx, at.turn_uuid, at.ts_us, call.exit_status,
             _storable(call.command[:_MOST_COMMAND_CHARS])),
        )  # fmt: skip
    for n, event in enumerate(call.events):
        _add_event(catalog, session, at, n, event)


def _add_event(catalog: Catalog, session: int, at: Provenance, n: int, event: FileEvent) -> None:
    path_id = _path_id(catalog, _storable(event.path))
    event_id = catalog.change(
        "INSERT OR IGNORE INTO facts_events(session, path_id, kind, seq, block_idx, n, ts_us, "
        "flags, first_line, turn_uuid, ask, reason, source, body) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (session, path_id, KINDS.index(event.kind), at.seq, at.block_idx, n, at.ts_us,
         flags(event), event.first_line, at.turn_uuid, at.ask_turn_uuid, at.reason_turn_uuid,
         _storable(event.source), pack(event)),
    )  # fmt: skip
    if event_id:
        rows = ((hash_, event_id) for hash_ in added_hashes(event.kind, event.old, event.new))
        catalog.change_many("INSERT OR IGNORE INTO facts_lines VALUES (?, ?)", rows)


def added_hashes(kind: str, old: str, new: str) -> set[int]:
    """Return hashes of the lines that an event added and that say something by themselves."""
    if kind not in ("write", "edit", "append"):
        return set()
    keys = set(map(line_key, split_lines(new))) - set(map(line_key, split_lines(old)))
    return {key_hash(key) for key in keys if not is_weak(key)}


def forget(catalog: Catalog, session_id: str) -> None:
    """Drop the facts of a session."""
    if not has_facts(catalog):
        return
    found = catalog.select("SELECT session FROM facts_sessions WHERE session_id = ?", (session_id,))
    if not found:
        return
    with catalog.transaction():
        session = found[0][0]
        paths = catalog.select(
            "SELECT DISTINCT path_id, path_id FROM facts_events WHERE session = ?", (session,)
        )
        catalog.change_many(
            "DELETE FROM facts_lines WHERE hash = ? AND event_id = ?", _lines_of(catalog, session)
        )
        for table in ("facts_events", "facts_commands", "facts_sessions"):
            catalog.change(f"DELETE FROM {table} WHERE session = ?", (session,))
        catalog.change_many(
            "DELETE FROM facts_paths WHERE path_id = ? "
            "AND NOT EXISTS (SELECT 1 FROM facts_events WHERE path_id = ?)",
            paths,
        )


def _lines_of(catalog: Catalog, session: int) -> Iterator[tuple[int, int]]:
    ids = catalog.select("SELECT event_id FROM facts_events WHERE session = ?", (session,))
    for (event_id,) in ids:
        kind, body = catalog.select(
            "SELECT kind, body FROM facts_events WHERE event_id = ?", (event_id,)
        )[0]
        for hash_ in added_hashes(KINDS[kind], *unpack(body)):
            yield hash_, event_id


def _session(catalog: Catalog, session_id: str) -> int:
    found: Sequence[tuple[int]] = catalog.select(
        "SELECT session FROM facts_sessions WHERE session_id = ?", (session_id,)
    )
    return found[0][0]


def _path_id(catalog: Catalog, path: str) -> int:
    found = catalog.select("SELECT path_id FROM facts_paths WHERE path = ?", (path,))
    if found:
        return int(found[0][0])
    return catalog.change(
        "INSERT INTO facts_paths(path, name) VALUES (?, ?)", (path, last_name(path).casefold())
    )


def _storable(text: str) -> str:
    """Return text that SQLite takes: halves of surrogate pairs are no characters."""
    return text.encode("utf-8", "replace").decode("utf-8")
