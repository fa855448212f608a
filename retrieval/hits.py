"""Makes hits of the best passages: final forms, neighbours, and where each comes from."""

from collections.abc import Sequence

from funes_ls.indexer.catalog import Session
from funes_ls.indexer.memory import MemoryView, Row
from funes_ls.indexer.times import format_us, parse_ts
from funes_ls.retrieval.answers import Hit, get_command
from funes_ls.retrieval.fold import turn_key
from funes_ls.retrieval.neighbours import neighbours
from funes_ls.retrieval.plan import Plan
from funes_ls.retrieval.rank import Ranked
from funes_ls.retrieval.streamed import final_form
from funes_ls.retrieval.surroundings import Surroundings

#: Passages whose surroundings are read at once; few are skipped, so the default k fits.
_AHEAD = 10


def hits_of(work: Plan, memory: MemoryView, passages: Sequence[Ranked]) -> tuple[Hit, ...]:
    """Return the first `k` passages as hits; one whose final form is already there is skipped."""
    seen: set[tuple[str, str, int]] = set()
    hits: list[Hit] = []
    around = Surroundings(memory, steps=work.request.neighbors)
    for place, passage in enumerate(passages):
        if len(hits) == work.request.k:
            break
        if place % _AHEAD == 0:
            around.read([ahead.row for ahead in passages[place : place + _AHEAD]])
        row = final_form(passage.row, around.of(passage.row))
        if turn_key(row) in seen:
            continue
        seen.add(turn_key(row))
        hits.append(_hit(work, memory, passage, row, around, rank=len(hits) + 1))
    return tuple(hits)


def shown_ts(row: Row) -> str:
    """Return the recorded time when it is a date, else the nearest known one as ISO, else ""."""
    at = parse_ts(row.ts)
    # Bare numbers (epoch seconds or milliseconds) are times, but no person reads them.
    return (
        row.ts if at is not None and "-" in row.ts else format_us(row.ts_us if at is None else at)
    )


def _hit(
    work: Plan, memory: MemoryView, passage: Ranked, row: Row, around: Surroundings, *, rank: int
) -> Hit:
    request = work.request
    session = memory.catalog.session(row.session_id) or Session(session_id=row.session_id)
    return Hit(
        rank=rank,
        score=round(passage.score, 4),
        session_id=row.session_id,
        inner_id=session.inner_id,
        turn_uuid=row.turn_uuid,
        seq=row.seq,
        ts=shown_ts(row),
        age_s=None if row.ts_us is None else max(0, (work.now_us - row.ts_us) // 1_000_000),
        harness=row.harness or session.harness,
        workdir=row.workdir,
        cwd=session.cwd,
        repo=row.repo or session.repo,
        branch=session.branch,
        title=session.title,
        role=row.role,
        block_type=row.block_type,
        tool_name=row.tool_name,
        text=row.text,
        embedded=row.embedded,
        also_in=passage.also_in,
        repeats=passage.repeats,
        neighbors=neighbours(row, around.of(row), steps=request.neighbors),
        get=get_command(row.session_id, row.turn_uuid, memory_name=request.memory_name),
        memory=request.memory_name or "local",
        explain=passage.explain,
    )
