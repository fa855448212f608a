"""What is published is what the reference would publish, and what it publishes can be read."""

from pathlib import Path

import lancedb
import pytest

from tests.e2e.cli import funes, index, recall
from tests.hub import published
from tests.hub.published import Encode
from tests.sessions import record, write
from tests.tiny_model import STAMP


def test_our_own_rows_are_as_the_reference_wants_them(own_home: Path, funes_home: Path) -> None:
    turns = [record(f"the kettle number {n} boils", uuid=f"u{n}") for n in range(5)]
    write(own_home / ".claude" / "projects" / "p" / "s1.jsonl", turns)
    index()
    assert published.faults(funes_home / "memory", stamp=STAMP) == []


def test_the_checker_tells_what_is_wrong(tmp_path: Path, encode: Encode) -> None:
    rows = published.talk("s1", 4)
    good = published.publish(tmp_path / "good", rows, encode, stamp=STAMP)
    assert published.faults(good, stamp=STAMP) == []
    assert published.faults(good, stamp="another/model")
    older = published.publish(tmp_path / "older", rows, encode, without=published.LATER)
    assert published.faults(older, stamp=published.REFERENCE_STAMP)
    twice = published.publish(tmp_path / "twice", rows + rows[:1], encode, stamp=STAMP)
    assert published.faults(twice, stamp=STAMP) == ["ids repeat"]
    rows[1]["source_path"] = None
    null = published.publish(tmp_path / "null", rows, encode, stamp=STAMP)
    assert published.faults(null, stamp=STAMP) == ["source_path is null somewhere"]


@pytest.mark.parametrize("without", [(), published.LATER])
@pytest.mark.parametrize("stamp", [STAMP, ""])
def test_a_memory_of_the_reference_on_disk_is_recalled(
    tmp_path: Path, encode: Encode, without: tuple[str, ...], stamp: str
) -> None:
    rows = published.talk("s1", 12) + published.talk("s2", 4, about="spindles")
    base = published.publish(tmp_path / "kb", rows, encode, stamp=stamp, without=without)
    hits = recall("spindles valve", "--memory", str(base))
    assert hits[0]["session_id"] == "s2"
    turn = funes("get", "s2", "s2-1", "--memory", str(base))
    assert rows[13]["text"] in turn.out


def test_an_indexed_memory_of_many_rows_is_recalled(tmp_path: Path, encode: Encode) -> None:
    rows = published.talk("s1", 300) + published.talk("s2", 4, about="spindles")
    base = published.publish(tmp_path / "kb", rows, encode, stamp=STAMP)
    kinds = {one.index_type for one in lancedb.connect(base).open_table("chunks").list_indices()}
    assert kinds == {"FTS", "IvfPq"}
    assert recall("spindles valve", "--memory", str(base))[0]["session_id"] == "s2"
    published.extend(base, published.talk("s3", 4, about="gaskets"), encode)
    assert recall("gaskets valve", "--memory", str(base))[0]["session_id"] == "s3"
