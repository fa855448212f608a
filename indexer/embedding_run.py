"""Runs a loaded model: texts in, vectors out, token vectors too where its graph gives them."""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from fastembed import TextEmbedding
    from numpy.typing import NDArray

    from funes_ls.indexer.embedding import ModelCard

    Vectors = NDArray[np.float32]

Made = TypeVar("Made")
#: Outputs that are the last layer as it is, a vector for each token.
_TOKEN_OUTPUTS = ("token_embeddings", "last_hidden_state")


class Runner:
    """Runs one text at a time per thread.

    Batches do not pay on a CPU: padding eats what they save, and int8 scales, shared by a
    batch, would make a vector depend on the texts next to it.

    Attributes:
        token_dim: Width of token vectors, 0 when the graph gives none.
    """

    def __init__(self, graph: "Graph", card: "ModelCard", *, threads: int, nice: int) -> None:
        """Run a graph; see `Graph.of`."""
        self.stamp = card.stamp
        self.dim = card.dim
        self.max_tokens = card.max_tokens
        self._prefix = card.query_prefix
        self._graph = graph
        self.token_dim = card.dim if graph.tokens else 0
        self._threads = threads
        self._nice = nice

    def encode(self, texts: Sequence[str]) -> "Vectors":
        """Return (len(texts), dim) float32, L2-normalised, in input order."""
        import numpy as np

        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        for position, vector in self.encode_iter(texts):
            vectors[position] = vector
        return vectors

    def encode_iter(self, texts: Sequence[str]) -> Iterator[tuple[int, "Vectors"]]:
        """Yield (position, vector) as each is done, equal texts encoded once.

        Closing the iterator ends the work after the few texts already begun.
        """
        yield from self._each(texts, lambda text: self._graph.vector(text))

    def encode_with_tokens(
        self, texts: Sequence[str], wanted: Sequence[bool]
    ) -> Iterator[tuple[int, "Vectors", "Vectors | None"]]:
        """Yield (position, vector, tokens or None) as each is done; see `TokenEmbedder`."""
        telling = {text for text, is_wanted in zip(texts, wanted, strict=True) if is_wanted}

        def make(text: str) -> "tuple[Vectors, Vectors | None]":
            return self._graph.both(text) if text in telling else (self._graph.vector(text), None)

        for position, (vector, tokens) in self._each(texts, make):
            yield position, vector, tokens

    def encode_query(self, text: str) -> "Vectors":
        """Return (dim,) float32, L2-normalised."""
        return self._graph.vector(self._prefix + text)

    def encode_query_tokens(self, text: str) -> "tuple[Vectors, Vectors]":
        """Return a question's vector and the vectors of its tokens; see `TokenEmbedder`."""
        return self._graph.both(self._prefix + text)

    def _each(
        self, texts: Sequence[str], make: "Callable[[str], Made]"
    ) -> "Iterator[tuple[int, Made]]":
        places: dict[str, list[int]] = {}
        for position, text in enumerate(texts):
            places.setdefault(text, []).append(position)
        pool = ThreadPoolExecutor(self._threads, initializer=partial(_step_back, self._nice))
        begun: deque[tuple[str, Future[Made]]] = deque()
        try:
            for text in places:
                begun.append((text, pool.submit(make, text)))
                if len(begun) > 2 * self._threads:
                    yield from _finished(begun, places)
            while begun:
                yield from _finished(begun, places)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class Graph(Struct, frozen=True, kw_only=True):
    """A session of onnxruntime, what it is fed, and which of its outputs are what.

    Attributes:
        whole: Output that is pooled, or is a text's vector already.
        tokens: Output with a vector for each token, "" without one.
    """

    tokenizer: Any
    session: Any
    inputs: frozenset[str]
    pooling: str
    whole: str
    tokens: str

    @classmethod
    def of(cls, model: "TextEmbedding", card: "ModelCard") -> "Graph":
        """Return the graph that fastembed has opened."""
        inner: Any = model.model
        outputs = {one.name: len(one.shape or ()) for one in inner.model.get_outputs()}
        whole = card.output or next(iter(outputs))
        if card.pooling != "none" and outputs.get(whole) != 2:
            tokens = whole
        else:
            tokens = next((name for name in _TOKEN_OUTPUTS if outputs.get(name) == 3), "")
        return cls(
            tokenizer=inner.tokenizer,
            session=inner.model,
            inputs=frozenset(one.name for one in inner.model.get_inputs()),
            pooling=card.pooling,
            whole=whole,
            tokens=tokens,
        )

    def vector(self, text: str) -> "Vectors":
        """Return (dim,) float32, L2-normalised."""
        feed, encoding = self._fed(text)
        return self._pooled(self.session.run([self.whole], feed)[0], encoding)

    def both(self, text: str) -> "tuple[Vectors, Vectors]":
        """Return a text's vector and its tokens' (n, dim), each L2-normalised, of one pass."""
        import numpy as np

        feed, encoding = self._fed(text)
        names = list(dict.fromkeys((self.whole, self.tokens)))
        found = dict(zip(names, self.session.run(names, feed), strict=True))
        plain = np.flatnonzero(np.array(encoding.special_tokens_mask) == 0)
        tokens = found[self.tokens][0][plain].astype(np.float32)
        lengths = np.linalg.norm(tokens, axis=1, keepdims=True)
        unit: Vectors = (tokens / np.maximum(lengths, 1e-9)).astype(np.float32)
        return self._pooled(found[self.whole], encoding), unit

    def _fed(self, text: str) -> tuple[dict[str, Any], Any]:
        import numpy as np

        encoding = self.tokenizer.encode(text)
        ids = np.array([encoding.ids], dtype=np.int64)
        known = {
            "input_ids": ids,
            "attention_mask": np.array([encoding.attention_mask], dtype=np.int64),
            "token_type_ids": np.zeros_like(ids),
        }
        return {name: value for name, value in known.items() if name in self.inputs}, encoding

    def _pooled(self, output: Any, encoding: Any) -> "Vectors":
        import numpy as np

        if self.pooling == "none" or output.ndim == 2:  # some exports of a model pool already
            vector = output[0]
        elif self.pooling == "cls":
            vector = output[0, 0]
        else:
            weights = np.array(encoding.attention_mask)[:, None]
            vector = (output[0] * weights).sum(axis=0) / max(1, int(weights.sum()))
        vector = np.asarray(vector, dtype=np.float32)
        length = max(float(np.linalg.norm(vector)), 1e-12)
        return np.asarray(vector / length, dtype=np.float32)


def _finished(
    begun: "deque[tuple[str, Future[Made]]]", places: dict[str, list[int]]
) -> "Iterator[tuple[int, Made]]":
    text, future = begun.popleft()
    made = future.result()
    for position in places[text]:
        yield position, made


def _step_back(nice: int) -> None:
    """Lower the calling thread's own priority; only Linux has one per thread."""
    if sys.platform == "linux" and nice:
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + nice)
