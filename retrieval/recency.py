"""A mild factor for age: fresh passages win ties, old ones are never buried.

A 30-day half-life multiplied in whole destroys recall of old sessions, so the factor is bounded
from below.
"""

import numpy as np
from numpy.typing import NDArray

DAY_US = 86_400_000_000
#: Below this a half-life says no more than "now or never".
_SHORTEST_DAYS = 1e-6


def age_factors(
    ts_us: NDArray[np.float64], *, now_us: int, half_life_days: float, floor: float
) -> NDArray[np.float64]:
    """Return `floor + (1 - floor) * 0.5 ** (age / half_life)` per time, in `[floor, 1]`.

    Future times count as now. Unknown times (NaN) get the middle of the range: neither fresh
    nor old. A half-life of 0 or less gives 1 throughout.

    Args:
        ts_us: (n,) float64, UTC microseconds, NaN where unknown.
        now_us: What ages count from.
        half_life_days: Age at which the part above the floor has halved.
        floor: Smallest factor, in 0..1.
    """
    if half_life_days <= 0:
        return np.ones(len(ts_us))
    age_days = np.maximum(now_us - ts_us, 0.0) / DAY_US
    half_lives = age_days / max(half_life_days, _SHORTEST_DAYS)
    fresh = np.where(np.isnan(half_lives), 0.5, np.exp2(-half_lives))
    bound = min(max(floor, 0.0), 1.0)
    return bound + (1.0 - bound) * fresh
