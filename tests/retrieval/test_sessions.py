"""Listing sessions."""

from pathlib import Path

import pytest

from funes_ls.indexer.catalog import Session
from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.times import parse_ts
from funes_ls.retrieval.answers import RecallFilter
from funes_ls.retrieval.sessions import SessionsRequest, list_sessions
from tests.retrieval.building import NOW_US, memory_of, said


def session(session_id: str, day: int, **fields: object) -> Session:
    at = parse_ts(f"2026-03-0{day}T10:00:00Z")
    return Session(session_id=session_id, started_us=at, ended_us=at, **fields)  # type: ignore[arg-type]


SESSIONS = [
    session("a", 1, title="Fix the mixer port", harness="codex", cwd="/work/mixer"),
    session("b", 3, title="Port the sorter", harness="claude_code", cwd="/work/sorter"),
    session("c", 2, title="Sizing", harness="claude_code", cwd="/work/sorter", subagent=True),
]


def listed(home: Path, **options: object) -> tuple[int, list[str]]:
    rows = [said(one.session_id, 0, one.title) for one in SESSIONS]
    with memory_of(home, rows, sessions=SESSIONS) as memory:
        answer = list_sessions(SessionsRequest(**options), memory, now_us=NOW_US)  # type: ignore[arg-type]
    return answer.total, [one.session_id for one in answer.sessions]


def test_newest_first_in_pages(funes_home: Path) -> None:
    assert listed(funes_home) == (3, ["b", "c", "a"])
    assert listed(funes_home, limit=2) == (3, ["b", "c"])
    assert listed(funes_home, limit=2, offset=2) == (3, ["a"])
    assert listed(funes_home, limit=0) == (3, ["b", "c", "a"])
    assert listed(funes_home, offset=9) == (3, [])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"text": "port"}, ["b", "a"]),
        ({"text": "port mixer"}, ["a"]),
        ({"filter": RecallFilter(harness="codex")}, ["a"]),
        ({"filter": RecallFilter(project="sorter")}, ["b", "c"]),
        ({"filter": RecallFilter(project="sorter", no_subagents=True)}, ["b"]),
        ({"filter": RecallFilter(since="2026-03-02")}, ["b", "c"]),
        ({"filter": RecallFilter(until="2026-03-01")}, ["a"]),
        ({"filter": RecallFilter(session="c")}, ["c"]),
    ],
)
def test_filters(funes_home: Path, options: dict[str, object], expected: list[str]) -> None:
    assert listed(funes_home, **options)[1] == expected


def test_filters_of_rows_are_refused(funes_home: Path) -> None:
    with pytest.raises(UsageError, match="no block type"):
        listed(funes_home, filter=RecallFilter(block_type="text"))
