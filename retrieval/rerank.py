"""The seam where a reranker joins: it reorders the top of the fused pool."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from funes_ls.indexer.embedding_tokens import max_sims
from funes_ls.indexer.memory import MemoryView

Scores = NDArray[np.float64]

#: Share of the words' nearness in what becomes of a score; docs/performance.md has others.
LATE_WEIGHT = 0.35
#: How far the best fused passage stays above all others.
_AHEAD_OF = 1e-6


class Reranker(Protocol):
    """Scores passages against a question.

    Attributes:
        is_slow: Whether an answer without it is worth showing first.
        note: What a person should know of how it went, "" for nothing.
        state: How it fared, as of a leg; "" where nobody need know.
    """

    is_slow: bool
    note: str
    state: str

    def scores(self, query: str, ids: Sequence[str], texts: Sequence[str], fused: Scores) -> Scores:
        """Return (n,) float64 in 0..1 that replace the fused scores, higher is better."""
        ...


class Identity:
    """The reranker that leaves the fused order as it is."""

    is_slow = False
    note = state = ""

    def scores(self, query: str, ids: Sequence[str], texts: Sequence[str], fused: Scores) -> Scores:
        """Return the fused scores themselves."""
        return fused


class Ahead(Identity):
    """Stands in for a reranker whose answer comes next."""

    state = "pending"


class Late:
    """Compares a question word by word with passages whose token vectors are kept.

    Both are shares of the best among the candidates, so that the best fused score stays what it
    was at most. What has no token vectors, such as the calls of tools, keeps its score. The best
    fused passage stays the first: words tell what else answers, and not better what answers best.

    Source: three sets of questions, with and without the first kept; docs/performance.md.
    """

    is_slow = False
    note = state = ""

    def __init__(self, memory: MemoryView, tokens: "NDArray[np.float32]") -> None:
        """Compare with what a memory keeps.

        Args:
            memory: Where the passages are.
            tokens: (n, token_dim) float32 of the question, each of length one.
        """
        self._memory = memory
        self._tokens = tokens

    def scores(self, query: str, ids: Sequence[str], texts: Sequence[str], fused: Scores) -> Scores:
        """Return scores with the nearness of the words mixed in."""
        kept = self._memory.tokens(ids, texts) if len(self._tokens) else None
        if kept is None:
            return fused
        basis, passages = kept
        at = [index for index, id_ in enumerate(ids) if id_ in passages]
        if not at:
            return fused
        near = max_sims(basis.turned(self._tokens), [passages[ids[index]] for index in at])
        near = np.clip(near, 0.0, None) / max(float(near.max()), 1e-9)
        mixed = fused.copy()
        mixed[at] += LATE_WEIGHT * (float(fused.max()) * near - fused[at])
        first = int(fused.argmax())
        mixed[first] = max(mixed[first], float(mixed.max()) + _AHEAD_OF)
        return mixed
