"""Questions about a memory, drawn from its own texts: varied, seeded, none of them twice."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from funes_ls.indexer.memory import open_memory

_WORD = re.compile(r"[^\W_][\w'./-]*\w")
_DRAWN = 8000


class Place(Struct, frozen=True, kw_only=True):
    """A turn that is there."""

    session_id: str
    turn_uuid: str


class Drawn(Struct, frozen=True, kw_only=True):
    """What was drawn from a memory: questions, turns, and files that sessions touched."""

    questions: Iterator[str]
    places: tuple[Place, ...]
    files: tuple[str, ...]


def draw(home: Path, *, seed: int) -> Drawn:
    """Return questions, turns and files of the memory in a home, in random order."""
    chance = random.Random(seed)
    with open_memory(home / "memory", derived=home / "derived") as memory:
        if memory.dataset is None:
            raise SystemExit(f"The memory of {home} has no vectors yet.")
        rows = _some_rows(memory.dataset.scan(("session_id", "turn_uuid", "text")), chance)
        sessions = sorted({session for session, _, _ in rows})[:400]
        files = sorted({path for one in sessions for path in memory.catalog.files(one)})
    chance.shuffle(files)
    return Drawn(
        questions=questions_of([text for _, _, text in rows], chance),
        places=tuple(Place(session_id=session, turn_uuid=turn) for session, turn, _ in rows),
        files=tuple(path for path in files if path.startswith("/"))[:400],
    )


def _some_rows(batches: Iterator[object], chance: random.Random) -> list[tuple[str, str, str]]:
    """Return a sample of rows, each as likely as any other."""
    kept: list[tuple[str, str, str]] = []
    seen = 0
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]  # type: ignore[attr-defined]
        for row in zip(*columns, strict=True):
            seen += 1
            if len(kept) < _DRAWN:
                kept.append(row)
            elif (place := chance.randrange(seen)) < _DRAWN:
                kept[place] = row
    chance.shuffle(kept)
    return kept


def questions_of(texts: list[str], chance: random.Random) -> Iterator[str]:
    """Yield a run of words, scattered words, and words in a sentence, in turn; none twice."""
    asked: set[str] = set()
    for number, text in enumerate(texts):
        words = _WORD.findall(text[:2000])
        if len(words) < 8:
            continue
        first = chance.randrange(len(words) - 6)
        run = words[first : first + chance.randrange(4, 12)]
        scattered = chance.sample(words, 4)
        question = (
            " ".join(run),
            " ".join(scattered),
            f"what did we do about {scattered[0]} when {' '.join(run[:4])} failed?",
        )[number % 3]
        if question not in asked:
            asked.add(question)
            yield question
