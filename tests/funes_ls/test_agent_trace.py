"""What Agent Trace records say of lines, and when it no longer holds."""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from funes_ls.agent_trace import ranges_in
from funes_ls.content_hashes import murmur3_128
from funes_ls.git_evidence import GitEvidence
from funes_ls.git_views import Evidence
from tests.funes_ls.repositories import Repository

pytestmark = pytest.mark.timeout(60)

MON = 1_767_225_600
SESSION = "8f5a6ead-9275-451c-af5a-03819de50bab"
LINES = [f"line number {n} of the file" for n in range(1, 11)]
TEXT = "\n".join(LINES) + "\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


def sha256(lines: Sequence[str], end: str = "") -> str:
    return "sha256:" + hashlib.sha256(("\n".join(lines) + end).encode()).hexdigest()


def at(second: float) -> str:
    return f"{second:.3f}"


def record(path: str, *ranges: dict[str, Any], when: float = MON, **more: Any) -> dict[str, Any]:
    """Return a record as the specification has it."""
    talk = {
        "url": f"file:///home/ada/.claude/projects/x/{SESSION}.jsonl",
        "contributor": {"type": "ai", "model_id": "anthropic/claude-x"},
        "ranges": list(ranges),
    }
    return {
        "version": "0.1.0",
        "id": "550e8400-e29b-41d4-a716-446655440000",
        "timestamp": at(when),
        "tool": {"name": "claude-code"},
        "files": [{"path": path, "conversations": [talk]}],
        **more,
    }


def lines(start: int, end: int, content_hash: str = "", **more: Any) -> dict[str, Any]:
    hashed = {"content_hash": content_hash} if content_hash else {}
    return {"start_line": start, "end_line": end, **hashed, **more}


def keep(root: Path, *records: object, name: str = "traces.jsonl") -> None:
    folder = root / ".agent-trace"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(one) + "\n" for one in records))


def look(path: Path, text: list[str] | None = None) -> tuple[Evidence, ...]:
    return GitEvidence(patience_s=20).look(path, text).evidence


def spans(found: tuple[Evidence, ...]) -> list[tuple[int, int, str]]:
    return [(one.start, one.end, one.who) for one in found]


def test_lines_with_their_hash_name_their_session(repo: Repository) -> None:
    file = repo.write("src/a.py", TEXT)
    keep(repo.root, record("src/a.py", lines(3, 5, sha256(LINES[2:5]))))
    (found,) = look(file)
    assert (found.start, found.end, found.kind, found.who) == (3, 5, "agent-trace", "ai")
    assert (found.harness, found.model, found.path) == (
        "claude_code",
        "anthropic/claude-x",
        "src/a.py",
    )
    assert found.is_of(SESSION)
    assert not found.is_of("another")
    assert found.ts_us == MON * 1_000_000


def test_lines_are_known_where_they_are_now(repo: Repository) -> None:
    file = repo.write("a", TEXT)
    keep(repo.root, record("a", lines(3, 5, sha256(LINES[2:5], "\n"))))
    assert spans(look(file, ["new", "new too", *LINES])) == [(5, 7, "ai")]
    assert spans(look(file, LINES[2:5])) == [(1, 3, "ai")]


def test_lines_that_changed_are_not_claimed(repo: Repository) -> None:
    file = repo.write("a", TEXT)
    keep(repo.root, record("a", lines(3, 5, sha256(LINES[2:5]))))
    changed = [*LINES[:3], "changed", *LINES[4:]]
    assert look(file, changed) == ()
    assert look(file, [*LINES[2:5], *LINES[2:5]]) == ()  # twice: which of them?
    assert look(file, []) == ()


def test_a_record_without_a_hash_holds_for_no_other_text(repo: Repository) -> None:
    file = repo.write("a", TEXT)
    first = repo.commit(date=MON)
    # Made while working on top of a commit: its lines are not those of the commit.
    vcs = {"type": "git", "revision": first}
    keep(repo.root, record("a", lines(3, 5), when=MON + 600, vcs=vcs))
    os.utime(file, (MON, MON))
    assert look(file) == ()
    repo.write("a", "top\n" + TEXT)
    repo.commit(date=MON + 700)
    assert look(file) == ()


