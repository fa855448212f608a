"""Folds copies: a passage that stands several times is one hit.

Resuming and forking copy history into new sessions, sub-agents replay their parents', streamed
answers are written again as they grow. A hit is shown once, from the session it was said in first.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from funes_ls.indexer.memory import Row
from funes_ls.retrieval.lineage import Lineage, origin_order

#: Shorter turn ids are counters that unrelated sessions share.
_TELLING_ID = 8
#: Nobody says this much twice in the same words: it was copied, or handed out (an AGENTS.md).
_TELLING_CHARS = 300


class Folded(Struct, frozen=True, kw_only=True):
    """One passage.

    Attributes:
        row: The copy to show.
        best: Index of the best-placed copy in the order that was folded.
        also_in: Other sessions that hold it, sorted.
        repeats: Further times it stands in the shown one's session.
    """

    row: Row
    best: int
    also_in: tuple[str, ...]
    repeats: int


def fold(rows: Sequence[Row], lineages: Mapping[str, Lineage]) -> list[Folded]:
    """Return the passages of rows given best first, still best first, one per turn.

    Copies have the same text, role and block type, and are of one session, of sessions that
    descend from one another, or of any sessions when they also share turn and place in it, time
    and folder, or are long. Of several passages of one turn the best stays.
    """
    groups: list[list[int]] = []
    known: dict[tuple[object, ...], int] = {}
    for index, row in enumerate(rows):
        keys = _keys(row, lineages)
        group = next((known[key] for key in keys if key in known), None)
        if group is None:
            group = len(groups)
            groups.append([])
        groups[group].append(index)
        known.update((key, group) for key in keys if key not in known)
    return _one_per_turn([_folded(rows, members, lineages) for members in groups])


def turn_key(row: Row) -> tuple[str, str, int]:
    """Return what tells turns apart, also where a trace repeats or lacks turn ids."""
    return row.session_id, row.turn_uuid, row.seq


def _keys(row: Row, lineages: Mapping[str, Lineage]) -> list[tuple[object, ...]]:
    lineage = lineages.get(row.session_id)
    family = lineage.root if lineage else row.session_id
    said = (row.role, row.block_type, row.text)
    keys: list[tuple[object, ...]] = [("family", family, *said)]
    if len(row.turn_uuid) >= _TELLING_ID:
        keys.append(("turn", row.turn_uuid, row.block_idx, row.split_idx, *said))
    if lineage and lineage.cwd and row.ts:
        keys.append(("moment", lineage.cwd, row.ts, *said))
    if len(row.text) >= _TELLING_CHARS:
        keys.append(("long", *said))
    return keys


def _folded(rows: Sequence[Row], members: list[int], lineages: Mapping[str, Lineage]) -> Folded:
    copies = [rows[index] for index in members]
    shown = min(copies, key=lambda row: _origin_order(row, lineages))
    others = {row.session_id for row in copies} - {shown.session_id}
    here = {turn_key(row) for row in copies if row.session_id == shown.session_id}
    return Folded(row=shown, best=members[0], also_in=tuple(sorted(others)), repeats=len(here) - 1)


def _origin_order(row: Row, lineages: Mapping[str, Lineage]) -> tuple[object, ...]:
    place = (row.seq, row.block_idx, row.split_idx)
    return (*origin_order(row.session_id, lineages), *place)


def _one_per_turn(passages: list[Folded]) -> list[Folded]:
    seen: set[tuple[str, str, int]] = set()
    kept: list[Folded] = []
    for passage in passages:
        key = turn_key(passage.row)
        if key not in seen:
            seen.add(key)
            kept.append(passage)
    return kept
