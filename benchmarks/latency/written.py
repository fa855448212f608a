"""Files as sessions left them, small and large, for asking who wrote their lines."""

import random
from pathlib import Path

from msgspec import Struct

from funes_ls.indexer.facts import Facts
from funes_ls.indexer.memory import open_memory
from funes_ls.retrieval.file_history import Histories
from funes_ls.retrieval.same_file import Asked, same_file

#: Lines of the large files, as the product promises for them.
LARGE = 5_000


class Written(Struct, frozen=True, kw_only=True):
    """A file, its text, and which of its lines sessions wrote (from 0)."""

    path: str
    text: str
    lines: tuple[int, ...]


def written(home: Path, paths: tuple[str, ...], *, seed: int, count: int) -> tuple[Written, ...]:
    """Return files with the text that the calls of sessions give them, most lines first."""
    found = []
    with open_memory(home / "memory", derived=home / "derived") as memory:
        facts, histories = Facts(memory.catalog), Histories()
        for path in paths:
            own = same_file(facts, memory.catalog, Asked(path=path)).own
            history = histories.of(facts, own, memory="") if own else None
            if history is None:
                continue
            parts = history.states[-1:] or history.pieces
            lines = [line for part in parts for line in part.lines]
            if lines and history.written:
                found.append((path, lines))
    found.sort(key=lambda one: -len(one[1]))
    chance = random.Random(seed)
    return tuple(
        _spread(path, lines, chance, size=len(lines) + 20) for path, lines in found[:count]
    )


def large(files: tuple[Written, ...], *, seed: int) -> tuple[Written, ...]:
    """Return the files with as many lines of nobody's around theirs as make them large."""
    chance = random.Random(seed)
    return tuple(
        _spread(one.path, [one.text.split("\n")[n] for n in one.lines], chance, size=LARGE)
        for one in files
    )


def _spread(path: str, lines: list[str], chance: random.Random, *, size: int) -> Written:
    """Put runs of other lines between those of a file, until it has so many."""
    places = sorted(chance.sample(range(len(lines) + 1), min(20, len(lines))))
    each = max(size - len(lines), 0) // max(len(places), 1)
    text: list[str] = []
    mine: list[int] = []
    for number, line in enumerate([*lines, ""]):
        if number in places:
            text += [f"other_{number}_{n} = compute({chance.random():.9f})" for n in range(each)]
        if number < len(lines):
            mine.append(len(text))
            text.append(line)
    return Written(path=path, text="\n".join(text) + "\n", lines=tuple(mine))
