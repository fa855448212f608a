"""Questions that a memory holds itself: what people asked, and what was said to it.

Nobody has labelled them, so they are many and rough: a question is what a user said, and whatever
was answered until the next one counts as right. The question itself, its turn and all that repeats
it are out of the search, as if it had not been asked before.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.quality.measures import Gold, Labelled
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.model import Chunk
from funes_ls.retrieval import recall
from funes_ls.retrieval.fuse import Leg

#: Characters a question has, and words of letters at the least.
_SHORTEST, _LONGEST, _WORDS = 25, 400, 4
#: A reply that is shorter than this says nothing that could be looked for.
_REPLY_CHARS = 80
#: So much of a question, in what another user's turn says, makes that a copy.
_COPIED_CHARS = 60
#: Steps after a question that are looked at.
_STEPS = 200
#: What harnesses write in a user's name.
_NOT_SAID = re.compile(r"^\s*<|Caveat:|\[Request interrupted")
_SEED = 1


def replies(memory: Memory, *, most: int) -> list[Labelled]:
    """Return up to so many questions about a memory, the same ones for the same memory."""
    rows = [row for batch in memory.dataset.scan_rows() for row in batch] if memory.dataset else []
    sessions: dict[str, list[Chunk]] = defaultdict(list)
    users = [row for row in rows if row.role == "user"]
    for row in rows:
        sessions[row.session_id].append(row)
    found = [one for session in sessions.values() for one in _of_session(session)]
    known: dict[str, tuple[Chunk, Labelled]] = {one[1].query: one for one in reversed(found)}
    chosen = sorted(known.values(), key=lambda one: one[1].qid)
    random.Random(_SEED).shuffle(chosen)
    return [
        Labelled(
            qid=one.qid,
            query=one.query,
            gold=one.gold,
            without=frozenset(_repeats(asked, sessions[asked.session_id], users, rows)),
        )
        for asked, one in chosen[:most]
    ]


@contextmanager
def left_out(ids: frozenset[str]) -> Iterator[None]:
    """Search as if these rows were not there."""
    words, vectors = recall._words, recall.vector_leg

    def fewer_words(*args: Any) -> Any:
        found = words(*args)
        return type(found)(leg=_fewer(found.leg, ids), state=found.state, limit=found.limit)

    def fewer_vectors(*args: Any) -> Any:
        leg, state = vectors(*args)
        return _fewer(leg, ids), state

    recall._words, recall.vector_leg = fewer_words, fewer_vectors
    try:
        yield
    finally:
        recall._words, recall.vector_leg = words, vectors


def _of_session(rows: Sequence[Chunk]) -> Iterator[tuple[Chunk, Labelled]]:
    said = sorted(rows, key=lambda row: (row.seq, row.block_idx, row.split_idx))
    users = [r for r in said if r.role == "user" and r.block_type == "text" and not r.split_idx]
    for place, asked in enumerate(users):
        if not _is_question(asked.text):
            continue
        later = users[place + 1].seq if place + 1 < len(users) else asked.seq + _STEPS
        gold = tuple(
            Gold(session_id=row.session_id, turn_uuid=row.turn_uuid, quote=row.text[:200])
            for row in said
            if asked.seq < row.seq < min(later, asked.seq + _STEPS)
            and row.role == "assistant"
            and row.block_type == "text"
            and len(row.text) >= _REPLY_CHARS
        )
        if gold:
            qid = f"{asked.session_id}-{asked.seq}"
            yield asked, Labelled(qid=qid, query=asked.text.strip(), gold=gold)


def _is_question(text: str) -> bool:
    said = text.strip()
    is_sized = _SHORTEST <= len(said) <= _LONGEST
    return (
        is_sized and not _NOT_SAID.search(said) and len(re.findall(r"[^\W\d_]{3,}", said)) >= _WORDS
    )


def _repeats(
    asked: Chunk, session: Sequence[Chunk], users: Sequence[Chunk], rows: Sequence[Chunk]
) -> Iterator[str]:
    start = asked.text.strip()[:_COPIED_CHARS]
    yield from (row.id for row in session if row.seq == asked.seq)
    yield from (row.id for row in users if start in row.text)
    yield from (row.id for row in rows if row.text == asked.text)


def _fewer(leg: Leg | None, ids: frozenset[str]) -> Leg | None:
    if leg is None:
        return None
    kept = [place for place, id_ in enumerate(leg.ids) if id_ not in ids]
    return Leg(ids=[leg.ids[place] for place in kept], scores=leg.scores[kept])
