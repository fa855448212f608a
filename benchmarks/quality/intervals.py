"""Whether one run is better than another, or only luckier: paired bootstrap intervals."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

_ROUNDS, _SEED = 5_000, 7


class Difference(Struct, frozen=True, kw_only=True):
    """How much better the second run is in one measure.

    Attributes:
        low: Lower end of the interval that holds 95 % of the resampled means.
        high: Its upper end; the runs differ when zero lies outside.
        wins: Questions on which the second run is better.
        losses: Questions on which it is worse.
    """

    measure: str
    before: float
    after: float
    low: float
    high: float
    wins: int
    losses: int
    n: int


def differences(
    before: Mapping[str, Mapping[str, float]],
    after: Mapping[str, Mapping[str, float]],
    measures: Sequence[str],
) -> list[Difference]:
    """Return the difference in each measure over the questions that both runs answered."""
    both = sorted(before.keys() & after.keys())
    chance = np.random.default_rng(_SEED)
    picks = chance.integers(0, len(both), (_ROUNDS, len(both))) if both else None
    found = []
    for name in measures:
        if picks is None:
            break
        old = np.array([before[qid][name] for qid in both])
        new = np.array([after[qid][name] for qid in both])
        resampled = (new - old)[picks].mean(axis=1)
        low, high = np.quantile(resampled, [0.025, 0.975])
        found.append(
            Difference(
                measure=name,
                before=float(old.mean()),
                after=float(new.mean()),
                low=float(low),
                high=float(high),
                wins=int((new > old).sum()),
                losses=int((new < old).sum()),
                n=len(both),
            )
        )
    return found


def differences_table(found: Sequence[Difference]) -> str:
    """Return differences as a Markdown table."""
    lines = [
        "| measure | n | before | after | difference | 95 % | better | worse |",
        "|" + "---|" * 8,
    ]
    lines += [
        f"| {one.measure} | {one.n} | {one.before:.3f} | {one.after:.3f} "
        f"| {one.after - one.before:+.3f} | {one.low:+.3f} to {one.high:+.3f} "
        f"| {one.wins} | {one.losses} |"
        for one in found
    ]
    return "\n".join(lines)
