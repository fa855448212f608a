"""Preferences that are mild: no kind or length of passage is ever shut out."""

import pytest

from funes_ls.retrieval.prior import BRIEF_FACTOR, FULL_CHARS, brevity_factors, prior_factors


def test_what_tools_printed_weighs_less() -> None:
    kinds = ["text", "thinking", "tool_use", "tool_result", "unknown"]
    assert prior_factors(kinds, tool_use=0.9, tool_result=0.8).tolist() == [1, 1, 0.9, 0.8, 1]


def test_a_passage_counts_in_full_from_a_length_on() -> None:
    factors = brevity_factors([0, FULL_CHARS // 2, FULL_CHARS, 10 * FULL_CHARS])
    assert factors.tolist() == pytest.approx([BRIEF_FACTOR, (1 + BRIEF_FACTOR) / 2, 1, 1])
