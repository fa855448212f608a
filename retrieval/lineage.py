"""How sessions descend from one another, as far as folding needs to know."""

from collections.abc import Iterable

from msgspec import Struct, structs

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
