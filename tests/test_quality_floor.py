"""How good recall is: the shipped questions keep their floor, by words alone and as shipped."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.quality import locomo, runs
from benchmarks.quality.__main__ import below_floor, load_questions
from benchmarks.quality.abstention import auroc
from benchmarks.quality.intervals import differences
from benchmarks.quality.measures import COLUMNS, Found, Gold, score, squeezed
from benchmarks.quality.sample_memory import ASKED_AT_US, SESSIONS, make_memory
from benchmarks.quality.stages import stages_of
from funes_ls.indexer.memory import open_memory
from funes_ls.indexer.settings import Settings
from funes_ls.memories import KeptOpen
from tests.funes_ls.models.test_real_minilm import real_model
from tests.test_samples import personal_things


def measured(settings: Settings, *stages: str) -> runs.Run:
    memories = KeptOpen(settings)
    try:
        return runs.run(
            "shipped", load_questions(), {"": memories}, stages_of(stages), at_us=ASKED_AT_US
        )
    finally:
        memories.close()


def told_apart(stage: runs.Stage) -> float:
    """Return how well confidence tells questions with an answer from those without."""
    asked = load_questions()
    answered = [stage.confidences[one.qid] for one in asked if one.gold]
    return auroc(answered, [stage.confidences[one.qid] for one in asked if not one.gold])


@pytest.fixture(scope="module")
def words_only(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return make_memory(tmp_path_factory.mktemp("quality") / "home", model=None)


def test_words_alone_keep_their_floor(words_only: Settings) -> None:
    run = measured(words_only, "words")
    assert below_floor(run) == []
    assert told_apart(run.stages["words"]) >= 0.86


@pytest.mark.model
@pytest.mark.timeout(900)
def test_what_is_shipped_keeps_its_floor(tmp_path: Path) -> None:
    settings = make_memory(tmp_path / "home", model=real_model("all-MiniLM-L6-v2-int8"))
    run = measured(settings, "fused", "shipped")
    assert below_floor(run) == []
    assert told_apart(run.stages["shipped"]) >= 0.90


def test_every_quote_stands_in_its_turn(words_only: Settings) -> None:
    memory = open_memory(words_only.memory_dir, derived=words_only.home / "derived")
    texts: dict[tuple[str, str], str] = {}
    for row in memory.catalog.next_pending(1_000_000):
        key = (row.session_id, row.turn_uuid)
        texts[key] = f"{texts.get(key, '')} {squeezed(row.text)}"
    memory.close()
    gold = [entry for question in load_questions() for entry in question.gold]
    assert [
        one for one in gold if squeezed(one.quote) not in texts[one.session_id, one.turn_uuid]
    ] == []


def test_there_are_enough_questions_of_each_kind() -> None:
    questions = load_questions()
    kinds = Counter(question.kind for question in questions)
    assert len({question.qid for question in questions}) == len(questions)
    assert sum(1 for question in questions if question.gold) >= 60
    assert kinds["none"] == sum(1 for question in questions if not question.gold) >= 10
    assert set(kinds) == {
        *("command", "config", "decision", "error_fix", "none", "rejected", "where")
    }
    assert {question.style for question in questions} == {"exact", "named", "paraphrase"}


def test_nobody_is_in_the_sessions_beside_the_questions() -> None:
    for path in SESSIONS.glob("*.txt"):
        assert personal_things(path.read_text(encoding="utf-8")) == set()


def test_several_passages_of_one_turn_count_once() -> None:
    gold = (
        Gold(session_id="one", turn_uuid="turn-of-sixteen-or-more", quote=""),
        Gold(session_id="two", turn_uuid="7", quote="a quote of more than twenty characters"),
    )
    found = [
        Found(session_id="zero", turn_uuid="7", text="nothing"),
        Found(session_id="zero", turn_uuid="7", text="the same turn again"),
        Found(session_id="two", turn_uuid="7", text="short"),
        Found(
            session_id="x", turn_uuid="9", text="a quote of more  than\ntwenty characters, copied"
        ),
        Found(session_id="one-and-more", turn_uuid="turn-of-sixteen-or-more", text=""),
    ]
    got = score(found, gold)
    assert (got["hit@1"], got["hit@5"], got["mrr"], got["recall@10"]) == (0.0, 1.0, 0.5, 1.0)
    assert got["ndcg@10"] == pytest.approx((0.6309 + 0.4307) / (1 + 0.6309), abs=1e-3)
    assert score([], gold) == dict.fromkeys(COLUMNS, 0.0)


def test_intervals_tell_a_real_difference_from_luck() -> None:
    old = {str(n): {"mrr": 0.5} for n in range(100)}
    better = {str(n): {"mrr": 0.5 + 0.1 * (n % 3)} for n in range(100)}
    swapped = {str(n): {"mrr": 0.5 + (0.3 if n % 2 else -0.3)} for n in range(100)}
    (real,) = differences(old, better, ["mrr"])
    (luck,) = differences(old, swapped, ["mrr"])
    assert real.low > 0.05
    assert (real.wins, real.losses, real.n) == (66, 0, 100)
    assert luck.low < 0 < luck.high
    assert differences(old, old, ["mrr"])[0].high == 0.0


def test_auroc_of_what_is_apart_the_same_and_in_between() -> None:
    assert auroc([0.9, 0.8], [0.1]) == 1.0
    assert auroc([0.5], [0.5]) == 0.5
    assert auroc([0.9, 0.1], [0.5]) == 0.5


def test_a_file_shaped_as_locomos_becomes_a_memory_and_questions(
    tmp_path: Path, tiny_model: Path
) -> None:
    talk = {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"dia_id": "D1:1", "speaker": "Ada", "text": "I adopted a grey parrot"},
            {"dia_id": "D1:2", "speaker": "Bo", "text": "Lovely, what is its name?"},
        ],
        "session_2": [{"dia_id": "D2:1", "speaker": "Ada", "text": "The parrot is called Rufus"}],
    }
    asked = [
        {"question": "what is the parrot called", "evidence": ["D2:1"], "category": 1},
        {"question": "which car does Bo drive", "evidence": [], "category": 5},
        {"question": "who knows", "evidence": ["D9:9"], "category": 2},
    ]
    sample = {"sample_id": "one", "conversation": talk, "qa": asked}
    questions = locomo.questions_of(sample, "one")
    memories = KeptOpen(locomo.make_memory(sample, tmp_path / "home", tiny_model))
    try:
        run = runs.run("dialogue", questions, {"one": memories}, stages_of(["shipped"]))
    finally:
        memories.close()
    assert [(one.qid, len(one.gold)) for one in questions] == [("one-0", 1), ("one-1", 0)]
    assert run.stages["shipped"].scores["one-0"]["hit@1"] == 1.0
    dates = {row.ts for _, rows in locomo.sessions_of(sample) for row in rows}
    assert dates == {"2023-05-08T13:56:00Z", "2023-05-08T13:57:00Z", ""}
