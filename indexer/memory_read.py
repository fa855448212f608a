"""Reads a memory: what several threads may do at once, each seeing it as it was at one moment."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from funes_ls.indexer import dataset as lance
from funes_ls.indexer.catalog import Catalog
from funes_ls.indexer.dataset import Dataset, reading_order
from funes_ls.indexer.lexical import LexicalIndex, LexicalQuery
from funes_ls.indexer.lexical_search import Words
from funes_ls.indexer.memory_tokens import TokenReader, TokenState
from funes_ls.indexer.model import Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from funes_ls.indexer.embedding_tokens import Basis
    from funes_ls.indexer.memory_held import Held, Moved

#: Steps of a writer that are kept until a reader has seen them.
_MOST_STEPS = 64
#: States whose parts are kept for snapshots that are still to be taken of them.
_MOST_SETTLED = 4
_FAR = 1 << 62


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


class Mark(Struct, frozen=True, kw_only=True):
    """Which state a memory is in, as its catalog tells it.

    Attributes:
        version: Of the dataset; None while its fragments are being merged.
        left_at: Version of the dataset after rows last left it.
    """

    generation: int
    version: int | None
    left_at: int = 0


class Parts:
    """Words and vectors of a memory in one state; for any thread.

    Attributes:
        ahead: Whether the words may hold rows that came after this state.
    """

    def __init__(
        self, mark: Mark, *, words: Words, dataset: Dataset | None, held: "Held | None" = None
    ) -> None:
        """Belong to a state; `held` when the vectors are read already."""
        self.mark = mark
        self.words = words
        self.dataset = dataset
        self.ahead = False
        self._held = held
        self._reading = threading.Lock()

    def held(self, *, read: bool) -> "Held | None":
        """Return every vector; None when there are too many, or they are not read and not to be."""
        if self._held is not None or not read or self.dataset is None:
            return self._held
        with self._reading:
            if self._held is None:
                from funes_ls.indexer.memory_held import fits, read_all

                self._held = read_all(self.dataset) if fits(self.dataset) else None
        return self._held


class MemoryView:
    """A memory as it was at one moment.

    Attributes:
        attached: Whether the dataset has been looked for; False while only words are answered.
    """

    def __init__(
        self,
        base: Path,
        *,
        catalog: Catalog,
        parts: Parts,
        attached: bool,
        tokens: TokenReader | None = None,
    ) -> None:
        """Put the parts together; use `Memory.snapshot`."""
        self.base = base
        self.catalog = catalog
        self.attached = attached
        self._parts = parts
        self._tokens = tokens or TokenReader(base)
        self._gone: frozenset[str] | None = None

    @property
    def words(self) -> Words:
        """Return the words index."""
        return self._parts.words

    @property
    def dataset(self) -> Dataset | None:
        """Return the dataset, None without one."""
        return self._parts.dataset

    @property
    def generation(self) -> int:
        """Return a number that grows whenever rows come, move, go, or can be found by words."""
        return self.catalog.generation

    def vectors(self, *, read: bool = True) -> "Held | None":
        """Return every vector, None for a big memory or one without.

        Args:
            read: False to take them only if they have been read already.
        """
        return self._parts.held(read=read)

    def tokens(
        self, ids: Sequence[str], texts: Sequence[str]
    ) -> "tuple[Basis, dict[str, NDArray[np.int8]]] | None":
        """Return the basis and the token vectors of those rows that have some, None without any.

        Args:
            ids: Of the rows.
            texts: What they say now.
        """
        stamp = self.dataset.stamp if self.dataset is not None else ""
        return self._tokens.read(ids, texts, stamp=stamp) if stamp else None

    def token_state(self) -> TokenState:
        """Return how many token vectors are kept."""
        return self._tokens.state()

    def search_words(self, query: LexicalQuery, limit: int) -> list[tuple[str, float]]:
        """Return ids and scores of the words leg, best first."""
        return self.words.search(query, limit)

    def rows(self, ids: Sequence[str], *, guessed: bool = False) -> list[Row]:
        """Return rows by id in the order asked, queued ones too; unknown ids are left out.

        Args:
            ids: Of the rows.
            guessed: Many of the ids may be no row's: those that the words index does not have are
                not looked for further, which takes long.
        """
        found = {chunk.id: _row(chunk, False) for chunk in self.catalog.pending_rows(ids)}
        rest = [id_ for id_ in ids if id_ not in found and id_ not in self._left()]
        if rest:
            rows = self._embedded(rest, guessed=guessed)
            found.update((row.id, row) for row in self._timed(rows))
        return [found[id_] for id_ in dict.fromkeys(ids) if id_ in found]

    def session_rows(
        self, session_id: str, *, first: int | None = None, last: int | None = None
    ) -> list[Row]:
        """Return a session's rows in reading order.

        Args:
            session_id: Whose.
            first: Least `seq`, None for no limit.
            last: Greatest `seq`, None for no limit.
        """
        found = {
            chunk.id: _row(chunk, False)
            for chunk in self.catalog.pending_session(session_id, first=first, last=last)
        }
        for chunk in self._embedded_of(session_id, first, last):
            if chunk.id not in self._left():
                found.setdefault(chunk.id, _row(chunk, True))
        rows = sorted(found.values(), key=reading_order)
        if (first is None and last is None) or all(row.ts_us is not None for row in rows):
            return self._fill_times(rows)
        return [row for row in self.session_rows(session_id) if row.id in found]

    @property
    def turns(self) -> int:
        """Return how many distinct turns there are; of those since the last count, about how many.

        Counting looks at every row, so it waits for a quiet moment.
        """
        counted, listed = self.catalog.get("turns"), self.catalog.listed_turns()
        if counted is None:
            return listed
        return max(int(counted) + listed - int(self.catalog.get("turns_listed", listed)), 0)

    @contextmanager
    def snapshot(self) -> Iterator["MemoryView"]:
        """Give the memory as it is now, whatever is written meanwhile."""
        yield self

    def embedded_count(self) -> int:
        """Return how many rows have a vector."""
        if not self.attached:
            return self.catalog.embedded_total()
        return self.dataset.count() if self.dataset is not None else 0

    def _embedded(self, ids: Sequence[str], *, guessed: bool = False) -> list[Chunk]:
        """Return rows that are not in the queue."""
        if self._parts.ahead:
            return self.dataset.rows(ids) if self.dataset is not None else []
        found = self.words.rows(ids)
        if len(found) < len(ids) and self.dataset is not None and not guessed:
            # The words of another program's rows are added when its dataset is taken in.
            known = {chunk.id for chunk in found}
            found += self.dataset.rows([id_ for id_ in ids if id_ not in known])
        return found

    def _embedded_of(self, session_id: str, first: int | None, last: int | None) -> list[Chunk]:
        whole = first is None and last is None
        if self._parts.ahead:
            rows = self.dataset.session_rows(session_id) if self.dataset is not None else []
            low, high = (
                (first if first is not None else -_FAR),
                (last if last is not None else _FAR),
            )
            return [chunk for chunk in rows if low <= chunk.seq <= high]
        found = self.words.session_rows(session_id, first=first, last=last)
        if whole and self.dataset and len(found) < self.catalog.embedded_count(session_id):
            known = {chunk.id for chunk in found}
            rows = self.dataset.session_rows(session_id)
            found += [chunk for chunk in rows if chunk.id not in known]
        return found

    def _left(self) -> frozenset[str]:
        """Return rows that are leaving: words and dataset may still hold them."""
        if self._gone is None:
            self._gone = frozenset(self.catalog.removals())
        return self._gone

    def _timed(self, chunks: Iterable[Chunk]) -> Iterator[Row]:
        sessions: dict[str, dict[str, Row]] = {}
        for chunk in chunks:
            if chunk.ts_us is not None:
                yield _row(chunk, True)
                continue
            if chunk.session_id not in sessions:
                rows = self.session_rows(chunk.session_id)
                sessions[chunk.session_id] = {row.id: row for row in rows}
            yield sessions[chunk.session_id].get(chunk.id, _row(chunk, True))

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


class Shared:
    """What the snapshots of a memory have in common, brought up to date as the memory changes."""

    def __init__(
        self, base: Path, lexical: LexicalIndex, dataset: Dataset | None, *, attached: bool
    ) -> None:
        """Begin with what is open; `attached` False leaves the dataset alone for now."""
        self._base = base
        self._lexical = lexical
        self._dataset = dataset
        self._attached = attached
        self._lock = threading.Lock()
        self._latest: Parts | None = None
        #: Parts of the last states, by state: two snapshots of one state share them, also when
        #: the words were committed between the two, a moment before the catalog tells of it.
        self._settled: dict[Mark, Parts] = {}
        self._steps: list[Moved] = []

    def note(self, step: "Moved") -> None:
        """Remember what a writer of this process has put into the dataset."""
        with self._lock:
            self._steps = [*self._steps, step][-_MOST_STEPS:]

    def attach(self) -> None:
        """Open the dataset, if there is one; snapshots have it from now on."""
        dataset = _dataset(self._base)
        with self._lock:
            self._dataset, self._attached = dataset, True
            self._latest, self._settled = None, {}

    def move_to(self, base: Path, dataset: Dataset) -> None:
        """Go on over a dataset that holds the same rows and others behind them."""
        with self._lock:
            before = self._latest
            self._base, self._dataset = base, dataset
            self._latest, self._settled = None, {}
            held = before.held(read=False) if before is not None else None
            if before is not None and held is not None:
                # Of an earlier state than any, so that the next one is made from it.
                mark = Mark(generation=-1, version=held.version)
                self._latest = Parts(mark, words=before.words, dataset=dataset, held=held)

    def at(self, mark: Mark, catalog: Catalog, *, at_any_price: bool = False) -> Parts | None:
        """Return the parts of a state; None when it passed before they could be put together.

        Args:
            mark: The state, as a snapshot of the catalog tells it.
            catalog: Tells the present state.
            at_any_price: Return parts that are ahead rather than none.
        """
        parts = self._settled.get(mark)
        if parts is not None:
            return parts
        with self._lock:
            parts = self._settled.get(mark)
            if parts is not None:
                return parts
            self._lexical.reload()
            words = self._lexical.words
            # Rows are in the queue before their words are: when that has not changed, no words of
            # later rows are here now.
            ahead = catalog.generation != mark.generation
            if ahead and not at_any_price:
                return None
            parts = self._made(mark, words, self._base_of(mark))
            parts.ahead = ahead
            self._keep(parts)
            return parts

    def _base_of(self, mark: Mark) -> Parts | None:
        """Return parts that those of a state can be made from, the nearest ones before it."""
        if self._latest is None or mark.generation >= self._latest.mark.generation:
            return self._latest
        earlier = [one for one in self._settled if one.generation <= mark.generation]
        return self._settled[max(earlier, key=lambda one: one.generation)] if earlier else None

    def _keep(self, parts: Parts) -> None:
        if self._latest is None or parts.mark.generation >= self._latest.mark.generation:
            self._latest = parts
        if not parts.ahead:
            kept = list(self._settled.items())[1 - _MOST_SETTLED :]
            self._settled = dict([*kept, (parts.mark, parts)])

    def _made(self, mark: Mark, words: Words, before: Parts | None) -> Parts:
        if not self._attached:
            return Parts(mark, words=words, dataset=None)
        if self._dataset is None:
            self._dataset = _dataset(self._base)
        if self._dataset is None:
            return Parts(mark, words=words, dataset=None)
        if before is None or before.dataset is None:
            return Parts(mark, words=words, dataset=self._dataset.at(mark.version))
        if mark.version is not None and mark.version == before.mark.version:
            return Parts(mark, words=words, dataset=before.dataset, held=before.held(read=False))
        dataset = before.dataset.at(mark.version)
        return Parts(mark, words=words, dataset=dataset, held=self._extended(mark, before, dataset))

    def _extended(self, mark: Mark, before: Parts, dataset: Dataset) -> "Held | None":
        held = before.held(read=False)
        if held is None:
            return None
        from funes_ls.indexer.memory_held import fits

        if not fits(dataset):
            return None
        first, last = held.version, dataset.version
        steps = [step for step in self._steps if first < step.version <= last]
        self._steps = [step for step in self._steps if step.version > last]
        return held.extended(dataset, only_added=mark.left_at <= first <= last, moved=steps)


def mark_of(catalog: Catalog) -> Mark:
    """Return the state a catalog tells of."""
    version = catalog.get("lance_version", 0)
    return Mark(
        generation=catalog.generation,
        version=None if not version else int(version),
        left_at=int(catalog.get("rows_left_at", 0)),
    )


def _dataset(base: Path) -> Dataset | None:
    return lance.open_dataset(base) if lance.is_there(base) else None


def _row(chunk: Chunk, embedded: bool) -> Row:
    return Row(**msgspec.structs.asdict(chunk), embedded=embedded)
