"""Publishing with the real client to a Hub on loopback: what leaves, what stays, what fails."""

from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest

from tests.e2e.cli import funes, index
from tests.hub import published
from tests.hub.fakehub import FakeHub, moved, told
from tests.sessions import append, record, write
from tests.tiny_model import STAMP

NAME = "acme/kb"
#: The client hands a file to its library in an old way.
pytestmark = pytest.mark.filterwarnings("ignore:Use .content=:DeprecationWarning")


@pytest.fixture(autouse=True)
def as_owner(hub_env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process speak to the Hub on loopback as one who may write."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    for name, value in hub_env.items():
        monkeypatch.setenv(name, value)


def trace(home: Path, session: str = "s1") -> Path:
    return home / ".claude" / "projects" / "-home-dev-api" / f"{session}.jsonl"


def talk(session: str, count: int, *, start: int = 0, **more: Any) -> list[dict[str, Any]]:
    return [
        record(f"the kettle number {n} of {session} boils over", uuid=f"{session}-{n}", **more)
        for n in range(start, start + count)
    ]


def push(*options: str, name: str = NAME) -> dict[str, Any]:
    ran = funes("push", name, "--json", *options)
    assert ran.code == 0, ran.err
    answer: dict[str, Any] = ran.json
    return answer


def test_a_first_publish_is_one_commit_that_the_reference_can_read(
    hub: FakeHub, own_home: Path, tmp_path: Path
) -> None:
    write(trace(own_home), talk("s1", 5, cwd=f"{own_home}/api"))
    index()
    hub.add_repo(NAME, private=True)
    answer = push()
    assert answer["state"] == "pushed" and answer["first"]
    assert (answer["passages"], answer["chunks"]) == (5, 5)
    base = hub.checkout(NAME, tmp_path / "out")
    assert published.faults(base, stamp=STAMP) == []
    assert len(hub.asked("POST", "/commit/")) == 1


def test_what_is_new_is_one_small_commit_of_few_requests(
    hub: FakeHub, own_home: Path, tmp_path: Path
) -> None:
    path = write(trace(own_home), talk("s1", 300))
    index()
    hub.add_repo(NAME)
    push()
    append(path, talk("s1", 50, start=300))
    index()
    requests = hub.during(push)
    assert len(requests) <= 15, "\n".join(told(requests))
    assert moved(requests) < 300_000
    base = hub.checkout(NAME, tmp_path / "out")
    assert published.faults(base, stamp=STAMP) == []
    assert push()["state"] == "up_to_date"


def test_taken_back_sessions_are_in_no_file_and_not_sent_again(
    hub: FakeHub, own_home: Path, tmp_path: Path
) -> None:
    write(trace(own_home), talk("s1", 5))
    write(trace(own_home, "s2"), talk("s2", 5))
    index()
    hub.add_repo(NAME)
    push()
    ran = funes("unpublish", "s2", NAME, "--yes", "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["chunks"], ran.json["left"]) == (5, 5)
    assert ran.json["squashed"] and ran.json["purged"]
    base = hub.checkout(NAME, tmp_path / "out")
    assert published.faults(base, stamp=STAMP) == []
    assert {row["session_id"] for row in published.rows_of(base)} == {"s1"}
    assert push()["state"] == "up_to_date"
