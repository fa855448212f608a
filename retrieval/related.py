"""Finds the sessions that have to do with a file."""

from funes_ls.indexer.catalog import Session
from funes_ls.indexer.catalog_filters import SessionFilter
from funes_ls.indexer.memory import MemoryView
from funes_ls.retrieval.filters import touched
from funes_ls.retrieval.paths import normal


def touching(memory: MemoryView, path: str) -> list[Session]:
    """Return the sessions that touched a file, newest first.

    Args:
        memory: Where they are listed.
        path: Absolute, or the last names of one; folders find nothing.
    """
    name = normal(path)
    near = memory.catalog.session_ids(SessionFilter(path=name.rsplit("/", 1)[-1]))
    near |= memory.catalog.session_ids(SessionFilter(path=name))
    if not near:
        return []
    found = (memory.catalog.session(session_id) for session_id in near)
    named = [one for one in found if one is not None and touched(one, name, memory.catalog)]
    return sorted(named, key=lambda one: (-(one.ended_us or 0), one.session_id))