def test_a_record_of_a_commit_holds_for_what_the_commit_left(repo: Repository) -> None:
    file = repo.write("a", TEXT)
    first = repo.commit(date=MON)
    keep(repo.root, record("a", lines(3, 5), when=MON + 1, vcs={"type": "git", "revision": first}))
    assert spans(look(file)) == [(3, 5, "ai")]
    repo.write("a", "\n".join(["top", *LINES[:3], "changed", *LINES[4:]]) + "\n")
    repo.commit(date=MON + 700)
    assert spans(look(file)) == [(4, 4, "ai"), (6, 6, "ai")]
    for vcs in ({"type": "git", "revision": "0" * 40}, {"type": "jj", "revision": first}):
        keep(repo.root, record("a", lines(3, 5), when=MON + 1, vcs=vcs))
        assert look(file) == ()


def test_a_record_made_with_the_file_holds_until_it_is_touched(repo: Repository) -> None:
    file = repo.write("a", TEXT)
    os.utime(file, (MON, MON))
    keep(repo.root, record("a", lines(3, 5), when=MON + 0.5))
    assert spans(look(file)) == [(3, 5, "ai")]
    assert look(file, [*LINES, "unsaved"]) == ()
    os.utime(file, (MON + 60, MON + 60))
    assert look(file) == ()


def test_of_several_such_records_only_the_last_can_be_right(repo: Repository) -> None:
    file = repo.write("a", TEXT)
    os.utime(file, (MON + 1, MON + 1))
    keep(repo.root, record("a", lines(3, 5), when=MON), record("a", lines(7, 8), when=MON + 1))
    assert spans(look(file)) == [(7, 8, "ai")]


@pytest.mark.parametrize(
    ("start", "end", "is_taken"), [(1, 1, False), (1, 4, False), (1, 10, True)]
)
def test_a_place_at_the_top_may_stand_for_none(
    repo: Repository, start: int, end: int, is_taken: bool
) -> None:
    """The reference implementation writes line 1 where it could not find an edit's place."""
    file = repo.write("a", TEXT)
    os.utime(file, (MON, MON))
    keep(repo.root, record("a", lines(start, end), when=MON))
    assert bool(look(file)) is is_taken


def test_the_newest_of_two_holds(repo: Repository) -> None:
    file = repo.write("a", TEXT)
    human = {"contributor": {"type": "human"}}
    keep(
        repo.root,
        record("a", lines(4, 6, sha256(LINES[3:6]), **human), when=MON + 60),
        record("a", lines(1, 10, sha256(LINES)), when=MON),
        record("a", lines(9, 9, sha256(LINES[8:9])), when=MON - 60),
    )
    assert spans(look(file)) == [(1, 3, "ai"), (4, 6, "human"), (7, 10, "ai")]


def test_brackets_alone_are_not_claimed(repo: Repository) -> None:
    file = repo.write("a", "f(\n)\n}\n")
    keep(repo.root, record("a", lines(2, 3, sha256([")", "}"]))))
    assert look(file) == ()


def test_flat_records(repo: Repository) -> None:
    file = repo.write("a", TEXT)
    flat = {
        "schema": "agent-trace/v0.1.0",
        "session_id": SESSION,
        "file_path": str(file),
        "start_line": 2,
        "end_line": 3,
        "content_hash": f"murmur3:{murmur3_128(chr(10).join(LINES[1:3]).encode())}",
        "confidence": "high",
        "tool": "Edit",
        "tool_use_id": "toolu_01",
        "timestamp": "2026-01-01T00:00:00.658433+00:00",
    }
    keep(repo.root, flat)
    (found,) = look(file)
    assert (found.start, found.end, found.who, found.tool_use_id) == (2, 3, "ai", "toolu_01")
    assert found.is_of(SESSION)


@pytest.mark.parametrize("path", ["src\\a.py", "./src/a.py"])
def test_paths_of_other_systems(repo: Repository, path: str) -> None:
    file = repo.write("src/a.py", TEXT)
    keep(repo.root, record(path, lines(1, 2, sha256(LINES[:2]))))
    assert spans(look(file)) == [(1, 2, "ai")]


def test_a_file_that_was_renamed(repo: Repository) -> None:
    repo.write("old", TEXT)
    repo.commit(date=MON)
    keep(repo.root, record("old", lines(1, 2, sha256(LINES[:2]))))
    repo.git("mv", "old", "new")
    repo.git("commit", "-q", "-m", "rename", date=MON + 60)
    assert spans(look(repo.root / "new")) == [(1, 2, "ai")]


