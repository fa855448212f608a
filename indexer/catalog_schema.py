"""The catalog's file: its tables, how it is opened, and what its errors mean to a person."""

import shutil
import sqlite3
import tempfile
import weakref
from pathlib import Path

from funes_ls.indexer.errors import BackendError, MemoryStateError
from funes_ls.indexer.facts_schema import SCHEMA as _FACTS

#: Number of the catalog's layout; a higher one is refused.
FORMAT = 1
_BUSY_S = 10.0
#: Whoever empties the log asks again after so long.
_LOG_BUSY_MS = 50
_WRITER_CACHE_KB, _READER_CACHE_KB = 32_768, 1_024
#: Few, large checkpoints: with the usual 1000 pages they take more time than the rows.
_CHECKPOINT_PAGES = 16_000
_PAGE_BYTES = 4096

_SCHEMA = """CREATE TABLE pending (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    priority INTEGER NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    session_id TEXT NOT NULL, workdir TEXT, turn_uuid TEXT, parent_uuid TEXT, seq INTEGER,
    ts TEXT, ts_us INTEGER, role TEXT, block_type TEXT, tool_name TEXT, source_path TEXT,
    block_idx INTEGER, split_idx INTEGER, harness TEXT, repo TEXT, text TEXT NOT NULL
);
CREATE INDEX pending_next ON pending(state, priority, n);
CREATE INDEX pending_session ON pending(session_id);
CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY, harness TEXT NOT NULL DEFAULT '', cwd TEXT NOT NULL DEFAULT '',
    workdir TEXT NOT NULL DEFAULT '', repo TEXT NOT NULL DEFAULT '',
    branch TEXT NOT NULL DEFAULT '', title TEXT NOT NULL DEFAULT '',
    started_us INTEGER, ended_us INTEGER, time_source TEXT NOT NULL DEFAULT '',
    parent_id TEXT NOT NULL DEFAULT '', link TEXT NOT NULL DEFAULT '',
    inner_id TEXT NOT NULL DEFAULT '', source_path TEXT NOT NULL DEFAULT '',
    source_key TEXT NOT NULL DEFAULT '', subagent INTEGER NOT NULL DEFAULT 0,
    turns INTEGER NOT NULL DEFAULT 0, chunks INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX sessions_started ON sessions(started_us);
CREATE TABLE sources (
    key TEXT PRIMARY KEY, harness TEXT NOT NULL, path TEXT NOT NULL, session_id TEXT NOT NULL,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
    tier INTEGER NOT NULL, resume BLOB, updated_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX sources_session ON sources(session_id);
CREATE TABLE session_files (
    session_id TEXT NOT NULL, path TEXT NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (session_id, path)
) WITHOUT ROWID;
CREATE INDEX session_files_name ON session_files(name);
CREATE TABLE problems (
    path TEXT NOT NULL, line INTEGER NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL,
    PRIMARY KEY (path, line, kind)
) WITHOUT ROWID;
CREATE TABLE tombstones (session_id TEXT PRIMARY KEY, deleted_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE removals (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE embedded (session_id TEXT PRIMARY KEY, chunks INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE kv (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""


def connect(path: Path | None, *, writable: bool) -> sqlite3.Connection:
    """Return a connection to the catalog at a path, made when absent and writable.

    Args:
        path: None for one in memory.
        writable: False to only read, from a read-only disk too.

    Raises:
        MemoryStateError: kind `missing`, `newer_format`, `damaged` or `locked`.
        BackendError: kind `disk`.
    """
    if path is None:
        return _prepared(_raw(":memory:"), None, writable=True)
    if not writable and not path.exists():
        raise MemoryStateError(f"No catalog at {path}.", hint="Run `funes index`.", kind="missing")
    try:
        return _opened(path, "rwc" if writable else "ro", writable=writable)
    except sqlite3.OperationalError as exc:
        if writable or not _is_for_reading_only(exc):
            raise failure(path, exc) from exc
        return _on_read_only_disk(path)
    except sqlite3.Error as exc:
        raise failure(path, exc) from exc


def is_sound(db: sqlite3.Connection) -> bool:
    """Return whether SQLite finds nothing wrong in a catalog; reads the whole file."""
    try:
        return bool(db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except sqlite3.Error:
        return False


def rewrite(db: sqlite3.Connection, path: Path | None) -> None:
    """Write a catalog anew without what was deleted."""
    try:
        db.execute("PRAGMA secure_delete = ON")  # nor left over in pages that are written
        db.execute("VACUUM")
        db.execute("PRAGMA secure_delete = OFF")
    except sqlite3.Error as exc:
        raise failure(path, exc) from exc


def empty_log(db: sqlite3.Connection, path: Path | None) -> bool:
    """Empty a catalog's log of changes; return False while somebody still reads from it."""
    try:
        db.execute(f"PRAGMA busy_timeout = {_LOG_BUSY_MS}")
        busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        db.execute(f"PRAGMA busy_timeout = {int(_BUSY_S * 1000)}")
    except sqlite3.Error as exc:
        raise failure(path, exc) from exc
    return not busy


