"""File facts: what the calls of past sessions did to files, and how that is asked.

Facts are derived from calls whose result says that they succeeded; see `funes_ls.indexer.calls`.
They live in tables of the catalog (`facts_tables`) and are read through `Facts`.
"""

import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from funes_ls.indexer.catalog import Catalog

EventKind = Literal[
    "write", "edit", "append", "read", "delete", "move", "copy", "sed", "search", "list", "mention"
]
#: A kind's place here is what the tables hold: never change the order.
KINDS: tuple[EventKind, ...] = (
    "write", "edit", "append", "read", "delete", "move", "copy", "sed", "search", "list", "mention",
)  # fmt: skip
#: Kinds that changed a file.
CHANGES: frozenset[EventKind] = frozenset(
    ("write", "edit", "append", "delete", "move", "copy", "sed")
)
_EVERY, _WHOLE = 1, 2
_MANY = 500


class FileEvent(Struct, frozen=True, kw_only=True):
    """What one successful call did to a file, or saw of it.

    Attributes:
        path: Absolute where the call or the session's folder tells, `/` between names; as written
            otherwise.
        old: edit: the text that was replaced, "" for a pure insertion at an unknown place.
        new: write: the whole text; edit: the text after; append: what was added; read: what was
            seen, without line numbers; sed: the script.
        every: edit: everywhere in the file.
        first_line: read: number of the first line of `new` from 1, 0 when it is not known.
        whole: read: `new` is all of the file.
        source: move, copy: where from.
    """

    kind: EventKind
    path: str
    old: str = ""
    new: str = ""
    every: bool = False
    first_line: int = 0
    whole: bool = False
    source: str = ""


class StoredEvent(FileEvent, frozen=True, kw_only=True):
    """An event and where it comes from.

    Attributes:
        n: Which one of its call.
        ask_turn_uuid: The user's prompt it belongs to, "" when there is none.
        reason_turn_uuid: What the agent said or thought last before the call, "" for nothing.
        cwd, repo, harness: Of its session.
    """

    event_id: int
    session_id: str
    turn_uuid: str
    seq: int
    block_idx: int
    n: int
    ts_us: int | None
    ask_turn_uuid: str
    reason_turn_uuid: str
    cwd: str
    repo: str
    harness: str


class Command(Struct, frozen=True, kw_only=True):
    """A command that was run in a shell; `exit_status` is None where nothing tells it."""

    session_id: str
    turn_uuid: str
    seq: int
    ts_us: int | None
    text: str
    exit_status: int | None


class FactPath(Struct, frozen=True, kw_only=True):
    """A path that facts know.

    Attributes:
        places: Folder and repositories of each session that has to do with it.
    """

    path_id: int
    path: str
    places: tuple[tuple[str, str], ...] = ()


class Touch(Struct, frozen=True, kw_only=True):
    """How often a session did one kind of thing to a path.

    Attributes:
        last_us: When last.
        last_turn_uuid: In which turn.
        last_ask_turn_uuid: What the user had asked then, "" when there is nothing.
    """

    session_id: str
    path_id: int
    kind: EventKind
    count: int
    last_us: int | None
    last_turn_uuid: str
    last_seq: int
    last_ask_turn_uuid: str = ""


_EVENT = (
    "event_id, s.session_id, turn_uuid, seq, block_idx, n, e.ts_us, ask, reason, kind, p.path, "
    "source, flags, first_line, body, coalesce(t.cwd, ''), coalesce(t.repo, ''), "
    "coalesce(t.harness, '') FROM facts_events e JOIN facts_sessions s USING (session) "
    "JOIN facts_paths p USING (path_id) LEFT JOIN sessions t ON t.session_id = s.session_id"
)
#: When an event was, as one number: milliseconds, then its turn's place in the session.
_LATER = "(coalesce(ts_us, 0) / 1000 << 20) + min(seq, 1048575)"


