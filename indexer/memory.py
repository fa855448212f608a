"""One memory: its dataset, its catalog and its words index, opened, mended and kept in step.

Order of every change, so that a kill at any point loses and doubles nothing: rows enter the
catalog's queue first, then the words index; they move to the dataset by appending first and leaving
the queue after; what must leave the dataset is noted in the catalog before and struck off after.
Opening for writing finishes whatever was left half done.
"""

import hashlib
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from funes_ls.indexer import dataset as lance
from funes_ls.indexer import memory_repair as repair
from funes_ls.indexer.catalog import Catalog, open_catalog
from funes_ls.indexer.catalog_salvage import open_or_salvage
from funes_ls.indexer.dataset import Dataset, reading_order
from funes_ls.indexer.dataset_early import open_early
from funes_ls.indexer.errors import BackendError, MemoryStateError
from funes_ls.indexer.home import make_private
from funes_ls.indexer.lexical import LexicalIndex, LexicalQuery
from funes_ls.indexer.lock import writer_lock
from funes_ls.indexer.memory_repair import Progress
from funes_ls.indexer.model import Chunk

if TYPE_CHECKING:
    import numpy as np

_log = logging.getLogger(__name__)
CATALOG = "catalog.db"
#: Words become searchable after so many rows or seconds of adding, whichever is first.
_COMMIT_ROWS = 20_000
_COMMIT_S = 5.0
#: How long a reader waits for a writer that is mending what the reader cannot do without.
_PATIENCE_S = 600.0


#: Turn ids of this length are unique everywhere, so equal ones are copies.
_LONG_TURN_ID = 32


class Row(Chunk, frozen=True, kw_only=True):
    """A row as recall gives it.

    Attributes:
        embedded: False while it has words only.
    """

    embedded: bool = True


class MemoryState(Struct, frozen=True, kw_only=True):
    """What a memory holds.

    Attributes:
        stamp: Model of the vectors; "" when nothing is embedded yet or it is unstamped.
        dim: Width of the vectors; 0 when nothing is embedded yet.
        embedded: Rows with a vector.
        words_only: Rows still without one.
        words: Rows the words index holds.
        notes: Sentences on what was found wrong and mended, for people.
    """

    base: str
    stamp: str
    dim: int
    embedded: int
    words_only: int
    words: int
    sessions: int
    problems: int
    generation: int
    version: int
    notes: tuple[str, ...] = ()


