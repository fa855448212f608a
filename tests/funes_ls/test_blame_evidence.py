"""A blame beside a repository: what git and the records of other tools add to what traces say."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from funes_ls.git_notes import keys_of
from tests.e2e.cli import funes, index
from tests.funes_ls.repositories import Repository
from tests.sessions import record, tool_result, tool_use, write

pytestmark = pytest.mark.timeout(60)

#: 2026-01-05 10:00 UTC; the session runs then.
THEN = 1_767_607_200
DAY = 86_400
SESSION = "8f5a6ead-9275-451c-af5a-03819de50bab"
LINES = [
    "def first_of_them(values):",
    "    return min(values, default=None)",
    "",
    "",
    "def last_of_them(values):",
    "    return max(values, default=None)",
]
TEXT = "\n".join(LINES) + "\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


def a_session(home: Path, file: Path, text: str, *, timed: bool = True) -> None:
    """Leave the trace of a session that wrote a file, and index it."""
    more = {"cwd": str(file.parent)}
    call = tool_use("Write", {"file_path": str(file), "content": text}, id="t1")
    records = [
        record("Write the helpers", uuid="u1", ts="2026-01-05T10:00:00Z", **more),
        record("I write them now.", uuid="a1", role="assistant", ts="2026-01-05T10:00:05Z", **more),
        record(call, uuid="a2", role="assistant", ts="2026-01-05T10:00:06Z", **more),
        record(
            tool_result("File created successfully", id="t1"),
            uuid="u2",
            ts="2026-01-05T10:00:07Z",
            **more,
        ),
    ]
    if not timed:
        records = [{k: v for k, v in one.items() if k != "timestamp"} for one in records]
    write(home / ".claude" / "projects" / "-work-repo" / f"{SESSION}.jsonl", records)
    index()


def blame(file: Path) -> list[tuple[int, int, str, str]]:
    ran = funes("blame", str(file), "--json")
    assert ran.code == 0, ran.err
    return [
        (one["start"], one["end"], one["confidence"], one["evidence"]) for one in ran.json["lines"]
    ]


def attach(repo: Repository, attested: str, **about: Any) -> None:
    key = keys_of("claude", SESSION)[0]
    agent = {"agent_id": {"tool": "claude", "id": SESSION, "model": "m"}}
    head = {"schema_version": "authorship/3.0.0", "prompts": {key: agent}} | about
    text = f"a.py\n{attested.replace('SESSION', key)}\n---\n{json.dumps(head)}".encode()
    repo.git("notes", "--ref=ai", "add", "-f", "-F", "-", stdin=text, date=THEN)


def test_what_was_committed_before_a_session_is_not_its_work(
    repo: Repository, own_home: Path
) -> None:
    file = repo.write("a.py", TEXT)
    a_session(own_home, file, TEXT)
    assert blame(file) == [(1, 6, "exact", "trace")]
    repo.commit(date=THEN - DAY)
    assert blame(file) == []


def test_what_was_committed_afterwards_may_be_its_work(repo: Repository, own_home: Path) -> None:
    file = repo.write("a.py", TEXT)
    a_session(own_home, file, TEXT)
    repo.commit(date=THEN + DAY, author=THEN - DAY)  # a rebase keeps the author's date
    assert blame(file) == [(1, 6, "exact", "trace")]


def test_a_commit_of_the_same_moment_is_after_it(repo: Repository, own_home: Path) -> None:
    file = repo.write("a.py", TEXT)
    a_session(own_home, file, TEXT)
    repo.commit(date=THEN + 6)
    assert blame(file) == [(1, 6, "exact", "trace")]


def test_a_session_without_times_may_be_older_than_its_file(
    repo: Repository, own_home: Path
) -> None:
    file = repo.write("a.py", TEXT)
    repo.commit(date=THEN - DAY)
    a_session(own_home, file, TEXT, timed=False)
    assert blame(file) == [(1, 6, "exact", "trace")]


def test_a_note_confirms_its_session(repo: Repository, own_home: Path) -> None:
    file = repo.write("a.py", TEXT)
    repo.commit(date=THEN + DAY)
    a_session(own_home, file, TEXT)
    attach(repo, "  SESSION 1-2")
    assert blame(file) == [(1, 2, "exact", "git-ai"), (3, 6, "exact", "trace")]


def test_a_note_of_another_session_or_a_person_ends_a_claim(
    repo: Repository, own_home: Path
) -> None:
    file = repo.write("a.py", TEXT)
    repo.commit(date=THEN + DAY)
    a_session(own_home, file, TEXT)
    other = keys_of("cursor", "elsewhere")[0]
    attach(repo, f"  {other} 1-2\n  h_12345678901234 5-6")
    assert blame(file) == [(3, 4, "exact", "trace")]


def test_a_note_names_the_session_of_lines_no_call_explains(
    repo: Repository, own_home: Path
) -> None:
    file = repo.write("a.py", "made by a program of the session\n" + TEXT)
    repo.commit(date=THEN + DAY)
    a_session(own_home, file, TEXT)
    attach(repo, "  SESSION 1")
    assert blame(file) == [(1, 1, "similar", "git-ai"), (2, 7, "exact", "trace")]


def test_a_record_of_agent_trace_confirms_its_session(repo: Repository, own_home: Path) -> None:
    file = repo.write("a.py", TEXT)
    a_session(own_home, file, TEXT)
    digest = hashlib.sha256("\n".join(LINES[4:]).encode()).hexdigest()
    talk = {
        "url": f"file:///home/ada/.claude/projects/-work-repo/{SESSION}.jsonl",
        "contributor": {"type": "ai"},
        "ranges": [{"start_line": 5, "end_line": 6, "content_hash": f"sha256:{digest}"}],
    }
    made = {
        "version": "0.1.0",
        "id": "550e8400-e29b-41d4-a716-446655440000",
        "timestamp": "2026-01-05T10:00:07Z",
        "files": [{"path": "a.py", "conversations": [talk]}],
    }
    repo.write(".agent-trace/traces.jsonl", json.dumps(made) + "\n")
    assert blame(file) == [(1, 4, "exact", "trace"), (5, 6, "exact", "agent-trace")]
    repo.write("a.py", TEXT.replace("max", "sorted"))
    assert [one[3] for one in blame(file)] == ["trace"] * len(blame(file))