class Facts:
    """The facts of a memory, as its catalog (a snapshot of it, say) has them."""

    def __init__(self, catalog: Catalog) -> None:
        """Read from a catalog; one without facts has none."""
        self.catalog = catalog
        self._is_there = has_facts(catalog)

    def paths_named(self, name: str) -> list[FactPath]:
        """Return the paths whose last component is this, whatever the case."""
        found = self._select(
            "SELECT path_id, path, coalesce(t.cwd, ''), coalesce(t.repo, '') FROM "
            "(SELECT DISTINCT path_id, path, session FROM facts_paths JOIN facts_events "
            "USING (path_id) WHERE name = ?) JOIN facts_sessions s USING (session) "
            "LEFT JOIN sessions t ON t.session_id = s.session_id",
            (name.casefold(),),
        )
        paths: dict[int, tuple[str, set[tuple[str, str]]]] = {}
        for path_id, path, cwd, repo in found:
            paths.setdefault(path_id, (path, set()))[1].add((cwd, repo))
        return [
            FactPath(path_id=path_id, path=path, places=tuple(sorted(places)))
            for path_id, (path, places) in sorted(paths.items())
        ]

    def events_of(
        self, path_ids: Sequence[int], *, kinds: Iterable[EventKind] = KINDS
    ) -> list[StoredEvent]:
        """Return what was done to paths, oldest first; without a time last."""
        wanted = ", ".join(str(KINDS.index(kind)) for kind in kinds)
        rows = self._by_ids(
            f"SELECT {_EVENT} WHERE kind IN ({wanted}) AND e.path_id IN (%s)", path_ids
        )
        return sorted(map(_event, rows), key=_when)

    def events(self, event_ids: Sequence[int]) -> list[StoredEvent]:
        """Return events by their ids, oldest first."""
        return sorted(
            map(_event, self._by_ids(f"SELECT {_EVENT} WHERE event_id IN (%s)", event_ids)),
            key=_when,
        )

    def paths(self, path_ids: Sequence[int]) -> list[FactPath]:
        """Return paths by their ids, without the places they were named in."""
        rows = self._by_ids("SELECT path_id, path FROM facts_paths WHERE path_id IN (%s)", path_ids)
        return [FactPath(path_id=path_id, path=path) for path_id, path in rows]

    def paths_of(self, event_ids: Sequence[int]) -> list[tuple[int, int]]:
        """Return each event's id with that of its path."""
        return self._by_ids(
            "SELECT event_id, path_id FROM facts_events WHERE event_id IN (%s)", event_ids
        )

    def stamp(self, path_ids: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
        """Return what differs as soon as anything that was done to paths comes or goes."""
        return tuple(
            self._by_ids(
                "SELECT count(*), coalesce(max(event_id), 0), coalesce(sum(event_id), 0) "
                "FROM facts_events WHERE path_id IN (%s)",
                path_ids,
            )
        )

    def moved_to(self, path_ids: Sequence[int]) -> list[tuple[str, str]]:
        """Return from where (and to where) files were moved or copied to become these paths."""
        kinds = f"{KINDS.index('move')}, {KINDS.index('copy')}"
        return self._by_ids(
            "SELECT DISTINCT source, path FROM facts_events JOIN facts_paths USING (path_id) "
            f"WHERE kind IN ({kinds}) AND path_id IN (%s)",
            path_ids,
        )

    def writers_of(
        self, hashes: Sequence[int], *, limit_per_hash: int = 20
    ) -> dict[int, list[int]]:
        """Return, by the hash of a line, events that added it; newest first, so many at most."""
        found: dict[int, list[int]] = {}
        rows = self._by_ids(
            "SELECT hash, event_id FROM facts_lines WHERE hash IN (%s) "
            "ORDER BY hash, event_id DESC",
            hashes,
        )
        for hash_, event_id in rows:
            ids = found.setdefault(hash_, [])
            if len(ids) < limit_per_hash:
                ids.append(event_id)
        return found

    def touched(self, path_ids: Sequence[int]) -> list[Touch]:
        """Return how often each session did what to paths; reads no texts."""
        # One max() makes SQLite take the other columns from the row that has it.
        rows = self._by_ids(
            f"SELECT s.session_id, path_id, kind, count(*), max({_LATER}), ts_us, "
            "turn_uuid, seq, ask FROM facts_events JOIN facts_sessions s USING (session) "
            "WHERE path_id IN (%s) GROUP BY session, path_id, kind",
            path_ids,
        )
        return [
            Touch(
                session_id=session_id,
                path_id=path_id,
                kind=KINDS[kind],
                count=count,
                last_us=ts_us,
                last_turn_uuid=turn_uuid,
                last_seq=seq,
                last_ask_turn_uuid=ask,
            )
            for session_id, path_id, kind, count, _, ts_us, turn_uuid, seq, ask in rows
        ]

    def files_of(self, session_id: str) -> list[tuple[str, str]]:
        """Return the files a session changed or read, with the turn, in the order of the trace."""
        kinds = ", ".join(str(KINDS.index(kind)) for kind in ("read", *sorted(CHANGES)))
        return self._select(
            "SELECT p.path, e.turn_uuid FROM facts_events e JOIN facts_paths p USING (path_id) "
            "WHERE e.session = (SELECT session FROM facts_sessions WHERE session_id = ?) "
            f"AND e.kind IN ({kinds}) ORDER BY e.seq, e.block_idx, e.n",
            (session_id,),
        )

    def changed_near(self, session_id: str, first: int, last: int) -> list[tuple[int, str]]:
        """Return the files that a session changed in some of its steps, each once."""
        kinds = ", ".join(str(KINDS.index(kind)) for kind in sorted(CHANGES))
        return self._select(
            "SELECT DISTINCT p.path_id, p.path FROM facts_events e JOIN facts_paths p "
            "USING (path_id) WHERE e.session = "
            "(SELECT session FROM facts_sessions WHERE session_id = ?) "
            f"AND e.kind IN ({kinds}) AND e.seq BETWEEN ? AND ? ORDER BY e.seq",
            (session_id, first, last),
        )

    def commands(self, session_id: str) -> list[Command]:
        """Return the commands a session ran, in order."""
        rows = self._select(
            "SELECT turn_uuid, seq, c.ts_us, text, exit_status FROM facts_commands c "
            "JOIN facts_sessions USING (session) WHERE session_id = ? ORDER BY seq, block_idx",
            (session_id,),
        )
        return [
            Command(
                session_id=session_id,
                turn_uuid=turn_uuid,
                seq=seq,
                ts_us=ts_us,
                text=text,
                exit_status=status,
            )
            for turn_uuid, seq, ts_us, text, status in rows
        ]

    def _select(self, statement: str, args: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.catalog.select(statement, args) if self._is_there else []

    def _by_ids(self, statement: str, ids: Sequence[int]) -> list[Any]:
        found: list[Any] = []
        ordered = sorted(ids)  # neighbours in the table come one after the other
        for start in range(0, len(ordered), _MANY):
            part = ordered[start : start + _MANY]
            found += self._select(statement % ", ".join("?" * len(part)), part)
        return found


def has_facts(catalog: Catalog) -> bool:
    """Return whether a catalog has tables of facts; those of older programs have none."""
    return bool(catalog.select("SELECT 1 FROM sqlite_schema WHERE name = 'facts_events'"))


def pack(event: FileEvent) -> bytes | None:
    """Return an event's texts, compressed; None when it has none."""
    if not event.old and not event.new:
        return None
    return zlib.compress(
        msgspec.msgpack.encode(
            (
                event.old.encode("utf-8", "surrogatepass"),
                event.new.encode("utf-8", "surrogatepass"),
            )
        ),
        2,
    )


def unpack(body: bytes | None) -> tuple[str, str]:
    """Return the old and the new text that `pack` compressed."""
    if not body:
        return "", ""
    old, new = msgspec.msgpack.decode(zlib.decompress(body), type=tuple[bytes, bytes])
    return old.decode("utf-8", "surrogatepass"), new.decode("utf-8", "surrogatepass")


def flags(event: FileEvent) -> int:
    """Return an event's yes-or-no marks as one number."""
    return (_EVERY if event.every else 0) | (_WHOLE if event.whole else 0)


def _event(row: Sequence[Any]) -> StoredEvent:
    old, new = unpack(row[14])
    return StoredEvent(
        event_id=row[0],
        session_id=row[1],
        turn_uuid=row[2],
        seq=row[3],
        block_idx=row[4],
        n=row[5],
        ts_us=row[6],
        ask_turn_uuid=row[7],
        reason_turn_uuid=row[8],
        kind=KINDS[row[9]],
        path=row[10],
        source=row[11],
        every=bool(row[12] & _EVERY),
        whole=bool(row[12] & _WHOLE),
        first_line=row[13],
        old=old,
        new=new,
        cwd=row[15],
        repo=row[16],
        harness=row[17],
    )


def _when(event: StoredEvent) -> tuple[bool, int, str, int, int, int]:
    us = event.ts_us
    return (us is None, us or 0, event.session_id, event.seq, event.block_idx, event.n)
