"""Writes to a memory: queue, words and dataset are kept in step.

Order of every change, so that a kill at any point loses and doubles nothing: rows enter the
catalog's queue first, then the words index; they move to the dataset by appending first and leaving
the queue after; what must leave the dataset is noted in the catalog before and struck off after.
Opening for writing finishes whatever was left half done.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funes_ls.indexer import dataset as lance
from funes_ls.indexer import facts_tables
from funes_ls.indexer import memory_repair as repair
from funes_ls.indexer.catalog import Catalog
from funes_ls.indexer.dataset import Dataset
from funes_ls.indexer.embedding_tokens import PROSE
from funes_ls.indexer.errors import BackendError
from funes_ls.indexer.lexical import LexicalIndex
from funes_ls.indexer.lexical_search import Words
from funes_ls.indexer.memory_read import Mark, MemoryState, MemoryView, Parts, Shared, mark_of
from funes_ls.indexer.memory_tokens import TokenReader, TokenStore
from funes_ls.indexer.model import Chunk

if TYPE_CHECKING:
    import numpy as np

    from funes_ls.indexer.memory_held import Held, Moved

#: Words become searchable after so many rows or seconds of adding, whichever is first.
_COMMIT_ROWS = 20_000
_COMMIT_S = 5.0
#: Turn ids of this length are unique everywhere, so equal ones are copies.
_LONG_TURN_ID = 32
#: How often a state is looked for that nobody changes meanwhile.
_TRIES = 12


class Memory(MemoryView):
    """An open memory. Reads are those of any process; writes need the writer lock held."""

    def __init__(
        self,
        base: Path,
        *,
        catalog: Catalog,
        lexical: LexicalIndex,
        dataset: Dataset | None,
        writable: bool,
        attached: bool = True,
    ) -> None:
        """Put the parts together; use `open_memory`."""
        self.lexical = lexical
        self.writable = writable
        self.notes: list[str] = []
        parts = Parts(mark_of(catalog), words=lexical.words, dataset=dataset)
        super().__init__(
            base, catalog=catalog, parts=parts, attached=attached, tokens=TokenReader(base)
        )
        self.token_store = TokenStore(base)
        self._shared = Shared(base, lexical, dataset, attached=attached)
        self._uncommitted = 0
        self._in_step = True
        self._wordless: list[Chunk] = []
        self._background = ThreadPoolExecutor(max_workers=1)
        self._commit: tuple[Future[None], int] | None = None
        self._committed_at = time.monotonic()
        self._dataset_ids: tuple[str, set[str]] = ("", set())
        #: Held while the dataset is read as a whole, which its rewriting would break off.
        self._whole_reads = threading.Lock()

    # Reading

    @property
    def words(self) -> Words:
        """Return the words index as it is now."""
        return self.lexical.words

    @contextmanager
    def snapshot(self) -> Iterator[MemoryView]:
        """Give the memory as it is now, whatever is written meanwhile; for one thread.

        Of one generation every snapshot shows the same.
        """
        if self.writable:
            parts = self._own_parts()
            yield MemoryView(
                self.base, catalog=self.catalog, parts=parts, attached=True, tokens=self._tokens
            )
            return
        for tried in range(1, _TRIES + 1):
            with self.catalog.reading() as catalog:
                parts_then = self._shared.at(
                    mark_of(catalog), self.catalog, at_any_price=tried == _TRIES
                )
                if parts_then is not None:
                    self._parts = parts_then
                    yield MemoryView(
                        self.base,
                        catalog=catalog,
                        parts=parts_then,
                        attached=self.attached,
                        tokens=self._tokens,
                    )
                    return

    def refresh(self, step: "Moved | None" = None) -> None:
        """See what has been written since; cheap when nothing has.

        Args:
            step: What a writer of this process has just put into the dataset: its vectors are
                taken from here then, not from the disk.
        """
        if self.writable:
            if self.dataset is not None:
                self.dataset.refresh()
            self.lexical.reload()
            return
        if step is not None:
            self._shared.note(step)
        with self.snapshot():
            pass

    def attach_dataset(self) -> None:
        """Open the dataset of a memory that was opened for words only."""
        self._shared.attach()
        self.attached = True

    def move_to(self, base: Path, dataset: Dataset) -> None:
        """Go on over another snapshot, which only has rows behind those of this one."""
        self.base = base
        self._shared.move_to(base, dataset)
        self.refresh()

    def vectors(self, *, read: bool = True) -> "Held | None":
        """Return every vector, None for a big memory or one without; see `MemoryView`."""
        parts = self._own_parts() if self.writable else self._parts
        return parts.held(read=read)

    def state(self) -> MemoryState:
        """Return what the memory holds."""
        dataset = self.dataset
        return MemoryState(
            base=str(self.base),
            stamp=dataset.stamp if dataset else "",
            dim=dataset.dim if dataset else 0,
            embedded=self.embedded_count(),
            words_only=self.catalog.pending_count(),
            words=self.lexical.count(),
            sessions=self.catalog.session_count(),
            problems=self.catalog.problem_count(),
            generation=self.generation,
            version=dataset.version if dataset else 0,
            notes=tuple(self.notes),
        )

    def close(self) -> None:
        """Commit what is open and let the files go."""
        try:
            if self.writable:
                self.commit_words()
        finally:
            self._background.shutdown()
            self._tokens.close()  # first: who only reads cannot empty the log on leaving
            self.token_store.close()
            self.lexical.close()
            self.catalog.close()

    def __enter__(self) -> "Memory":
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def _left(self) -> frozenset[str]:
        return frozenset(self.catalog.removals())

    def _own_parts(self) -> Parts:
        """Return the parts as the writer has them now."""
        dataset = self.dataset
        version = dataset.version if dataset else None
        mark = Mark(generation=self.generation, version=version)
        if self._parts.mark != mark:
            held = self._parts.held(read=False)
            kept = held if held is not None and held.version == version else None
            self._parts = Parts(mark, words=self.words, dataset=dataset, held=kept)
        return self._parts

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
            self.catalog.bump_generation()
        self._commit = None

    def _back_in_step(self) -> None:
        """Add the words of what is in the queue, those under way when something failed dropped."""
        self._finish_commit()
        self._wordless = []
        self.lexical.close()
        repair.catch_up(self.lexical, self.catalog)
        repair.finish_removals(self.catalog, self.dataset, self.lexical, self.token_store)
        self._uncommitted, self._in_step = 0, True

    def ensure_dataset(self, *, stamp: str, dim: int) -> Dataset:
        """Return the dataset, made for a model when there is none yet.

        Raises:
            MemoryStateError: kind `wrong_model` or `wrong_width`: it is of another model.
        """
        dataset = self.dataset
        if dataset is None:
            is_new = not lance.is_there(self.base)
            make = lance.create if is_new else lance.open_dataset
            dataset = make(self.base, stamp=stamp, dim=dim)
            self._parts = Parts(mark_of(self.catalog), words=self.words, dataset=dataset)
            if is_new:
                self.catalog.put("lance_version", dataset.version)
        lance.check_model(dataset, stamp=stamp, dim=dim)
        return dataset

    def move(
        self,
        rows: Sequence[Chunk],
        vectors: "np.ndarray[Any, np.dtype[np.float32]]",
        *,
        stamp: str,
        tokens: Mapping[str, tuple[str, bytes]] | None = None,
    ) -> "Moved | None":
        """Move queued rows into the dataset with their vectors; the dataset is made when absent.

        Returns what readers of this process may be told, None for no rows.

        Args:
            rows: Rows of the queue, from `catalog.next_pending`.
            vectors: (len(rows), dim) float32, L2-normalised.
            stamp: Model the vectors are of.
            tokens: Text and packed token vectors of rows by id, as far as there are any.

        Raises:
            MemoryStateError: kind `wrong_model` or `wrong_width`.
            BackendError: kind `disk`; the rows stay queued.
        """
        if not rows:
            return None
        from funes_ls.indexer.memory_held import Moved

        dataset = self.ensure_dataset(stamp=stamp, dim=vectors.shape[1])
        self.commit_words()
        ids = [row.id for row in rows]
        self.catalog.mark_moving(ids)
        self._keep_tokens(rows, tokens or {})
        try:
            dataset.append(rows, vectors)
        except BackendError:
            self.catalog.mark_queued(ids)
            raise
        self._dataset_ids = ("", set())
        with self.catalog.transaction():
            self.catalog.finish_moving(rows)
            self.catalog.put("lance_version", dataset.version)
        return Moved(rows=rows, vectors=vectors, version=dataset.version)

    def _keep_tokens(self, rows: Sequence[Chunk], tokens: Mapping[str, tuple[str, bytes]]) -> None:
        """Keep token vectors ahead of their rows: a kill between the two leaves some too many."""
        self.token_store.put(tokens)
        if any(row.block_type in PROSE and row.id not in tokens for row in rows):
            self.token_store.note_whole(False)

    def drop_stray_tokens(self) -> None:
        """Take out token vectors of rows that are in the dataset no more."""
        for page in self.token_store.ids():
            there = self.dataset.existing(page) if self.dataset is not None else set()
            self.token_store.delete([id_ for id_ in page if id_ not in there])

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

    def replace(self, ids: Sequence[str], rows: Sequence[Chunk], **queued: Any) -> None:
        """Put rows in the place of others, whose ids they may have, in one change.

        Args:
            ids: Rows that leave.
            rows: Rows that are queued; see `queue`, which is not asked whether it knows them.
            queued: As for `queue`.
        """
        self._dataset_ids = ("", set())
        self._add_words()
        with self.catalog.transaction():
            self.catalog.add_removals(ids)
            self.catalog.drop_pending(ids)
            self.catalog.add_pending(rows, **queued)
        with self._step():
            self._strike(ids)
            self.lexical.add(rows)
        self._uncommitted += len(ids) + len(rows)

    def forget_session(self, session_id: str) -> int:
        """Take a session out for good, so that its trace is not indexed again; return its rows."""
        return self.forget_sessions([session_id])

    def forget_sessions(self, session_ids: Sequence[str], *, names: Sequence[str] = ()) -> int:
        """Take sessions out for good, as one change; return how many rows that were.

        Args:
            session_ids: Their traces are not indexed again.
            names: Other ids that these sessions' traces may come back under.
        """
        ids = [row.id for name in session_ids for row in self.session_rows(name)]
        with self.catalog.transaction():
            for name in (*session_ids, *names):
                self.catalog.add_tombstone(name)
            self.catalog.add_removals(ids)
            for name in session_ids:
                facts_tables.forget(self.catalog, name)
                self.catalog.forget_session(name)
        self.remove(ids)
        self.commit_words()
        return len(ids)

    def rewrite(self, *, told: Callable[[str, int, int], None]) -> Iterator[None]:
        """Write words and dataset anew, so that no byte of rows that left is kept; in steps.

        Nothing may be written to the memory between two steps. Closed early, or killed, it leaves
        a memory that is whole.

        Args:
            told: Told of `vectors` or `words`, rows done and rows in all; may raise to end it.
        """
        self.commit_words()
        if self.dataset is not None:
            total = self.dataset.count()
            self.catalog.put("lance_version", None)
            with self._whole_reads:
                counts = self.dataset.rewrite(told=lambda done: told("vectors", done, total))
            with self.catalog.transaction():
                self.catalog.count_embedded(counts)
                repair.note_deletion(self.catalog, self.dataset)
            yield
        self.drop_stray_tokens()
        self.token_store.empty_log()
        yield
        last = self.catalog.last_number()
        total = self.catalog.pending_count() + self.embedded_count()
        with self._step():
            for done in self.lexical.rewrite(repair.every_row(self.catalog, self.dataset)):
                told("words", done, total)
                yield
            self.lexical.commit()
        with self.catalog.transaction():
            self.catalog.put("lexical_upto", last)
            self.catalog.bump_generation()
        self._own_parts()  # what is open of the old words would keep their files
        self.lexical.drop_unused()
        yield

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
        listed = self.catalog.listed_turns()
        keys = set(self.catalog.pending_turns())
        with self._whole_reads:
            for batch in self.dataset.scan(("session_id", "turn_uuid")) if self.dataset else ():
                keys.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        # Ids such as Hermes's row numbers or pi's eight digits are unique in their session only.
        distinct = {
            turn if len(turn) >= _LONG_TURN_ID else f"{turn} {session}" for session, turn in keys
        }
        with self.catalog.transaction():
            self.catalog.put("turns", len(distinct))
            self.catalog.put("turns_listed", listed)
            self.catalog.put("turns_at", self.generation)

    def _strike(self, ids: Sequence[str]) -> None:
        """Do what the noted removals say; they stay noted until the words are committed."""
        if self.dataset is not None:
            there = self.dataset.existing(ids)
            if there:
                self.dataset.delete_ids(sorted(there))
                repair.note_deletion(self.catalog, self.dataset)
        self.token_store.delete(ids)
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
