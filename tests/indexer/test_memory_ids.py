"""Ids are found by place and by id, also while more of them come and after they were sorted."""

import random
import sys
import threading

from funes_ls.indexer.memory_ids import RowIds


def names(first: int, last: int) -> list[str]:
    return [f"{number:016x}" for number in range(first, last)]


def test_ids_are_found_before_and_after_they_are_sorted() -> None:
    ids = RowIds(10)
    ids.add(names(0, 50))
    assert ids.places(["0000000000000007", "none"]) == [7, None]
    ids.settle()
    ids.add(names(50, 60))
    assert ids.places(names(0, 60)) == list(range(60))
    assert ids.at([59, 0]) == [names(59, 60)[0], names(0, 1)[0]]
    assert len(ids) == 60


def test_ids_may_be_of_any_length_and_script() -> None:
    ids, wanted = RowIds(1), ["a", "", "turn-" * 40, "日本語" * 9, "é", "b"]
    for one in wanted:
        ids.add([one])
        ids.settle()
    assert ids.at(range(6)) == wanted
    assert ids.places(wanted) == list(range(6))
    assert ids.places(["turn-" * 39, "日本"]) == [None, None]


def test_an_id_added_twice_is_where_it_was_added_last() -> None:
    ids = RowIds(4)
    ids.add(["a", "b", "a"])
    assert ids.places(["a"]) == [2]
    ids.settle()
    assert ids.places(["a"]) == [2]
    ids.add(["a"])
    assert ids.places(["a"]) == [3]
    ids.settle()
    assert ids.places(["a", "b"]) == [3, 1]


def test_many_take_less_than_half_of_a_list_and_a_dict() -> None:
    wanted = names(0, 100_000)
    ids = RowIds(100_000)
    for start in range(0, 100_000, 8192):
        ids.add(wanted[start : start + 8192])
    ids.settle()
    plain = sum(map(sys.getsizeof, wanted)) + sys.getsizeof(dict.fromkeys(wanted))
    assert ids.nbytes < plain / 2


def test_what_is_there_is_always_found_while_more_come() -> None:
    ids = RowIds(10)
    ids.add(names(0, 100))
    ended, missed = threading.Event(), []

    def look() -> None:
        chance = random.Random(1)
        while not ended.is_set():
            place = chance.randrange(100)
            if ids.places(names(place, place + 1)) != [place] or ids.at([place]) != names(
                place, place + 1
            ):
                missed.append(place)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for start in range(100, 40_000, 100):
            ids.add(names(start, start + 100))
            if start % 3000 == 100:
                ids.settle()
    finally:
        ended.set()
        thread.join()
    assert missed == []
