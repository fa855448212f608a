"""`get`: a turn whole, in the company it was said in."""

from pathlib import Path

import pytest

from funes_ls.indexer import facts_tables
from funes_ls.indexer.catalog import Session
from funes_ls.indexer.chunk import split
from funes_ls.indexer.embedding import Embedder
from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.facts import FileEvent
from funes_ls.indexer.memory import Memory
from funes_ls.retrieval.get import get
from funes_ls.retrieval.reopen import reopen_command
from tests.retrieval.building import memory_of, said

LONG = "\n".join(f"line {n}: the sorter reads its table once and keeps it" for n in range(120))


def talk(session_id: str = "alpha", turns: int = 9) -> list:  # type: ignore[type-arg]
    return [said(session_id, n, f"{session_id} turn {n}") for n in range(turns)]


def test_the_turns_around_come_in_the_order_of_the_trace(funes_home: Path) -> None:
    rows = talk()
    rows[4] = said("alpha", 4, "alpha turn 4", ts="2031-01-01T00:00:00Z")
    with memory_of(funes_home, reversed(rows)) as memory:
        three = get("alpha", "turn-alpha-4", memory)
        one = get("alpha", "turn-alpha-4", memory, window=1)
        alone = get("alpha", "turn-alpha-4", memory, window=0)
        first = get("alpha", "turn-alpha-0", memory, window=1)
    assert three.found
    assert [turn.seq for turn in three.turns] == [1, 2, 3, 4, 5, 6, 7]
    assert [turn.seq for turn in three.turns if turn.asked] == [4]
    assert [turn.seq for turn in one.turns] == [3, 4, 5]
    assert [turn.seq for turn in alone.turns] == [4]
    assert [turn.seq for turn in first.turns] == [0, 1]


def test_blocks_are_whole_and_in_order_embedded_or_not(
    funes_home: Path, embedder: Embedder
) -> None:
    pieces = [said("alpha", 0, piece, split=n) for n, piece in enumerate(split(LONG))]
    call = said("alpha", 0, "[tool_use Bash] {}", block_type="tool_use", tool="Bash", block=1)
    assert len(pieces) > 3
    with memory_of(funes_home, [call, *reversed(pieces)], embedder=embedder) as memory:
        memory.queue([said("alpha", 1, "waiting still", role="assistant")])
        answer = get("alpha", "turn-alpha-0", memory, memory_name="/tmp/m")
    assert answer.memory == "/tmp/m"
    first, second = answer.turns
    assert [block.text for block in first.blocks] == [LONG, "[tool_use Bash] {}"]
    assert first.blocks[1].tool_name == "Bash"
    assert (second.role, second.blocks[0].text) == ("assistant", "waiting still")


def test_ids_may_be_shortened_while_they_are_unique(funes_home: Path) -> None:
    session = Session(session_id="alpha", cwd="/work/外注", title="Sort", harness="claude_code")
    rows = [*talk(), *talk("beta")]
    with memory_of(funes_home, rows, sessions=[session]) as memory:
        answer = get("alp", "turn-alpha-4", memory, window=0)
        ambiguous = get("alpha", "turn-alpha", memory)
        short = get("beta", "turn-beta-8", memory, window=0)
    assert (answer.session_id, answer.cwd, answer.title) == ("alpha", "/work/外注", "Sort")
    assert not ambiguous.found
    assert [turn.seq for turn in short.turns] == [8]


def test_what_is_absent_is_an_answer_and_not_an_error(funes_home: Path) -> None:
    with memory_of(funes_home, talk()) as memory:
        for session_id, turn in (("alpha", "nope"), ("nope", "turn-alpha-1"), ("", "")):
            answer = get(session_id, turn, memory)
            assert not answer.found
            assert (answer.session_id, answer.turn_uuid, answer.turns) == (session_id, turn, ())


def test_an_ambiguous_session_is_refused(funes_home: Path) -> None:
    both = [*talk("s-1"), *talk("s-2")]
    with memory_of(funes_home, both) as memory, pytest.raises(UsageError, match="several sess"):
        get("s-", "turn-s-1-0", memory)


def test_an_extra_turn_follows_the_one_whose_place_it_shares(funes_home: Path) -> None:
    rows = [
        said("alpha", 3, "typed while busy", turn="alpha-x17"),
        said("alpha", 3, "the answer", role="assistant", turn="zz"),
        said("alpha", 4, "next"),
    ]
    with memory_of(funes_home, rows) as memory:
        answer = get("alpha", "alpha-x17", memory, window=1)
    said_there = [turn.blocks[0].text for turn in answer.turns]
    assert said_there == ["the answer", "typed while busy", "next"]


def test_files_of_the_turns_shown_come_first(funes_home: Path) -> None:
    session = Session(session_id="alpha", cwd="/work", harness="codex", inner_id="01-inner")
    with memory_of(funes_home, talk(), sessions=[session]) as memory:
        did(memory, "alpha", 1, FileEvent(kind="edit", path="/work/early.py", new="x = 1\n"))
        did(memory, "alpha", 4, FileEvent(kind="write", path="/work/b.py", new="x = 1\n"))
        did(memory, "alpha", 5, FileEvent(kind="read", path="/work/early.py", new="x = 1\n"))
        did(memory, "alpha", 5, FileEvent(kind="mention", path="/work/spoken.py"), n=1)
        answer = get("alpha", "turn-alpha-4", memory, window=1)
        none = get("alpha", "nope", memory)
    assert answer.files == ("/work/b.py", "/work/early.py")
    assert none.files == none.reopen == ()


def did(memory: Memory, session: str, seq: int, event: FileEvent, *, n: int = 0) -> None:
    """Note what a call of a turn did to a file."""
    at = facts_tables.Provenance(
        turn_uuid=f"turn-{session}-{seq}",
        seq=seq,
        block_idx=n,
        ts_us=seq,
        ask_turn_uuid="",
        reason_turn_uuid="",
    )
    facts_tables.begin(memory.catalog, session, anew=False)
    facts_tables.add(memory.catalog, session, [facts_tables.CallFacts(at=at, events=(event,))])
    facts_tables.finish(memory.catalog, session, b"")


@pytest.mark.parametrize(
    ("session", "command"),
    [
        (Session(session_id="78a2-99", harness="claude_code"), "claude --resume 78a2-99"),
        # Of a fork: the id inside is the original's.
        (
            Session(session_id="78a2-99", harness="claude_code", inner_id="feed-01"),
            "claude --resume 78a2-99",
        ),
        (Session(session_id="019e-3f", harness="codex"), "codex resume 019e-3f"),
        (
            Session(session_id="rollout.x", harness="codex", inner_id="019e-3f"),
            "codex resume 019e-3f",
        ),
        (Session(session_id="2026_a", harness="pi", inner_id="beef-2"), "pi --session beef-2"),
        (Session(session_id="abcdef", harness="hermes"), ""),
        (Session(session_id="abcdef", harness="claude_code", subagent=True), ""),
        (Session(session_id="abcdef@0f3a9c", harness="claude_code"), ""),
        (Session(session_id="--dangerous", harness="codex"), ""),
        (Session(session_id="a; rm -rf x", harness="codex"), ""),
        (Session(session_id="$(touch x)", harness="codex"), ""),
        (Session(session_id="abcd\nefgh", harness="codex"), ""),
    ],
)
def test_the_command_that_goes_on_with_a_session(session: Session, command: str) -> None:
    assert " ".join(reopen_command(session)) == command
