"""Makes token vectors: beside the vectors of rows that are embedded, and later for older rows."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from funes_ls.indexer.embedding_tokens import (
    LEAST_TEXTS,
    PROSE,
    Basis,
    Sample,
    encoded,
    gives_tokens,
)
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.model import Chunk

if TYPE_CHECKING:
    import numpy as np

    from funes_ls.indexer.embedding import Embedder

#: Packed tokens by row id, with the text they are of.
Kept = dict[str, tuple[str, bytes]]
#: Texts whose tokens are remembered for rows that say the same.
_MOST_TEXTS = 2_000
#: Rows looked at together for what they lack.
_PAGE_ROWS = 2_048
_SLICE_S = 0.3


class TokenWork:
    """Tokens of texts on their way to the store; used by one thread."""

    def __init__(self, *, is_on: Callable[[], bool] = lambda: False) -> None:
        """Begin with none; `is_on` says whether any are wanted."""
        self._is_on = is_on
        self._stamp = ""
        self._basis: Basis | None = None
        self._sample = Sample()
        self._raw: dict[str, np.ndarray] = {}
        self._packed: OrderedDict[str, bytes] = OrderedDict()

    @property
    def is_on(self) -> bool:
        """Return whether token vectors are wanted."""
        return self._is_on()

    def begin(self, memory: Memory, embedder: "Embedder") -> bool:
        """Be ready for a model's tokens; return False when there are none, or none are wanted."""
        if not self.is_on or not gives_tokens(embedder):
            return False
        if self._stamp != embedder.stamp:
            self.forget()
            self._stamp = embedder.stamp
        if self._basis is None:  # what was taken so far is of it, too
            self._basis = memory.token_store.basis(embedder.stamp, embedder.token_dim)
        return True

    def has(self, text: str) -> bool:
        """Return whether a text's tokens are at hand."""
        return text in self._packed or text in self._raw

    def take(self, text: str, tokens: "np.ndarray | None", memory: Memory, stamp: str) -> None:
        """Take a text's tokens over; the first ones make out the basis."""
        import numpy as np

        if tokens is None:
            return
        if self._basis is not None:
            self._keep(text, self._basis.packed(tokens))
            return
        self._sample.add(tokens)
        self._raw[text] = tokens.astype(np.float16)
        if self._sample.is_full:
            self._fit(memory, stamp)

    def of(self, rows: Iterable[Chunk], memory: Memory, stamp: str) -> Kept:
        """Return the tokens of those rows that are prose, as far as they are at hand."""
        prose = ((row.id, row.text) for row in rows if row.block_type in PROSE)
        return self.of_texts(prose, memory, stamp, is_last=True)

    def of_texts(
        self, pairs: Iterable[tuple[str, str]], memory: Memory, stamp: str, *, is_last: bool
    ) -> Kept:
        """Return the tokens of rows, given as (id, text), as far as they are at hand.

        Args:
            pairs: The rows.
            memory: Where a basis is kept once there is one.
            stamp: Model of the tokens.
            is_last: Make do with few texts for the basis.
        """
        if self._basis is None and is_last and len(self._sample) >= LEAST_TEXTS:
            self._fit(memory, stamp)
        return {id_: (text, self._packed[text]) for id_, text in pairs if text in self._packed}

    def forget(self) -> None:
        """Drop everything: the memory or the model is another one from now on."""
        self._stamp, self._basis, self._sample = "", None, Sample()
        self._raw, self._packed = {}, OrderedDict()

    def tidy(self, needed: Iterable[str] = ()) -> None:
        """Remember no more than some texts, those that are needed and the latest."""
        for text in needed:
            if text in self._packed:
                self._packed.move_to_end(text)
        while len(self._packed) > _MOST_TEXTS:
            self._packed.popitem(last=False)
        if len(self._raw) > _MOST_TEXTS:
            self._raw.clear()

    def _fit(self, memory: Memory, stamp: str) -> None:
        import numpy as np

        basis = self._sample.basis(stamp)
        if basis is None:
            return
        raw, self._raw, self._sample = self._raw, {}, Sample()
        self._basis = basis
        memory.token_store.begin(basis)
        for text, tokens in raw.items():
            self._keep(text, basis.packed(tokens.astype(np.float32)))

    def _keep(self, text: str, packed: bytes) -> None:
        self._packed[text] = packed
        self._packed.move_to_end(text)