class Memory:
    """An open memory. Reads are those of any process; writes need the writer lock held."""

    def __init__(
        self,
        base: Path,
        *,
        catalog: Catalog,
        lexical: LexicalIndex,
        dataset: Dataset | None,
        writable: bool,
    ) -> None:
        """Put the parts together; use `open_memory`."""
        self.base = base
        self.catalog = catalog
        self.lexical = lexical
        self.dataset = dataset
        self.writable = writable
        self.notes: list[str] = []
        self._uncommitted = 0
        self._in_step = True
        self._wordless: list[Chunk] = []
        self._background = ThreadPoolExecutor(max_workers=1)
        self._commit: tuple[Future[None], int] | None = None
        self._committed_at = time.monotonic()
        self._dataset_ids: tuple[str, set[str]] = ("", set())

    # Reading

    @property
    def generation(self) -> int:
        """Return a number that grows whenever rows come, move or go."""
        return self.catalog.generation

    def state(self) -> MemoryState:
        """Return what the memory holds."""
        dataset = self.dataset
        return MemoryState(
            base=str(self.base),
            stamp=dataset.stamp if dataset else "",
            dim=dataset.dim if dataset else 0,
            embedded=dataset.count() if dataset else 0,
            words_only=self.catalog.pending_count(),
            words=self.lexical.count(),
            sessions=self.catalog.session_count(),
            problems=self.catalog.problem_count(),
            generation=self.generation,
            version=dataset.version if dataset else 0,
            notes=tuple(self.notes),
        )

    def rows(self, ids: Sequence[str]) -> list[Row]:
        """Return rows by id in the order asked, queued ones too; unknown ids are left out."""
        found = {chunk.id: _row(chunk, False) for chunk in self.catalog.pending_rows(ids)}
        rest = [id_ for id_ in ids if id_ not in found]
        if rest and self.dataset is not None:
            stored = self.dataset.rows(rest)
            found.update((row.id, row) for row in self._timed(stored))
        return [found[id_] for id_ in dict.fromkeys(ids) if id_ in found]

    def session_rows(self, session_id: str) -> list[Row]:
        """Return a session's rows in reading order."""
        found = {chunk.id: _row(chunk, False) for chunk in self.catalog.pending_session(session_id)}
        if self.dataset is not None:
            for chunk in self.dataset.session_rows(session_id):
                found.setdefault(chunk.id, _row(chunk, True))
        return self._fill_times(sorted(found.values(), key=reading_order))

    def search_words(self, query: LexicalQuery, limit: int) -> list[tuple[str, float]]:
        """Return ids and scores of the words leg, best first."""
        return self.lexical.search(query, limit)

    @property
    def turns(self) -> int:
        """Return how many distinct turns there were when they were last counted."""
        return int(self.catalog.get("turns", 0))

    def refresh(self) -> None:
        """See what another process has written since."""
        if self.dataset is not None:
            self.dataset.refresh()
        elif lance.is_there(self.base):
            self.dataset = lance.open_dataset(self.base)
        self.lexical.reload()

    def close(self) -> None:
        """Commit what is open and let the files go."""
        if self.writable:
            self.commit_words()
        self._background.shutdown()
        self.lexical.close()
        self.catalog.close()

    def __enter__(self) -> "Memory":
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    # Writing

    def queue(
        self, rows: Iterable[Chunk], *, started_us: int | None = None, subagent: bool = False
    ) -> int:
        """Queue rows of one session that are not in the memory yet; return how many.

        They are durable on return (on the end of the caller's `catalog.transaction()`), and
        searchable by words after `commit_words`, which also happens by itself now and then.
        """
        fresh = self._unknown(rows)
        if not fresh:
            return 0
        added = self.catalog.add_pending(fresh, started_us=started_us, subagent=subagent)
        self._wordless += fresh
        if self._in_step or len(self._wordless) >= _COMMIT_ROWS:
            self._add_words()
        return added

    @contextmanager
    def one_change(self) -> Iterator[None]:
        """Make everything queued inside one change of the catalog, which is faster than many.

        `commit_words` must not be called inside.
        """
        with self._step():
            with self.catalog.transaction():
                yield
            self._add_words()

    def _add_words(self) -> None:
        """Add the words of what was queued, once no commit is under way."""
        self._finish_commit()
        rows, self._wordless = self._wordless, []
        with self._step():
            self.lexical.add(rows)
        self._uncommitted += len(rows)

    @contextmanager
    def _step(self) -> Iterator[None]:
        """Note, until the end is reached, that words and queue may differ by what is under way."""
        outer, self._in_step = self._in_step, False
        yield
        self._in_step = outer

    def commit_words(self, *, only_if_due: bool = False) -> None:
        """Make every queued row searchable by words.

        Must not be called inside a `catalog.transaction()`.

        Args:
            only_if_due: Do it now and then, and in the background: reading goes on meanwhile.
        """
        waited = time.monotonic() - self._committed_at
        if only_if_due and self._uncommitted < _COMMIT_ROWS and waited < _COMMIT_S:
            return
        if not self._in_step:
            self._back_in_step()
        elif self._uncommitted:
            self._finish_commit()
            begun = self._background.submit(self.lexical.commit)
            self._commit = begun, self.catalog.last_number()
            self._uncommitted = 0
        if not only_if_due:
            self._finish_commit()
        self._committed_at = time.monotonic()

    def _finish_commit(self) -> None:
        """Wait for the commit under way and note what it has made searchable."""
        if self._commit is None:
            return
        begun, last = self._commit
        begun.result()
        with self.catalog.transaction():
            self.catalog.put("lexical_upto", last)
            self.catalog.clear_removals()
        self._commit = None

    def _back_in_step(self) -> None:
        """Add the words of what is in the queue, those under way when something failed dropped."""
        self._finish_commit()
        self._wordless = []
        self.lexical.close()
        repair.catch_up(self.lexical, self.catalog)
        repair.finish_removals(self.catalog, self.dataset, self.lexical)
        self._uncommitted, self._in_step = 0, True

    def ensure_dataset(self, *, stamp: str, dim: int) -> Dataset:
        """Return the dataset, made for a model when there is none yet.

        Raises:
            MemoryStateError: kind `wrong_model` or `wrong_width`: it is of another model.
        """
        if self.dataset is None and not lance.is_there(self.base):
            self.dataset = lance.create(self.base, stamp=stamp, dim=dim)
            self.catalog.put("lance_version", self.dataset.version)
        elif self.dataset is None:
            self.dataset = lance.open_dataset(self.base)
        lance.check_model(self.dataset, stamp=stamp, dim=dim)
        return self.dataset

    def move(
        self,
        rows: Sequence[Chunk],
        vectors: "np.ndarray[Any, np.dtype[np.float32]]",
        *,
        stamp: str,
    ) -> None:
        """Move queued rows into the dataset with their vectors; the dataset is made when absent.

        Args:
            rows: Rows of the queue, from `catalog.next_pending`.
            vectors: (len(rows), dim) float32, L2-normalised.
            stamp: Model the vectors are of.

        Raises:
            MemoryStateError: kind `wrong_model` or `wrong_width`.
            BackendError: kind `disk`; the rows stay queued.
        """
        if not rows:
            return
        dataset = self.ensure_dataset(stamp=stamp, dim=vectors.shape[1])
        self.commit_words()
        ids = [row.id for row in rows]
        self.catalog.mark_moving(ids)
        try:
            dataset.append(rows, vectors)
        except BackendError:
            self.catalog.mark_queued(ids)
            raise
        self._dataset_ids = ("", set())
        with self.catalog.transaction():
            self.catalog.finish_moving(rows)
            self.catalog.put("lance_version", dataset.version)

    def remove(self, ids: Sequence[str]) -> None:
        """Take rows out of queue, dataset and words; for rows that a rewritten trace retracts."""
        if not ids:
            return
        self._dataset_ids = ("", set())
        self._add_words()  # what is added later would stay
        # At once: a row queued under one of these ids from now on is a new one, and stays.
        with self.catalog.transaction():
            self.catalog.add_removals(ids)
            self.catalog.drop_pending(ids)
        self.catalog.settle()
        with self._step():
            self._strike(ids)
        self.catalog.settle()
        self._uncommitted += len(ids)

    def forget_session(self, session_id: str) -> int:
        """Take a session out for good, so that its trace is not indexed again; return its rows."""
        ids = [row.id for row in self.session_rows(session_id)]
        with self.catalog.transaction():
            self.catalog.add_tombstone(session_id)
            self.catalog.add_removals(ids)
            self.catalog.forget_session(session_id)
        self.remove(ids)
        self.commit_words()
        return len(ids)

    def tidy(self, *, keep_s: float = 3600.0) -> None:
        """Merge small fragments of the dataset and give freed disk space back."""
        if self.dataset is not None:
            self.catalog.put("lance_version", None)
            self.dataset.optimize(keep_s=keep_s)
            self.catalog.put("lance_version", self.dataset.version)
        self.catalog.shrink()

    def count_turns(self) -> None:
        """Count turns anew after changes; what a resumed or forked session copies counts once."""
        if self.catalog.get("turns_at") == self.generation:
            return
        keys = set(self.catalog.pending_turns())
        for batch in self.dataset.scan(("session_id", "turn_uuid")) if self.dataset else ():
            keys.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        # Ids such as Hermes's row numbers or pi's eight digits are unique in their session only.
        distinct = {
            turn if len(turn) >= _LONG_TURN_ID else f"{turn} {session}" for session, turn in keys
        }
        with self.catalog.transaction():
            self.catalog.put("turns", len(distinct))
            self.catalog.put("turns_at", self.generation)

    def _strike(self, ids: Sequence[str]) -> None:
        """Do what the noted removals say; they stay noted until the words are committed."""
        if self.dataset is not None:
            there = self.dataset.existing(ids)
            if there:
                self.dataset.delete_ids(sorted(there))
                self.catalog.put("lance_version", self.dataset.version)
        self.lexical.delete_ids(ids)

    def _unknown(self, rows: Iterable[Chunk]) -> list[Chunk]:
        by_id: dict[str, Chunk] = {}
        for row in rows:
            by_id.setdefault(row.id, row)
        known: set[str] = set()
        for session_id in {row.session_id for row in by_id.values()}:
            known |= self._in_dataset(session_id)
            if self.catalog.has_pending(session_id):
                known |= self.catalog.known(list(by_id))
        return [row for row in by_id.values() if row.id not in known]

    def _in_dataset(self, session_id: str) -> set[str]:
        """Return ids of a session's embedded rows; kept for the session asked last."""
        if self.dataset is None or not self.catalog.embedded_count(session_id):
            return set()
        if self._dataset_ids[0] != session_id:
            self._dataset_ids = (session_id, self.dataset.session_ids_of_rows(session_id))
        return self._dataset_ids[1]

    def _timed(self, chunks: Iterable[Chunk]) -> Iterator[Row]:
        for chunk in chunks:
            if chunk.ts_us is None:
                session = {row.id: row for row in self.session_rows(chunk.session_id)}
                yield session.get(chunk.id, _row(chunk, True))
            else:
                yield _row(chunk, True)

    def _fill_times(self, rows: list[Row]) -> list[Row]:
        """Give rows without a time that of the row before, the first ones the session's start."""
        if all(row.ts_us is not None for row in rows):
            return rows
        session = self.catalog.session(rows[0].session_id)
        latest = session.started_us if session else None
        filled = []
        for row in rows:
            latest = row.ts_us if row.ts_us is not None else latest
            filled.append(msgspec.structs.replace(row, ts_us=latest))
        return filled


