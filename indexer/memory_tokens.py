"""The token vectors of a memory's prose, in a file beside its dataset: `tokens.db`.

Everything in it is made of rows and can be made again: a file that is damaged, or of another model,
is dropped. SQLite keeps it, since a question reads thirty rows from anywhere in it, rows leave one
by one, and nothing of them must be left: what is deleted is overwritten.
"""

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from funes_ls.indexer.embedding_tokens import DIRECTIONS, Basis, text_mark, unpacked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_log = logging.getLogger(__name__)
TOKENS = "tokens.db"
_FORMAT = 2
_MANY = 500
_PAGE = 5_000
_BUSY_MS = 2_000
#: How long readers are waited for that keep old pages.
_LOG_BUSY_MS = 2_000
_CACHE_KB = 1_024
_SCHEMA = (
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID",
    "CREATE TABLE tokens(place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, mark INTEGER NOT NULL,"
    " vectors BLOB NOT NULL)",
)


class TokenState(Struct, frozen=True, kw_only=True):
    """What is kept.

    Attributes:
        chunks: Chunks that have token vectors.
        size_bytes: What these take, all in all.
        is_whole: Whether no chunk is known to lack its own.
    """

    chunks: int = 0
    size_bytes: int = 0
    is_whole: bool = False


class TokenReader:
    """Reads token vectors, whoever writes them; for any thread. Without a file it has none."""

    def __init__(self, base: Path) -> None:
        """Read those of a memory directory; nothing is opened yet."""
        self._path = base / TOKENS
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._basis: tuple[int, Basis] | None = None

    def read(
        self, ids: Sequence[str], texts: Sequence[str], *, stamp: str
    ) -> "tuple[Basis, dict[str, NDArray[np.int8]]] | None":
        """Return the basis and the tokens of those rows that have some; None when there are none.

        Args:
            ids: Of the rows.
            texts: What they say now: tokens of another text are none of theirs.
            stamp: Model the tokens must be of.
        """
        with self._lock:
            try:
                return self._read(ids, texts, stamp)
            except (sqlite3.Error, OSError, ValueError) as exc:
                self._let_go()
                if _is_damage(exc):
                    _note_damage(self._path)
                return None

    def state(self) -> TokenState:
        """Return what is kept."""
        with self._lock:
            try:
                db = self._opened()
                return _state(db) if db is not None else TokenState()
            except (sqlite3.Error, OSError):
                self._let_go()
                return TokenState()

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            self._let_go()

    def _read(
        self, ids: Sequence[str], texts: Sequence[str], stamp: str
    ) -> "tuple[Basis, dict[str, NDArray[np.int8]]] | None":
        db = self._opened()
        if db is None:
            return None
        marks = {id_: text_mark(text) for id_, text in zip(ids, texts, strict=True)}
        db.execute("BEGIN")
        try:
            basis = self._current_basis(db)
            if basis is None or basis.stamp != stamp:
                return None
            found = {
                id_: unpacked(vectors)
                for id_, mark, vectors in _select(db, "id, mark, vectors", list(marks))
                if mark == marks[id_] and vectors
            }
        finally:
            db.execute("ROLLBACK")
        return basis, found

    def _current_basis(self, db: sqlite3.Connection) -> Basis | None:
        number = _meta(db, "basis_number")
        if number is None:
            return None
        if self._basis is None or self._basis[0] != number:
            basis = _basis(db)
            self._basis = None if basis is None else (int(number), basis)
        return None if self._basis is None else self._basis[1]

    def _opened(self) -> sqlite3.Connection | None:
        try:
            found = self._path.stat()
        except OSError:
            self._let_go()
            return None
        if self._db is None or self._file != (found.st_dev, found.st_ino):
            self._let_go()
            db = sqlite3.connect(
                f"{self._path.resolve().as_uri()}?mode=ro",
                uri=True,
                check_same_thread=False,
                isolation_level=None,
            )
            db.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
            if db.execute("PRAGMA user_version").fetchone()[0] != _FORMAT:
                db.close()
                return None
            self._db, self._file = db, (found.st_dev, found.st_ino)
        return self._db

    def _let_go(self) -> None:
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
        self._db, self._file, self._basis = None, None, None