class Backfill:
    """Gives rows their token vectors that were embedded without; used by one thread."""

    def __init__(self, work: TokenWork, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin at the first row; tokens are made by `work`."""
        self._work = work
        self._clock = clock
        self._todo: deque[tuple[str, str]] = deque()
        self._place = 0
        self._prose = 0
        self._was_lacking = False
        #: Generation at which some were found to lack theirs, and one at which nothing could be
        #: done for them: there were too few texts, say.
        self._lacked_at: int | None = None
        self._at_rest: int | None = None

    def forget(self) -> None:
        """Begin at the first row again: the memory or the model is another one."""
        self._begin_anew()
        self._lacked_at = self._at_rest = None

    def _begin_anew(self) -> None:
        self._todo.clear()
        self._place = self._prose = 0
        self._was_lacking = False

    def is_due(self, memory: Memory) -> bool:
        """Return whether rows may lack token vectors; cheap."""
        if not self._work.is_on or memory.dataset is None or self._at_rest == memory.generation:
            return False
        return bool(self._todo) or not memory.token_store.state().is_whole

    def step(
        self, memory: Memory, embedder: "Embedder", *, interrupted: Callable[[], bool]
    ) -> bool:
        """Look for what lacks some, or make some, for a slice of time; False for nothing to do."""
        if not self.is_due(memory):
            return False
        if not self._work.begin(memory, embedder):
            self._at_rest = memory.generation
            return False
        texts = [text for _, text in self._todo if not self._work.has(text)]
        if texts:
            self._make(list(dict.fromkeys(texts)), memory, embedder, interrupted)
        elif not self._look(memory):
            self._store(memory, embedder.stamp, is_last=True)
            self._end(memory)
            return self.is_due(memory)
        self._store(memory, embedder.stamp)
        return True

    def _look(self, memory: Memory) -> bool:
        """Look at the next rows; False when there are no more."""
        dataset = memory.dataset
        rows = dataset.count() if dataset is not None else 0
        if dataset is None or self._place >= rows:
            return False
        last = min(self._place + _PAGE_ROWS, rows)
        table = dataset.take(range(self._place, last), ("id", "text", "block_type"))
        columns = (table.column(name).to_pylist() for name in ("id", "text", "block_type"))
        prose = {id_: text for id_, text, kind in zip(*columns, strict=True) if kind in PROSE}
        lacking = memory.token_store.lacking(prose.items())
        self._todo.extend((id_, prose[id_]) for id_ in lacking)
        self._place, self._prose = last, self._prose + len(prose)
        self._was_lacking = self._was_lacking or bool(lacking)
        return True

    def _make(
        self,
        texts: Sequence[str],
        memory: Memory,
        embedder: "Embedder",
        interrupted: Callable[[], bool],
    ) -> None:
        until = self._clock() + _SLICE_S
        with closing(encoded(embedder, texts, [True] * len(texts))) as vectors:
            for position, _, tokens in vectors:
                self._work.take(texts[position], tokens, memory, embedder.stamp)
                if self._clock() >= until or interrupted():
                    break

    def _store(self, memory: Memory, stamp: str, *, is_last: bool = False) -> None:
        """Keep what was made, once there is a basis; a smaller one does when no more will come."""
        made = self._work.of_texts(self._todo, memory, stamp, is_last=is_last)
        memory.token_store.put(made)
        self._todo = deque(pair for pair in self._todo if pair[0] not in made)
        self._work.tidy()

    def _end(self, memory: Memory) -> None:
        """Note what came of having looked at every row."""
        was_lacking, prose = self._was_lacking, self._prose
        self._begin_anew()
        store = memory.token_store
        if store.state().chunks > prose:
            memory.drop_stray_tokens()
        if not was_lacking:
            store.note_whole(True)
        elif self._lacked_at != memory.generation:
            self._lacked_at = memory.generation  # and look whether they have theirs by now
            return
        self._at_rest = memory.generation
