"""The catalog: one SQLite file for all that is small and changes together.

It holds the queue of rows whose vectors are still to come, what is known of sessions and of the
files they were read from, tombstones, problems, and a few counters. Plain statements, one
transaction for what belongs together; many readers, one writer.
"""

import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from funes_ls.indexer.catalog_filters import SessionFilter as SessionFilter  # for those who list
from funes_ls.indexer.catalog_filters import conditions, last_name, like
from funes_ls.indexer.catalog_records import Session as Session
from funes_ls.indexer.catalog_records import Source as Source
from funes_ls.indexer.catalog_schema import connect, empty_log, failure, is_sound, rewrite
from funes_ls.indexer.model import TIERS, Chunk, Problem, path_text

QUEUED, MOVING = 0, 1
_MANY = 500
_LATEST = 1 << 52

ROW_FIELDS = (
    "id", "session_id", "workdir", "turn_uuid", "parent_uuid", "seq", "ts", "ts_us", "role",
    "block_type", "tool_name", "source_path", "block_idx", "split_idx", "harness", "repo", "text",
)  # fmt: skip
_ROW_COLUMNS = ", ".join(ROW_FIELDS)
_INSERT_ROW = (
    f"INSERT OR IGNORE INTO pending(priority, {_ROW_COLUMNS}) VALUES (?{', ?' * len(ROW_FIELDS)})"
)


SESSION_FIELDS = Session.__struct_fields__
_SOURCE_FIELDS = Source.__struct_fields__


def priority(block_type: str, started_us: int | None, *, subagent: bool = False) -> int:
    """Return a row's place in the queue, lower first: tier, then sub-agents last, then newest."""
    age = _LATEST - max(0, min(started_us or 0, _LATEST))
    return TIERS.get(block_type, 1) << 54 | subagent << 53 | age


