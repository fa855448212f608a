"""Tells of a hit that its subject came up again later, so that it is not taken for the last word.

Later: another session changed a file that was changed around the hit, or said nearly the same. The
latest such place is named.
"""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from funes_ls.indexer.embedding import MINILM_INT8_STAMP, MINILM_STAMP
from funes_ls.indexer.facts import CHANGES, Facts
from funes_ls.indexer.memory import MemoryView, Row
from funes_ls.indexer.times import format_us, parse_ts
from funes_ls.retrieval.answers import Hit, Revisit, get_command

#: What belongs to a hit: changes so many steps before and after it.
_STEPS_BEFORE, _STEPS_AFTER = 1, 6
#: Files of one hit that are looked at.
_MOST_FILES = 20
#: Less than this later is still the same piece of work; within one session, less than a day.
_LATER_US = 3_600_000_000
_LATER_HERE_US = 24 * _LATER_US
#: Passages that a hit is compared with, and from which cosine on two say nearly the same.
_MOST_PASSAGES = 100
_ALIKE = 0.8
_FITTED = frozenset({MINILM_STAMP, MINILM_INT8_STAMP})


def with_revisits(
    hits: Sequence[Hit], rows: Sequence[Row], memory: MemoryView, *, memory_name: str
) -> tuple[Hit, ...]:
    """Return hits with the latest later place where what they are about came up again.

    Args:
        hits: Of an answer.
        rows: Passages that were found for the same question, best first.
        memory: Where they were found.
        memory_name: How the asker named it.
    """
    alike = _said_again(hits, rows[:_MOST_PASSAGES], memory)
    marked = []
    for n, hit in enumerate(hits):
        found = [one for one in (_changed_again(hit, memory), alike.get(n)) if one is not None]
        latest = max(found, key=lambda one: one.ts, default=None)
        if latest is not None:
            get = get_command(latest.session_id, latest.turn_uuid, memory_name=memory_name)
            hit = replace(hit, revisited=replace(latest, get=get))
        marked.append(hit)
    return tuple(marked)


def _changed_again(hit: Hit, memory: MemoryView) -> Revisit | None:
    """Return the latest later change of a file that was changed around a hit."""
    at = parse_ts(hit.ts)
    if at is None:
        return None
    facts = Facts(memory.catalog)
    near = facts.changed_near(hit.session_id, hit.seq - _STEPS_BEFORE, hit.seq + _STEPS_AFTER)
    paths = dict(near[:_MOST_FILES])
    later = [
        touch
        for touch in facts.touched(list(paths))
        if touch.kind in CHANGES
        and touch.last_us is not None
        and _is_later(touch.last_us, touch.session_id, at, hit)
    ]
    if not later:
        return None
    last = max(later, key=lambda touch: touch.last_us or 0)
    return Revisit(
        how="file",
        session_id=last.session_id,
        turn_uuid=last.last_turn_uuid,
        ts=format_us(last.last_us),
        path=paths[last.path_id],
    )


def _said_again(hits: Sequence[Hit], rows: Sequence[Row], memory: MemoryView) -> dict[int, Revisit]:
    """Return, by the place of a hit, the latest later passage that says nearly the same."""
    held = memory.vectors()
    stamp = memory.dataset.stamp if memory.dataset is not None else ""
    if held is None or stamp not in _FITTED:
        return {}
    said = [row for row in rows if row.block_type == "text" and row.embedded and row.ts_us]
    places = held.places([row.id for row in said])
    known = [(row, place) for row, place in zip(said, places, strict=True) if place is not None]
    if not known:
        return {}
    vectors = held.vectors(np.array([place for _, place in known]))
    turns = {(row.session_id, row.turn_uuid): n for n, (row, _) in enumerate(known)}
    found: dict[int, Revisit] = {}
    for n, hit in enumerate(hits):
        own, at = turns.get((hit.session_id, hit.turn_uuid)), parse_ts(hit.ts)
        if own is None or at is None:
            continue
        near = np.flatnonzero(vectors @ vectors[own] >= _ALIKE)
        later = [
            row
            for row in (known[int(place)][0] for place in near)
            if row.ts_us is not None and _is_later(row.ts_us, row.session_id, at, hit)
        ]
        if later:
            last = max(later, key=lambda row: row.ts_us or 0)
            found[n] = Revisit(
                how="passage",
                session_id=last.session_id,
                turn_uuid=last.turn_uuid,
                ts=format_us(last.ts_us),
            )
    return found


def _is_later(when: int, session_id: str, at: int, hit: Hit) -> bool:
    here = session_id == hit.session_id
    return when - at >= (_LATER_HERE_US if here else _LATER_US)
