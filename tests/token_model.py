"""An embedder that gives token vectors: each word has a direction of its own."""

import threading
import zlib
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
DIM = 64


class WordEmbedder:
    """Gives a text the mean of its words' directions; counts the texts it was given."""

    stamp = "test/words"
    dim = token_dim = DIM
    max_tokens = 512

    def __init__(self) -> None:
        self.calls = 0
        self.with_tokens = 0
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> Vectors:
        return np.stack([vector for _, vector in self.encode_iter(texts)])

    def encode_iter(self, texts: Sequence[str]) -> Iterator[tuple[int, Vectors]]:
        for position, vector, _ in self.encode_with_tokens(texts, [False] * len(texts)):
            yield position, vector

    def encode_with_tokens(
        self, texts: Sequence[str], wanted: Sequence[bool]
    ) -> Iterator[tuple[int, Vectors, Vectors | None]]:
        for position, (text, is_wanted) in enumerate(zip(texts, wanted, strict=True)):
            with self._lock:
                self.calls += 1
                self.with_tokens += is_wanted
            vector, tokens = self.encode_query_tokens(text)
            yield position, vector, tokens if is_wanted else None

    def encode_query(self, text: str) -> Vectors:
        return self.encode_query_tokens(text)[0]

    def encode_query_tokens(self, text: str) -> tuple[Vectors, Vectors]:
        words = text.lower().split() or [""]
        tokens = np.stack([_direction(word.strip(".,?!")) for word in words])
        whole = tokens.sum(axis=0)
        return (whole / max(float(np.linalg.norm(whole)), 1e-9)).astype(np.float32), tokens


@cache
def _direction(word: str) -> Vectors:
    drawn = np.random.default_rng(zlib.crc32(word.encode())).standard_normal(DIM)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)
