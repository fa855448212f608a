"""Lists sessions for `funes sessions`."""

from datetime import tzinfo

from msgspec import Struct

from funes_ls.indexer.catalog import Session
from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.memory import MemoryView
from funes_ls.retrieval.answers import RecallFilter
from funes_ls.retrieval.filters import harness_facet, matching_sessions
from funes_ls.retrieval.timespec import time_range


class SessionsRequest(Struct, frozen=True, kw_only=True):
    """Which sessions to list.

    Attributes:
        filter: Its session part; a type or a tool is of rows and is refused.
        text: Words the title must hold.
        limit: How many; 0 for all.
        offset: How many to skip.
    """

    filter: RecallFilter = RecallFilter()
    text: str = ""
    limit: int = 50
    offset: int = 0


class SessionsAnswer(Struct, frozen=True, kw_only=True):
    """A page of sessions, newest first; `total` counts all that match.

    Attributes:
        memory: The one that was really read.
        note: What a person should know of that, "" when there is nothing to say.
    """

    total: int
    sessions: tuple[Session, ...]
    memory: str = "local"
    note: str = ""


def list_sessions(
    request: SessionsRequest, memory: MemoryView, *, now_us: int, zone: tzinfo | None = None
) -> SessionsAnswer:
    """Return the sessions of a memory that a filter lets through.

    Raises:
        UsageError: A filter means nothing, or nothing for sessions.
        MemoryStateError: The memory does not record harnesses.
    """
    wanted = request.filter
    if wanted.block_type or wanted.tool:
        raise UsageError("Sessions have no block type and no tool; those filter `funes recall`.")
    since_us, until_us = time_range(wanted.since, wanted.until, now_us=now_us, zone=zone)
    found = matching_sessions(
        wanted,
        memory.catalog,
        title=request.text,
        harness=harness_facet(wanted.harness, memory.catalog) if wanted.harness else "",
        since_us=since_us,
        until_us=until_us,
    )
    first = max(request.offset, 0)
    page = found[first : first + request.limit] if request.limit > 0 else found[first:]
    return SessionsAnswer(total=len(found), sessions=tuple(page))
