"""Makes facts from stored rows: of memories of older programs, of others', and after an accident.

In steps, so that who has other things to do can do them in between.
"""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from funes_ls.indexer import facts_tables as tables
from funes_ls.indexer.calls.builder import FactsBuilder
from funes_ls.indexer.calls.rows import pieces_of_rows
from funes_ls.indexer.facts import has_facts
from funes_ls.indexer.memory_read import MemoryView
from funes_ls.indexer.model import Chunk

#: Returns a text without secrets.
Clean = Callable[[str], str]
#: Sessions looked for at a time.
_MANY = 200
#: Above so many chunks a session is read in parts of so many turns.
_BIG_CHUNKS, _PART_TURNS = 1_000, 150


def rebuild_steps(memory: MemoryView, *, clean: Clean | None = None) -> Iterator[str]:
    """Make the facts of every session that has none, newest first; yield its id after a step.

    The memory is written to: the caller holds the lock of its catalog.

    Args:
        memory: Whose rows are read.
        clean: Takes secrets out, where the rows may hold some.
    """
    catalog = memory.catalog
    if not has_facts(catalog):
        return
    tried: set[str] = set()
    while left := [one for one in tables.missing(catalog, _MANY + len(tried)) if one not in tried]:
        for session_id in left[:_MANY]:
            tried.add(session_id)
            for _ in derive_steps(memory, session_id, clean=clean):
                yield session_id
    if tried:
        catalog.bump_generation()


def derive_steps(
    memory: MemoryView, session_id: str, *, clean: Clean | None = None
) -> Iterator[None]:
    """Make a session's facts anew from its rows; a big one takes many steps."""
    catalog = memory.catalog
    session = catalog.session(session_id)
    cwd = session.cwd if session else ""
    builder = FactsBuilder(clean(cwd) if clean else cwd)
    tables.begin(catalog, session_id, anew=True)
    chunks, turns = (session.chunks, session.turns) if session else (0, 0)
    for rows in _parts(memory, session_id, chunks, turns):
        pieces = pieces_of_rows(rows)
        if clean is not None:
            pieces = (replace(piece, text=clean(piece.text)) for piece in pieces)
        found = [one for piece in pieces for one in builder.add(piece)]
        with catalog.transaction():
            if tables.is_begun(catalog, session_id):  # it may have been forgotten meanwhile
                tables.add(catalog, session_id, found)
        yield
    with catalog.transaction():
        if tables.is_begun(catalog, session_id):
            tables.finish(catalog, session_id, builder.state)
    yield


def _parts(memory: MemoryView, session_id: str, chunks: int, turns: int) -> Iterator[list[Chunk]]:
    first = 0
    if chunks > _BIG_CHUNKS:
        while first < turns:
            yield [*memory.session_rows(session_id, first=first, last=first + _PART_TURNS - 1)]
            first += _PART_TURNS
    yield [*memory.session_rows(session_id, first=first or None)]
