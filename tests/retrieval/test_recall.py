"""Recall as a whole, over real small memories."""

from pathlib import Path

import pytest

from funes_ls.indexer.catalog import Session
from funes_ls.indexer.embedding import Embedder
from funes_ls.indexer.errors import FunesError, UsageError
from funes_ls.indexer.memory import Memory
from funes_ls.retrieval import bm25
from funes_ls.retrieval.answers import RecallAnswer, RecallFilter, RecallRequest
from funes_ls.retrieval.recall import recall, recall_staged, recall_words
from tests.retrieval.building import NOW_US, memory_of, said

TALK = [
    said("alpha", 0, "Why did we drop the bloom filter?"),
    said("alpha", 1, "False positives doubled the disk reads.", role="assistant"),
    said("alpha", 2, "[tool_use Bash] {\"command\":\"cargo bench filter\"}", role="assistant",
         block_type="tool_use", tool="Bash"),
    said("alpha", 3, "[tool_result Bash] filter bench: 12 ms", role="tool",
         block_type="tool_result", tool="Bash"),
    said("beta", 0, "Which port does the mixer use?", harness="codex"),
    said("beta", 1, "The mixer uses port 4209.", role="assistant", harness="codex"),
]  # fmt: skip


def ask(
    memory: Memory, query: str, *, embedder: Embedder | None = None, **options: object
) -> RecallAnswer:
    request = RecallRequest(query=query, **options)  # type: ignore[arg-type]
    return recall(request, memory, embedder, now_us=NOW_US)


def texts(answer: RecallAnswer) -> list[str]:
    return [hit.text for hit in answer.hits]


def test_both_legs_run_and_the_best_passage_is_first(funes_home: Path, embedder: Embedder) -> None:
    with memory_of(funes_home, TALK, embedder=embedder) as memory:
        answer = ask(memory, "mixer port", embedder=embedder)
    assert answer.legs == {"words": "ran", "vector": "ran"}
    assert answer.note == ""
    assert {hit.session_id for hit in answer.hits[:2]} == {"beta"}
    first = answer.hits[0]
    assert (first.rank, first.embedded, first.harness) == (1, True, "codex")
    assert first.explain.words in (1, 2)
    assert first.explain.vector in (1, 2)
    assert first.get == f"funes get beta {first.turn_uuid}"
    assert [hit.rank for hit in answer.hits] == list(range(1, len(answer.hits) + 1))
    assert set(answer.timings_ms) >= {"plan", "words", "vector", "rank", "total"}


def test_without_a_model_the_words_answer_and_the_note_says_so(
    funes_home: Path, embedder: Embedder
) -> None:
    with memory_of(funes_home, TALK, embedder=embedder) as memory:
        answer = ask(memory, "mixer port")
    assert answer.legs == {"words": "ran", "vector": "no_model"}
    assert {hit.session_id for hit in answer.hits} == {"beta"}
    assert "test/tiny is not installed" in answer.note
    assert answer.hits[0].explain.vector is None


def test_before_anything_is_embedded_the_note_counts_what_waits(funes_home: Path) -> None:
    with memory_of(funes_home, TALK) as memory:
        answer = ask(memory, "mixer port")
    assert answer.legs == {"words": "ran", "vector": "empty"}
    assert "6 of 6 chunks are found by words only" in answer.note
    assert not answer.hits[0].embedded


def test_rows_that_wait_for_a_vector_compete_with_those_that_have_one(
    funes_home: Path, embedder: Embedder
) -> None:
    with memory_of(funes_home, TALK, embedder=embedder, waiting=["beta"]) as memory:
        answer = ask(memory, "which port does the mixer use", embedder=embedder)
    assert answer.hits[0].session_id == "beta"
    assert not answer.hits[0].embedded
    assert "2 of 6 chunks" in answer.note


def test_a_model_of_another_stamp_is_not_used(funes_home: Path, embedder: Embedder) -> None:
    class Other:
        stamp, dim, max_tokens = "test/other", embedder.dim, 512

    with memory_of(funes_home, TALK, embedder=embedder) as memory:
        answer = ask(memory, "mixer port", embedder=Other())  # type: ignore[arg-type]
    assert answer.legs["vector"] == "wrong_model"
    assert "test/tiny" in answer.note
    assert answer.hits


