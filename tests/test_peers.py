"""The other ways to search find what is there, so that comparing with them means something."""

import shutil
from pathlib import Path

import pytest

from benchmarks.peers import systems
from benchmarks.peers.__main__ import all_rows, measured, table
from benchmarks.quality.measures import Gold, Labelled
from funes_ls.indexer.memory import open_memory
from funes_ls.indexer.settings import Settings
from funes_ls.memories import KeptOpen
from tests.conftest import GOLDEN
from tests.e2e.cli import index

SAMPLES = Path(__file__).parent / "traces" / "home"
QUESTION = "integral keeps growing, unwind when the hold begins"


@pytest.fixture
def settings(own_home: Path, tiny_model: Path) -> Settings:
    shutil.copytree(SAMPLES, own_home, dirs_exist_ok=True)
    index("--yes", "--words-only")
    return Settings(home=own_home / ".funes", model=str(tiny_model))


def test_each_ranks_the_passage_with_the_rare_words_first(settings: Settings) -> None:
    memory = open_memory(settings.memory_dir, derived=settings.home / "derived")
    with memory, memory.snapshot() as view:
        rows = all_rows(view)
        for make in (systems.tantivy, systems.fts5):
            first = systems.of_rows(rows, make(rows))(QUESTION)[0]
            assert first.text.startswith("Integral windup")


def test_the_table_has_every_system_that_can_run(settings: Settings, own_home: Path) -> None:
    gold = (Gold(session_id="79c46acc", turn_uuid="-", quote="Integral windup. During the ramp"),)
    asked = [Labelled(qid="1", query=QUESTION, gold=gold)]
    memories = KeptOpen(settings)
    try:
        rows = measured(memories, own_home, asked, rg=shutil.which("rg") or "", program="")
    finally:
        memories.close()
    names = [row.name for row in rows if row.name != "ripgrep over the traces"]
    assert names == ["tantivy alone", "SQLite FTS5, bm25()", "ours, words", "ours"]
    assert {row.means["hit@1"] for row in rows} == {1.0}
    assert table(rows).count("\n") == len(rows) + 1


def test_reciprocal_ranks_prefer_what_both_legs_found() -> None:
    legs = [lambda _q, _n: [1, 2, 3], lambda _q, _n: [4, 2, 5]]
    assert systems.reciprocal(legs)("", 2) == [2, 1]


def test_the_layout_of_recall_is_read_back() -> None:
    found = systems.passages((GOLDEN / "recall-revisited.txt").read_text(encoding="utf-8"))
    assert [one.session_id for one in found] == [
        "78a2ac99-e87e-468e-af9f-6fd92d92f53c",
        "20260602_041244_67d881",
    ]
    assert found[1].turn_uuid == "15"
    assert found[0].text.startswith("ok. What retry policy")
    assert "revisited" not in found[0].text
    assert systems.passages("no results\n") == []