def _row(chunk: Chunk, embedded: bool) -> Row:
    return Row(**msgspec.structs.asdict(chunk), embedded=embedded)


def open_memory(
    base: Path,
    *,
    derived: Path,
    writable: bool = False,
    progress: Progress | None = None,
    patience_s: float = _PATIENCE_S,
) -> Memory:
    """Return the memory at a place.

    Args:
        base: A home's `memory` directory, a directory that holds `chunks.lance`, or a `.lance`
            directory itself.
        derived: `<home>/derived`: where indexes over memories that are not this home's go.
        writable: The caller holds the home's writer lock and will add rows.
        progress: Told what is being rebuilt (`words`, `sessions`), rows done and rows in all.
        patience_s: How long a reader waits for a writer to mend what it cannot do without.

    Raises:
        MemoryStateError: kind `missing`, `damaged`, `foreign`, `newer_format` or `locked`.
        BackendError: kind `disk`.
    """
    home = derived.parent
    own = base.resolve() == (home / "memory").resolve()
    if writable and not own:
        raise MemoryStateError(
            f"The memory at {base} is not this home's; it is only read.",
            hint="Set FUNES_HOME to the home it belongs to.",
            kind="read_only",
        )
    if writable:
        return _open_for_writing(base, base, own=True, progress=progress)
    if not lance.is_there(base) and not (base / CATALOG).exists():
        raise MemoryStateError(
            f"No memory at {base} yet.", hint="Run `funes index`.", kind="missing"
        )
    if own or (base / CATALOG).exists():
        lock_at, place = (home if own else base.parent), base
    else:
        lock_at = place = derived / _short_hash(lance.dataset_path(base))
    return _open_for_reading(
        base, place, lock_at=lock_at, own=own, progress=progress, patience_s=patience_s
    )


