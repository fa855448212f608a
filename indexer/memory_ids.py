"""The ids of many rows and where each row is, in a fifth of what a list and a dict take."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

#: Rows added last are looked up in a dict until there are so many.
_MOST_RECENT = 16_384
_LEAST_WIDTH = 16


class _Sorted(Struct, frozen=True):
    """Hashes of the first rows' ids in order, and the place that each is of."""

    keys: NDArray[np.int64]
    places: NDArray[np.int32]


class RowIds:
    """Ids by place and places by id; one thread adds while others look up what was there."""

    def __init__(self, room: int) -> None:
        """Have room for so many at first."""
        self._used = 0
        self._bytes = _texts(room, _LEAST_WIDTH)
        self._sorted = _Sorted(np.zeros(0, np.int64), np.zeros(0, np.int32))
        self._recent: dict[str, int] = {}

    def __len__(self) -> int:
        """Return how many there are."""
        return self._used

    @property
    def nbytes(self) -> int:
        """Return the bytes that all take but those added last."""
        known = self._sorted
        return self._bytes.nbytes + known.keys.nbytes + known.places.nbytes

    def add(self, ids: Sequence[str]) -> None:
        """Put ids behind those that are there."""
        encoded = [id_.encode() for id_ in ids]
        end = self._used + len(encoded)
        self._make_room(end, max(map(len, encoded), default=0))
        self._bytes[self._used : end] = encoded
        self._recent.update(zip(ids, range(self._used, end), strict=True))
        self._used = end
        if len(self._recent) > _MOST_RECENT:
            self.settle()

    def settle(self) -> None:
        """Keep those added last as closely as the others."""
        places = np.fromiter(self._recent.values(), np.int32, len(self._recent))
        keys = np.fromiter(map(hash, self._recent), np.int64, len(self._recent))
        keys = np.concatenate([self._sorted.keys, keys])
        places = np.concatenate([self._sorted.places, places])
        order = np.argsort(keys, kind="stable")
        # In this order: who looks up meanwhile finds an id here or there.
        self._sorted = _Sorted(keys[order], places[order])
        self._recent = {}

    def at(self, places: Iterable[int]) -> list[str]:
        """Return ids by place."""
        texts = self._bytes
        return [bytes(texts[place]).decode() for place in places]

    def places(self, ids: Sequence[str]) -> list[int | None]:
        """Return the place of each id, the last one of an id added twice; None for unknown ones."""
        recent, known = self._recent, self._sorted
        hashes = np.fromiter(map(hash, ids), np.int64, len(ids))
        ends = np.searchsorted(known.keys, hashes, side="right").tolist()
        return [
            place if (place := recent.get(id_)) is not None else self._settled(id_, known, end)
            for id_, end in zip(ids, ends, strict=True)
        ]

    def _settled(self, id_: str, known: _Sorted, end: int) -> int | None:
        """Return the last place of an id among those whose hashes are its own."""
        key, text = hash(id_), id_.encode()
        while end > 0 and known.keys[end - 1] == key:
            end -= 1
            place = int(known.places[end])
            if self._bytes[place] == text:
                return place
        return None

    def _make_room(self, rows: int, width: int) -> None:
        there = self._bytes
        if rows > len(there) or width > there.itemsize:
            wider = _texts(max(rows + rows // 4, len(there)), max(width, there.itemsize))
            wider[: self._used] = there[: self._used]
            self._bytes = wider


def _texts(rows: int, width: int) -> NDArray[Any]:
    return np.zeros(rows, dtype=f"S{width}")