def suspect_mark(path: Path) -> Path:
    """Return the file that asks for a check of the catalog the next time it is written to."""
    return path.with_name(f"{path.name}.suspect")


def failure(path: Path | None, exc: sqlite3.Error) -> BackendError | MemoryStateError:
    """Return an SQLite error as one for a person; damage is noted beside the file."""
    name = getattr(exc, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or "malformed" in str(exc):
        if path is not None:
            _note_suspect(path)
        return MemoryStateError(
            f"The catalog at {path} is damaged ({exc}).",
            hint="Run `funes index`: it sets the file aside and saves what it can.",
            kind="damaged",
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return MemoryStateError(
            f"The catalog at {path} is busy.", hint="Run the command again.", kind="locked"
        )
    return BackendError(
        f"The catalog at {path} could not be read or written ({exc}).",
        hint="Free some disk space or make the directory writable, then run the command again.",
        kind="disk",
    )


def _opened(path: Path, mode: str, *, writable: bool) -> sqlite3.Connection:
    target = f"{path.resolve().as_uri()}?{'' if mode == 'immutable' else 'mode='}{mode}"
    if mode == "immutable":
        target += "=1"
    return _prepared(_raw(target), path, writable=writable)


def _raw(target: str) -> sqlite3.Connection:
    # Transactions are begun and ended by hand; the catalog guards itself between threads.
    return sqlite3.connect(
        target, uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
    )


def _prepared(db: sqlite3.Connection, path: Path | None, *, writable: bool) -> sqlite3.Connection:
    try:
        _prepare(db, path, writable=writable)
    except BaseException:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection, path: Path | None, *, writable: bool) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > FORMAT:
        raise MemoryStateError(
            f"The memory at {path} was written by a newer funes (format {version}, this one reads "
            f"{FORMAT}).",
            hint="Update with `pip install --upgrade funes-ls`.",
            kind="newer_format",
        )
    if version == 0 and not writable and not _has_tables(db):
        raise MemoryStateError(
            f"No memory at {path.parent if path else ''} yet.",
            hint="Run `funes index`.",
            kind="missing",
        )  # a writer is about to make it, or died over it
    if version == 0 and writable:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL")
        _make_tables(db)
    if writable and not has_table(db, "facts_commands"):
        for statement in _FACTS:
            db.execute(statement)
    db.execute("PRAGMA synchronous = NORMAL")
    # Each thread that reads has a connection of its own; the system keeps the pages for all.
    db.execute(f"PRAGMA cache_size = -{_WRITER_CACHE_KB if writable else _READER_CACHE_KB}")
    db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    db.execute(f"PRAGMA journal_size_limit = {_CHECKPOINT_PAGES * _PAGE_BYTES}")
    db.execute("SELECT count(*) FROM kv").fetchone()


def _has_tables(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is not None


def has_table(db: sqlite3.Connection, name: str) -> bool:
    """Return whether a catalog has a table; those of older programs lack some."""
    return db.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (name,)).fetchone() is not None


def _make_tables(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    if db.execute("PRAGMA user_version").fetchone()[0] == 0:  # no other process was quicker
        for statement in _SCHEMA.split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {FORMAT}")
    db.execute("COMMIT")


def _on_read_only_disk(path: Path) -> sqlite3.Connection:
    """Open where SQLite can make no files of its own beside the catalog."""
    wal = path.with_name(f"{path.name}-wal")
    try:
        if not wal.exists() or wal.stat().st_size == 0:
            return _opened(path, "immutable", writable=False)
        # The log holds changes that the file does not: read a copy of both.
        copied = Path(tempfile.mkdtemp(prefix="funes-"))
        for file in (path, wal):
            shutil.copyfile(file, copied / file.name)
        db = _opened(copied / path.name, "rw", writable=False)
    except (OSError, sqlite3.Error) as exc:
        cause = exc if isinstance(exc, sqlite3.Error) else sqlite3.OperationalError(str(exc))
        raise failure(path, cause) from exc
    weakref.finalize(db, shutil.rmtree, copied, ignore_errors=True)
    return db


def _is_for_reading_only(exc: sqlite3.Error) -> bool:
    name = getattr(exc, "sqlite_errorname", "") or ""
    return name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN"))


def _note_suspect(path: Path) -> None:
    try:
        suspect_mark(path).touch()
    except OSError:
        return  # a read-only disk: nobody will write there anyway