def test_a_project_inside_of_a_repository(repo: Repository) -> None:
    file = repo.write("part/src/a", TEXT)
    first = repo.commit(date=MON)
    made = record("src/a", lines(3, 5), when=MON, vcs={"type": "git", "revision": first})
    keep(repo.root / "part", made)
    (found,) = look(file)
    assert (found.start, found.end, found.path) == (3, 5, "part/src/a")


def test_without_a_repository(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a").write_text(TEXT)
    keep(tmp_path, record("src/a", lines(1, 2, sha256(LINES[:2]))))
    assert spans(look(tmp_path / "src" / "a")) == [(1, 2, "ai")]


def test_what_sessions_may_be_called() -> None:
    def ids(**more: Any) -> tuple[str, ...]:
        return next(ranges_in(record("a", lines(1, 1)) | more)).session_ids

    other = "be6cecdd-a75a-4363-b49d-3f7850807d1d"
    assert ids() == (SESSION,)
    assert ids(metadata={"session_id": other}) == (other, SESSION)
    assert ids(metadata={"conversation_id": other, "session_id": 5}) == (other, SESSION)
    for url, name in [
        (f"file://c:\\Users\\x\\{other}\\{other}.jsonl", other),
        (f"file:///r/rollout-2026-01-01T00-00-00-{other}.jsonl", other),
        ("https://api.example.com/v1/conversations/12345/?x=1", "12345"),
        ("", None),
    ]:
        talk = {"url": url, "ranges": [lines(1, 1)]}
        found = ids(files=[{"path": "a", "conversations": [talk]}])
        assert found == ((name,) if name else ())


_FILE = '{"files": [{"path": %s, "conversations": [{"ranges": [%s]}]}]}'


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "{",
        "null",
        "[]",
        '"x"',
        "5",
        "[" * 200_000,
        '{"files": 5}',
        '{"files": [5, {"path": "a"}, {"path": "a", "conversations": [5, {"ranges": 5}]}]}',
        _FILE % ("5", '{"start_line": 1, "end_line": 1}'),
        _FILE % ('"a"', '{"start_line": "1"}, 5, null'),
        _FILE % ('"a"', '{"start_line": 3, "end_line": 2}'),
        _FILE % ('"a"', '{"start_line": 1e3, "end_line": 2}'),
        '{"timestamp": {}, "tool": 5, "vcs": 5, "metadata": [], "files": [{"path": "a",'
        ' "conversations": [{"url": 5, "contributor": 5, "related": 5, "ranges":'
        ' [{"start_line": 1, "end_line": 1000000000, "content_hash": 5}]}]}]}',
    ],
)
def test_damaged_records_are_passed_over(repo: Repository, broken: str) -> None:
    file = repo.write("a", TEXT)
    keep(repo.root, record("a", lines(1, 2, sha256(LINES[:2]))))
    traces = repo.root / ".agent-trace" / "traces.jsonl"
    traces.write_bytes(broken.encode() + b"\n\xff\xfe\0\n" + traces.read_bytes() + b'{"half": ')
    assert spans(look(file)) == [(1, 2, "ai")]
    traces.with_name("one.json").write_text(broken)
    assert spans(look(file)) == [(1, 2, "ai")]


def test_new_records_are_seen(repo: Repository) -> None:
    file = repo.write("a", TEXT)
    git = GitEvidence(patience_s=20)
    keep(repo.root, record("a", lines(1, 2, sha256(LINES[:2]))))
    assert spans(git.look(file).evidence) == [(1, 2, "ai")]
    keep(
        repo.root,
        record("a", lines(1, 2, sha256(LINES[:2]))),
        record("a", lines(7, 8, sha256(LINES[6:8]))),
    )
    assert spans(git.look(file).evidence) == [(1, 2, "ai"), (7, 8, "ai")]


def test_a_record_of_one_object_in_a_file_of_its_own(repo: Repository) -> None:
    file = repo.write("a", TEXT)
    keep(repo.root, record("a", lines(1, 2, sha256(LINES[:2]))), name="abc.json")
    assert spans(look(file)) == [(1, 2, "ai")]
