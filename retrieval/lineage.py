"""How sessions descend from one another, as far as folding needs to know."""

from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from funes_ls.indexer.catalog import Catalog

_DEEPEST = 64


class Lineage(Struct, frozen=True, kw_only=True):
    """Where a session stands among its relatives.

    Attributes:
        cwd: The folder it ran in, "" when unknown.
        parent_id: The session it was forked, continued or sent out from, "" when none.
        root: The oldest known ancestor, itself when it has none.
        started_us: UTC microseconds, None when unknown.
    """

    session_id: str
    cwd: str = ""
    subagent: bool = False
    parent_id: str = ""
    root: str = ""
    started_us: int | None = None
    ended_us: int | None = None


def lineages_of(session_ids: Iterable[str], catalog: Catalog) -> dict[str, Lineage]:
    """Return how sessions and their ancestors descend from one another."""
    found: dict[str, Lineage] = {}
    wanted = sorted(session_ids)
    for _ in range(_DEEPEST):
        sessions = [session for id_ in wanted if (session := catalog.session(id_)) is not None]
        found.update(
            (
                one.session_id,
                Lineage(
                    session_id=one.session_id,
                    cwd=one.cwd,
                    subagent=one.subagent,
                    parent_id=one.parent_id,
                    started_us=one.started_us,
                    ended_us=one.ended_us,
                ),
            )
            for one in sessions
        )
        wanted = sorted({one.parent_id for one in sessions if one.parent_id} - found.keys())
        if not wanted:
            break
    return with_roots(found.values())


def origin_order(session_id: str, lineages: Mapping[str, Lineage]) -> tuple[object, ...]:
    """Sort the session in which something was said or done before the ones that copied it."""
    lineage = lineages.get(session_id) or Lineage(session_id=session_id)
    unknown = float("inf")
    return (
        lineage.subagent,
        bool(lineage.parent_id),
        unknown if lineage.started_us is None else lineage.started_us,
        unknown if lineage.ended_us is None else lineage.ended_us,
        session_id,
    )


def with_roots(sessions: Iterable[Lineage]) -> dict[str, Lineage]:
    """Return the sessions by id with `root` filled in; loops and long chains end quietly."""
    by_id = {session.session_id: session for session in sessions}
    return {
        session_id: structs.replace(session, root=_root(session, by_id))
        for session_id, session in by_id.items()
    }


def _root(session: Lineage, by_id: dict[str, Lineage]) -> str:
    """Return the last id up the chain of parents; an unknown parent still joins siblings."""
    trail = {session.session_id}
    here = session.session_id
    for _ in range(_DEEPEST):
        known = by_id.get(here)
        if known is None or not known.parent_id:
            return here
        if known.parent_id in trail:
            return min(trail)
        here = known.parent_id
        trail.add(here)
    return here
