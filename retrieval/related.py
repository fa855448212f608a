"""Finds the sessions that have to do with a file, by what their calls did to it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from funes_ls.indexer.catalog import Catalog, Session
from funes_ls.indexer.facts import CHANGES, Facts, Touch
from funes_ls.indexer.memory import MemoryView
from funes_ls.retrieval.paths import normal
from funes_ls.retrieval.same_file import (
    Asked,
    places_of,
    same_file,
    strength_of,
    with_places,
    with_sources,
)

Relation = Literal["edited", "read", "mentioned", "symbols", "similar"]
#: From the strongest down.
ORDER: tuple[Relation, ...] = ("edited", "read", "mentioned", "symbols", "similar")


class Related(Struct, frozen=True, kw_only=True):
    """A session that has to do with a file.

    Attributes:
        relation: The strongest there is.
        edits, reads, mentions: How often its calls changed, read and named the file.
        last_us: When it last had to do with the file.
        turn_uuid: The turn that says most about it, "" where none stands out.
        text: What is said there, "" where it is to be looked up.
        score: How much what was said has to do with the file, where nothing was done to it.
    """

    session_id: str
    relation: Relation
    edits: int = 0
    reads: int = 0
    mentions: int = 0
    last_us: int | None = None
    turn_uuid: str = ""
    text: str = ""
    score: float = 0.0


def by_facts(memory: MemoryView, asked: Asked) -> list[Related]:
    """Return the sessions whose calls had to do with a file, strongest relation first.

    Args:
        memory: One moment of it.
        asked: The file; a folder finds nothing.
    """
    facts = Facts(memory.catalog)
    paths = [path.path_id for path in same_file(facts, memory.catalog, asked).all]
    touches: dict[str, list[Touch]] = defaultdict(list)
    for touch in facts.touched(with_sources(facts, paths)):
        touches[touch.session_id].append(touch)
    found = [_related(session_id, of_it) for session_id, of_it in touches.items()]
    # A call that failed, or whose facts are not made yet, still named the file.
    found += [
        Related(session_id=one.session_id, relation="mentioned", mentions=1, last_us=one.ended_us)
        for one in _naming(memory.catalog, asked)
        if one.session_id not in touches
    ]
    return ranked(found)


def ranked(found: Iterable[Related]) -> list[Related]:
    """Return sessions in the order of their relation; within one, the newest first."""
    return sorted(
        found,
        key=lambda one: (
            ORDER.index(one.relation),
            -one.score,
            -(one.last_us or 0),
            one.session_id,
        ),
    )


def _related(session_id: str, touches: Sequence[Touch]) -> Related:
    edits = [one for one in touches if one.kind in CHANGES]
    reads = [one for one in touches if one.kind == "read"]
    rest = [one for one in touches if one not in edits and one not in reads]
    strongest = max(edits or reads or rest, key=lambda one: (one.last_us or 0, one.last_seq))
    relation: Relation = "edited" if edits else "read" if reads else "mentioned"
    return Related(
        session_id=session_id,
        relation=relation,
        edits=sum(one.count for one in edits),
        reads=sum(one.count for one in reads),
        mentions=sum(one.count for one in rest),
        last_us=max((one.last_us for one in touches if one.last_us is not None), default=None),
        turn_uuid=strongest.last_ask_turn_uuid or strongest.last_turn_uuid,
    )


def _naming(catalog: Catalog, asked: Asked) -> list[Session]:
    """Return the sessions of which a call named the file as its target."""
    named = [one for name in asked.names if name for one in catalog.files_named(name)]
    if not named:
        return []
    places = places_of(catalog)
    asked = with_places(asked, places)
    found = {
        session.session_id: session
        for session, written in named
        if strength_of(
            asked, normal(written, base=session.cwd), repos=session.repo.split(), places=places
        )
        in ("same", "repo")
    }
    return list(found.values())
