"""Shows a turn whole, with the turns around it."""

from collections.abc import Iterable, Sequence

from funes_ls.indexer.catalog import Session
from funes_ls.indexer.chunk import join_pieces
from funes_ls.indexer.facts import Facts
from funes_ls.indexer.memory import MemoryView, Row
from funes_ls.retrieval.answers import GetAnswer, TurnBlock, TurnView
from funes_ls.retrieval.filters import find_session
from funes_ls.retrieval.hits import shown_ts
from funes_ls.retrieval.reopen import reopen_command

TurnKey = tuple[int, str]
_MOST_FILES = 200


def get(
    session_id: str,
    turn_uuid: str,
    memory: MemoryView,
    *,
    window: int = 3,
    memory_name: str = "local",
) -> GetAnswer:
    """Return a turn and the turns within `window` sequence steps, in the order of the trace.

    Args:
        session_id: In full, or the start of exactly one (the id the harness uses will do).
        turn_uuid: In full, or the start of exactly one of the session's; "" is its first turn.
        memory: Where to look.
        window: Steps on both sides; 0 shows the turn alone.
        memory_name: How the memory was named by the asker.

    Raises:
        UsageError: The session id fits several sessions.
    """
    with memory.snapshot() as now:
        return _get(session_id, turn_uuid, now, window=window, memory_name=memory_name)


def _get(
    session_id: str, turn_uuid: str, memory: MemoryView, *, window: int, memory_name: str
) -> GetAnswer:
    session = find_session(session_id, memory.catalog)
    full_id = session.session_id if session else session_id.strip()
    rows = memory.session_rows(full_id)
    turn, seqs = _turn_of(turn_uuid.strip(), rows)
    if not seqs:
        told = rows[0].harness if rows else session.harness if session else ""
        return GetAnswer(
            memory=memory_name,
            session_id=full_id,
            turn_uuid=turn_uuid,
            found=False,
            harness=told or ("other" if rows or session else ""),
        )
    near = [row for row in rows if any(abs(row.seq - seq) <= max(window, 0) for seq in seqs)]
    if window <= 0:
        near = [row for row in near if row.turn_uuid == turn]
    about = session or Session(session_id=full_id)
    return GetAnswer(
        memory=memory_name,
        session_id=full_id,
        turn_uuid=turn,
        found=True,
        harness=rows[0].harness or about.harness,
        workdir=rows[0].workdir,
        cwd=about.cwd,
        repo=rows[0].repo or about.repo,
        title=about.title,
        turns=tuple(turn_views(near, asked=turn)),
        files=_files(full_id, {row.turn_uuid for row in near}, memory),
        reopen=reopen_command(about),
    )


def _files(session_id: str, shown: set[str], memory: MemoryView) -> tuple[str, ...]:
    """Return the files a session touched, those of the turns shown first."""
    touched = Facts(memory.catalog).files_of(session_id)
    first = [path for path, turn_uuid in touched if turn_uuid in shown]
    return tuple(dict.fromkeys([*first, *(path for path, _ in touched)]))[:_MOST_FILES]


def _turn_of(name: str, rows: Sequence[Row]) -> tuple[str, set[int]]:
    """Return a turn's full id and where it stands; () when it is not there, or not one turn."""
    ids = {row.turn_uuid for row in rows}
    if not name and rows:
        name = min(rows, key=_place).turn_uuid
    if name not in ids:
        begun = {turn for turn in ids if name and turn.startswith(name)}
        if len(begun) != 1:
            return name, set()
        name = begun.pop()
    return name, {row.seq for row in rows if row.turn_uuid == name}


def turn_views(rows: Sequence[Row], *, asked: str) -> list[TurnView]:
    """Return the turns of one session's rows in trace order, blocks whole.

    Args:
        rows: Rows of one session, any order.
        asked: The turn id to mark.
    """
    turns: dict[TurnKey, list[Row]] = {}
    for row in sorted(rows, key=_place):
        turns.setdefault((row.seq, row.turn_uuid), []).append(row)
    return [_turn(pieces, asked) for pieces in turns.values()]


def _place(row: Row) -> tuple[int, bool, int, str, int, int]:
    """Sort a turn that only funes keeps after the turn whose `seq` it shares."""
    extra = f"{row.session_id}-x" in row.turn_uuid
    return (row.seq, extra, row.ts_us or 0, row.turn_uuid, row.block_idx, row.split_idx)


def _turn(rows: Sequence[Row], asked: str) -> TurnView:
    first = rows[0]
    return TurnView(
        turn_uuid=first.turn_uuid,
        seq=first.seq,
        ts=shown_ts(first),
        role=first.role,
        blocks=tuple(_blocks(rows)),
        asked=first.turn_uuid == asked,
    )


def _blocks(rows: Sequence[Row]) -> Iterable[TurnBlock]:
    blocks: dict[int, list[Row]] = {}
    for row in rows:
        blocks.setdefault(row.block_idx, []).append(row)
    for pieces in blocks.values():
        yield TurnBlock(
            block_type=pieces[0].block_type,
            tool_name=pieces[0].tool_name,
            text=join_pieces([piece.text for piece in pieces]),
        )
