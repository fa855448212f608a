"""The pairing of two texts' lines."""

import itertools
import random
import time

import pytest

from funes_ls.retrieval.diff import pairs


def of(text: str) -> list[str]:
    return text.split()


def test_what_stands_once_holds_the_rest_in_place() -> None:
    old, new = of("a { x } b { y }"), of("b { y } a { x }")
    found = pairs(old, new)
    assert all(old[i] == new[j] for i, j in found)
    assert len(found) == 4  # one of the two blocks, whole


def test_brackets_stay_with_their_block() -> None:
    old, new = of("f { } g { }"), of("f { } h { } g { }")
    assert pairs(old, new) == [(0, 0), (1, 1), (2, 2), (3, 6), (4, 7), (5, 8)]


@pytest.mark.parametrize("seed", range(20))
def test_pairs_are_equal_and_rise(seed: int) -> None:
    chance = random.Random(seed)
    old = [chance.choice("abcdefgh}") for _ in range(chance.randrange(80))]
    new = [line for line in old if chance.random() < 0.8]
    for _ in range(chance.randrange(20)):
        new.insert(chance.randrange(len(new) + 1), chance.choice("abcxyz}"))
    found = pairs(old, new)
    assert all(old[i] == new[j] for i, j in found)
    assert all(a < c and b < d for (a, b), (c, d) in itertools.pairwise(found))


@pytest.mark.parametrize(("old", "new"), [([], []), (["a"], []), ([], ["a"])])
def test_nothing_pairs_with_nothing(old: list[str], new: list[str]) -> None:
    assert pairs(old, new) == []


def test_texts_without_order_end_soon() -> None:
    chance = random.Random(1)
    old = [str(chance.randrange(50)) for _ in range(20_000)]
    new = [str(chance.randrange(50)) for _ in range(20_000)]
    began = time.monotonic()
    pairs(old, new)
    assert time.monotonic() - began < 10
