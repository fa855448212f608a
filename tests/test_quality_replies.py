"""Questions that a memory holds itself: who asked what, what was said to it, what is left out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.quality.measures import Labelled
from benchmarks.quality.replies import left_out, replies
from benchmarks.quality.stages import ask, stages_of
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.settings import Settings
from funes_ls.memories import KeptOpen
from tests.retrieval.building import memory_of, said
from tests.token_model import WordEmbedder

ASKED = "why does the gauge poller die every night"
REPLY = "The gauge poller dies at night since its socket times out; " + "raise the limit. " * 3
ROWS = [
    said("talk", 0, ASKED),
    said("talk", 1, "Looking.", role="assistant"),
    said("talk", 2, REPLY, role="assistant"),
    said("talk", 3, "and now mend the other one that prints"),
    said("talk", 4, f"Later: {REPLY}", role="assistant"),
    said("copy", 0, f"again: {ASKED}"),
    said("short", 0, "ok"),
]


@pytest.fixture
def memory(funes_home: Path) -> Iterator[Memory]:
    with memory_of(funes_home, ROWS, embedder=WordEmbedder()) as opened:
        yield opened


def test_a_question_is_answered_by_what_was_said_until_the_next(memory: Memory) -> None:
    found = {one.query: one for one in replies(memory, most=10)}
    assert sorted(found) == sorted([ASKED, ROWS[3].text])
    assert [gold.turn_uuid for gold in found[ASKED].gold] == [ROWS[2].turn_uuid]
    assert found[ASKED].without == {ROWS[0].id, ROWS[5].id}
    assert [one.qid for one in replies(memory, most=1)] == [replies(memory, most=10)[0].qid]


def test_the_question_and_its_copies_are_not_searched(memory: Memory, funes_home: Path) -> None:
    memories = KeptOpen(Settings(home=funes_home))
    options = {"vector_weight": 0.0}
    plain = Labelled(qid="plain", query=ASKED)
    cut = Labelled(qid="cut", query=ASKED, without=frozenset({ROWS[0].id, ROWS[5].id}))
    answers = ask([plain, cut, plain], {"": memories}, options)
    memories.close()
    assert {ASKED, f"again: {ASKED}"} <= {hit.text for hit in answers["plain"].answer.hits}
    left = [hit.text for hit in answers["cut"].answer.hits]
    assert left[0].strip() == REPLY.strip()
    assert not [text for text in left if ASKED in text]


def test_stages_that_need_a_model_are_asked_for_by_name() -> None:
    assert "cross" not in stages_of(())
    assert stages_of(["cross"]) == {"cross": {"rerank": "cross"}}


def test_leaving_out_ends_with_the_question(memory: Memory) -> None:
    from funes_ls.retrieval import recall

    before = recall._words
    with pytest.raises(ValueError, match="whatever"), left_out(frozenset({"x"})):
        raise ValueError("whatever")
    assert recall._words is before
