"""Late interaction: passages are compared with a question word by word, where tokens are kept."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from funes_ls.indexer.memory import Memory, MemoryView
from funes_ls.indexer.token_work import Backfill, TokenWork
from funes_ls.retrieval.answers import RecallAnswer, RecallRequest
from funes_ls.retrieval.recall import recall
from funes_ls.retrieval.rerank import LATE_WEIGHT, Late
from tests.retrieval.building import NOW_US, memory_of, said
from tests.token_model import WordEmbedder

FILLER = [
    said(f"filler{n}", 0, f"talk{n} of thing{n} beside matter{n}", role="assistant")
    for n in range(30)
]
QUERY = "gauge poller dies nightly"
#: Holds every word asked for, among others: its vector is farther from the question's.
WHOLE = said("whole", 0, f"{QUERY} " + " ".join(f"more{n}" for n in range(5)), role="assistant")
#: Says two of the words and nothing else: its vector is nearer.
PART = said("part", 0, " ".join(["gauge poller"] * 8), role="assistant")
#: Says little more than that.
MIDDLE = said("middle", 0, " ".join(["gauge poller"] * 8) + " aside aside aside", role="assistant")
CALL = said(
    "call", 0, "[tool_use Bash] gauge poller", role="assistant", block_type="tool_use", tool="Bash"
)


@pytest.fixture
def model() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def memory(funes_home: Path, model: WordEmbedder) -> Iterator[Memory]:
    """Give a memory of the rows above whose prose has token vectors."""
    with memory_of(funes_home, [WHOLE, PART, MIDDLE, CALL, *FILLER], embedder=model) as opened:
        backfill = Backfill(TokenWork(is_on=lambda: True))
        while backfill.step(opened, model, interrupted=lambda: False):
            pass
        assert opened.token_state().chunks == len(FILLER) + 3
        yield opened


def ask(memory: Memory, model: WordEmbedder, **options: object) -> RecallAnswer:
    options.setdefault("vector_weight", 1.0)
    request = RecallRequest(query=QUERY, **options)  # type: ignore[arg-type]
    return recall(request, memory, model, now_us=NOW_US)


def scores(answer: RecallAnswer) -> dict[str, float]:
    return {hit.session_id: hit.score for hit in answer.hits}


def test_what_holds_every_word_rises_but_the_first_stays(
    memory: Memory, model: WordEmbedder
) -> None:
    plain, late = scores(ask(memory, model)), scores(ask(memory, model, rerank="late"))
    assert list(plain)[:3] == ["part", "middle", "whole"]
    assert list(late)[:3] == ["part", "whole", "middle"]


def test_what_has_no_tokens_keeps_its_score(memory: Memory, model: WordEmbedder) -> None:
    late = Late(memory, model.encode_query_tokens(QUERY)[1])
    fused = np.array([0.9, 0.5, 0.4])
    found = late.scores(
        QUERY, [PART.id, CALL.id, WHOLE.id], [PART.text, CALL.text, WHOLE.text], fused
    )
    assert found[1] == 0.5
    assert found[2] == pytest.approx(0.4 + LATE_WEIGHT * (0.9 - 0.4))  # the nearest of them
    assert found[2] < 0.9 * (1 - LATE_WEIGHT) <= found[0] < 0.9
    assert fused.tolist() == [0.9, 0.5, 0.4]


def test_the_best_fused_passage_stays_the_first(memory: Memory, model: WordEmbedder) -> None:
    late = Late(memory, model.encode_query_tokens(QUERY)[1])
    fused = np.array([0.9, 0.91, 0.4])
    found = late.scores(
        QUERY, [WHOLE.id, PART.id, MIDDLE.id], [WHOLE.text, PART.text, MIDDLE.text], fused
    )
    assert found.argmax() == 1
    assert found[0] == pytest.approx(0.9 + LATE_WEIGHT * (0.91 - 0.9))
    assert found[1] == pytest.approx(found[0], abs=1e-5)


def test_tokens_of_a_text_that_has_changed_do_not_count(
    memory: Memory, model: WordEmbedder
) -> None:
    late = Late(memory, model.encode_query_tokens(QUERY)[1])
    fused = np.array([0.9, 0.4])
    assert late.scores(QUERY, [PART.id, WHOLE.id], ["other", "texts"], fused).tolist() == [0.9, 0.4]


def test_switched_off_nothing_is_compared(
    memory: Memory, model: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object) -> None:
        raise AssertionError("token vectors are read")

    monkeypatch.setattr(MemoryView, "tokens", fail)
    assert ask(memory, model, rerank="off").hits
    with pytest.raises(AssertionError, match="are read"):
        ask(memory, model, rerank="late")


def test_a_memory_without_tokens_answers_as_ever(funes_home: Path, model: WordEmbedder) -> None:
    with memory_of(funes_home, [WHOLE, PART, CALL, *FILLER], embedder=model) as opened:
        assert scores(ask(opened, model, rerank="late")) == scores(ask(opened, model))


def test_a_reply_stays_above_the_question_it_answers(funes_home: Path, model: WordEmbedder) -> None:
    asked = said("talk", 0, "why does the gauge poller die?")
    reply = said("talk", 1, "The gauge socket times out after midnight.", role="assistant")
    with memory_of(funes_home, [asked, reply, *FILLER], embedder=model) as opened:
        backfill = Backfill(TokenWork(is_on=lambda: True))
        while backfill.step(opened, model, interrupted=lambda: False):
            pass
        answer = recall(
            RecallRequest(query="why does the gauge poller fail?", rerank="late", neighbors=0),
            opened,
            model,
            now_us=NOW_US,
        )
    assert [hit.turn_uuid for hit in answer.hits[:2]] == [reply.turn_uuid, asked.turn_uuid]
