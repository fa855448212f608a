"""Whether an answer knows that it is none."""

from pathlib import Path

from funes_ls.indexer.embedding import Embedder
from funes_ls.indexer.memory import Memory
from funes_ls.retrieval.answers import RecallAnswer, RecallRequest
from funes_ls.retrieval.artefact import Artefact
from funes_ls.retrieval.recall import recall, recall_staged
from tests.retrieval.building import NOW_US, memory_of, said

TALK = [
    said("alpha", 0, "Why did we drop the bloom filter?"),
    said("alpha", 1, "False positives doubled the disk reads, so maxRetryCount is 3.",
         role="assistant"),
    said("beta", 0, "Which port does the mixer use?", harness="codex"),
    said("beta", 1, "The mixer uses port 4209 in src/audio/mixer.cfg.", role="assistant"),
    said("gamma", 0, "「設定」で検索しても結果がゼロになる。"),
    *[said("delta", n, f"the valve number {n} was replaced in the hall") for n in range(40)],
]  # fmt: skip


def ask(memory: Memory, query: str, embedder: Embedder | None = None) -> RecallAnswer:
    return recall(RecallRequest(query=query), memory, embedder, now_us=NOW_US)


def test_what_the_memory_holds_is_told_from_what_it_does_not(funes_home: Path) -> None:
    with memory_of(funes_home, TALK) as memory:
        there = ask(memory, "which port does the mixer use")
        elsewhere = ask(memory, "which certificate authority signs the valve firmware")
        nothing = ask(memory, "zebrafish")
    assert (there.weak, elsewhere.weak) == (False, True)
    assert there.confidence is not None and elsewhere.confidence is not None
    assert there.confidence > 0.9 > 0.3 > elsewhere.confidence
    assert elsewhere.hits  # a weak match is marked, never hidden
    assert (nothing.hits, nothing.confidence, nothing.weak) == ((), 0.0, False)


def test_names_count_whole_in_parts_and_in_other_scripts(funes_home: Path) -> None:
    with memory_of(funes_home, TALK) as memory:
        sure = {
            name: ask(memory, name).confidence or 0.0
            for name in (
                "max retry count",
                "src/audio/mixer.cfg",
                "設定で検索",
                "src/video/mixer.py",
            )
        }
    assert min(sure["max retry count"], sure["src/audio/mixer.cfg"], sure["設定で検索"]) > 0.5
    assert sure["src/video/mixer.py"] < sure["src/audio/mixer.cfg"]


def test_a_question_that_stands_word_for_word_in_a_hit_is_answered(funes_home: Path) -> None:
    with memory_of(funes_home, TALK) as memory:
        assert (ask(memory, "was  replaced in the HALL").confidence or 0.0) >= 0.95


def test_vectors_of_other_models_are_not_read_as_those_of_the_fitted_ones(
    funes_home: Path, embedder: Embedder
) -> None:
    question = "which certificate authority signs the valve firmware"
    with memory_of(funes_home, TALK, embedder=embedder) as memory:
        answer = ask(memory, question, embedder)
    assert answer.legs["vector"] == "ran"
    assert answer.weak


def test_first_words_and_artefacts_are_not_judged(funes_home: Path, embedder: Embedder) -> None:
    with memory_of(funes_home, TALK, embedder=embedder) as memory:
        words, whole = recall_staged(
            RecallRequest(query="which gasket"), memory, embedder, now_us=NOW_US
        )
        artefact = Artefact(kind="trace", text="ValueError: no such valve")
        told = recall(RecallRequest(query="", artefact=artefact), memory, None, now_us=NOW_US)
    assert (words.confidence, words.weak) == (None, False)
    assert whole.confidence is not None
    assert (told.confidence, told.weak) == (None, False)
