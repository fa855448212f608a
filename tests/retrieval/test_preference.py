"""A question that names a date, an agent, a session or a file gets what a person expects."""

from datetime import UTC
from pathlib import Path

import numpy as np
import pytest

from funes_ls.indexer.catalog import Session
from funes_ls.indexer.embedding import Embedder
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.times import parse_ts
from funes_ls.retrieval.answers import RecallAnswer, RecallFilter, RecallRequest
from funes_ls.retrieval.preference import newest_factors, with_plain_answer
from funes_ls.retrieval.recall import recall
from tests.retrieval.building import NOW_US, memory_of, said

CODEX_ID = "019e3f92-2d48-7d76-993a-b137cc3a57c9"
#: Asked on 2026-03-10, a Tuesday.
TALK = [
    said("5a1f0c77", 0, "Retry the upload five times, no backoff.", ts="2026-01-14T10:00:00Z"),
    said("6b2e1d88", 0, "Retry the upload three times, with backoff.", ts="2026-02-17T10:00:00Z"),
    said(CODEX_ID, 0, "Retry the upload twice and tell the user.", ts="2026-03-03T10:00:00Z",
         harness="codex"),
    said("7c3d2e99", 0, "The march of retries: upload again until it works.",
         ts="2025-11-05T10:00:00Z"),
    *[said("filler", n, f"retry the upload {n} more", ts="2025-12-01T10:00:00Z")
      for n in range(30)],
]  # fmt: skip
SESSIONS = [
    Session(
        session_id=row.session_id,
        harness=row.harness,
        started_us=parse_ts(row.ts),
        ended_us=parse_ts(row.ts),
    )
    for row in {row.session_id: row for row in TALK}.values()
]


def ask(
    memory: Memory, query: str, embedder: Embedder | None = None, **limits: str
) -> RecallAnswer:
    request = RecallRequest(query=query, filter=RecallFilter(**limits), half_life_days=0.0)  # type: ignore[arg-type]
    return recall(request, memory, embedder, now_us=NOW_US, zone=UTC)


@pytest.mark.parametrize(
    ("query", "first", "note"),
    [
        ("how often did we retry the upload in January", "5a1f0c77", "of January"),
        ("retry the upload, 17 February 2026", "6b2e1d88", "of 17 February 2026"),
        ("retry the upload 2026-03-03", CODEX_ID, "of 2026-03-03"),
        ("retry the upload last Tuesday", CODEX_ID, "of last Tuesday"),
        ("retry the upload last week", CODEX_ID, "of last week"),
        ("retry the upload in november", "7c3d2e99", "of november"),
        ("retry the upload in codex", CODEX_ID, "in codex"),
        ("how did codex sessions retry the upload", CODEX_ID, "in codex"),
        ("retry the upload in 5a1f0c77", "5a1f0c77", "in session 5a1f0c77"),
        (f"retry the upload in {CODEX_ID[:13]}", CODEX_ID, f"in session {CODEX_ID}"),
        (f"{CODEX_ID}", CODEX_ID, f"in session {CODEX_ID}"),
        ("what did codex sessions retry in March", CODEX_ID, "of March, in codex"),
    ],
)
def test_what_is_named_comes_first_and_the_note_says_so(
    query: str, first: str, note: str, funes_home: Path
) -> None:
    with memory_of(funes_home, TALK, sessions=SESSIONS) as memory:
        answer = ask(memory, query)
    assert answer.hits[0].session_id == first
    assert f"What was said {note} comes first" in answer.note
    assert not answer.weak
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)


def test_an_id_alone_shows_how_its_session_began(funes_home: Path, embedder: Embedder) -> None:
    rows = [
        said("5a1f0c77", 0, "<environment_context>\n  <cwd>/work</cwd>\n</environment_context>"),
        said("5a1f0c77", 1, "Please look at the pump"),
        *[said("5a1f0c77", n, f"the pump turns at {n} rounds, which is fine for now",
               role="assistant") for n in range(2, 30)],
        *[said("other", n, f"valve {n}") for n in range(30)],
    ]  # fmt: skip
    with memory_of(funes_home, rows, embedder=embedder) as memory:
        answer = ask(memory, "5a1f0c77", embedder)
    assert answer.hits[0].text == "Please look at the pump"
    assert {hit.session_id for hit in answer.hits} == {"5a1f0c77"}
    assert (answer.legs["vector"], answer.weak) == ("off", False)


def test_with_vectors_too(funes_home: Path, embedder: Embedder) -> None:
    with memory_of(funes_home, TALK, sessions=SESSIONS, embedder=embedder) as memory:
        answer = ask(memory, "retry the upload in codex", embedder)
    assert answer.legs == {"words": "ran", "vector": "ran"}
    assert answer.hits[0].session_id == CODEX_ID


