"""Reranking by reading: staged after the fused answer, and `auto` only where it was measured."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from funes_ls import service
from funes_ls.indexer.settings import load_settings
from funes_ls.memories import KeptOpen
from funes_ls.models import install_reranker
from funes_ls.protocol import RecallParams
from funes_ls.reranking import LEAST_QUESTIONS, Evaluation, keep_evaluation, settled
from tests.e2e.cli import funes, index
from tests.pair_model import build_pair_model
from tests.sessions import record, write

ASKED = "why does the gauge poller die at night"
#: Holds the question's words, but little of it beside much else; the other says a few words often.
WHOLE = "At night the gauge poller does die, which is why " + " ".join(
    f"matter{n}" for n in range(40)
)
PART = " ".join(["gauge poller"] * 12)


@pytest.fixture
def memories(own_home: Path) -> Iterator[KeptOpen]:
    path = own_home / ".claude" / "projects" / "p" / "s.jsonl"
    rows = [
        record(text, uuid=f"u-{n}", role="assistant")
        for n, text in enumerate([WHOLE, PART, "nothing of it", "and something else"])
    ]
    write(path, rows)
    index("--yes")
    settings, _ = load_settings(os.environ)
    kept = KeptOpen(settings)
    yield kept
    kept.close()


@pytest.fixture
def given(tmp_path: Path) -> Path:
    return build_pair_model(tmp_path / "pairs")


def installed(given: Path, memories: KeptOpen) -> str:
    models_dir = memories.settings.models_dir
    return install_reranker("", source=str(given), models_dir=models_dir).graph_sha256


def test_words_come_first_then_the_fused_answer_then_the_one_that_was_read(
    memories: KeptOpen, given: Path
) -> None:
    installed(given, memories)
    params = RecallParams(query=ASKED, rerank="cross")
    words, fused, read = service.recall_staged(params, memories)
    assert words.legs == {"words": "ran", "vector": "pending"}
    assert fused.legs == {"words": "ran", "vector": "ran", "rerank": "pending"}
    assert read.legs == {"words": "ran", "vector": "ran", "rerank": "ran"}
    assert [hit.text for hit in fused.hits][:2] == [PART, WHOLE]
    assert [hit.text for hit in read.hits][:2] == [WHOLE, PART]
    told: list[str] = []
    last = service.recall(params, memories, on_words=lambda one: told.append(str(one.legs)))
    assert told == [str(words.legs), str(fused.legs)]
    assert [hit.text for hit in last.hits] == [hit.text for hit in read.hits]


def test_without_a_cross_encoder_the_fused_order_stands_and_the_note_says_so(
    memories: KeptOpen,
) -> None:
    plain = service.recall(RecallParams(query=ASKED, rerank="off"), memories)
    found = service.recall(RecallParams(query=ASKED, rerank="cross"), memories)
    assert [hit.text for hit in found.hits] == [hit.text for hit in plain.hits]
    assert found.legs["rerank"] == "failed"
    assert "funes model install" in found.note
    assert "rerank" not in plain.legs


def test_auto_reads_only_where_that_was_measured_to_help(memories: KeptOpen, given: Path) -> None:
    sha256 = installed(given, memories)
    with memories.reading("local", whole=True) as memory:
        assert memory.dataset is not None
        stamp = memory.dataset.stamp
    settings = memories.settings
    measured = Evaluation(
        stamp=stamp,
        reranker="pairs",
        graph_sha256=sha256,
        questions=LEAST_QUESTIONS,
        gain=0.05,
        low=0.01,
    )
    assert settled(settings, stamp) == ""
    keep_evaluation(settings.home, measured)
    assert settled(settings, stamp) == "cross"
    answer = service.recall(RecallParams(query=ASKED, rerank="auto"), memories)
    assert answer.legs["rerank"] == "ran"
    assert settled(settings, "another/model") == ""
    for other in (
        replace(measured, low=-0.01),
        replace(measured, questions=LEAST_QUESTIONS - 1),
        replace(measured, graph_sha256="0" * 64),
    ):
        keep_evaluation(settings.home, other)
        assert settled(settings, stamp) == ""
    assert "rerank" not in service.recall(RecallParams(query=ASKED), memories).legs


def test_the_command_installs_and_lists_it(own_home: Path, given: Path) -> None:
    done = funes("model", "install", "reader", "--from", str(given), "--json")
    assert done.json["name"] == "reader"
    listed = funes("model", "list", "--json").json
    assert [one["name"] for one in listed["rerankers"]] == ["reader"]
    assert "reader" not in [one["name"] for one in listed["models"]]
    assert "cross-encoder" in funes("model", "list").out
