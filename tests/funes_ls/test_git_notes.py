"""What git-ai's notes say of lines, through everything that may happen to the lines since."""

import json
from pathlib import Path
from typing import Any

import pytest

from funes_ls.git_evidence import GitEvidence
from funes_ls.git_notes import keys_of, parse_note
from funes_ls.git_views import Evidence
from tests.funes_ls.repositories import Repository, run_git

pytestmark = pytest.mark.timeout(60)

MON = 1_767_225_600
TUE = MON + 86_400
SESSION = "3f0c1e7a-3b6e-4c1c-9d0f-5f3a2b1c0d9e"
PROMPT = "d9978a8723e02b52"
TEXT = "".join(f"line number {n} of the file\n" for n in range(1, 11))


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


def note(attested: str, **about: Any) -> bytes:
    record = {
        "agent_id": {"tool": "claude", "id": SESSION, "model": "claude-x"},
        "human_author": "Ada <ada@example.org>",
        "messages": [
            {"type": "user", "text": "Count the lines", "timestamp": "2026-01-01T00:00:00Z"},
            {"type": "assistant", "text": "I will."},
            {"type": "user", "text": "Thanks"},
        ],
        "total_additions": 5,
        "total_deletions": 0,
        "accepted_lines": 5,
        "overriden_lines": 0,
    }
    head = {
        "schema_version": "authorship/3.0.0",
        "git_ai_version": "1.6.17",
        "base_commit_sha": "7734793b756b3921c88db5375a8c156e9532447b",
        "prompts": {PROMPT: record},
    }
    return f"{attested}\n---\n{json.dumps(head | about, indent=2)}".encode()


def attach(repo: Repository, text: bytes, commit: str = "HEAD") -> None:
    repo.git("notes", "--ref=ai", "add", "-f", "-F", "-", commit, stdin=text, date=MON)


def look(path: Path, lines: list[str] | None = None) -> tuple[Evidence, ...]:
    return GitEvidence(patience_s=20).look(path, lines).evidence


def spans(found: tuple[Evidence, ...]) -> list[tuple[int, int, str]]:
    return [(one.start, one.end, one.who) for one in found]


def test_lines_name_their_session(repo: Repository) -> None:
    file = repo.write("src/a.py", TEXT)
    repo.commit(date=MON)
    attach(repo, note(f"src/a.py\n  {PROMPT} 1-3,7\n"))
    first, second = look(file)
    assert [(one.start, one.end) for one in (first, second)] == [(1, 3), (7, 7)]
    assert (first.kind, first.who, first.tool, first.harness) == (
        "git-ai",
        "ai",
        "claude",
        "claude_code",
    )
    assert first.session_ids == (SESSION,)
    assert (first.prompt, first.model, first.path) == ("Count the lines", "claude-x", "src/a.py")
    assert first.ts_us == (MON + 1) * 1_000_000 - 1
    assert first.is_of(SESSION)
    assert first.is_of(f"{SESSION}@1f2e")
    assert not first.is_of("3f0c1e7a-0000-0000-0000-000000000000")


def test_lines_that_changed_since_are_not_claimed(repo: Repository) -> None:
    file = repo.write("a", TEXT)
    repo.commit(date=MON)
    attach(repo, note(f"a\n  {PROMPT} 1-10\n"))
    lines = TEXT.splitlines()
    lines[4] = "another line"
    repo.write("a", "\n".join(["new on top", *lines]) + "\n")
    assert spans(look(file)) == [(2, 5, "ai"), (7, 11, "ai")]
    repo.commit(date=TUE)
    assert spans(look(file)) == [(2, 5, "ai"), (7, 11, "ai")]


def test_a_note_speaks_of_the_file_as_it_was_and_was_called(repo: Repository) -> None:
    repo.write("old", TEXT)
    repo.commit(date=MON)
    attach(repo, note(f"old\n  {PROMPT} 2-3\nnew\n  {PROMPT} 9\n"))
    repo.git("mv", "old", "new")
    repo.write("new", "top\n" + TEXT)
    repo.commit(date=TUE)
    assert spans(look(repo.root / "new")) == [(3, 4, "ai")]


