"""Files as sessions left them, small and large, for asking who wrote their lines."""

import random
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from funes_ls.handlers.line_facts import FACTS
from funes_ls.indexer.facts import Facts
from funes_ls.indexer.memory import open_memory
from funes_ls.retrieval.blame import Document, blame
from funes_ls.retrieval.file_history import Histories
from funes_ls.retrieval.replay import History
from funes_ls.retrieval.same_file import Asked, same_file

#: Lines of the large files, as the product promises for them.
LARGE = 5_000


class Written(Struct, frozen=True, kw_only=True):
    """A file as sessions left it, with runs of other lines between.

    Attributes:
        path: Of the file.
        text: All of it.
        lines: Which lines sessions left there, from 0; many of them they only read.
        claimed: Which of those a session wrote.
    """

    path: str
    text: str
    lines: tuple[int, ...]
    claimed: tuple[int, ...] = ()


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
                found.append((path, lines, history))
    found.sort(key=lambda one: -len(one[1]))
    chance = random.Random(seed)
    files = []
    for path, lines, history in found:
        file = _spread(path, lines, chance, size=len(lines) + 20)
        if claimed := _claimed(file.text, history):
            files.append(replace(file, claimed=claimed))
        if len(files) == count:
            break
    return tuple(files)


def _claimed(text: str, history: History) -> tuple[int, ...]:
    """Return the lines of a text that an editor is told a session wrote."""
    document = Document(text)
    blame(document, history)
    claims = enumerate(document.claims)
    return tuple(line for line, claim in claims if claim is not None and claim.word in FACTS)


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
