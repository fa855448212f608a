"""Sets a damaged catalog aside and saves from it what can still be read.

Queued rows have no other copy once their transcript is deleted, so they are read one by one around
the damage. How far traces had been read is not saved: they are read anew, which adds only what is
missing.
"""

import logging
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from funes_ls.indexer.catalog import ROW_FIELDS, SESSION_FIELDS, Catalog, open_catalog
from funes_ls.indexer.catalog_schema import suspect_mark
from funes_ls.indexer.errors import MemoryStateError

_log = logging.getLogger(__name__)
_BLOCK = 256
#: Numbers tried when the file no longer says how many rows were ever queued.
_FARTHEST = 2_000_000
_SIDE_FILES = ("", "-wal", "-shm")


def open_or_salvage(path: Path, notes: list[str]) -> Catalog:
    """Return the catalog at a path for writing; a damaged one is replaced by what it still gives.

    Args:
        path: Where the catalog is or will be.
        notes: Gets a sentence for people when something was wrong.

    Raises:
        MemoryStateError: kind `newer_format` or `locked`.
        BackendError: kind `disk`.
    """
    try:
        catalog = open_catalog(path)
    except MemoryStateError as exc:
        if exc.kind != "damaged":
            raise
        return _replaced(path, notes)
    if not suspect_mark(path).exists():
        return catalog
    if catalog.is_sound():
        suspect_mark(path).unlink(missing_ok=True)
        return catalog
    catalog.close()
    return _replaced(path, notes)


def _replaced(path: Path, notes: list[str]) -> Catalog:
    aside = _set_aside(path)
    catalog = open_catalog(path)
    saved = _copy_over(aside, catalog)
    suspect_mark(path).unlink(missing_ok=True)
    notes.append(
        f"The catalog was damaged; it is kept as {aside.name}, and {saved} queued rows were saved "
        "from it. Traces that are still there are read again; passages that had no vector yet and "
        "whose trace is gone are lost."
    )
    _log.info("catalog %s was damaged, set aside as %s, %d rows saved", path, aside, saved)
    return catalog


def _set_aside(path: Path) -> Path:
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    aside = path.with_name(f"{path.name}.damaged-{moment}")
    for ending in _SIDE_FILES:
        file = path.with_name(path.name + ending)
        if file.exists():
            file.rename(aside.with_name(aside.name + ending))
    return aside


def _copy_over(aside: Path, catalog: Catalog) -> int:
    """Copy sessions, tombstones, touched files and queued rows; return how many of the last."""
    try:
        old = sqlite3.connect(f"{aside.resolve().as_uri()}?mode=rw", uri=True, isolation_level=None)
    except sqlite3.Error:
        return 0
    old.text_factory = lambda data: data.decode("utf-8", "replace")
    try:
        with catalog.transaction():
            catalog.restore("sessions", SESSION_FIELDS, _table(old, "sessions", SESSION_FIELDS))
            for table, fields in _OTHERS.items():
                catalog.restore(table, fields, _table(old, table, fields))
            fields = ("priority", *ROW_FIELDS)
            return catalog.restore("pending", fields, _queued(old, fields))
    finally:
        old.close()


_OTHERS = {
    "tombstones": ("session_id", "deleted_at"),
    "session_files": ("session_id", "path", "name"),
    "removals": ("id",),
}


def _table(old: sqlite3.Connection, table: str, fields: tuple[str, ...]) -> Iterator[Any]:
    """Yield a small table's rows up to the first damaged page."""
    try:
        yield from old.execute(f"SELECT {', '.join(fields)} FROM {table}")
    except sqlite3.Error as exc:
        _log.info("table %s ends early: %s", table, exc)


def _queued(old: sqlite3.Connection, fields: tuple[str, ...]) -> Iterator[Any]:
    """Yield queued rows by number, passing over what cannot be read."""
    select = f"SELECT {', '.join(fields)} FROM pending NOT INDEXED WHERE n BETWEEN ? AND ?"
    last = _last_number(old)
    for start in range(0, last + 1, _BLOCK):
        end = min(start + _BLOCK - 1, last)
        rows = _read(old, select, start, end)
        if rows is None:
            for n in range(start, end + 1):
                yield from _read(old, select, n, n) or ()
        else:
            yield from rows


def _read(old: sqlite3.Connection, select: str, start: int, end: int) -> list[Any] | None:
    try:
        return old.execute(select, (start, end)).fetchall()
    except sqlite3.Error:
        return None


def _last_number(old: sqlite3.Connection) -> int:
    for statement in (
        "SELECT seq FROM sqlite_sequence WHERE name = 'pending'",
        "SELECT max(n) FROM pending",
    ):
        try:
            found = old.execute(statement).fetchone()
        except sqlite3.Error:
            continue
        if found and found[0] is not None:
            return int(found[0])
    readable = _read(old, "SELECT count(*) FROM sqlite_master WHERE rowid BETWEEN ? AND ?", 0, 1)
    return -1 if readable is None else _FARTHEST