class Catalog:
    """An open catalog; safe to share between threads."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path | None, *, writable: bool = True
    ) -> None:
        """Wrap an open connection; use `open_catalog`."""
        self._db = connection
        self._lock = threading.RLock()
        self._depth = 0
        self._writable = writable
        self._others: list[Catalog] = []
        self._closed = False
        self.path = path

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._closed = True
            others, self._others = self._others, []
        for other in others:
            other.close()
        self._db.close()

    @contextmanager
    def reading(self) -> Iterator["Catalog"]:
        """Give the catalog as it is now, whatever is written meanwhile; for one thread.

        The writer's own, and one in memory, is given as it is.
        """
        if self._writable or self.path is None:
            yield self
            return
        with self._lock:
            other = self._others.pop() if self._others else None
        other = other or open_catalog(self.path, writable=False)
        try:
            other._db.execute("BEGIN")
            yield other
        finally:
            if other._db.in_transaction:
                other._db.execute("ROLLBACK")
            with self._lock:
                keep = not self._closed
                if keep:
                    self._others.append(other)
            if not keep:
                other.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make everything inside one change: all of it or none; may be nested.

        Raises:
            BackendError: kind `disk`: it could not be written; nothing was changed.
        """
        with self._lock:
            outer = self._depth == 0
            self._depth += 1
            try:
                if outer:
                    self._db.execute("BEGIN IMMEDIATE")
                yield
                if outer:
                    self._db.execute("COMMIT")
            except BaseException as exc:
                if outer and self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                if isinstance(exc, sqlite3.Error):
                    raise failure(self.path, exc) from exc
                raise
            finally:
                self._depth -= 1

    def settle(self) -> None:
        """Make what the transaction under way has changed so far durable, and go on with it."""
        with self._lock:
            if self._depth:
                self._db.execute("COMMIT")
                self._db.execute("BEGIN IMMEDIATE")

    # Rows that wait for their vector

    def add_pending(
        self, rows: Iterable[Chunk], *, started_us: int | None = None, subagent: bool = False
    ) -> int:
        """Queue rows, those of known ids left out, and return how many are new."""
        with self.transaction():
            before = self._db.total_changes
            self._db.executemany(
                _INSERT_ROW,
                ((priority(row.block_type, started_us, subagent=subagent), *_values(row))
                 for row in rows),
            )  # fmt: skip
            added = self._db.total_changes - before
            if added:
                self.bump_generation()
            return added

    def next_pending(self, limit: int) -> list[Chunk]:
        """Return the first rows of the queue, in order."""
        return self._rows("WHERE state = ? ORDER BY priority, n LIMIT ?", (QUEUED, limit))

    def mark_moving(self, ids: Sequence[str]) -> None:
        """Note that rows are about to be appended to the dataset."""
        with self.transaction():
            self._many("UPDATE pending SET state = 1 WHERE id = ?", ids)

    def mark_queued(self, ids: Sequence[str]) -> None:
        """Put rows back whose append did not happen."""
        with self.transaction():
            self._many("UPDATE pending SET state = 0 WHERE id = ?", ids)

    def finish_moving(self, rows: Sequence[Chunk]) -> None:
        """Take rows out of the queue: they are in the dataset now."""
        with self.transaction():
            self.add_embedded(Counter(row.session_id for row in rows))
            self.drop_pending([row.id for row in rows])

    def drop_pending(self, ids: Sequence[str]) -> None:
        """Take rows out of the queue."""
        with self.transaction():
            self._many("DELETE FROM pending WHERE id = ?", ids)
            self.bump_generation()

    def add_embedded(self, counts: Mapping[str, int]) -> None:
        """Count rows of sessions that came into the dataset (or left it, when negative)."""
        with self.transaction():
            self._db.executemany(
                "INSERT INTO embedded VALUES (?, ?) "
                "ON CONFLICT(session_id) DO UPDATE SET chunks = chunks + excluded.chunks",
                counts.items(),
            )

    def embedded_count(self, session_id: str) -> int:
        """Return how many of a session's rows are in the dataset."""
        with self._lock:
            found = self._db.execute(
                "SELECT chunks FROM embedded WHERE session_id = ?", (session_id,)
            ).fetchone()
        return int(found[0]) if found else 0

    def embedded_total(self) -> int:
        """Return how many rows are in the dataset."""
        return int(self._one("SELECT coalesce(sum(chunks), 0) FROM embedded"))

    def known(self, ids: Sequence[str]) -> set[str]:
        """Return which of the rows are in the queue."""
        found: set[str] = set()
        with self._lock:
            for start in range(0, len(ids), _MANY):
                part = ids[start : start + _MANY]
                statement = f"SELECT id FROM pending WHERE id IN ({_marks(part)})"
                found.update(row[0] for row in self._db.execute(statement, part))
        return found

    def has_pending(self, session_id: str) -> bool:
        """Return whether any of a session's rows are in the queue."""
        with self._lock:
            statement = "SELECT 1 FROM pending WHERE session_id = ? LIMIT 1"
            return self._db.execute(statement, (session_id,)).fetchone() is not None

    def last_number(self) -> int:
        """Return the number of the row queued last, ever."""
        with self._lock:
            found = self._db.execute(
                "SELECT seq FROM sqlite_sequence WHERE name = 'pending'"
            ).fetchone()
        return int(found[0]) if found else 0

    def moving(self) -> list[Chunk]:
        """Return rows whose append was begun and not confirmed."""
        return self._rows("WHERE state = ? ORDER BY n", (MOVING,))

    def pending_rows(self, ids: Sequence[str]) -> list[Chunk]:
        """Return those of the rows that are in the queue, in no fixed order."""
        found: list[Chunk] = []
        for start in range(0, len(ids), _MANY):
            part = ids[start : start + _MANY]
            found += self._rows(f"WHERE id IN ({_marks(part)})", part)
        return found

    def pending_session(
        self, session_id: str, *, first: int | None = None, last: int | None = None
    ) -> list[Chunk]:
        """Return a session's queued rows, in no fixed order, those of `seq` in a range if given."""
        low = -_LATEST if first is None else first
        high = _LATEST if last is None else last
        return self._rows(
            "WHERE session_id = ? AND coalesce(seq, 0) BETWEEN ? AND ?", (session_id, low, high)
        )

    def pending_after(self, n: int, limit: int) -> tuple[list[Chunk], int]:
        """Return rows queued after the n-th ever, in order, and the number of the last one."""
        with self._lock:
            found = self._db.execute(
                f"SELECT {_ROW_COLUMNS}, n FROM pending WHERE n > ? ORDER BY n LIMIT ?", (n, limit)
            ).fetchall()
        return [_chunk(row) for row in found], found[-1][-1] if found else n

    def pending_turns(self) -> list[tuple[str, str]]:
        """Return session and id of every turn that has queued rows, each once."""
        with self._lock:
            return self._db.execute("SELECT DISTINCT session_id, turn_uuid FROM pending").fetchall()

    def listed_turns(self) -> int:
        """Return the sum of the sessions' turns; what several have in common counts for each."""
        return int(self._one("SELECT COALESCE(SUM(turns), 0) FROM sessions"))

    def pending_count(self) -> int:
        """Return how many rows wait for their vector."""
        return int(self._one("SELECT count(*) FROM pending"))

    def _rows(self, rest: str, args: Sequence[Any]) -> list[Chunk]:
        with self._lock:
            found = self._db.execute(f"SELECT {_ROW_COLUMNS} FROM pending {rest}", args)
            return [_chunk(row) for row in found]

    # Sessions, their files and sources

    def put_session(self, session: Session) -> None:
        """Write what is known of a session in place of what was."""
        session = replace(session, source_path=path_text(session.source_path))
        self._put("sessions", SESSION_FIELDS, session)

    def session(self, session_id: str) -> Session | None:
        """Return one session, None when it is unknown."""
        found = self._sessions("WHERE session_id = ?", (session_id,))
        return found[0] if found else None

    def sessions_like(self, prefix: str, *, limit: int = 20) -> list[Session]:
        """Return sessions whose id, or the id their harness uses, begins like this."""
        pattern = like(prefix) + "%"
        return self._sessions(
            "WHERE session_id LIKE ? ESCAPE '\\' OR inner_id LIKE ? ESCAPE '\\' "
            "ORDER BY session_id LIMIT ?",
            (pattern, pattern, limit),
        )

    def sessions(
        self, wanted: SessionFilter | None = None, *, limit: int = -1, offset: int = 0
    ) -> list[Session]:
        """Return sessions, newest first; those without a time last."""
        where, args = conditions(wanted or SessionFilter())
        return self._sessions(
            f"{where} ORDER BY coalesce(ended_us, started_us, 0) DESC, session_id LIMIT ? OFFSET ?",
            (*args, limit, offset),
        )

    def session_ids(self, wanted: SessionFilter) -> frozenset[str]:
        """Return the ids of the sessions a filter lets through."""
        where, args = conditions(wanted)
        with self._lock:
            found = self._db.execute(f"SELECT session_id FROM sessions {where}", args)
            return frozenset(row[0] for row in found)

    def session_count(self, wanted: SessionFilter | None = None) -> int:
        """Return how many sessions a filter lets through."""
        where, args = conditions(wanted or SessionFilter())
        return int(self._one(f"SELECT count(*) FROM sessions {where}", args))

    def _sessions(self, rest: str, args: Sequence[Any]) -> list[Session]:
        with self._lock:
            found = self._db.execute(
                f"SELECT {', '.join(SESSION_FIELDS)} FROM sessions {rest}", args
            )
            return [_session(row) for row in found]

    def put_files(self, session_id: str, paths: Iterable[str]) -> None:
        """Note files a session touched, added to those already noted."""
        with self.transaction():
            self._db.executemany(
                "INSERT OR IGNORE INTO session_files(session_id, path, name) VALUES (?, ?, ?)",
                ((session_id, path, last_name(path)) for path in paths),
            )

    def files(self, session_id: str) -> list[str]:
        """Return the files a session touched, sorted."""
        with self._lock:
            found = self._db.execute(
                "SELECT path FROM session_files WHERE session_id = ? ORDER BY path", (session_id,)
            )
            return [row[0] for row in found]

    def files_named(self, name: str) -> list[tuple[Session, str]]:
        """Return every touched file whose last component is this, with its session."""
        with self._lock:
            found = self._db.execute(
                f"SELECT {', '.join('sessions.' + field for field in SESSION_FIELDS)}, path "
                "FROM session_files JOIN sessions USING (session_id) WHERE name = ?",
                (name,),
            )
            return [(_session(row[:-1]), row[-1]) for row in found]

    def places(self) -> list[tuple[str, str]]:
        """Return folder and repositories of sessions that have both, each pair once."""
        with self._lock:
            return self._db.execute(
                "SELECT DISTINCT cwd, repo FROM sessions WHERE cwd != '' AND repo != ''"
            ).fetchall()

    def put_source(self, source: Source) -> None:
        """Write how far a trace has been read."""
        if path_text(source.path) != source.path:
            # It must still lead to the file: the column takes bytes too.
            path: Any = os.fsencode(source.path)
            source = replace(source, path=path)
        self._put("sources", _SOURCE_FIELDS, source)

    def source(self, key: str) -> Source | None:
        """Return how far a trace has been read, None when it never was."""
        found = self._sources("WHERE key = ?", (key,))
        return found[0] if found else None

    def sources(self) -> list[Source]:
        """Return every trace read so far, by key."""
        return self._sources("ORDER BY key", ())

    def session_sources(self, session_id: str) -> list[Source]:
        """Return the traces that hold a session."""
        return self._sources("WHERE session_id = ? ORDER BY key", (session_id,))

    def forget_source(self, key: str) -> None:
        """Drop what is known of a trace; it is read whole the next time."""
        with self.transaction():
            self._db.execute("DELETE FROM sources WHERE key = ?", (key,))

    def _sources(self, rest: str, args: Sequence[Any]) -> list[Source]:
        with self._lock:
            found = self._db.execute(
                f"SELECT {', '.join(_SOURCE_FIELDS)} FROM sources {rest}", args
            )
            return [_source(row) for row in found]

    # Problems, tombstones, removals, counters

    def put_problems(self, path: str, problems: Iterable[Problem]) -> None:
        """Write the problems of one trace in place of those it had."""
        with self.transaction():
            self._db.execute("DELETE FROM problems WHERE path = ?", (path_text(path),))
            self.add_problems(problems)

    def add_problems(self, problems: Iterable[Problem]) -> None:
        """Write problems beside those already known."""
        with self.transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO problems(path, line, kind, message) VALUES (?, ?, ?, ?)",
                (
                    (path_text(one.path), one.line, one.kind, path_text(one.message))
                    for one in problems
                ),
            )

    def problems(self, *, limit: int = -1) -> list[Problem]:
        """Return what could not be read, by path and line."""
        with self._lock:
            found = self._db.execute(
                "SELECT path, line, kind, message FROM problems ORDER BY path, line LIMIT ?",
                (limit,),
            )
            return [Problem(path=p, line=n, kind=k, message=m) for p, n, k, m in found]

    def problem_count(self) -> int:
        """Return how many problems are known."""
        return int(self._one("SELECT count(*) FROM problems"))

    def tombstones(self) -> frozenset[str]:
        """Return the sessions that were forgotten on purpose and must not come back."""
        with self._lock:
            return frozenset(
                row[0] for row in self._db.execute("SELECT session_id FROM tombstones")
            )

    def add_tombstone(self, session_id: str) -> None:
        """Note that a session must not be indexed again."""
        with self.transaction():
            self._db.execute(
                "INSERT OR IGNORE INTO tombstones VALUES (?, ?)", (session_id, now_us())
            )

    def add_removals(self, ids: Iterable[str]) -> None:
        """Note rows that must leave the dataset; see `funes_ls.indexer.memory`."""
        with self.transaction():
            self._many("INSERT OR IGNORE INTO removals VALUES (?)", ids)

    def removals(self) -> list[str]:
        """Return ids of rows that must still leave the dataset."""
        with self._lock:
            return [row[0] for row in self._db.execute("SELECT id FROM removals ORDER BY id")]

    def clear_removals(self) -> None:
        """Note that every row that had to leave has left."""
        with self.transaction():
            self._db.execute("DELETE FROM removals")

    def forget_session(self, session_id: str) -> None:
        """Drop what is known of a session and of the traces it was read from."""
        with self.transaction():
            for table in ("sessions", "session_files", "sources", "embedded"):
                self._db.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))

    # Tables of others: file facts

    def select(self, statement: str, args: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._lock:
            return self._db.execute(statement, args).fetchall()

    def change(self, statement: str, args: Sequence[Any] = ()) -> int:
        """Make one change; return the row number it inserted, 0 when it inserted nothing."""
        with self.transaction():
            done = self._db.execute(statement, args)
            return (done.lastrowid or 0) if done.rowcount > 0 else 0

    def change_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Make a change once for every row."""
        with self.transaction():
            self._db.executemany(statement, rows)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a counter or mark, or the default."""
        with self._lock:
            found = self._db.execute("SELECT value FROM kv WHERE key = ?", (key,)).fetchone()
        return default if found is None else found[0]

    def put(self, key: str, value: int | str | bytes | None) -> None:
        """Write a counter or mark."""
        with self.transaction():
            self._db.execute("INSERT OR REPLACE INTO kv VALUES (?, ?)", (key, value))

    @property
    def generation(self) -> int:
        """Return a number that grows whenever rows come, move or go."""
        return int(self.get("generation", 0))

    def bump_generation(self) -> None:
        """Say that rows have changed."""
        self.put("generation", self.generation + 1)

    def is_half_done(self) -> bool:
        """Return whether some change was begun and not finished."""
        statement = (
            "SELECT EXISTS(SELECT 1 FROM removals) OR EXISTS(SELECT 1 FROM pending WHERE state = ?)"
        )
        return bool(self._one(statement, (MOVING,)))

    def is_sound(self) -> bool:
        """Return whether SQLite finds nothing wrong; reads the whole file."""
        with self._lock:
            return is_sound(self._db)

    def restore(self, table: str, fields: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
        """Copy rows saved from another catalog, those already here left as they are."""
        with self.transaction():
            before = self._db.total_changes
            self._db.executemany(
                f"INSERT OR IGNORE INTO {table}({', '.join(fields)}) VALUES ({_marks(fields)})",
                rows,
            )
            return self._db.total_changes - before

    def count_embedded(self, counts: Mapping[str, int]) -> None:
        """Write anew how many rows each session has in the dataset."""
        with self.transaction():
            self._db.execute("DELETE FROM embedded")
            self.add_embedded(counts)

    def shrink(self) -> None:
        """Give the space of rows that left back to the disk."""
        with self._lock:
            # As a script: `execute` stops this statement after its first page.
            self._db.executescript("PRAGMA incremental_vacuum")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def rewrite(self) -> None:
        """Write the file anew without what was deleted; `empty_log` is due then."""
        with self._lock:
            rewrite(self._db, self.path)

    def empty_log(self) -> bool:
        """Empty the log of changes, which has old pages; False while a reader needs them."""
        with self._lock:
            return empty_log(self._db, self.path)

    def _put(self, table: str, fields: Sequence[str], value: Struct) -> None:
        values = [getattr(value, field) for field in fields[:-1]]
        with self.transaction():
            self._db.execute(
                f"INSERT OR REPLACE INTO {table}({', '.join(fields)}) VALUES ({_marks(fields)})",
                (*values, getattr(value, fields[-1]) or now_us()),
            )

    def _many(self, statement: str, values: Iterable[str]) -> None:
        self._db.executemany(statement, ((value,) for value in values))

    def _one(self, statement: str, args: Sequence[Any] = ()) -> Any:
        with self._lock:
            return self._db.execute(statement, args).fetchone()[0]


def open_catalog(path: Path | None, *, writable: bool = True) -> Catalog:
    """Return the catalog at a path, made when absent and writable; in memory for None.

    Raises:
        MemoryStateError: kind `missing` (only read), `newer_format`, `damaged` or `locked`.
        BackendError: kind `disk`: it cannot be written there.
    """
    return Catalog(connect(path, writable=writable), path, writable=writable)


def now_us() -> int:
    """Return the present as UTC µs."""
    return time.time_ns() // 1000


def _values(row: Chunk) -> tuple[Any, ...]:
    return (
        row.id, row.session_id, row.workdir, row.turn_uuid, row.parent_uuid, row.seq, row.ts,
        row.ts_us, row.role, row.block_type, row.tool_name, row.source_path, row.block_idx,
        row.split_idx, row.harness, row.repo, row.text,
    )  # fmt: skip


def _chunk(row: Sequence[Any]) -> Chunk:
    return Chunk(**dict(zip(ROW_FIELDS, row, strict=False)))


def _session(row: Sequence[Any]) -> Session:
    fields = dict(zip(SESSION_FIELDS, row, strict=True))
    fields["subagent"] = bool(fields["subagent"])
    return Session(**fields)


def _source(row: Sequence[Any]) -> Source:
    fields = dict(zip(_SOURCE_FIELDS, row, strict=True))
    fields["path"] = os.fsdecode(fields["path"])
    return Source(**fields)


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
