"""How well a score tells questions with an answer from those without."""

from collections.abc import Sequence

import numpy as np


def auroc(answered: Sequence[float], unanswered: Sequence[float]) -> float:
    """Return how often a question with an answer scores above one without; ties count half."""
    with_, without = np.asarray(answered)[:, None], np.asarray(unanswered)[None, :]
    return float(((with_ > without) + 0.5 * (with_ == without)).mean())
