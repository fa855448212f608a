"""What sessions have to do with a file; whole files so far, not lines."""

from typing import TYPE_CHECKING

from funes_ls.indexer.errors import UsageError
from funes_ls.memories import Memories
from funes_ls.protocol import (
    RelatedAnswer,
    RelatedParams,
    RelatedSession,
)
from funes_ls.uris import path_of

if TYPE_CHECKING:
    from funes_ls.indexer.catalog import Session


def related(params: RelatedParams, memories: Memories) -> RelatedAnswer:
    """Return the sessions that touched a file, newest first.

    Raises:
        UsageError: no file is named.
        MemoryStateError: see `Memories.reading`.
    """
    from funes_ls.retrieval.related import touching

    path = file_of(params.text_document.uri if params.text_document else "", params.path)
    name = params.memory or memories.settings.memory
    with memories.reading(name) as memory:
        found = touching(memory, path)
        return RelatedAnswer(
            path=path,
            memory=name,
            generation=memory.generation,
            last_us=max((one.ended_us for one in found if one.ended_us is not None), default=None),
            total=len(found),
            sessions=tuple(_related(one, name) for one in found[: max(params.limit, 0)]),
        )


def file_of(uri: str, path: str) -> str:
    """Return the file that a request names, by its URI or by a path.

    Raises:
        UsageError: neither names a file.
    """
    found = path or path_of(uri)
    if not found:
        raise UsageError(
            "No file is named.", hint="Give `path`, or `textDocument` with a file: URI."
        )
    return found


def _related(session: "Session", memory_name: str) -> RelatedSession:
    from funes_ls.retrieval.answers import get_command

    return RelatedSession(
        session_id=session.session_id,
        harness=session.harness,
        title=session.title,
        cwd=session.cwd,
        branch=session.branch,
        started_us=session.started_us,
        ended_us=session.ended_us,
        turns=session.turns,
        relation="mentioned",
        get=get_command(session.session_id, "", memory_name=memory_name),
    )
