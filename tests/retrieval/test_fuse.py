"""Mixing the legs."""

import numpy as np
import pytest

from funes_ls.retrieval.fuse import Leg, mix


def leg(**scores: float) -> Leg:
    ranked = sorted(scores.items(), key=lambda pair: -pair[1])
    return Leg(ids=[id_ for id_, _ in ranked], scores=np.array([score for _, score in ranked]))


def test_both_legs_are_scaled_by_their_best_and_mixed() -> None:
    pool = mix(leg(a=9.0, b=3.0, c=6.0), leg(b=0.8, a=0.4, c=-0.2), vector_weight=0.6)
    fused = dict(zip(pool.ids, pool.fused, strict=True))
    assert fused["a"] == pytest.approx(0.6 * 0.5 + 0.4)
    assert fused["b"] == pytest.approx(0.6 + 0.4 / 3)
    assert fused["c"] == pytest.approx(0.4 * 6 / 9)
    assert pool.ids == ["b", "a", "c"]
    assert dict(zip(pool.ids, pool.words_rank, strict=True)) == {"a": 1, "c": 2, "b": 3}


def test_scores_of_zero_are_no_reason_to_divide() -> None:
    pool = mix(leg(a=0.0), leg(b=-0.5), vector_weight=0.6)
    assert pool.fused.tolist() == [0.0, 0.0]


def test_a_leg_that_did_not_run_leaves_all_to_the_other() -> None:
    assert mix(leg(a=5.0, b=1.0), None, vector_weight=0.6).ids == ["a", "b"]
    assert mix(None, leg(a=0.1, b=0.9), vector_weight=0.6).ids == ["b", "a"]
    assert mix(None, None, vector_weight=0.6).ids == []


def test_a_chunk_without_a_vector_is_judged_by_its_words() -> None:
    pool = mix(leg(fresh=9.0, old=3.0), leg(old=0.9, other=0.2), vector_weight=0.6)
    place = pool.ids.index("fresh")
    assert np.isnan(pool.vector[place])
    assert pool.fused[place] == pytest.approx(1.0)


def test_a_chunk_only_the_words_found_gets_its_own_cosine() -> None:
    words, vector = leg(far=9.0, near=3.0), leg(near=0.9, other=0.5)
    pool = mix(words, vector, vector_weight=0.6, cosines={"far": 0.1})
    fused = dict(zip(pool.ids, pool.fused, strict=True))
    assert fused["far"] == pytest.approx(0.4 + 0.6 * 0.1 / 0.9)
    assert pool.vector_rank[pool.ids.index("far")] == 0


def test_a_single_candidate_is_a_whole_one() -> None:
    assert mix(leg(a=0.01), None, vector_weight=0.6).fused.tolist() == [1.0]