def test_the_plain_answer_is_never_lost(funes_home: Path) -> None:
    rows = [
        said("plain", 0, "what the march of progress means for the ticket printer",
             ts="2025-06-01T10:00:00Z"),
        *[said("other", n, f"ticket printer in progress, part {n}", ts="2026-03-02T10:00:00Z")
          for n in range(40)],
    ]  # fmt: skip
    sessions = [
        Session(session_id=name, harness="claude_code", started_us=at, ended_us=at)
        for name, at in (
            ("plain", parse_ts("2025-06-01T10:00:00Z")),
            ("other", parse_ts("2026-03-02T10:00:00Z")),
        )
    ]
    with memory_of(funes_home, rows, sessions=sessions) as memory:
        answer = ask(memory, "ticket printer progress in march of progress")
    assert "of march" in answer.note
    assert "plain" in [hit.session_id for hit in answer.hits[:3]]


@pytest.mark.parametrize(
    "query",
    [
        "retry the upload",
        "may we retry the upload",
        "retry the upload on a raspberry pi",
        "retry the upload in pipes",
        "retry the upload deadbeef",
        "retry the upload 5a1f0c78",
        "retry the upload in hermes",
        "retry the upload in main.py",
        " ".join(["retry the upload in January"] * 20),
    ],
)
def test_nothing_is_preferred_where_nothing_is_named(query: str, funes_home: Path) -> None:
    with memory_of(funes_home, TALK, sessions=SESSIONS) as memory:
        answer = ask(memory, query)
    assert "comes first" not in answer.note


def test_a_time_without_any_session_is_said_and_changes_nothing(funes_home: Path) -> None:
    with memory_of(funes_home, TALK, sessions=SESSIONS) as memory:
        named = ask(memory, "retry the upload in 2019")
        plain = ask(memory, "retry the upload 2019 in")
    assert named.note.startswith("No session is of 2019.")
    assert [hit.turn_uuid for hit in named.hits] == [hit.turn_uuid for hit in plain.hits]


def test_what_all_sessions_are_of_is_no_preference(funes_home: Path) -> None:
    rows = [said("one", 0, "retry the upload"), said("two", 0, "retry the upload twice")]
    with memory_of(funes_home, rows) as memory:
        assert "comes first" not in ask(memory, "retry the upload in claude").note


def test_filters_that_were_given_are_not_second_guessed(funes_home: Path) -> None:
    with memory_of(funes_home, TALK, sessions=SESSIONS) as memory:
        answer = ask(memory, "retry the upload in codex in January", harness="claude")
        none_left = ask(memory, "retry the upload in January", harness="codex")
    assert {hit.harness for hit in answer.hits} == {"claude_code"}
    assert answer.hits[0].session_id == "5a1f0c77"
    assert [hit.session_id for hit in none_left.hits] == [CODEX_ID]


def test_who_asks_for_the_latest_gets_the_newest_of_what_fits(funes_home: Path) -> None:
    rows = [
        said("old", 0, "we retry the upload five times", ts="2025-05-01T10:00:00Z"),
        said(
            "new", 0, "the upload now has three retries, we retry less", ts="2026-02-01T10:00:00Z"
        ),
        said("off", 0, "upload of the holiday pictures", ts="2026-03-01T10:00:00Z"),
    ]
    with memory_of(funes_home, rows) as memory:
        plain = [hit.session_id for hit in ask(memory, "how often do we retry the upload").hits]
        latest = ask(memory, "how often do we retry the upload nowadays").hits
    assert plain[0] == "old"
    assert [hit.session_id for hit in latest][:2] == ["new", "old"]


def test_newest_factors_stay_within_their_bounds() -> None:
    times = np.array([0.0, 5.0, 10.0, np.nan, 20.0])
    scores = np.array([1.0, 0.9, 0.7, 0.8, 0.1])
    assert newest_factors(times, scores).tolist() == [0.75, 0.875, 1.0, 0.875, 1.0]
    assert newest_factors(times[:1], scores[:1]).tolist() == [1.0]
    assert newest_factors(np.full(2, np.nan), np.ones(2)).tolist() == [1.0, 1.0]
    assert len(newest_factors(np.zeros(0), np.zeros(0))) == 0


def test_sessions_that_touched_a_named_file_come_before_equals(funes_home: Path) -> None:
    rows = [
        said("read", 0, "tune the queue size", ts="2026-01-01T10:00:00Z"),
        said("touched", 0, "tune the queue size", ts="2026-01-02T10:00:00Z"),
    ]
    files = {"touched": ["/work/demo/src/queue.py"]}
    with memory_of(funes_home, rows, files=files) as memory:
        hits = ask(memory, "queue size in src/queue.py").hits
    assert [hit.session_id for hit in hits] == ["touched", "read"]


def test_the_best_of_the_rest_is_raised_to_the_third_place_if_it_stands_below() -> None:
    plain = np.array([1.0, 0.9, 0.8, 0.7, 0.6])
    factors = np.array([0.5, 1.0, 1.0, 1.0, 1.0])
    raised = with_plain_answer(plain * factors, plain, factors)
    assert np.argsort(-raised, kind="stable").tolist() == [1, 2, 0, 3, 4]
    assert with_plain_answer(plain, plain, np.ones(5)) is plain
    first = with_plain_answer(plain, plain, np.array([0.9, 1.0, 1.0, 1.0, 1.0]))
    assert np.argsort(-first, kind="stable").tolist() == [0, 1, 2, 3, 4]
    assert len(with_plain_answer(np.zeros(0), np.zeros(0), np.zeros(0))) == 0
