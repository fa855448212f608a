"""What is said around a passage counts a little."""

import msgspec
import numpy as np
import pytest

from funes_ls.indexer.memory import Row
from funes_ls.retrieval.context import SHARE, with_context
from tests.retrieval.building import said


def row(session_id: str, seq: int) -> Row:
    return Row(**msgspec.structs.asdict(said(session_id, seq, "x")))


def test_only_the_same_sessions_next_turns_count() -> None:
    rows = [row("a", 1), row("a", 2), row("a", 4), row("b", 3)]
    got = with_context(rows, np.array([0.5, 0.8, 0.6, 0.7])) * (1 + SHARE)
    assert got.tolist() == pytest.approx([0.5 + 0.08, 0.8 + 0.05, 0.6, 0.7])


def test_scores_stay_within_one() -> None:
    got = with_context([row("a", 1), row("a", 2)], np.array([1.0, 1.0]))
    assert got.tolist() == pytest.approx([1.0, 1.0])


def test_nothing_is_nothing() -> None:
    assert with_context([], np.zeros(0)).tolist() == []
