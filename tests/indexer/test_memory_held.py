"""Vectors held in memory: as the dataset has them, and extended without reading it again."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from funes_ls.indexer import dataset as lance
from funes_ls.indexer import memory_held
from funes_ls.indexer.dataset import Dataset
from funes_ls.indexer.memory_held import Held, Moved, read_all
from funes_ls.indexer.model import Chunk
from tests.indexer.making import DIM, STAMP, row, rows, vectors


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    made = lance.create(tmp_path, stamp=STAMP, dim=DIM)
    made.append(rows(20), vectors(rows(20)))
    return made


def check(held: Held, expected: Sequence[Chunk]) -> None:
    """The expected rows are there, each with its own vector and columns."""
    places = held.places([one.id for one in expected])
    assert None not in places
    assert sorted(places) == list(range(len(held)))  # type: ignore[type-var]
    there = np.array(places)
    assert held.ids(there.tolist()) == [one.id for one in expected]
    np.testing.assert_allclose(held.vectors(there), vectors(expected), atol=3e-5)
    sessions = held.coded("session_id")
    assert [sessions.values[code] for code in sessions.codes[there]] == [
        one.session_id for one in expected
    ]
    assert held.seq[there].tolist() == [one.seq for one in expected]
    assert held.times[there].tolist() == [one.ts_us for one in expected]


def test_what_is_read_is_what_the_dataset_holds(dataset: Dataset) -> None:
    held = read_all(dataset)
    check(held, rows(20))
    assert held.vectors(np.arange(3)).dtype == np.float32
    assert held.places(["unknown"]) == [None]


def test_an_empty_dataset_keeps_its_width(tmp_path: Path) -> None:
    held = read_all(lance.create(tmp_path, stamp=STAMP, dim=DIM))
    assert len(held) == 0
    places, scores = held.nearest(vectors(rows(1))[0], 5)
    assert (places.tolist(), scores.tolist()) == ([], [])


def append(dataset: Dataset, new: Sequence[Chunk]) -> Moved:
    dataset.append(new, vectors(new))
    return Moved(rows=new, vectors=vectors(new), version=dataset.version)


def unreadable(*_: object, **__: object) -> None:
    raise AssertionError("the dataset was read")


def test_rows_told_of_are_added_without_the_disk(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = read_all(dataset)
    steps = [append(dataset, rows(3, start=20)), append(dataset, rows(2, session="s2"))]
    for name in ("take", "scan"):
        monkeypatch.setattr(dataset, name, unreadable)
    later = held.extended(dataset, only_added=True, moved=steps)
    check(later, [*rows(23), *rows(2, session="s2")])
    check(held, rows(20))  # whoever searches it goes on with what it was


@pytest.mark.parametrize("told", [[], [1], [0]], ids=["nothing", "the last", "the first"])
def test_rows_not_told_of_are_read_and_only_they(
    dataset: Dataset, told: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = read_all(dataset)
    steps = [append(dataset, rows(3, start=20)), append(dataset, rows(2, start=23))]
    monkeypatch.setattr(dataset, "scan", unreadable)
    later = held.extended(dataset, only_added=True, moved=[steps[n] for n in told])
    check(later, rows(25))


def test_arrays_grow_beyond_their_room(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_held, "_LEAST_ROOM", 1)
    first = held = read_all(dataset)
    for seq in range(20, 60):
        step = append(dataset, [row(seq)])
        held = held.extended(dataset, only_added=True, moved=[step])
    check(held, rows(60))
    check(first, rows(20))


def test_fragments_merged_since_change_nothing(dataset: Dataset) -> None:
    append(dataset, rows(5, start=20))
    held = read_all(dataset)
    append(dataset, rows(2, start=25))
    dataset.optimize()
    append(dataset, rows(1, start=27))
    check(held.extended(dataset, only_added=True, moved=[]), rows(28))


def test_rows_that_left_are_gone(dataset: Dataset) -> None:
    held = read_all(dataset)
    dataset.delete_ids([row(0).id, row(7).id])
    append(dataset, rows(1, start=20))
    later = held.extended(dataset, only_added=False, moved=[])
    check(later, [one for one in rows(21) if one.seq not in (0, 7)])
    assert later.places([row(7).id]) == [None]


def test_two_that_go_on_from_one_state_do_not_mix(dataset: Dataset) -> None:
    held = read_all(dataset)
    step = append(dataset, rows(3, start=20))
    one = held.extended(dataset, only_added=True, moved=[step])
    other = held.extended(dataset, only_added=True, moved=[step])
    check(one, rows(23))
    check(other, rows(23))


@pytest.mark.parametrize("among", [None, range(0, 3000, 3)], ids=["all", "some"])
@pytest.mark.parametrize("limit", [1, 30, 200, 5000])
def test_the_nearest_are_those_that_floats_tell(
    tmp_path: Path, limit: int, among: range | None
) -> None:
    rng = np.random.default_rng(5)
    drawn = rng.standard_normal((3000, 96)) + rng.standard_normal((1, 96))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    whole = drawn.astype(np.float32)
    made = lance.create(tmp_path, stamp=STAMP, dim=96)
    made.append(rows(3000), whole)
    held = read_all(made)
    allowed = np.arange(3000) if among is None else np.array(among)
    for query in whole[:20]:
        places, scores = held.nearest(query, limit, among=None if among is None else allowed)
        expected = np.sort(whole[allowed] @ query)[::-1][:limit]
        np.testing.assert_allclose(scores, expected, atol=3e-5)
        np.testing.assert_allclose(whole[places] @ query, expected, atol=3e-5)
        assert set(places.tolist()) <= set(allowed.tolist())


def test_all_are_held_as_far_as_the_machine_has_room(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = dataset.count()
    bytes_each = 2 * dataset.dim + memory_held._ROW_BYTES
    monkeypatch.setattr(memory_held, "_machine_bytes", lambda: 6 * rows * bytes_each + 6)
    assert memory_held.fits(dataset)
    monkeypatch.setattr(memory_held, "_machine_bytes", lambda: 6 * rows * bytes_each - 6)
    assert not memory_held.fits(dataset)
    monkeypatch.undo()
    assert memory_held._machine_bytes() > 1 << 28
    assert memory_held.fits(dataset)
    monkeypatch.setattr(memory_held, "MOST_HELD", rows - 1)
    assert not memory_held.fits(dataset)
