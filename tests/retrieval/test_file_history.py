"""Replays that are kept: never longer than what they were made from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from funes_ls.indexer import facts_tables
from funes_ls.indexer.catalog import Session
from funes_ls.indexer.facts import FileEvent
from funes_ls.indexer.memory import Memory
from funes_ls.retrieval.blame import Document
from funes_ls.retrieval.file_blame import blame_file
from funes_ls.retrieval.file_history import Histories
from funes_ls.retrieval.same_file import Asked
from tests.retrieval.building import memory_of, said

TEXT = "def add_numbers(texts):\n    return sum(int(text) for text in texts)\n"
WROTE = FileEvent(kind="write", path="/w/old.py", new=TEXT)
MOVED = FileEvent(kind="move", path="/w/new.py", source="/w/old.py")


@pytest.fixture
def memory(funes_home: Path) -> Iterator[Memory]:
    names = ("writer", "mover")
    sessions = [Session(session_id=one, harness="claude_code", cwd="/w") for one in names]
    rows = [said(one, 0, "Sum them up, please.") for one in names]
    with memory_of(funes_home, rows, sessions=sessions) as made:
        yield made


def did(memory: Memory, session: str, at: int, event: FileEvent) -> None:
    place = facts_tables.Provenance(
        turn_uuid=f"{session}-{at}",
        seq=at,
        block_idx=0,
        ts_us=at,
        ask_turn_uuid="",
        reason_turn_uuid="",
    )
    facts_tables.begin(memory.catalog, session, anew=False)
    facts_tables.add(memory.catalog, session, [facts_tables.CallFacts(at=place, events=(event,))])
    facts_tables.finish(memory.catalog, session, b"")


def authors(memory: Memory, histories: Histories, path: str) -> list[str]:
    document = Document(TEXT)
    with memory.snapshot() as now:
        blame_file(now, histories, document, Asked(path=path), key="m")
    return [claim.event.turn_uuid if claim else "" for claim in document.claims]


def test_what_is_forgotten_is_gone_from_the_files_it_became(memory: Memory) -> None:
    histories = Histories()
    did(memory, "writer", 1, WROTE)
    did(memory, "mover", 2, MOVED)
    assert authors(memory, histories, "/w/new.py") == ["writer-1"] * 2
    facts_tables.forget(memory.catalog, "writer")
    assert authors(memory, histories, "/w/new.py") == [""] * 2


def test_what_is_read_anew_is_replayed_anew(memory: Memory) -> None:
    histories = Histories()
    did(memory, "writer", 1, WROTE)
    assert authors(memory, histories, "/w/old.py") == ["writer-1"] * 2
    facts_tables.forget(memory.catalog, "writer")
    did(memory, "writer", 5, WROTE)
    assert authors(memory, histories, "/w/old.py") == ["writer-5"] * 2


@pytest.mark.parametrize("original", ["a", "z"])
def test_a_turn_that_a_fork_copied_is_of_the_session_it_comes_from(
    funes_home: Path, original: str
) -> None:
    fork = "z" if original == "a" else "a"
    sessions = [
        Session(session_id=original, harness="claude_code", cwd="/w", started_us=1, ended_us=5),
        Session(session_id=fork, harness="claude_code", cwd="/w", started_us=1, ended_us=9),
    ]
    rows = [said(one.session_id, 0, "Sum them up, please.") for one in sessions]
    place = facts_tables.Provenance(
        turn_uuid="same", seq=1, block_idx=0, ts_us=1, ask_turn_uuid="", reason_turn_uuid=""
    )
    with memory_of(funes_home, rows, sessions=sessions) as memory:
        for one in sessions:
            facts_tables.begin(memory.catalog, one.session_id, anew=False)
            call = facts_tables.CallFacts(at=place, events=(WROTE,))
            facts_tables.add(memory.catalog, one.session_id, [call])
            facts_tables.finish(memory.catalog, one.session_id, b"")
        document = Document(TEXT)
        with memory.snapshot() as now:
            blame_file(now, Histories(), document, Asked(path="/w/old.py"), key="m")
    assert [claim and claim.event.session_id for claim in document.claims] == [original] * 2
