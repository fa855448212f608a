"""Token vectors: what each word of a text means within it, small enough to be kept.

A model gives one vector for each token on its way to that of the whole text. What all of a memory
have in common is taken off them, and they are turned onto the few directions in which they differ
most, one byte a number. A question is compared with them word by word (`max_sims`), which tells
passages apart that are equally near as a whole.
"""

import zlib
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from funes_ls.indexer.embedding import Embedder

    Vectors = NDArray[np.float32]
    Packed = NDArray[np.int8]

#: Numbers kept of each token, and what 1.0 is as a byte.
DIRECTIONS = 32
_ONE = 127
#: Tokens that are turned at once: so few that one thread does it. With more, that of OpenBLAS wait
#: for work where the model's have some: a fifth of the speed, see docs/performance.md.
_BLOCK = 16
#: Texts a basis is fitted on: so many if they are there, and no fewer than this.
SAMPLE_TEXTS, LEAST_TEXTS = 128, 24
#: Tokens of one text that are looked at: a long text is not to decide for all.
_SAMPLE_TOKENS = 48
#: Blocks that have token vectors: what people and agents say.
PROSE = frozenset({"text", "thinking"})


class TokenEmbedder(Protocol):
    """An embedder that gives token vectors, from the same pass as the one of the text."""

    stamp: str
    dim: int
    max_tokens: int
    token_dim: int

    def encode(self, texts: Sequence[str]) -> "Vectors":
        """See `Embedder`."""
        ...

    def encode_iter(self, texts: Sequence[str]) -> Iterator[tuple[int, "Vectors"]]:
        """See `Embedder`."""
        ...

    def encode_query(self, text: str) -> "Vectors":
        """See `Embedder`."""
        ...

    def encode_with_tokens(
        self, texts: Sequence[str], wanted: Sequence[bool]
    ) -> Iterator[tuple[int, "Vectors", "Vectors | None"]]:
        """Yield (position, vector, (tokens, token_dim) float32 of length one), as each is done.

        Args:
            texts: What to encode; equal ones once.
            wanted: Of which texts the tokens are wanted; None is given for the others.
        """
        ...

    def encode_query_tokens(self, text: str) -> "tuple[Vectors, Vectors]":
        """Return a question's vector and (tokens, token_dim) float32, each of length one."""
        ...


def gives_tokens(embedder: "Embedder | None") -> TypeGuard[TokenEmbedder]:
    """Tell whether a model's graph gives token vectors."""
    return embedder is not None and getattr(embedder, "token_dim", 0) >= DIRECTIONS


def encoded(
    embedder: "Embedder", texts: Sequence[str], wanted: Sequence[bool]
) -> "Generator[tuple[int, Vectors, Vectors | None], None, None]":
    """Yield what `TokenEmbedder.encode_with_tokens` does, without tokens where there are none."""
    if any(wanted) and gives_tokens(embedder):
        yield from embedder.encode_with_tokens(texts, wanted)
        return
    vectors = embedder.encode_iter(texts)
    try:
        for position, vector in vectors:
            yield position, vector, None
    finally:
        close = getattr(vectors, "close", None)
        if close is not None:
            close()


class Basis(Struct, frozen=True, kw_only=True):
    """The directions that token vectors of one memory are turned onto.

    Attributes:
        stamp: Model of the token vectors.
        centre: (token_dim,) float32, the mean of those it was fitted on: words of every text
            share it, and it tells none from another.
        matrix: (token_dim, DIRECTIONS) float32, orthonormal columns.
        texts: How many texts it was fitted on.
    """

    stamp: str
    centre: Any
    matrix: Any
    texts: int

    def turned(self, tokens: "Vectors") -> "Vectors":
        """Return (n, DIRECTIONS) float32 of length one."""
        import numpy as np

        off = tokens - self.centre
        parts = [off[at : at + _BLOCK] @ self.matrix for at in range(0, len(off), _BLOCK)]
        return _unit(np.concatenate(parts) if parts else off @ self.matrix)

    def packed(self, tokens: "Vectors") -> bytes:
        """Return tokens as they are kept, DIRECTIONS bytes each."""
        import numpy as np

        return bytes(np.rint(self.turned(tokens) * _ONE).astype(np.int8).tobytes())


class Sample:
    """Token vectors of the first texts of a memory, until there are enough for a basis."""

    def __init__(self) -> None:
        """Begin with none."""
        self._kept: list[Any] = []

    def __len__(self) -> int:
        """Return of how many texts there are some."""
        return len(self._kept)

    def add(self, tokens: "Vectors") -> None:
        """Take some of a text's tokens in, evenly spread."""
        import numpy as np

        if len(tokens) and len(self._kept) < SAMPLE_TEXTS:
            step = max(1, len(tokens) // _SAMPLE_TOKENS)
            self._kept.append(tokens[::step][:_SAMPLE_TOKENS].astype(np.float16))

    @property
    def is_full(self) -> bool:
        """Return whether a basis can be fitted that is worth keeping."""
        return len(self._kept) >= SAMPLE_TEXTS

    def basis(self, stamp: str) -> Basis | None:
        """Return the basis of the sample, None of too small a one."""
        import numpy as np

        if len(self._kept) < LEAST_TEXTS:
            return None
        rows = np.concatenate(self._kept).astype(np.float32)
        if len(rows) < DIRECTIONS or rows.shape[1] < DIRECTIONS:
            return None
        centre = rows.mean(axis=0)
        rows = _unit(rows - centre)
        _, directions = np.linalg.eigh(rows.T @ rows)  # in ascending order
        matrix = np.ascontiguousarray(directions[:, ::-1][:, :DIRECTIONS], dtype=np.float32)
        return Basis(stamp=stamp, centre=centre, matrix=matrix, texts=len(self._kept))


def unpacked(kept: bytes) -> "Packed":
    """Return (n, DIRECTIONS) int8."""
    import numpy as np

    return np.frombuffer(kept, dtype=np.int8).reshape(-1, DIRECTIONS)


def max_sims(question: "Vectors", passages: "Sequence[Packed]") -> "NDArray[np.float64]":
    """Return how well each passage answers a question, word by word: about a cosine.

    For each word of the question its nearest one in the passage counts; the mean of them all.

    Args:
        question: (n, DIRECTIONS) float32 of length one, n > 0.
        passages: (m, DIRECTIONS) int8 each, m > 0.

    Source: Khattab and Zaharia, ColBERT (2020), section 3.3.
    """
    import numpy as np

    starts = np.cumsum([0, *(len(one) for one in passages[:-1])])
    words = np.concatenate(passages).astype(np.float32)
    nearest = np.maximum.reduceat(words @ question.T, starts, axis=0)
    means: NDArray[np.float64] = nearest.mean(axis=1, dtype=np.float64) / _ONE
    return means


def text_mark(text: str) -> int:
    """Return what tells a text from the one that token vectors were made of."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def _unit(rows: "Vectors") -> "Vectors":
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Vectors = rows / np.maximum(lengths, 1e-9)
    return unit