def test_a_commit_without_a_note_says_nothing(repo: Repository) -> None:
    file = repo.write("a", TEXT)
    repo.commit(date=MON)
    attach(repo, note(f"a\n  {PROMPT} 1-10\n"))
    repo.git("commit", "-q", "--amend", "-m", "other", date=TUE)
    assert look(file) == ()


def test_sessions_and_humans_of_newer_notes(repo: Repository) -> None:
    file = repo.write("a", TEXT)
    repo.commit(date=MON)
    key = keys_of("codex", "01990000-aaaa")[2]
    agent = {"agent_id": {"tool": "codex", "id": "01990000-aaaa", "model": "m"}}
    text = f"a\n  {key}::t_a3a130d3e145e3 1-2\n  h_dca485b1adf836 3\n  x_unknown 4\n"
    attach(repo, note(text, prompts={}, sessions={key: agent}, humans={"h_dca485b1adf836": {}}))
    found = look(file)
    assert spans(found) == [(1, 2, "ai"), (3, 3, "human"), (4, 4, "ai")]
    assert (found[0].harness, found[0].session_ids) == ("codex", ("01990000-aaaa",))
    assert found[1].session_ids == ()
    assert not found[1].is_of("01990000-aaaa")
    assert not found[2].is_of("01990000-aaaa")


@pytest.mark.parametrize("which", [0, 1])
def test_a_session_that_is_not_described_is_known_by_its_digest(
    repo: Repository, which: int
) -> None:
    file = repo.write("a", TEXT)
    repo.commit(date=MON)
    attach(repo, note(f"a\n  {keys_of('claude', SESSION)[which]} 1\n", prompts={}))
    (found,) = look(file)
    assert found.is_of(SESSION)
    assert not found.is_of("another")


def test_keys_are_those_of_the_standard() -> None:
    """Source: Git AI Standard v3.0.0, "Session Hash Semantics"; SHA-256 of `tool:id`."""
    whole = "866dabf162e96bcb"  # printf 'cursor:6ef2299e-a67f-432b-aa80-3d2fb4d28999' | sha256sum
    assert keys_of("cursor", "6ef2299e-a67f-432b-aa80-3d2fb4d28999")[0] == whole


def test_the_last_entry_of_a_line_holds(repo: Repository) -> None:
    file = repo.write("a", TEXT)
    repo.commit(date=MON)
    attach(repo, note(f"a\n  {PROMPT} 1-5\n  h_1 4-8\n"))
    assert spans(look(file)) == [(1, 3, "ai"), (4, 8, "human")]


def test_names_with_spaces_and_signs(repo: Repository) -> None:
    files = [repo.write(name, TEXT) for name in ("my file", "ü", "-x", "---x")]
    repo.commit(date=MON)
    names = ('"my file"', "ü", "-x", "---x")
    attach(repo, note("".join(f"{name}\n  {PROMPT} 1\n" for name in names)))
    assert [spans(look(file)) for file in files] == [[(1, 1, "ai")]] * 4


def test_many_notes_lie_in_folders(repo: Repository) -> None:
    file = repo.write("a", TEXT)
    repo.commit(date=MON)
    attach(repo, note(f"a\n  {PROMPT} 1-2\n"))
    blob = repo.git("rev-parse", "refs/notes/ai").strip()
    tree = repo.git("ls-tree", "-r", blob).split("\t")
    head = repo.head()
    for cuts in (0, 1, 2):
        parts = [head[2 * n : 2 * n + 2] for n in range(cuts)] + [head[2 * cuts :]]
        made = tree[0]
        kind = "100644 blob"
        sha = made.split()[2]
        for part in reversed(parts):
            entry = f"{kind} {sha}\t{part}\n".encode()
            kind, sha = "040000 tree", repo.git("mktree", stdin=entry).strip()
        commit = repo.git("commit-tree", sha, "-m", "notes", date=MON, author=MON).strip()
        repo.git("update-ref", "refs/notes/ai", commit)
        assert spans(look(file)) == [(1, 2, "ai")], cuts


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"a\n  x 1",
        b"a\n  d9978a8723e02b52 1\n---\n",
        b"a\n  d9978a8723e02b52 1\n---\n[1]",
        b"a\n  d9978a8723e02b52 1\n---\n" + b"[" * 100_000,
        b'a\n  d9978a8723e02b52 1\n---\n{"schema_version": "authorship/4.0.0", "prompts": {}}',
        b'a\n  d9978a8723e02b52 1\n---\n{"prompts": {}}',
        b"\xff\xfe\0\n---\n{}",
    ],
)
def test_what_is_no_note_of_this_kind(repo: Repository, text: bytes) -> None:
    assert parse_note(text) is None
    file = repo.write("a", TEXT)
    repo.commit(date=MON)
    blob = repo.git("hash-object", "-w", "--stdin", stdin=text).strip()
    tree = repo.git("mktree", stdin=f"100644 blob {blob}\t{repo.head()}\n".encode()).strip()
    commit = repo.git("commit-tree", tree, "-m", "notes", date=MON, author=MON).strip()
    repo.git("update-ref", "refs/notes/ai", commit)
    assert look(file) == ()