def open_for_words(base: Path) -> Memory | None:
    """Return a home's memory for words and rows alone, a second before `open_memory` can.

    None where it is not in order, or cannot be had that early: `open_memory` sees to it.
    """
    dataset = open_early(base)
    if dataset is None:
        return None
    try:
        memory, _ = _as_it_is(base, base, dataset)
    except (MemoryStateError, BackendError):
        return None
    return memory


def _open_for_writing(base: Path, place: Path, *, own: bool, progress: Progress | None) -> Memory:
    notes: list[str] = []
    try:
        make_private(place)
    except OSError as exc:
        raise _unwritable(place, exc) from exc
    dataset = _dataset(base)
    catalog = open_or_salvage(place / CATALOG, notes)
    try:
        repair.finish_moves(catalog, dataset)
        if dataset is not None and repair.adopt(catalog, dataset, own=own, progress=progress):
            _log.info("took in %d rows of %s", dataset.count(), base)
        lexical = repair.words(catalog, dataset, place, progress)
        repair.finish_removals(catalog, dataset if own else None, lexical)
    except BaseException:
        catalog.close()
        raise
    memory = Memory(base, catalog=catalog, lexical=lexical, dataset=dataset, writable=True)
    memory.notes += notes
    return memory


def _open_for_reading(
    base: Path,
    place: Path,
    *,
    lock_at: Path,
    own: bool,
    progress: Progress | None,
    patience_s: float,
) -> Memory:
    """Open what is there; where something is wrong, mend it first if nobody else writes."""
    memory, trouble = _as_it_is(base, place, _dataset(base))
    if memory is not None and not trouble:
        return memory
    notes: list[str] = []
    try:
        # Another writer that has the lock mends all this as it opens: what can be read is read
        # as it is, what cannot is waited for.
        with writer_lock(lock_at, wait_s=0.0 if memory is not None else patience_s):
            mended = _open_for_writing(base, place, own=own, progress=progress)
            notes += mended.notes
            mended.close()
    except (MemoryStateError, BackendError) as exc:
        impatient = exc.kind == "locked" and memory is None and patience_s < _PATIENCE_S
        if exc.kind not in ("locked", "disk") or impatient:
            raise
        _log.info("%s is not mended now: %s", place, exc.message)
    else:
        if memory is not None:
            memory.close()
        memory, _ = _as_it_is(base, place, _dataset(base))
    memory = memory or _in_memory(base, place, progress)
    memory.notes += notes
    return memory


