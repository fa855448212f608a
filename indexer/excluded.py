"""What the catalog knows of sessions that are kept out: enough to see when they may come back."""

import msgspec
from msgspec import Struct

from funes_ls.indexer import facts_tables, purge
from funes_ls.indexer.catalog import Catalog, Source
from funes_ls.indexer.exclude import BY_MARKER, BY_PARENT, Exclusion
from funes_ls.indexer.forget import with_subagents
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.model import SessionMeta
from funes_ls.indexer.traces.base import Unit

#: Start of the keys of the catalog that tell of a trace each.
_KEY = "excluded:"


class Excluded(Struct, frozen=True, kw_only=True):
    """Why a trace is kept out.

    Attributes:
        cwd: Where it ran, without secrets.
        parent: The session it is a sub-agent of.
    """

    reason: str
    session_id: str = ""
    cwd: str = ""
    parent: str = ""


def note(catalog: Catalog, key: str, excluded: Excluded) -> None:
    """Note that a trace is kept out."""
    catalog.put(_KEY + key, msgspec.json.encode(excluded).decode())


def unnote(catalog: Catalog, key: str) -> None:
    """Note that a trace is not, or no more."""
    catalog.change("DELETE FROM kv WHERE key = ?", (_KEY + key,))


def count(catalog: Catalog) -> int:
    """Return how many traces are kept out."""
    return int(catalog.select("SELECT count(*) FROM kv WHERE key >= ? AND key < ?", _RANGE)[0][0])


_RANGE = (_KEY, _KEY[:-1] + chr(ord(_KEY[-1]) + 1))


class KeptOut(Struct, frozen=True, kw_only=True):
    """A trace that is kept out, where it lies, and why; see `Excluded`."""

    path: str
    session_id: str
    cwd: str
    reason: str


def listed(catalog: Catalog) -> list[KeptOut]:
    """Return the traces that are kept out, by path."""
    rows = catalog.select("SELECT key, value FROM kv WHERE key >= ? AND key < ?", _RANGE)
    found = []
    for key, value in rows:
        if (why := _decoded(value)) is not None:
            source = catalog.source(key.removeprefix(_KEY))
            found.append(
                KeptOut(
                    path=source.path if source else "",
                    session_id=why.session_id,
                    cwd=why.cwd,
                    reason=why.reason,
                )
            )
    return sorted(found, key=lambda one: (one.path, one.session_id))


def known(catalog: Catalog, key: str) -> Excluded | None:
    """Return why a trace was kept out when it was last read, None when it was not."""
    return _decoded(catalog.get(_KEY + key))


def sessions(catalog: Catalog) -> set[str]:
    """Return the ids of sessions that are kept out."""
    rows = catalog.select("SELECT value FROM kv WHERE key >= ? AND key < ?", _RANGE)
    found = (_decoded(value) for (value,) in rows)
    return {one.session_id for one in found if one is not None} - {""}


def _decoded(value: object) -> Excluded | None:
    if not isinstance(value, str):
        return None
    try:
        return msgspec.json.decode(value, type=Excluded)
    except msgspec.MsgspecError:
        return None


def stays_out(unit: Unit, excluded: Excluded, exclusion: Exclusion, catalog: Catalog) -> bool:
    """Return whether a trace that has not changed since is still kept out."""
    if excluded.reason == BY_MARKER:
        return True
    if excluded.reason == BY_PARENT:
        return excluded.parent in sessions(catalog)
    return bool(exclusion.reason(cwd=excluded.cwd, unit=unit))


def reason_of(exclusion: Exclusion, catalog: Catalog, meta: SessionMeta, unit: Unit) -> str:
    """Return why a session is kept out by what its trace says at its start, "" when it is not."""
    reason = exclusion.reason(cwd=meta.cwd, unit=unit)
    if not reason and meta.link == "subagent" and meta.parent_id in sessions(catalog):
        return BY_PARENT
    return reason


class Folders:
    """Tells of sessions that are stored whether they are to be kept out by now."""

    def __init__(self, catalog: Catalog, exclusion: Exclusion) -> None:
        """Read where every session ran."""
        self._cwds = dict(catalog.select("SELECT session_id, cwd FROM sessions"))
        self._exclusion = exclusion

    def reason(self, unit: Unit, session_id: str) -> str:
        """Return why a session is to be kept out, "" when it is not, or is not stored."""
        cwd = self._cwds.get(session_id)
        return "" if cwd is None else self._exclusion.reason(cwd=cwd, unit=unit)


def keep_out(memory: Memory, source: Source, excluded: Excluded) -> int:
    """Take a session out with what its sub-agents left; return how many rows that were.

    Unlike one that was forgotten it comes back when nothing keeps it out any more.
    """
    catalog, removed = memory.catalog, 0
    stored = catalog.session(excluded.session_id)
    names = [one.session_id for one in with_subagents([stored] if stored else [], catalog)]
    for session_id in names or [excluded.session_id]:
        ids = [row.id for row in memory.session_rows(session_id)]
        if ids:
            purge.expect(memory)
            memory.remove(ids)
        with catalog.transaction():
            facts_tables.forget(catalog, session_id)
            catalog.forget_session(session_id)
        removed += len(ids)
    with catalog.transaction():
        catalog.put_source(source)
        note(catalog, source.key, excluded)
    return removed