@pytest.mark.parametrize(
    "entry",
    [
        "  d9978a8723e02b52",
        "  d9978a8723e02b52 ",
        "  d9978a8723e02b52 x-y,-,1-,-3,1.5",
        f"  d9978a8723e02b52 {'9' * 5_000}",
        "  d9978a8723e02b52 5-2,0,100-900",
        "d9978a8723e02b52 1",
        "",
    ],
)
def test_entries_that_say_no_line(repo: Repository, entry: str) -> None:
    file = repo.write("a", TEXT)
    repo.commit(date=MON)
    attach(repo, note(f"a\n{entry}\n"))
    assert look(file) == ()
    attach(repo, note(f"a\n  {PROMPT} 2\n{entry}\n"))
    assert spans(look(file)) == [(2, 2, "ai")]


@pytest.mark.parametrize(
    "about",
    [
        {"prompts": []},
        {"prompts": {PROMPT: None}},
        {"prompts": {PROMPT: {"agent_id": "x"}}},
        {"prompts": {PROMPT: {"agent_id": {"tool": 1, "id": [], "model": None}, "messages": 5}}},
        {"prompts": {PROMPT: {"agent_id": {}, "messages": [1, {"type": "user", "text": 5}]}}},
    ],
)
def test_records_of_other_shapes_name_no_session(repo: Repository, about: dict[str, Any]) -> None:
    file = repo.write("a", TEXT)
    repo.commit(date=MON)
    attach(repo, note(f"a\n  {PROMPT} 1\n", **about))
    (found,) = look(file)
    assert (found.session_ids, found.prompt, found.harness) == ((), "", "")
    assert not found.is_of(SESSION)


def test_notes_that_come_later_are_seen(repo: Repository) -> None:
    file = repo.write("a", TEXT)
    repo.commit(date=MON)
    git = GitEvidence(patience_s=20)
    assert git.look(file).evidence == ()
    attach(repo, note(f"a\n  {PROMPT} 1\n"))
    assert spans(git.look(file).evidence) == [(1, 1, "ai")]
    attach(repo, note(f"a\n  {PROMPT} 2\n"))
    assert spans(git.look(file).evidence) == [(2, 2, "ai")]


def test_notes_that_were_fetched(repo: Repository, tmp_path: Path) -> None:
    repo.write("a", TEXT)
    repo.commit(date=MON)
    attach(repo, note(f"a\n  {PROMPT} 1\n"))
    run_git(tmp_path, ["clone", "-q", str(repo.root), "clone"])
    assert look(tmp_path / "clone" / "a") == ()
    run_git(tmp_path / "clone", ["fetch", "-q", "origin", "refs/notes/*:refs/notes/*"])
    run_git(tmp_path / "clone", ["pack-refs", "--all"])
    assert spans(look(tmp_path / "clone" / "a")) == [(1, 1, "ai")]


def test_a_repository_with_longer_names_of_objects(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "repo", init=False)
    run_git(tmp_path, ["init", "-q", "-b", "main", "--object-format=sha256", "repo"])
    file = repo.write("a", TEXT)
    assert len(repo.commit(date=MON)) == 64
    attach(repo, note(f"a\n  {PROMPT} 1\n"))
    assert spans(look(file)) == [(1, 1, "ai")]
