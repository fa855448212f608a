"""Takes sessions out of a memory for good: rows, facts, bytes, and every way back in."""

import hashlib
from collections.abc import Generator, Sequence
from pathlib import Path

from msgspec import Struct

from funes_ls.indexer import purge
from funes_ls.indexer.catalog import Catalog, Session
from funes_ls.indexer.chunk import chunks_of
from funes_ls.indexer.crash_marks import drop_marks
from funes_ls.indexer.memory import Memory, MemoryView
from funes_ls.indexer.model import Chunk, SessionMeta, Turn, path_text
from funes_ls.indexer.redaction import record

#: Sessions taken out as one change.
_AT_ONCE = 20
#: Between a session's id and the mark that tells it from another living trace's.
_MARK = "@"


class Forgotten(Struct, frozen=True, kw_only=True):
    """What was taken out.

    Attributes:
        pure: Whether no byte of it is left; False while another process reads old pages, or when
            it was stopped before the end. The next writer sees to it.
    """

    sessions: int
    chunks: int
    pure: bool


def with_subagents(chosen: Sequence[Session], catalog: Catalog) -> list[Session]:
    """Return sessions with all that their sub-agents left, each once, the chosen ones first."""
    found = {one.session_id: one for one in chosen}
    children: dict[str, list[Session]] = {}
    for one in catalog.sessions():
        if one.subagent and one.parent_id:
            children.setdefault(one.parent_id, []).append(one)
    todo = list(chosen)
    while todo:
        parent = todo.pop()
        for name in {parent.session_id, parent.inner_id} - {""}:
            for child in children.get(name, ()):
                if child.session_id not in found:
                    found[child.session_id] = child
                    todo.append(child)
    return list(found.values())


def forget_steps(
    memory: Memory, home: Path, session_ids: Sequence[str], *, told: purge.Told
) -> Generator[float, None, Forgotten]:
    """Take sessions out of a home's memory, then see to their bytes.

    Rows are gone after the first steps; nothing else may be written before the last one.

    Args:
        memory: Open for writing.
        home: Whose memory it is.
        session_ids: Sessions of the memory.
        told: See `purge.Told`.

    Raises:
        BackendError: kind `disk`.
    """
    purge.expect(memory)
    catalog, chunks = memory.catalog, 0
    sessions = [one for one in map(catalog.session, session_ids) if one is not None]
    sources = [one for name in session_ids for one in catalog.session_sources(name)]
    going = set(session_ids)
    staying = {_start(one) for one in catalog.sessions() if one.session_id not in going}
    for start in range(0, len(session_ids), _AT_ONCE):
        part = sessions[start : start + _AT_ONCE]
        names = _other_names(part, memory, going, staying)
        chunks += memory.forget_sessions(session_ids[start : start + _AT_ONCE], names=names)
        yield 0.0
    for path in {path_text(one.path) for one in sources} | {one.key for one in sources}:
        catalog.put_problems(path, ())
    for one in sources:
        record.add_counts(catalog, {}, record.taken_out(one))
    drop_marks(home / "run", {one.key for one in sources})
    purge.clean_logs(home, purge.without_names(session_ids))
    yield 0.0
    pure = yield from purge.purge_steps(memory, home, told=told)
    return Forgotten(sessions=len(session_ids), chunks=chunks, pure=pure)


def _other_names(
    sessions: Sequence[Session],
    memory: MemoryView,
    going: set[str],
    staying: set[tuple[str, int | None]],
) -> list[str]:
    """Return what else the sessions' traces may be known by, what is others' too left out."""
    names: set[str] = set()
    for one in sessions:
        plain = one.session_id.partition(_MARK)[0]
        if plain not in going and memory.catalog.session(plain) is None:
            names.add(plain)
        first = next(iter(memory.session_rows(one.session_id)), None)
        if first is not None and _start(one) not in staying:  # a fork begins as its original does
            names.add(beginning(first))
    return sorted(names)


def _start(session: Session) -> tuple[str, int | None]:
    return session.title, session.started_us


def beginning(first: Chunk) -> str:
    """Return what the copies of a session have in common, from the first of its chunks."""
    said = "\0".join((first.turn_uuid, first.ts, first.text))
    return f"begins:{hashlib.sha256(said.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def is_forgotten(catalog: Catalog, stored_as: str, turn: Turn, meta: SessionMeta) -> bool:
    """Tell whether a trace is of a session that was forgotten, wherever it lies by now.

    Args:
        catalog: Knows what was forgotten.
        stored_as: The id that the session would be stored under.
        turn: The first one of its trace.
        meta: What the trace says of its session.
    """
    gone = catalog.tombstones()
    if not gone or stored_as in gone:
        return bool(gone)
    if catalog.session(stored_as) is not None:  # what is there was not forgotten with the others
        return False
    names = {turn.session_id, meta.inner_id}
    if meta.link == "subagent":
        names.add(meta.parent_id)
    first = next(chunks_of(turn), None)
    if first is not None:
        names.add(beginning(first))
    return not gone.isdisjoint(names)
