"""Age: bounded, neutral where unknown, never negative."""

import numpy as np
import pytest

from funes_ls.retrieval.recency import DAY_US, age_factors

NOW = 1_800_000_000_000_000


def factor(age_days: float, *, half_life: float = 30.0, floor: float = 0.85) -> float:
    times = np.array([NOW - age_days * DAY_US])
    return float(age_factors(times, now_us=NOW, half_life_days=half_life, floor=floor)[0])


def test_the_factor_halves_above_the_floor() -> None:
    assert factor(0) == 1.0
    assert factor(30) == pytest.approx(0.925)
    assert factor(60) == pytest.approx(0.8875)
    assert factor(36_500) == pytest.approx(0.85)


def test_a_future_time_is_as_fresh_as_now() -> None:
    assert factor(-2000) == 1.0


def test_an_unknown_time_is_neither_fresh_nor_old() -> None:
    times = np.array([np.nan])
    got = age_factors(times, now_us=NOW, half_life_days=30, floor=0.85)[0]
    assert factor(3650) < got < factor(0)
    assert got == pytest.approx(factor(30))


@pytest.mark.parametrize("half_life", [0.0, -1.0])
def test_no_half_life_turns_age_off(half_life: float) -> None:
    assert factor(3650, half_life=half_life) == 1.0


def test_a_floor_of_zero_is_plain_decay_and_of_one_is_none() -> None:
    assert factor(60, floor=0.0) == pytest.approx(0.25)
    assert factor(60, floor=1.0) == 1.0
