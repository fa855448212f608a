"""Embeds queued rows in slices: those of sessions that are being written first, then the rest.

Rows are embedded a few at a time and moved to the dataset in batches, since every move costs a
fragment of it. What was embedded and not moved yet is lost by a kill, and embedded again.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from funes_ls.indexer.embedding_tokens import PROSE, encoded
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.model import TIERS, Chunk
from funes_ls.indexer.token_work import TokenWork

if TYPE_CHECKING:
    import numpy as np

    from funes_ls.indexer.embedding import Embedder
    from funes_ls.indexer.memory_held import Moved

_log = logging.getLogger(__name__)

#: Work done before looking at the queue again.
SLICE_S = 0.3
#: Rows of sessions that are being written are moved together, at most this often, and at least
#: this often while more of them come all the time.
TOUCHED_MOVE_S = 1.2
TOUCHED_LATE_S = 2.0
_BATCH_ROWS = 512
#: A batch is moved after so long, full or not.
_BATCH_S = 20.0
_TOUCHED_ROWS = 128
_MOST_TOUCHED = 5_000
_CACHED_TEXTS = 20_000

Clock = Callable[[], float]
Asked = Callable[[], bool]


class _Batch:
    """Rows on their way: some embedded, the rest to be."""

    def __init__(self, rows: Sequence[Chunk], began_s: float) -> None:
        self.rows = {row.id: row for row in rows}
        self.waiting = deque(rows)
        self.began_s = began_s

    @property
    def embedded(self) -> list[Chunk]:
        waiting = {row.id for row in self.waiting}
        return [row for row in self.rows.values() if row.id not in waiting]

    def add(self, row: Chunk) -> None:
        """Take a row in; one that has another text by now is embedded anew."""
        known = self.rows.get(row.id)
        if known is not None and known.text == row.text:
            return
        if known is not None:
            self.waiting = deque(one for one in self.waiting if one.id != row.id)
        self.rows[row.id] = row
        self.waiting.append(row)


class VectorWork:
    """The rows that wait for vectors, and those that have one and wait to be moved."""

    def __init__(self, *, clock: Clock = time.monotonic, tokens: TokenWork | None = None) -> None:
        """Begin with nothing under way; `clock` gives seconds."""
        self._clock = clock
        self.tokens = tokens or TokenWork()
        self._touched: deque[str] = deque(maxlen=_MOST_TOUCHED)
        self._batches: dict[bool, _Batch] = {}
        self._known: dict[str, np.ndarray] = {}
        self._touched_moved_s = float("-inf")
        self.embedded = 0

    def add_touched(self, ids: Sequence[str]) -> None:
        """Note rows of sessions that are being written; of too many the oldest go with the rest."""
        self._touched.extend(ids)

    @property
    def has_touched(self) -> bool:
        """Return whether rows of sessions that are being written wait for vectors or the move."""
        return bool(self._touched) or True in self._batches

    def touched_due_s(self, *, may_move: bool = True) -> float | None:
        """Return in how many seconds there is something to do for them, None for nothing.

        Args:
            may_move: False while rows can be embedded, and not moved.
        """
        batch = self._batches.get(True)
        if (self._touched and _has_room(batch)) or (batch and batch.waiting):
            return 0.0
        if batch is None or not may_move:
            return None
        return max(0.0, self._move_at() - self._clock())

    def _move_at(self) -> float:
        return self._touched_moved_s + TOUCHED_MOVE_S

    def touched_step(
        self, memory: Memory, embedder: "Embedder", *, interrupted: Asked, may_move: bool = True
    ) -> "Moved | None":
        """Embed for a slice of time, and move what is embedded when that is due and allowed."""
        batch = self._batches.get(True)
        if self._touched and _has_room(batch):
            batch = self._extended(batch, memory)
        if batch is None:
            return None
        self._embed(batch, memory, embedder, interrupted)
        if not may_move or not self._is_to_be_moved(batch):
            return None
        self._touched_moved_s = self._clock()
        return self._move(True, memory, embedder)

    def _is_to_be_moved(self, batch: _Batch) -> bool:
        now = self._clock()
        if now < self._move_at():
            return False
        ready = len(batch.embedded)
        is_late = bool(ready) and now - batch.began_s >= TOUCHED_LATE_S
        return not batch.waiting or ready >= _TOUCHED_ROWS // 4 or is_late

    def _extended(self, batch: _Batch | None, memory: Memory) -> _Batch:
        """Return the batch with the latest rows first: they are what is asked for now."""
        batch = batch or _Batch((), self._clock())
        room = _TOUCHED_ROWS - len(batch.rows)
        ids = [self._touched.pop() for _ in range(min(room, len(self._touched)))]
        rows = {row.id: row for row in memory.catalog.pending_rows(ids)}
        for id_ in reversed(ids):
            if id_ in rows:
                batch.add(rows[id_])
        if not batch.rows:
            self._batches.pop(True, None)
        else:
            self._batches[True] = batch
        return batch

    def has_background(self, memory: Memory) -> bool:
        """Return whether any rows wait for vectors but those of sessions that are being written."""
        if False not in self._batches:
            touched = self._batches[True].rows if True in self._batches else {}
            queued = memory.catalog.next_pending(_BATCH_ROWS)
            rows = [row for row in queued if row.id not in touched]
            if rows:
                self._batches[False] = _Batch(rows, self._clock())
        return False in self._batches

    def background_step(
        self, memory: Memory, embedder: "Embedder", *, interrupted: Asked
    ) -> "Moved | None":
        """Embed the queue's first rows for a slice of time; move a batch that is whole."""
        if not self.has_background(memory):
            return None
        batch = self._batches[False]
        self._embed(batch, memory, embedder, interrupted)
        late = self._clock() - batch.began_s >= _BATCH_S and len(batch.embedded) >= _BATCH_ROWS // 8
        return self._move(False, memory, embedder) if late or not batch.waiting else None

    @property
    def tier(self) -> int:
        """Return what the background embeds: 1 text, 2 tool calls, 3 tool results, 0 nothing."""
        batch = self._batches.get(False)
        rows = batch.waiting if batch else ()
        return TIERS.get(rows[0].block_type, 1) if rows else 0

    @property
    def unmoved(self) -> int:
        """Return how many embedded rows wait for the move."""
        return sum(len(batch.embedded) for batch in self._batches.values())

    def flush(self, memory: Memory, embedder: "Embedder") -> "Moved | None":
        """Move everything embedded so far."""
        kept = {row.id: row for batch in self._batches.values() for row in batch.embedded}
        self._batches.clear()
        return self._moved(list(kept.values()), memory, embedder)

    def forget(self, *, keep_touched: bool = True) -> None:
        """Drop what is under way: the memory or the model is another one from now on.

        Args:
            keep_touched: Rows of sessions that are being written come first again, those that
                are still queued. False leaves them to the rest: they may be what failed.
        """
        batch = self._batches.get(True)
        if batch is not None and keep_touched:
            self._touched.extend(batch.rows)
        self._batches.clear()
        self._known.clear()
        self.tokens.forget()

    def _embed(
        self, batch: _Batch, memory: Memory, embedder: "Embedder", interrupted: Asked
    ) -> None:
        """Embed rows from the front, identical texts once, until the slice is over."""
        until = self._clock() + SLICE_S
        with_tokens = self.tokens.begin(memory, embedder)

        def is_due(row: Chunk) -> bool:
            wants_tokens = with_tokens and row.block_type in PROSE
            return row.text not in self._known or (wants_tokens and not self.tokens.has(row.text))

        batch.waiting = deque(filter(is_due, batch.waiting))
        if not batch.waiting:
            return
        ready = {row.text for one in self._batches.values() for row in one.embedded}
        self.tokens.tidy(ready)
        if len(self._known) > _CACHED_TEXTS:
            self._known = {text: self._known[text] for text in ready}
        texts = list(dict.fromkeys(row.text for row in batch.waiting))
        prose = {row.text for row in batch.waiting if with_tokens and row.block_type in PROSE}
        with closing(encoded(embedder, texts, [text in prose for text in texts])) as vectors:
            for position, vector, tokens in vectors:
                self._known[texts[position]] = vector
                self.tokens.take(texts[position], tokens, memory, embedder.stamp)
                if self._clock() >= until or interrupted():
                    break
        batch.waiting = deque(filter(is_due, batch.waiting))

    def _move(self, touched: bool, memory: Memory, embedder: "Embedder") -> "Moved | None":
        batch = self._batches[touched]
        moved = self._moved(batch.embedded, memory, embedder)
        if batch.waiting:
            self._batches[touched] = _Batch(list(batch.waiting), self._clock())
        else:
            del self._batches[touched]
        return moved

    def _moved(
        self, embedded: Sequence[Chunk], memory: Memory, embedder: "Embedder"
    ) -> "Moved | None":
        """Move rows that are still in the queue as they were; others went or changed meanwhile."""
        import numpy as np

        queued = {row.id: row.text for row in memory.catalog.pending_rows([r.id for r in embedded])}
        rows = [row for row in embedded if queued.get(row.id) == row.text]
        if not rows:
            return None
        vectors = np.stack([self._known[row.text] for row in rows])
        kept = self.tokens.of(rows, memory, embedder.stamp)
        moved = memory.move(rows, vectors, stamp=embedder.stamp, tokens=kept)
        self.embedded += len(rows)
        return moved


def _has_room(batch: _Batch | None) -> bool:
    return batch is None or len(batch.rows) < _TOUCHED_ROWS