def _as_it_is(base: Path, place: Path, dataset: Dataset | None) -> tuple[Memory | None, bool]:
    """Return the memory unless it cannot be read, and whether it needs mending."""
    try:
        catalog = open_catalog(place / CATALOG, writable=False)
    except MemoryStateError as exc:
        if exc.kind in ("newer_format", "locked") or (exc.kind == "missing" and dataset is None):
            raise
        return None, True
    try:
        lexical = LexicalIndex.open(place / repair.LEXICAL / str(catalog.get("lexical_id") or "-"))
        trouble = _needs_mending(catalog, dataset)
    except MemoryStateError:
        catalog.close()
        return None, True
    return Memory(base, catalog=catalog, lexical=lexical, dataset=dataset, writable=False), trouble


def _needs_mending(catalog: Catalog, dataset: Dataset | None) -> bool:
    version = catalog.get("lance_version", 0)
    return (
        (dataset is not None and version is not None and version != dataset.version)
        or int(catalog.get("lexical_upto", 0)) < catalog.last_number()
        or catalog.is_half_done()
    )


def _in_memory(base: Path, place: Path, progress: Progress | None) -> Memory:
    """Return the memory with a words index that is gone at the end; for read-only disks."""
    dataset = _dataset(base)
    try:
        catalog = open_catalog(place / CATALOG, writable=False)
    except MemoryStateError:
        catalog = open_catalog(None)
        if dataset is not None:
            repair.adopt(catalog, dataset, own=False, progress=progress)
    lexical = LexicalIndex.create(None, index_id="memory")
    repair.fill(lexical, catalog, dataset, progress)
    lexical.close()
    memory = Memory(base, catalog=catalog, lexical=lexical, dataset=dataset, writable=False)
    memory.notes.append(
        "The words index could not be kept on disk, so it was built for this call only."
    )
    return memory


def _dataset(base: Path) -> Dataset | None:
    return lance.open_dataset(base) if lance.is_there(base) else None


def _unwritable(place: Path, exc: OSError) -> BackendError:
    return BackendError(
        f"Cannot write under {place} ({exc.strerror or exc}).",
        hint="Make it writable, or set FUNES_HOME to a directory that is.",
        kind="disk",
    )


def _short_hash(path: Path) -> str:
    return hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
