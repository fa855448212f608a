"""The seam where a reranker joins: it reorders the top of the fused pool."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Reranker(Protocol):
    """Scores passages against a question."""

    def scores(
        self, query: str, ids: Sequence[str], texts: Sequence[str], fused: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return (n,) float64 in 0..1 that replace the fused scores, higher is better."""
        ...


class Identity:
    """The reranker that leaves the fused order as it is."""

    def scores(
        self, query: str, ids: Sequence[str], texts: Sequence[str], fused: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the fused scores themselves."""
        return fused
