"""Hits tell where their subject came up again later."""

from pathlib import Path

import numpy as np
import pytest
from msgspec import Struct
from numpy.typing import NDArray

from funes_ls.indexer import facts_tables
from funes_ls.indexer.embedding import MINILM_STAMP, Embedder
from funes_ls.indexer.facts import FileEvent
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.times import parse_ts
from funes_ls.retrieval.answers import Hit, RecallRequest
from funes_ls.retrieval.recall import recall
from tests.retrieval.building import NOW_US, memory_of, said

HTTP, OTHER = "/work/demo/http.py", "/work/demo/other.py"
DECIDED = said("first", 0, "retry five times, we decided", ts="2026-01-05T10:00:00Z")


class Change(Struct, frozen=True):
    """An edit that succeeded."""

    session_id: str
    seq: int
    path: str
    ts: str


def found_with(home: Path, *changes: Change) -> Hit:
    """Return the hit of the decision in a memory where files were changed."""
    others = [
        said(one, 9, "something else", ts="2026-01-01T10:00:00Z") for one in ("second", "third")
    ]
    with memory_of(home, [DECIDED, *others]) as memory:
        for session_id in {one.session_id for one in changes}:
            _put(memory, session_id, [one for one in changes if one.session_id == session_id])
        answer = recall(RecallRequest(query="retry five times"), memory, None, now_us=NOW_US)
    return answer.hits[0]


def _put(memory: Memory, session_id: str, changes: list[Change]) -> None:
    facts_tables.begin(memory.catalog, session_id, anew=False)
    calls = [
        facts_tables.CallFacts(
            at=facts_tables.Provenance(
                turn_uuid=f"{session_id}-{one.seq}",
                seq=one.seq,
                block_idx=0,
                ts_us=parse_ts(one.ts),
                ask_turn_uuid="",
                reason_turn_uuid="",
            ),
            events=(FileEvent(kind="edit", path=one.path, old="a", new="b"),),
        )
        for one in changes
    ]
    facts_tables.add(memory.catalog, session_id, calls)
    facts_tables.finish(memory.catalog, session_id, b"")


def test_a_file_that_was_changed_again_is_named_with_its_latest_change(funes_home: Path) -> None:
    later = found_with(
        funes_home,
        Change("first", 1, HTTP, "2026-01-05T10:01:00Z"),
        Change("second", 1, HTTP, "2026-02-01T10:00:00Z"),
        Change("third", 1, HTTP, "2026-03-01T10:00:00Z"),
        Change("third", 3, OTHER, "2026-03-02T10:00:00Z"),
    ).revisited
    assert later is not None
    assert (later.how, later.session_id, later.turn_uuid) == ("file", "third", "third-1")
    assert (later.ts, later.path) == ("2026-03-01T10:00:00Z", HTTP)
    assert later.get == "funes get third third-1"


def test_files_changed_far_from_the_hit_are_not_its_subject(funes_home: Path) -> None:
    hit = found_with(
        funes_home,
        Change("first", 40, HTTP, "2026-01-05T11:01:00Z"),
        Change("second", 1, HTTP, "2026-02-01T10:00:00Z"),
    )
    assert hit.revisited is None


@pytest.mark.parametrize(
    ("session_id", "ts", "marked"),
    [
        ("second", "2026-01-05T10:30:00Z", False),  # the same piece of work, elsewhere
        ("second", "2026-01-04T10:00:00Z", False),  # before
        ("first", "2026-01-05T18:00:00Z", False),  # the same session goes on
        ("first", "2026-01-08T18:00:00Z", True),  # and is taken up again days later
        ("second", "2026-01-05T12:00:00Z", True),
    ],
)
def test_what_counts_as_later(session_id: str, ts: str, marked: bool, funes_home: Path) -> None:
    hit = found_with(
        funes_home,
        Change("first", 1, HTTP, "2026-01-05T10:01:00Z"),
        Change(session_id, 30, HTTP, ts),
    )
    assert (hit.revisited is not None) == marked


class Alike:
    """A model by the stamp of the fitted one: what tells of a port lies in one direction."""

    stamp, dim, max_tokens = MINILM_STAMP, 4, 256

    def encode_query(self, text: str) -> NDArray[np.float32]:
        vector = np.array([1.0, 0.1 if "port" in text else 5.0, 0.0, 0.0], dtype=np.float32)
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        return np.stack([self.encode_query(text) for text in texts])


def test_nearly_the_same_said_later_is_named(funes_home: Path) -> None:
    rows = [
        said("first", 0, "the mixer listens on port 4209", ts="2026-01-05T10:00:00Z"),
        said("second", 0, "mixer port is 4210 from now on", ts="2026-02-05T10:00:00Z"),
        said("third", 0, "the mixer is loud", ts="2026-03-05T10:00:00Z"),
    ]
    model: Embedder = Alike()  # type: ignore[assignment]  # nobody takes its vectors one by one
    with memory_of(funes_home, rows, embedder=model) as memory:
        answer = recall(RecallRequest(query="mixer port"), memory, model, now_us=NOW_US)
    found = {hit.session_id: hit.revisited for hit in answer.hits}
    assert found["second"] is None and found["third"] is None
    assert found["first"] is not None
    assert (found["first"].how, found["first"].session_id) == ("passage", "second")