class TokenStore:
    """Writes token vectors; for the writer of the memory. No failure of it is one of the memory."""

    def __init__(self, base: Path) -> None:
        """Write beside a memory's dataset; nothing is made before there is something to keep."""
        self._path = base / TOKENS
        self._db: sqlite3.Connection | None = None
        self._lock = threading.RLock()

    def basis(self, stamp: str, dim: int) -> Basis | None:
        """Return the basis for a model's token vectors, None when one is to be fitted."""
        found: Basis | None = None
        with self._doing() as db:
            found = _basis(db) if db is not None else None
        fits = found is not None and found.stamp == stamp and found.matrix.shape[0] == dim
        return found if fits else None

    def begin(self, basis: Basis) -> None:
        """Keep token vectors by this basis from now on; all others are dropped."""
        import numpy as np

        with self._doing(make=True) as db:
            if db is None:
                return
            number = int(_meta(db, "basis_number") or 0) + 1
            with _transaction(db):
                db.execute("DELETE FROM tokens")
                _put(db, "basis_number", number)
                _put(db, "stamp", basis.stamp)
                _put(db, "texts", basis.texts)
                _put(db, "basis", np.asarray(basis.matrix, np.float32).tobytes())
                _put(db, "centre", np.asarray(basis.centre, np.float32).tobytes())
                _put(db, "chunks", 0)
                _put(db, "size_bytes", 0)
                _put(db, "whole", 0)

    def put(self, kept: Mapping[str, tuple[str, bytes]]) -> None:
        """Keep the tokens of rows: text and packed tokens by id."""
        with self._doing() as db:
            if db is None or not kept:
                return
            with _transaction(db):
                self._drop(db, list(kept))
                db.executemany(
                    "INSERT INTO tokens(id, mark, vectors) VALUES (?, ?, ?)",
                    ((id_, text_mark(text), packed) for id_, (text, packed) in kept.items()),
                )
                _count(db, len(kept), sum(len(packed) for _, packed in kept.values()))

    def delete(self, ids: Sequence[str]) -> None:
        """Take rows out; nothing of them stays in the file, but in its log until `empty_log`."""
        with self._doing() as db:
            if db is not None:
                with _transaction(db):
                    self._drop(db, ids)

    def lacking(self, rows: Iterable[tuple[str, str]]) -> list[str]:
        """Return which rows of (id, text) have no tokens of their own."""
        marks = {id_: text_mark(text) for id_, text in rows}
        there: set[str] = set()
        with self._doing() as db:
            if db is not None:
                found = _select(db, "id, mark", list(marks))
                there = {id_ for id_, mark in found if mark == marks[id_]}
        return [id_ for id_ in marks if id_ not in there]

    def ids(self) -> Iterator[list[str]]:
        """Yield the ids of all rows, in pages."""
        place = 0
        while True:
            rows: list[tuple[int, str]] = []
            with self._doing() as db:
                if db is not None:
                    rows = db.execute(
                        "SELECT place, id FROM tokens WHERE place > ? ORDER BY place LIMIT ?",
                        (place, _PAGE),
                    ).fetchall()
            if not rows:
                return
            place = rows[-1][0]
            yield [id_ for _, id_ in rows]

    def note_whole(self, whole: bool) -> None:
        """Note whether every row has its own that should."""
        with self._doing() as db:
            if db is not None and bool(_meta(db, "whole")) != whole:
                with _transaction(db):
                    _put(db, "whole", int(whole))

    def state(self) -> TokenState:
        """Return what is kept."""
        found = TokenState()
        with self._doing() as db:
            if db is not None:
                found = _state(db)
        return found

    def empty_log(self) -> bool:
        """Empty the log of changes; return False while somebody still reads from it."""
        is_empty = False
        with self._doing() as db:
            is_empty = db is None
            if db is not None:
                db.execute(f"PRAGMA busy_timeout = {_LOG_BUSY_MS}")
                is_empty = not db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        return is_empty

    def drop(self) -> None:
        """Remove the file."""
        with self._lock:
            self.close()
            for suffix in ("", "-wal", "-shm", ".damaged"):
                with contextlib.suppress(OSError):
                    self._path.with_name(f"{TOKENS}{suffix}").unlink()

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            if self._db is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._db.close()
            self._db = None

    def _drop(self, db: sqlite3.Connection, ids: Sequence[str]) -> None:
        gone = [(place, size) for place, size in _select(db, "place, length(vectors)", list(ids))]
        if gone:
            db.executemany("DELETE FROM tokens WHERE place = ?", ((place,) for place, _ in gone))
            _count(db, -len(gone), -sum(size for _, size in gone))

    @contextlib.contextmanager
    def _doing(self, *, make: bool = False) -> Iterator[sqlite3.Connection | None]:
        """Give the open file, None without one; what goes wrong costs token vectors at most."""
        with self._lock:
            try:
                db = self._opened(make=make)
            except (sqlite3.Error, OSError) as exc:
                self._fails(exc)
                db = None
            try:
                yield db
            except (sqlite3.Error, OSError) as exc:
                self._fails(exc)

    def _fails(self, exc: Exception) -> None:
        _log.warning("token vectors are not written now: %s", type(exc).__name__)
        self.close()
        if _is_damage(exc):
            self.drop()

    def _opened(self, *, make: bool) -> sqlite3.Connection | None:
        if _damage_mark(self._path).exists():
            self.drop()
        if self._db is not None and not self._path.exists():
            self.close()
        if self._db is None:
            if not make and not self._path.exists():
                return None
            db = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
            self._db = db
            with contextlib.suppress(OSError):
                self._path.chmod(0o600)
            db.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            db.execute("PRAGMA secure_delete = ON")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
            if db.execute("PRAGMA user_version").fetchone()[0] != _FORMAT:
                self._make(db)
        return self._db

    def _make(self, db: sqlite3.Connection) -> None:
        """Make the tables, those of another format dropped."""
        with _transaction(db):
            for name in ("meta", "tokens"):
                db.execute(f"DROP TABLE IF EXISTS {name}")
            for statement in _SCHEMA:
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {_FORMAT}")


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _select(db: sqlite3.Connection, columns: str, ids: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(ids), _MANY):
        part = ids[start : start + _MANY]
        marks = ", ".join("?" * len(part))
        yield from db.execute(f"SELECT {columns} FROM tokens WHERE id IN ({marks})", part)


