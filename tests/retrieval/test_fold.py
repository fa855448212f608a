"""Folding copies: resumed, forked, replayed, written again, streamed."""

from pathlib import Path

from funes_ls.indexer.catalog import Session
from funes_ls.indexer.memory import Memory
from funes_ls.retrieval.answers import Hit, RecallRequest
from funes_ls.retrieval.lineage import Lineage, with_roots
from funes_ls.retrieval.recall import recall
from tests.retrieval.building import NOW_US, memory_of, said

QUESTION = "Why did we drop the bloom filter?"
UUID = "aaaaaaaa-0000-4000-8000-000000000610"


def hits(memory: Memory, query: str = QUESTION) -> tuple[Hit, ...]:
    request = RecallRequest(query=query, half_life_days=0.0)
    return recall(request, memory, None, now_us=NOW_US).hits


def session(session_id: str, **fields: object) -> Session:
    return Session(session_id=session_id, harness="claude_code", **fields)  # type: ignore[arg-type]


def test_a_turn_copied_into_other_sessions_is_one_hit_from_the_first(funes_home: Path) -> None:
    rows = [said(name, 0, QUESTION, turn=UUID) for name in ("late", "first", "also")]
    sessions = [
        session("late", started_us=3),
        session("first", started_us=1),
        session("also", started_us=2),
    ]
    with memory_of(funes_home, rows, sessions=sessions) as memory:
        [hit] = hits(memory)
    assert (hit.session_id, hit.also_in, hit.repeats) == ("first", ("also", "late"), 0)


def test_the_same_turn_id_with_other_words_is_another_passage(funes_home: Path) -> None:
    rows = [
        said("one", 0, "alpha pool sizing is eight", turn=UUID),
        said("two", 0, "alpha pool sizing is nine", turn=UUID),
    ]
    with memory_of(funes_home, rows) as memory:
        assert {hit.session_id for hit in hits(memory, "alpha pool sizing")} == {"one", "two"}


def test_the_same_words_in_unrelated_sessions_are_two_hits(funes_home: Path) -> None:
    rows = [said("one", 0, QUESTION), said("two", 0, QUESTION)]
    with memory_of(funes_home, rows) as memory:
        assert {hit.session_id for hit in hits(memory)} == {"one", "two"}


def test_counters_as_turn_ids_do_not_make_copies(funes_home: Path) -> None:
    rows = [said("one", 0, QUESTION, turn="12"), said("two", 0, QUESTION, turn="12")]
    with memory_of(funes_home, rows) as memory:
        assert len(hits(memory)) == 2


def test_a_copy_of_a_session_file_is_folded_by_time_and_folder(funes_home: Path) -> None:
    rows = [said("kept", 0, QUESTION), said("moved", 0, QUESTION), said("else", 0, QUESTION)]
    sessions = [
        session("kept", cwd="/work/demo", started_us=1),
        session("moved", cwd="/work/demo", started_us=2),
        session("else", cwd="/work/other", started_us=3),
    ]
    with memory_of(funes_home, rows, sessions=sessions) as memory:
        got = {hit.session_id: hit.also_in for hit in hits(memory)}
    assert got == {"kept": ("moved",), "else": ()}


def test_a_long_text_handed_to_every_session_is_one_hit(funes_home: Path) -> None:
    handed = "Rules of this repository: the bloom filter stays. " * 8
    rows = [said(f"s{n}", 0, handed, ts=f"2026-03-0{n}T10:00:00Z") for n in (1, 2, 3)]
    with memory_of(funes_home, rows) as memory:
        [hit] = hits(memory)
    assert (hit.session_id, hit.also_in) == ("s1", ("s2", "s3"))


def test_a_fork_with_new_ids_is_folded_into_its_parent(funes_home: Path) -> None:
    rows = [said("fork", 0, QUESTION), said("parent", 0, QUESTION)]
    sessions = [session("fork", parent_id="parent", link="fork", started_us=0), session("parent")]
    with memory_of(funes_home, rows, sessions=sessions) as memory:
        [hit] = hits(memory)
    assert (hit.session_id, hit.also_in) == ("parent", ("fork",))


def test_a_sub_agents_replay_is_folded_and_its_own_findings_stay(funes_home: Path) -> None:
    rows = [
        said("agent-1", 0, "please research the ping interval", turn=UUID),
        said("agent-1", 1, "ping interval finding: 25 seconds", role="assistant"),
        said("parent", 0, "please research the ping interval", turn=UUID),
    ]
    sessions = [
        session("agent-1", parent_id="parent", link="subagent", subagent=True, started_us=0),
        session("parent", started_us=5),
    ]
    with memory_of(funes_home, rows, sessions=sessions) as memory:
        got = {hit.text: hit.session_id for hit in hits(memory, "research ping interval finding")}
    assert got == {
        "please research the ping interval": "parent",
        "ping interval finding: 25 seconds": "agent-1",
    }


def test_a_reply_written_again_under_new_ids_is_one_hit_where_it_stood_first(
    funes_home: Path,
) -> None:
    rows = [said("one", n, "The parser rewrites commas.", role="assistant") for n in (4, 3, 1, 2)]
    with memory_of(funes_home, rows) as memory:
        [hit] = hits(memory, "parser rewrites commas")
    assert (hit.seq, hit.repeats, hit.also_in) == (1, 3, ())


def test_the_same_words_of_another_speaker_are_another_passage(funes_home: Path) -> None:
    rows = [said("one", 0, "ship it"), said("one", 1, "ship it", role="assistant")]
    with memory_of(funes_home, rows) as memory:
        assert len(hits(memory, "ship it")) == 2


def test_a_streamed_answer_is_given_in_its_final_form_once(funes_home: Path) -> None:
    whole = "The cache is warmed at noon by the nightly job."
    rows = [
        said("one", 0, "And the cache?"),
        said("one", 1, "The cache is", role="assistant"),
        said("one", 2, "The cache is warmed at", role="assistant"),
        said("one", 3, whole, role="assistant"),
    ]
    with memory_of(funes_home, rows) as memory:
        got = [hit.text for hit in hits(memory, "the cache is")]
    assert sorted(got) == ["And the cache?", whole]


def test_what_others_said_in_between_ends_a_streamed_answer(funes_home: Path) -> None:
    rows = [
        said("one", 0, "Cache done", role="assistant"),
        said("one", 1, "go on"),
        said("one", 2, "Cache done for the second time", role="assistant"),
        said("one", 3, "cache"),
        said("one", 4, "cache please"),
    ]
    with memory_of(funes_home, rows) as memory:
        assert {hit.seq for hit in hits(memory, "cache done")} == {0, 2, 3, 4}


def test_ancestors_are_followed_and_loops_end() -> None:
    chain = with_roots(
        [
            Lineage(session_id="c", parent_id="b"),
            Lineage(session_id="b", parent_id="a"),
            Lineage(session_id="x", parent_id="y"),
            Lineage(session_id="y", parent_id="x"),
            Lineage(session_id="orphan", parent_id="gone"),
        ]
    )
    roots = {name: lineage.root for name, lineage in chain.items()}
    assert roots == {"c": "a", "b": "a", "x": "x", "y": "x", "orphan": "gone"}
