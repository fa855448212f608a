"""Which sessions touched a file, also after its checkout has moved."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from funes_ls.indexer.catalog import Session
from funes_ls.indexer.memory import Memory
from funes_ls.retrieval.related import touching
from tests.retrieval.building import memory_of, said

SESSIONS = {
    "moved": ("/old/api", "acme/api", ["/old/api/src/retry.py"]),
    "here": ("/work/api", "acme/api", ["src/retry.py", "/etc/hosts"]),
    "below": ("/work/api/src", "acme/api", ["/work/api/src/retry.py"]),
    "other": ("/work/web", "acme/web", ["src/retry.py"]),
    "nowhere": ("", "", ["src/retry.py"]),
    "else": ("/work/api", "acme/api", ["tests/src/other.py", "src/retry.pyc"]),
}


@pytest.fixture
def memory(funes_home: Path) -> Iterator[Memory]:
    sessions = [
        Session(session_id=name, harness="claude_code", cwd=cwd, repo=repo, ended_us=at)
        for at, (name, (cwd, repo, _)) in enumerate(SESSIONS.items(), start=1)
    ]
    with memory_of(
        funes_home,
        [said(name, 0, "Retry twice.") for name in SESSIONS],
        sessions=sessions,
        files={name: files for name, (_, _, files) in SESSIONS.items()},
    ) as made:
        yield made


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/work/api/src/retry.py", ["below", "here", "moved"]),
        ("/old/api/src/retry.py", ["below", "here", "moved"]),
        ("/work/web/src/retry.py", ["other"]),
        ("src/retry.py", ["nowhere", "other", "below", "here", "moved"]),
        ("retry.py", ["nowhere", "other", "below", "here", "moved"]),
        ("/elsewhere/src/retry.py", []),
        ("/etc/hosts", ["here"]),
        ("/work/api/src", []),
        ("etry.py", []),
        ("", []),
    ],
)
def test_sessions_are_found_by_the_file(memory: Memory, path: str, expected: list[str]) -> None:
    assert [one.session_id for one in touching(memory, path)] == expected


def test_a_checkout_that_no_session_ran_in_is_known_by_its_repository(memory: Memory) -> None:
    found = touching(memory, "/new/place/src/retry.py", repos=["Acme/API"])
    assert [one.session_id for one in found] == ["below", "here", "moved"]