def test_a_failing_leg_leaves_the_answer_to_the_other(
    funes_home: Path, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("damaged")

    with memory_of(funes_home, TALK, embedder=embedder) as memory:
        monkeypatch.setattr(bm25, "search_words", broken)
        answer = ask(memory, "mixer port", embedder=embedder)
    assert answer.legs == {"words": "failed", "vector": "ran"}
    assert answer.hits[0].session_id == "beta"
    assert "funes index" in answer.note


def test_the_words_answer_comes_first_then_the_whole_one(
    funes_home: Path, embedder: Embedder
) -> None:
    request = RecallRequest(query="mixer port")
    with memory_of(funes_home, TALK, embedder=embedder) as memory:
        first, last = recall_staged(request, memory, embedder, now_us=NOW_US)
    assert first.legs == {"words": "ran", "vector": "pending"}
    assert last.legs == {"words": "ran", "vector": "ran"}
    assert first.hits[0].session_id == last.hits[0].session_id == "beta"


def test_a_withdrawn_question_stops_between_stages(funes_home: Path) -> None:
    asked = iter([False, True])
    with memory_of(funes_home, TALK) as memory, pytest.raises(FunesError) as caught:
        recall_words(
            RecallRequest(query="port"), memory, now_us=NOW_US, cancelled=lambda: next(asked)
        )
    assert caught.value.kind == "cancelled"


def test_k_distinct_turns_come_back_however_often_a_passage_is_repeated(funes_home: Path) -> None:
    rows = [said("alpha", n, "the valve note again") for n in range(900)]
    rows += [said("beta", n, f"valve number {n} was replaced on some other day") for n in range(9)]
    with memory_of(funes_home, rows) as memory:
        answer = ask(memory, "valve note again", k=8)
    assert len(answer.hits) == 8
    assert len({(hit.session_id, hit.turn_uuid) for hit in answer.hits}) == 8
    assert texts(answer)[0] == "the valve note again"
    assert answer.hits[0].seq == 0


def test_several_chunks_of_one_turn_are_one_hit(funes_home: Path) -> None:
    rows = [said("alpha", 0, f"pool sizing part {n}", split=n) for n in range(5)]
    rows.append(said("alpha", 1, "sizing of the pool is eight"))
    with memory_of(funes_home, rows) as memory:
        assert [hit.seq for hit in ask(memory, "pool sizing").hits] == [0, 1]


def test_neighbours_are_near_and_not_of_the_hits_own_turn(funes_home: Path) -> None:
    with memory_of(funes_home, TALK) as memory:
        two = ask(memory, "false positives", neighbors=2).hits[0]
        one = ask(memory, "false positives").hits[0]
        none = ask(memory, "false positives", neighbors=0).hits[0]
    assert [near.seq for near in two.neighbors] == [0, 2, 3]
    assert [near.seq for near in one.neighbors] == [0, 2]
    assert none.neighbors == ()


def test_age_decides_between_equals_and_can_be_turned_off(funes_home: Path) -> None:
    rows = [
        said("older", 0, "the pump seal was swapped", ts="2024-01-05T10:00:00Z"),
        said("newer", 0, "the pump seal was swapped", ts="2026-03-09T10:00:00Z"),
    ]
    with memory_of(funes_home, rows) as memory:
        aged = ask(memory, "pump seal")
        ageless = ask(memory, "pump seal", half_life_days=0.0)
    assert [hit.session_id for hit in aged.hits] == ["newer", "older"]
    assert [hit.explain.age for hit in ageless.hits] == [1.0, 1.0]
    assert aged.hits[0].age_s == 14 * 3600


def test_a_question_asked_before_gives_its_answer_first(funes_home: Path) -> None:
    rows = [
        said("alpha", 0, "Why does the pager retry three times?"),
        said("alpha", 1, "Because the gateway drops the first packet after idle, the pager "
             "retries.", role="assistant"),
        said("beta", 0, "The pager shall not retry, why would it retry three times here"),
    ]  # fmt: skip
    with memory_of(funes_home, rows) as memory:
        got = ask(memory, "why does the pager retry three times", half_life_days=0.0).hits
    assert [(hit.session_id, hit.seq) for hit in got[:2]] == [("alpha", 1), ("alpha", 0)]
    assert got[0].score > got[1].score


def test_times_are_shown_as_recorded_or_as_the_nearest_known(funes_home: Path) -> None:
    rows = [
        said("alpha", 0, "valve note one", ts="1704448801000"),
        said("alpha", 1, "valve note two", ts=""),
        said("beta", 0, "valve note three", ts="not a time"),
    ]
    with memory_of(funes_home, rows) as memory:
        shown = {hit.text: (hit.ts, hit.age_s) for hit in ask(memory, "valve note").hits}
    assert shown["valve note one"][0] == "2024-01-05T10:00:01Z"
    assert shown["valve note three"] == ("", None)
    assert "1970" not in str(shown)


@pytest.mark.parametrize("query", ["", '""', "--", "?", "x" * 20_001])
def test_a_question_without_words_is_a_usage_error(funes_home: Path, query: str) -> None:
    with memory_of(funes_home, TALK) as memory, pytest.raises(UsageError):
        ask(memory, query)


@pytest.mark.parametrize(
    "query",
    [
        "--half-life filter", "# filter", '"bloom filter', "'filter", "(filter", "filter*",
        "a AND filter",
        "filter:bloom", "title:^filter~2", "[filter TO bloom]", "\\filter", "filter" + " and" * 39,
        "filter\ud83d", "filter " * 1400,
    ],
)  # fmt: skip
def test_no_sign_in_a_question_is_syntax(funes_home: Path, embedder: Embedder, query: str) -> None:
    with memory_of(funes_home, TALK, embedder=embedder) as memory:
        answer = ask(memory, query, embedder=embedder)
    assert answer.legs == {"words": "ran", "vector": "ran"}
    assert any(hit.explain.words and "filter" in hit.text for hit in answer.hits)


@pytest.mark.parametrize("query", ["фильтр блума", "フィルター", "外注", "مرشح", "ตัวกรอง", "🔥"])
def test_questions_in_any_script_find_what_was_said(
    funes_home: Path, embedder: Embedder, query: str
) -> None:
    rows = [*TALK, said("gamma", 0, f"note: {query} is what we agreed on")]
    with memory_of(funes_home, rows, embedder=embedder) as memory:
        answer = ask(memory, query, embedder=embedder)
    found = next(hit for hit in answer.hits if hit.session_id == "gamma")
    assert found.explain.words == 1


def test_inline_filters_are_taken_where_they_fit(funes_home: Path) -> None:
    sessions = [
        Session(session_id="alpha", cwd="/work/外注", harness="claude_code"),
        Session(session_id="beta", cwd="/work/個人", harness="codex"),
    ]
    rows = [*TALK, said("alpha", 4, "the sorter uses port 4107")]
    with memory_of(funes_home, rows, sessions=sessions) as memory:
        taken = ask(memory, "project:/work/外注 port")
        unknown = ask(memory, "project:/nowhere port")
        words = ask(memory, "foo:bar port type:banana")
        alone = ask(memory, "harness:codex")
    assert {hit.session_id for hit in taken.hits} == {"alpha"}
    assert {hit.session_id for hit in unknown.hits} == {"alpha", "beta"}
    assert "project:/nowhere" in unknown.note
    assert {hit.session_id for hit in words.hits} == {"alpha", "beta"}
    assert words.note.startswith("7 of 7")
    assert alone.legs["words"] == "ran"


def test_filters_apply_before_the_cut_in_every_leg(funes_home: Path, embedder: Embedder) -> None:
    rows = [said("many", n, f"valve note {n}") for n in range(300)]
    rows.append(said("few", 0, "an old note on some valve", harness="pi"))
    with memory_of(funes_home, rows, embedder=embedder) as memory:
        answer = ask(
            memory, "valve note", k=1, embedder=embedder, filter=RecallFilter(harness="pi")
        )
    assert [hit.session_id for hit in answer.hits] == ["few"]
    assert answer.hits[0].explain.words == 1
    assert answer.hits[0].explain.vector == 1


def test_a_filter_that_fits_no_session_is_an_empty_answer_that_says_why(funes_home: Path) -> None:
    with memory_of(funes_home, TALK) as memory:
        answer = ask(memory, "filter", filter=RecallFilter(project="/no/where"))
    assert answer.hits == ()
    assert "No session matches --project /no/where" in answer.note


def test_the_get_command_names_the_memory_and_quotes_odd_ids(funes_home: Path) -> None:
    with memory_of(funes_home, [said("it's -odd", 0, "filter", turn="-x 1")]) as memory:
        [hit] = ask(memory, "filter", memory_name="/tmp/my memory").hits
    assert hit.get == """funes get --memory '/tmp/my memory' -- 'it'"'"'s -odd' '-x 1'"""
