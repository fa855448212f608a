"""The vector leg: exact, filtered before the cut, and the same through the dataset's index."""

from pathlib import Path

import numpy as np
import pytest

from funes_ls.indexer.embedding import Embedder
from funes_ls.retrieval import vector
from funes_ls.retrieval.limits import Limits
from funes_ls.retrieval.vector import filled_forward, search_vectors
from tests.retrieval.building import memory_of, said

ROWS = [
    said("one", n, f"valve {n} of the pump", ts=f"2026-03-0{1 + n % 5}T10:00:00Z")
    for n in range(40)
] + [said("two", n, f"sorter table {n}", role="assistant", harness="pi") for n in range(10)]
LIMITS = [
    Limits(),
    Limits(session_ids=frozenset({"two"})),
    Limits(harnesses=frozenset({"pi"}), block_types=frozenset({"text"})),
    Limits(since_us=1_772_532_000_000_000, until_us=1_772_620_000_000_000),
]


@pytest.mark.parametrize("limits", LIMITS)
def test_exact_search_and_the_datasets_own_agree(
    funes_home: Path, embedder: Embedder, monkeypatch: pytest.MonkeyPatch, limits: Limits
) -> None:
    query = embedder.encode_query("valve 7 of the pump")
    with memory_of(funes_home, ROWS, embedder=embedder) as memory:
        exact = search_vectors(memory, query, limits, 6)
        monkeypatch.setattr(vector, "exact", lambda _: None)
        asked = search_vectors(memory, query, limits, 6)
    assert len(exact.ids) == 6
    assert exact.scores == pytest.approx(asked.scores, abs=1e-5)
    assert list(exact.scores) == sorted(exact.scores, reverse=True)


def test_the_nearest_is_the_text_itself(funes_home: Path, embedder: Embedder) -> None:
    with memory_of(funes_home, ROWS, embedder=embedder) as memory:
        leg = search_vectors(memory, embedder.encode_query(ROWS[7].text), Limits(), 1)
        none = search_vectors(
            memory, embedder.encode_query("x"), Limits(session_ids=frozenset()), 5
        )
    assert leg.ids == [ROWS[7].id]
    assert leg.scores[0] == pytest.approx(1.0, abs=1e-3)
    assert none.ids == []


def test_cosines_are_those_of_the_search_and_unknown_ids_have_none(
    funes_home: Path, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = embedder.encode_query("sorter")
    with memory_of(funes_home, ROWS, embedder=embedder) as memory:
        leg = search_vectors(memory, query, Limits(), 50)
        got = vector.cosines(memory, query, [*leg.ids[:3], "0000000000000000"])
        monkeypatch.setattr(vector, "exact", lambda _: None)
        asked = vector.cosines(memory, query, leg.ids[:3])
    assert list(got) == leg.ids[:3]
    assert list(got.values()) == pytest.approx(list(leg.scores[:3]), abs=1e-5)
    assert asked == pytest.approx(got, abs=1e-5)


def test_new_rows_are_seen(funes_home: Path, embedder: Embedder) -> None:
    query = embedder.encode_query("a brand new remark")
    with memory_of(funes_home, ROWS, embedder=embedder) as memory:
        search_vectors(memory, query, Limits(), 1)
        late = said("late", 0, "a brand new remark")
        memory.queue([late])
        memory.move([late], embedder.encode([late.text]), stamp=embedder.stamp)
        assert search_vectors(memory, query, Limits(), 1).ids == [late.id]


def test_a_missing_time_is_that_of_the_row_before_in_its_session() -> None:
    nan = float("nan")
    times = np.array([nan, 30.0, nan, nan, 10.0, nan])
    sessions = np.array([1, 0, 0, 0, 1, 1], dtype=np.int32)
    seq = np.array([0, 1, 2, 0, 1, 2])
    got = filled_forward(times, sessions, seq, np.array([nan, 5.0]))
    assert got[[0, 1, 2, 4, 5]].tolist() == [5.0, 30.0, 30.0, 10.0, 10.0]
    assert np.isnan(got[3])
