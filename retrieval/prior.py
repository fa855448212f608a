"""A mild preference for what people and agents said over what tools printed."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def prior_factors(
    block_types: Sequence[str], *, tool_use: float, tool_result: float
) -> NDArray[np.float64]:
    """Return a factor per block type; text and thinking have 1."""
    factors = {"tool_use": tool_use, "tool_result": tool_result}
    return np.array([factors.get(kind, 1.0) for kind in block_types], dtype=np.float64)
