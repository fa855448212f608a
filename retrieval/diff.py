"""Pairs the lines of two texts as a person would: rare lines first, then what is common between."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

#: Cells of a table of comparisons; a gap larger than this is not searched line by line.
_MOST_CELLS = 64_000_000

Pairs = list[tuple[int, int]]


def pairs(old: Sequence[Hashable], new: Sequence[Hashable]) -> Pairs:
    """Return which places of `old` and `new` are the same, rising on both sides.

    Lines that stand once on each side hold the rest in place (a patience diff); what lies between
    two of them is paired by its longest common subsequence. Near-equal texts take linear time.
    """
    found: Pairs = []
    todo = [(0, len(old), 0, len(new))]
    while todo:
        a, b, c, d = todo.pop()
        while a < b and c < d and old[a] == new[c]:
            found.append((a, c))
            a, c = a + 1, c + 1
        tail = 0
        while a < b and c < d and old[b - 1] == new[d - 1]:
            b, d, tail = b - 1, d - 1, tail + 1
        found.extend((b + n, d + n) for n in range(tail))
        if a == b or c == d:
            continue
        anchors = _anchors(old, new, a, b, c, d)
        if anchors:
            todo.extend(_gaps(anchors, a, b, c, d))
            found.extend(anchors)
        else:
            found.extend((a + i, c + j) for i, j in common(old[a:b], new[c:d]))
    found.sort()
    return found


def common(old: Sequence[Hashable], new: Sequence[Hashable]) -> Pairs:
    """Return a longest common subsequence as pairs of places; empty where that costs too much."""
    from rapidfuzz.distance import LCSseq

    if not old or not new or len(old) * len(new) > _MOST_CELLS:
        return []
    return [
        (block.a + n, block.b + n)
        for block in LCSseq.editops(old, new).as_matching_blocks()
        for n in range(block.size)
    ]


def _anchors(
    old: Sequence[Hashable], new: Sequence[Hashable], a: int, b: int, c: int, d: int
) -> Pairs:
    """Return pairs of lines that stand once on each side, the most that keep their order."""
    once_old = _once(old, a, b)
    once_new = _once(new, c, d)
    shared = [(i, once_new[line]) for line, i in once_old.items() if line in once_new]
    return _rising(shared)


def _once(lines: Sequence[Hashable], start: int, end: int) -> dict[Hashable, int]:
    counts = Counter(lines[start:end])
    return {lines[n]: n for n in range(start, end) if counts[lines[n]] == 1}


def _rising(shared: Pairs) -> Pairs:
    """Return the longest part of pairs, sorted by the first, in which the second rises too."""
    ends: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for n, (_, j) in enumerate(shared):
        place = bisect_left(ends, j)
        before.append(at[place - 1] if place else -1)
        if place == len(ends):
            ends.append(j)
            at.append(n)
        else:
            ends[place], at[place] = j, n
    kept: Pairs = []
    n = at[-1] if at else -1
    while n >= 0:
        kept.append(shared[n])
        n = before[n]
    return kept[::-1]


def _gaps(anchors: Pairs, a: int, b: int, c: int, d: int) -> Iterator[tuple[int, int, int, int]]:
    for i, j in [*anchors, (b, d)]:
        if a < i and c < j:
            yield a, i, c, j
        a, c = i + 1, j + 1
