"""Stand-ins for what a model makes of texts: thousands a second, of which a search costs the same.

What they find means nothing, so memories made with them are for clocks only.
"""

import re
import zlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from funes_ls.indexer.embedding import Embedder
from funes_ls.indexer.embedding_tokens import (
    DIRECTIONS,
    PROSE,
    SAMPLE_TEXTS,
    Basis,
    Sample,
    encoded,
    gives_tokens,
)
from funes_ls.indexer.memory import Memory

Vectors = NDArray[np.float32]
_BUCKETS = 1 << 16
_PAGE_ROWS = 2048
_WORD = re.compile(r"\w+")
#: Tokens of MiniLM a word of such texts has, about.
_TOKENS_A_WORD = 1.4


class StandIn:
    """Gives texts that share words vectors that are close: each word picks a direction."""

    def __init__(self, dim: int) -> None:
        """Draw the directions."""
        drawn = np.random.default_rng(3).standard_normal((_BUCKETS, dim), dtype=np.float32)
        self._directions = drawn
        self._buckets: dict[str, int] = {}

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return (len(texts), dim) float32, L2-normalised."""
        vectors = np.stack([self._directions[self._places(text)].sum(axis=0) for text in texts])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, 1e-9), dtype=np.float32)

    def _places(self, text: str) -> list[int]:
        return [_bucket(word, self._buckets) for word in _WORD.findall(text) or [""]]


class StandInTokens:
    """Gives each word of a text a token vector of its own, packed as a memory keeps them."""

    def __init__(self, most: int) -> None:
        """Draw the directions; a text has so many tokens at most."""
        drawn = np.random.default_rng(5).standard_normal((_BUCKETS, DIRECTIONS))
        lengths = np.linalg.norm(drawn, axis=1, keepdims=True)
        self._directions = np.rint(drawn / lengths * 127).astype(np.int8)
        self._most = most
        self._buckets: dict[str, int] = {}

    def packed(self, text: str) -> bytes:
        """Return what is kept of a text."""
        words = _WORD.findall(text) or [""]
        count = min(self._most, max(1, round(len(words) * _TOKENS_A_WORD)))
        places = [_bucket(words[n % len(words)], self._buckets) for n in range(count)]
        return bytes(self._directions[places].tobytes())


def _bucket(word: str, known: dict[str, int]) -> int:
    place = known.get(word)
    if place is None:
        place = known[word] = zlib.crc32(word.lower().encode()) % _BUCKETS
    return place


def fill_tokens(memory: Memory, model: Embedder) -> int:
    """Give every row of prose without token vectors some; return how many that were.

    An engine finds nothing left to make then, and is idle when nobody asks.
    """
    store, filled = memory.token_store, 0
    if not gives_tokens(model):
        return 0
    if store.basis(model.stamp, model.token_dim) is None:
        basis = _basis(memory, model)
        if basis is None:
            return 0
        store.begin(basis)
    tokens = StandInTokens(model.max_tokens)
    for prose in _prose(memory):
        lacking = store.lacking(prose.items())
        store.put({id_: (prose[id_], tokens.packed(prose[id_])) for id_ in lacking})
        filled += len(lacking)
    store.note_whole(True)
    return filled


def _basis(memory: Memory, model: Embedder) -> Basis | None:
    texts = list(next(_prose(memory), {}).values())[:SAMPLE_TEXTS]
    sample = Sample()
    for _, _, tokens in encoded(model, texts, [True] * len(texts)):
        if tokens is not None:
            sample.add(tokens)
    return sample.basis(model.stamp)


def _prose(memory: Memory) -> Iterator[dict[str, str]]:
    """Yield the rows of prose in pages, as text by id."""
    dataset = memory.dataset
    rows = dataset.count() if dataset is not None else 0
    names = ("id", "text", "block_type")
    for first in range(0, rows, _PAGE_ROWS):
        assert dataset is not None
        table = dataset.take(range(first, min(first + _PAGE_ROWS, rows)), names)
        columns = (table.column(name).to_pylist() for name in names)
        yield {id_: text for id_, text, kind in zip(*columns, strict=True) if kind in PROSE}
