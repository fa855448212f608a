"""Opens another program's live SQLite database without writing to it or to its folder."""

import os
import shutil
import sqlite3
import tempfile
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from funes_ls.indexer.traces.lines import open_regular

_BATCH = 64
_TRIES = 5
_BUSY_S = 1.0
_PAUSE_S = 0.05


def database_of(path: Path, *names: str) -> Path:
    """Return the database of one of some names that a file beside it belongs to, else the path."""
    for suffix in ("-wal", "-shm", "-journal"):
        name = path.name.removesuffix(suffix)
        if name != path.name and name in names:
            return path.with_name(name)
    return path


class DatabaseView:
    """Read-only views of one database file, however it is found.

    - In WAL mode with `-wal` and `-shm` beside it a writer may be at work: opened `mode=ro`,
      which sees the WAL and takes no write lock.
    - In WAL mode without a `-wal` nothing is outstanding: opened immutable, for `mode=ro` would
      create both files. Should a writer come while rows are read, it is opened anew.
    - With a `-wal` left behind but no `-shm`, or where `mode=ro` is refused (a read-only mount):
      the database and what is beside it are copied to a temporary folder, once for each state.
    - In another journal mode: `mode=ro`, which creates nothing then.
    """

    def __init__(self, path: Path) -> None:
        """Make views of the database at a path."""
        self.path = path
        self._copy: _Copy | None = None
        self._disturbed = 0

    def rows(self, sql: str, key: str, after: int) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query on (`:key`, `:after`) whose first column grows.

        Raises:
            sqlite3.Error: the database is damaged or stays busy.
            OSError: it is not there.
        """
        failures = 0
        while True:
            try:
                for row in self._pass(sql, key, after):
                    after = row[0]
                    yield row
            except sqlite3.OperationalError as exc:
                failures += 1
                if failures >= _TRIES or not _is_passing(exc):
                    raise
                time.sleep(_PAUSE_S)
            except _DisturbedError:
                self._disturbed += 1
            else:
                return

    def all(self, sql: str, key: str = "", after: int = 0) -> list[tuple[Any, ...]]:
        """Return every row of a query at once.

        Raises:
            sqlite3.Error: the database is damaged or stays busy.
            OSError: it is not there.
        """
        for attempt in range(_TRIES):
            try:
                return list(self._pass(sql, key, after))
            except sqlite3.OperationalError as exc:
                if attempt == _TRIES - 1 or not _is_passing(exc):
                    raise
                time.sleep(_PAUSE_S)
            except _DisturbedError:
                self._disturbed += 1
        raise sqlite3.OperationalError("it is written to all the time")

    def _pass(self, sql: str, key: str, after: int) -> Iterator[tuple[Any, ...]]:
        connection, signature = self._open()
        try:
            cursor = connection.execute(sql, {"key": key, "after": after})
            while batch := cursor.fetchmany(_BATCH):
                self._check(signature)
                yield from batch
            self._check(signature)
        finally:
            connection.close()

    def _open(self) -> tuple[sqlite3.Connection, object]:
        """Return a connection, and what must not change while it is read (None: anything may)."""
        info = self.path.stat()
        has_wal = _beside(self.path, "-wal").exists()
        if _in_wal_mode(self.path) and not has_wal and self._disturbed < _TRIES:
            return _connect(self.path, "immutable=1"), _signature(info)
        if not has_wal or _beside(self.path, "-shm").exists():
            try:
                return _checked(_connect(self.path, "mode=ro")), None
            except sqlite3.OperationalError as exc:
                if _code(exc) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise
        state = _files_state(self.path)
        if self._copy is None or self._copy.state != state:
            self._copy = _Copy(self.path)
        return _connect(self._copy.path, "mode=ro"), None

    def _check(self, signature: object) -> None:
        if signature is None:
            return
        came = _beside(self.path, "-wal").exists()
        if came or _signature(self.path.stat()) != signature:
            raise _DisturbedError


class _DisturbedError(Exception):
    """A writer came while an immutable view was read."""


class _Copy:
    """A copy of a database and what is beside it, removed with this object."""

    def __init__(self, path: Path) -> None:
        folder = tempfile.mkdtemp(prefix="funes-db-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.path = Path(folder) / "state.db"
        for _ in range(_TRIES):
            self.state = _files_state(path)
            shutil.copyfile(path, self.path)
            for suffix in ("-wal", "-journal"):
                if _beside(path, suffix).exists():
                    shutil.copyfile(_beside(path, suffix), _beside(self.path, suffix))
            if _files_state(path) == self.state:
                return


def _files_state(path: Path) -> list[tuple[int, int, int] | None]:
    state: list[tuple[int, int, int] | None] = []
    for file in (path, _beside(path, "-wal"), _beside(path, "-journal")):
        state.append(_signature(file.stat()) if file.exists() else None)
    return state


def _in_wal_mode(path: Path) -> bool:
    """Tell what the file header says of the journal."""
    with open_regular(path) as file:
        return file.read(20)[18:20] == b"\x02\x02"


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=_BUSY_S, check_same_thread=False
    )
    connection.text_factory = _text
    return connection


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _signature(info: os.stat_result) -> tuple[int, int, int]:
    return info.st_size, info.st_mtime_ns, info.st_ino


def _checked(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Return a connection that can read; opening alone does not tell."""
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _code(exc: sqlite3.OperationalError) -> int:
    """Return the primary code of an error, 0 when it has none."""
    return getattr(exc, "sqlite_errorcode", 0) & 0xFF


def _is_passing(exc: sqlite3.OperationalError) -> bool:
    """Tell whether trying again may help: a lock, or the window of a checkpoint."""
    return _code(exc) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_LOCKED)
