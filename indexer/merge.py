"""Takes the rows of another memory into the home's own, with their vectors, by chunk id.

What is stored already stays as it is, what was forgotten stays away, and a row whose id is not the
one of its place is left out: under a false id it would keep a row of one's own from being stored.
A kill leaves a memory that is whole; the next run goes on where it ended.
"""

from collections.abc import Callable, Generator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from funes_ls.indexer import dataset as lance
from funes_ls.indexer import facts_tables
from funes_ls.indexer import memory_repair as repair
from funes_ls.indexer.calls.rebuild import rebuild_steps
from funes_ls.indexer.catalog import Session
from funes_ls.indexer.chunk import chunk_id
from funes_ls.indexer.dataset import Dataset
from funes_ls.indexer.memory import Memory, MemoryView
from funes_ls.indexer.memory_pinned import (
    Pinned,
    open_pinned,
    tamed,
    tamed_rows,
    told_if_damaged,
    with_told,
)
from funes_ls.indexer.model import Chunk
from funes_ls.indexer.redaction import record

#: Rows of memories made before stamps are of the model that everybody used then.
_FIRST_STAMP = "BAAI/bge-small-en-v1.5"
_BATCH_ROWS = 2_000

#: Told of rows done and rows in all; what it raises ends the merging where the memory is whole.
ToldRows = Callable[[int, int], None]


class MergeReport(Struct, kw_only=True):
    """What was taken in.

    Attributes:
        sessions: Of which rows came.
        chunks: Rows that came; `known` were here already.
        forgotten: Rows of sessions that were forgotten here.
        odd: Rows that are no chunk of the session they say they are of.
        stamp: Model of the vectors.
    """

    sessions: int = 0
    chunks: int = 0
    known: int = 0
    forgotten: int = 0
    odd: int = 0
    stamp: str = ""


def stamp_of(source: Dataset) -> str:
    """Return the model that a memory's vectors are of."""
    return source.stamp or _FIRST_STAMP


def shares_rows(view: MemoryView, source: Dataset) -> bool:
    """Return whether a row of another memory is one of these, or there are none here."""
    if not (view.embedded_count() or view.catalog.pending_count()):
        return True
    with told_if_damaged():
        for batch in source.scan(["id"]):
            ids = batch.column("id").to_pylist()
            if _known(view, [id_ for id_ in ids if id_]):
                return True
    return False


def merge_steps(
    memory: Memory, pinned: Pinned, report: MergeReport, *, told: ToldRows
) -> Generator[float, None, MergeReport]:
    """Take in what a snapshot holds, in steps; the caller may write.

    Args:
        memory: The home's own, opened for writing.
        pinned: What is taken in.
        report: Filled as it goes.
        told: See `ToldRows`.

    Raises:
        MemoryStateError: kind `wrong_model` or `wrong_width`: vectors of two models never mix.
        BackendError: kind `disk`.
    """
    source = open_pinned(pinned)
    report.stamp = stamp_of(source)
    if memory.dataset is not None:
        lance.check_model(memory.dataset, stamp=report.stamp, dim=source.dim)
    gone = memory.catalog.tombstones()
    total = source.count()
    found, _ = repair.gathered(tamed_rows(source), total)
    sessions = {name: at_home(with_told(one, pinned.told())) for name, one in found.items()}
    yield 0.0
    done = 0
    came: set[str] = set()
    for rows, vectors in source.scan_whole(batch_rows=_BATCH_ROWS):
        told(done, total)
        chosen = _chosen(memory, [tamed(row) for row in rows], gone, report)
        if chosen:
            record.note_stamp(memory.catalog, record.OFF)  # nobody has looked for secrets here
            _take(memory, [row for _, row in chosen], sessions)
            fresh = [row for _, row in chosen]
            memory.move(fresh, vectors[[at for at, _ in chosen]], stamp=report.stamp)
            came.update(row.session_id for row in fresh)
            report.sessions, report.chunks = len(came), report.chunks + len(fresh)
        done += len(rows)
        yield 0.0
    told(total, total)
    if report.chunks:
        for _ in rebuild_steps(memory):
            yield 0.0
        memory.tidy()
        memory.count_turns()
    return report


def _chosen(
    memory: Memory, rows: Sequence[Chunk], gone: frozenset[str], report: MergeReport
) -> list[tuple[int, Chunk]]:
    """Return the rows to take, each with its place in the batch."""
    known = _known(memory, [row.id for row in rows])
    chosen: list[tuple[int, Chunk]] = []
    for at, row in enumerate(rows):
        if row.id != chunk_id(row.session_id, row.turn_uuid, row.block_idx, row.split_idx):
            report.odd += 1
        elif row.session_id in gone:
            report.forgotten += 1
        elif row.id in known:
            report.known += 1
        else:
            known.add(row.id)
            chosen.append((at, row))
    return chosen


def _known(view: MemoryView, ids: Sequence[str]) -> set[str]:
    there = view.dataset.existing(ids) if view.dataset is not None else set()
    return there | view.catalog.known(ids)


def _take(memory: Memory, rows: Sequence[Chunk], sessions: dict[str, Session]) -> None:
    """Queue rows and note their sessions, in one change."""
    by_session: dict[str, list[Chunk]] = {}
    for row in rows:
        by_session.setdefault(row.session_id, []).append(row)
    catalog = memory.catalog
    with memory.one_change():
        for name, own in by_session.items():
            here = catalog.session(name)
            session = here or replace(sessions[name], chunks=0)
            facts_tables.outdate(catalog, name)
            catalog.put_session(replace(session, chunks=session.chunks + len(own)))
            memory.queue(own, started_us=session.ended_us, subagent=session.subagent)


def at_home(session: Session) -> Session:
    """Return a session whose folder is below the home directory of who reads it here."""
    if session.cwd != "~" and not session.cwd.startswith(("~/", "~\\")):
        return session
    return replace(session, cwd=str(Path.home()) + session.cwd[1:])
