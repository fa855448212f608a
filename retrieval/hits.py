"""Makes hits of the best passages: final forms, neighbours, and where each comes from."""

from collections.abc import Sequence

from funes_ls.indexer.catalog import Session
from funes_ls.indexer.memory import Memory, Row
from funes_ls.indexer.times import format_us, parse_ts
from funes_ls.retrieval.answers import Hit, get_command
from funes_ls.retrieval.fold import turn_key
from funes_ls.retrieval.neighbours import neighbours
from funes_ls.retrieval.plan import Plan
from funes_ls.retrieval.rank import Ranked
from funes_ls.retrieval.streamed import WITHIN_SEQS, final_form


def hits_of(work: Plan, memory: Memory, passages: Sequence[Ranked]) -> tuple[Hit, ...]:
    """Return the first `k` passages as hits; one whose final form is already there is skipped."""
    seen: set[tuple[str, str, int]] = set()
    hits: list[Hit] = []
    around = Surroundings(memory)
    for passage in passages:
        if len(hits) == work.request.k:
            break
        row = final_form(passage.row, around.after(passage.row))
        if turn_key(row) in seen:
            continue
        seen.add(turn_key(row))
        hits.append(_hit(work, memory, passage, row, around, rank=len(hits) + 1))
    return tuple(hits)


class Surroundings:
    """Reads the rows around hits, each session once per answer."""

    def __init__(self, memory: Memory) -> None:
        """Read from this memory."""
        self._memory = memory
        self._sessions: dict[str, list[Row]] = {}

    def after(self, row: Row) -> list[Row]:
        """Return the rows that may hold a streamed answer's later snapshots."""
        if row.role != "assistant":
            return []
        return [
            near
            for near in self.session(row.session_id)
            if row.seq <= near.seq <= row.seq + WITHIN_SEQS
        ]

    def session(self, session_id: str) -> list[Row]:
        """Return a session's rows in reading order."""
        if session_id not in self._sessions:
            self._sessions[session_id] = self._memory.session_rows(session_id)
        return self._sessions[session_id]


def shown_ts(row: Row) -> str:
    """Return the recorded time when it is one, else the nearest known time, else ""."""
    return row.ts if parse_ts(row.ts) is not None else format_us(row.ts_us)


def _hit(
    work: Plan, memory: Memory, passage: Ranked, row: Row, around: Surroundings, *, rank: int
) -> Hit:
    request = work.request
    session = memory.catalog.session(row.session_id) or Session(session_id=row.session_id)
    steps = request.neighbors
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
        neighbors=neighbours(row, around.session(row.session_id), steps=steps) if steps else (),
        get=get_command(row.session_id, row.turn_uuid, memory_name=request.memory_name),
        explain=passage.explain,
    )