def _meta(db: sqlite3.Connection, key: str) -> Any:
    found = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if found is None else found[0]


def _put(db: sqlite3.Connection, key: str, value: object) -> None:
    db.execute("INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", (key, value))


def _count(db: sqlite3.Connection, chunks: int, size_bytes: int) -> None:
    for key, change in (("chunks", chunks), ("size_bytes", size_bytes)):
        db.execute("UPDATE meta SET value = value + ? WHERE key = ?", (change, key))


def _state(db: sqlite3.Connection) -> TokenState:
    found = db.execute("SELECT key, value FROM meta WHERE key NOT IN ('basis', 'centre')")
    known = dict(found.fetchall())
    return TokenState(
        chunks=int(known.get("chunks", 0)),
        size_bytes=int(known.get("size_bytes", 0)),
        is_whole=bool(known.get("whole", 0)),
    )


def _basis(db: sqlite3.Connection) -> Basis | None:
    import numpy as np

    known = dict(db.execute("SELECT key, value FROM meta").fetchall())
    if not known.get("basis"):
        return None
    numbers = np.frombuffer(known["basis"], dtype=np.float32)
    return Basis(
        stamp=str(known["stamp"]),
        centre=np.frombuffer(known["centre"], dtype=np.float32),
        matrix=numbers.reshape(-1, DIRECTIONS),
        texts=int(known["texts"]),
    )


def _is_damage(exc: BaseException) -> bool:
    """Tell what is wrong with the file from what passes: a full disk, another writer."""
    return isinstance(exc, sqlite3.DatabaseError) and not isinstance(
        exc, sqlite3.OperationalError | sqlite3.IntegrityError
    )


def _damage_mark(path: Path) -> Path:
    return path.with_name(f"{TOKENS}.damaged")


def _note_damage(path: Path) -> None:
    """Ask the writer to drop the file."""
    with contextlib.suppress(OSError):
        _damage_mark(path).touch()
