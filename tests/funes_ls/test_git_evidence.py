"""Until when lines were written, as real repositories of every shape tell it."""

import os
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from funes_ls.git_evidence import GitEvidence
from tests.funes_ls.repositories import Repository, run_git

pytestmark = pytest.mark.timeout(60)

DAY = 86_400
MON = 1_767_225_600
TUE, WED, THU = (MON + n * DAY for n in (1, 2, 3))


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


@pytest.fixture
def git() -> GitEvidence:
    return GitEvidence(patience_s=20)


def us(second: int) -> int:
    """Return the last microsecond of a second."""
    return (second + 1) * 1_000_000 - 1


def times(path: Path, lines: Sequence[str] | None = None) -> list[int | None]:
    return list(GitEvidence(patience_s=20).look(path, lines).times)


def test_a_line_was_written_no_later_than_its_commit(repo: Repository) -> None:
    file = repo.write("a.py", "one\ntwo\nthree\n")
    repo.commit(date=MON)
    repo.write("a.py", "one\nTWO\nthree\n")
    repo.commit(date=TUE)
    repo.write("a.py", "one\nTWO\nnew\nthree\n")
    assert times(file) == [us(MON), us(TUE), None, us(MON)]


def test_the_text_in_the_editor_counts(repo: Repository) -> None:
    file = repo.write("a.py", "one\ntwo\n")
    repo.commit(date=MON)
    assert times(file, ["zero", "one", "two, changed", "two"]) == [None, us(MON), None, us(MON)]


def test_only_the_lines_asked_about(repo: Repository, git: GitEvidence) -> None:
    file = repo.write("a.py", "".join(f"line {n}\n" for n in range(100)))
    repo.commit(date=MON)
    repo.write("a.py", "".join(f"line {n}\n" for n in range(90)) + "last\n")
    assert git.look(file, first=89, last=92).times == (us(MON), us(MON), None)
    assert git.look(file, first=200, last=300).times == ()
    assert git.look(file, [], 1, 0).times == ()


@pytest.mark.parametrize(("author", "committer"), [(MON, WED), (WED, MON)])
def test_the_later_of_both_dates_of_a_commit_holds(
    repo: Repository, author: int, committer: int
) -> None:
    file = repo.write("a.py", "one\n")
    repo.commit(date=committer, author=author)
    assert times(file)[0] == us(WED)


def test_a_late_clock_shows_in_the_parent(repo: Repository) -> None:
    repo.write("other", "x\n")
    repo.commit(date=WED)
    file = repo.write("a.py", "one\n")
    repo.commit(date=MON)
    assert times(file)[0] == us(WED)


def test_rebased_lines_may_be_as_new_as_the_rebase(repo: Repository) -> None:
    file = repo.write("a.py", "one\n")
    repo.commit(date=MON)
    repo.git("checkout", "-q", "-b", "work")
    repo.write("a.py", "one\nmine\n")
    repo.commit(date=TUE)
    repo.git("checkout", "-q", "main")
    repo.write("b.py", "b\n")
    repo.commit(date=TUE)
    repo.git("rebase", "-q", "main", "work", date=THU)
    assert times(file)[:2] == [us(MON), us(THU)]


def test_what_is_amended_picked_or_squashed_is_as_new_as_that(repo: Repository) -> None:
    file = repo.write("a.py", "one\n")
    repo.commit(date=MON)
    repo.git("checkout", "-q", "-b", "work")
    repo.write("a.py", "one\ntwo\n")
    picked = repo.commit(date=TUE)
    repo.git("checkout", "-q", "main")
    repo.git("cherry-pick", picked, date=WED)
    repo.write("a.py", "one\ntwo\nthree\n")
    repo.git("commit", "-q", "--amend", "-a", "--no-edit", date=THU)
    assert times(file)[:3] == [us(MON), us(THU), us(THU)]


def test_a_file_keeps_its_history_through_a_rename(repo: Repository) -> None:
    text = "".join(f"line {n}\n" for n in range(20))
    repo.write("old name.py", text)
    repo.commit(date=MON)
    repo.git("mv", "old name.py", "new.py")
    repo.commit(date=TUE)
    assert set(times(repo.root / "new.py")[:20]) == {us(MON)}


def test_lines_that_moved_count_from_when_they_came_there(repo: Repository) -> None:
    lines = [f"a long enough line of text number {n}" for n in range(30)]
    file = repo.write("a.py", "\n".join(lines) + "\n")
    repo.commit(date=MON)
    repo.write("a.py", "\n".join(lines[20:] + lines[:20]) + "\n")
    repo.commit(date=TUE)
    assert times(file).count(us(TUE)) == 10


def test_revisions_to_ignore_do_not_make_lines_older(repo: Repository) -> None:
    file = repo.write("a.py", "x = [1,2]\n")
    repo.commit(date=MON)
    repo.write("a.py", "x = [1, 2]\n")
    formatted = repo.commit(date=TUE)
    repo.write(".ignored", f"{formatted}\n")
    repo.git("config", "blame.ignoreRevsFile", ".ignored")
    assert times(file)[0] == us(TUE)


def test_line_ends_of_either_kind(repo: Repository) -> None:
    repo.git("config", "core.autocrlf", "false")
    unix = repo.write("unix", "one\ntwo\n")
    windows = repo.write("windows", "one\r\ntwo\r\n")
    repo.commit(date=MON)
    for file in (unix, windows):
        assert times(file)[:2] == [us(MON)] * 2
        file.write_bytes(b"one\r\ntwo\r\n")
        assert times(file)[:2] == [us(MON)] * 2
        file.write_bytes(b"one\ntwo\n")
        assert times(file)[:2] == [us(MON)] * 2


def test_a_checkout_that_changes_line_ends(repo: Repository) -> None:
    repo.git("config", "core.autocrlf", "true")
    file = repo.write("a", "one\ntwo\n")
    repo.commit(date=MON)
    file.unlink()
    repo.git("checkout", "--", "a")
    assert file.read_bytes() == b"one\r\ntwo\r\n"
    assert times(file)[:2] == [us(MON)] * 2


def test_marks_and_encodings_do_not_shift_lines(repo: Repository) -> None:
    marked = repo.write("marked", b"\xef\xbb\xbfone\ntwo\n")
    latin = repo.write("latin", b"caf\xe9\ntwo\n")
    form = repo.write("form", "one\x0cstill one\ntwo\u2028still two\n")
    repo.commit(date=MON)
    assert times(marked) == [us(MON)] * 2
    assert times(latin) == [us(MON)] * 2
    assert times(latin, ["café", "two", ""]) == [us(MON), us(MON), None]
    assert times(latin, ["caf\ufffd", "two"]) == [None, us(MON)]
    assert times(form) == [us(MON)] * 2


def test_what_is_not_committed_has_no_time(repo: Repository) -> None:
    repo.write("a", "one\n")
    repo.write(".gitignore", "ignored\n")
    repo.commit(date=MON)
    assert times(repo.write("untracked", "one\n")) == [None]
    assert times(repo.write("ignored", "one\n")) == [None]
    assert times(repo.write("added", "one\n")) == [None]
    assert times(repo.root / "none") == []
    assert times(repo.root / "no/such/folder/file", ["one"]) == [None]


def test_a_file_that_is_gone_is_known_by_its_text(repo: Repository) -> None:
    file = repo.write("sub/a", "one\n")
    repo.commit(date=MON)
    shutil.rmtree(file.parent)
    assert times(file, ["one", ""]) == [us(MON), None]


def test_binary_empty_and_huge_line(repo: Repository) -> None:
    files = [repo.write("bin", b"\0\1\n" * 9), repo.write("empty", b"")]
    huge = repo.write("huge", "x" * 3_000_000 + "\nend\n")
    repo.commit(date=MON)
    assert [set(times(file)) for file in files] == [set(), set()]
    assert times(huge)[:2] == [us(MON)] * 2


def test_outside_of_repositories(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("one\n")
    assert times(file) == [None]
    assert times(tmp_path, ["one"]) == [None]
    assert times(Path("nul\0byte"), ["one"]) == [None]


def test_before_the_first_commit(repo: Repository) -> None:
    assert times(repo.write("a", "one\n")) == [None]


def test_git_is_not_installed(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    file = repo.write("a", "one\n")
    repo.commit(date=MON)
    monkeypatch.setenv("PATH", str(repo.root))
    assert times(file) == [None]


def test_variables_of_another_repository(
    repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = repo.write("a", "one\n")
    repo.commit(date=MON)
    other = Repository(tmp_path / "other")
    other.write("a", "one\n")
    other.commit(date=TUE)
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.root))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.worktree")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "/nowhere")
    assert times(file)[0] == us(MON)


def test_a_worktree_and_the_bare_repository_it_belongs_to(tmp_path: Path) -> None:
    origin = Repository(tmp_path / "origin")
    origin.write("a", "one\n")
    origin.commit(date=MON)
    run_git(tmp_path, ["clone", "-q", "--bare", "origin", "bare.git"])
    run_git(tmp_path / "bare.git", ["worktree", "add", "-q", "../tree", "main"])
    assert times(tmp_path / "tree" / "a")[0] == us(MON)
    assert times(tmp_path / "bare.git" / "HEAD")[0] is None
    run_git(tmp_path / "tree", ["worktree", "add", "-q", "-b", "other", "../second"])
    second = Repository(tmp_path / "second", init=False)
    second.write("a", "one\ntwo\n")
    second.commit(date=TUE)
    assert times(second.root / "a")[:2] == [us(MON), us(TUE)]
    assert times(tmp_path / "tree" / "a", ["one", "two"]) == [us(MON), None]


def test_a_submodule_has_a_history_of_its_own(repo: Repository, tmp_path: Path) -> None:
    inner = Repository(tmp_path / "inner")
    inner.write("a", "one\n")
    inner.commit(date=MON)
    repo.git("submodule", "--quiet", "add", str(inner.root), "sub")
    repo.commit(date=WED)
    assert times(repo.root / "sub" / "a")[0] == us(MON)
    assert times(repo.root / "sub", ["one"]) == [None]


def test_a_shallow_clone_knows_no_older_than_its_end(repo: Repository, tmp_path: Path) -> None:
    repo.write("a", "one\n")
    repo.commit(date=MON)
    repo.write("b", "b\n")
    repo.commit(date=TUE)
    repo.write("a", "one\ntwo\n")
    repo.commit(date=WED)
    run_git(tmp_path, ["clone", "-q", "--depth=2", f"file://{repo.root}", "shallow"])
    assert times(tmp_path / "shallow" / "a")[:2] == [us(TUE), us(WED)]


def test_a_partial_clone_fetches_nothing(repo: Repository, tmp_path: Path) -> None:
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.write("a", "one\n")
    repo.commit(date=MON)
    repo.write("a", "one\ntwo\n")
    repo.commit(date=TUE)
    run_git(tmp_path, ["clone", "-q", "--filter=blob:none", f"file://{repo.root}", "partial"])
    objects = tmp_path / "partial" / ".git" / "objects"
    before = sorted(objects.rglob("*"))
    assert times(tmp_path / "partial" / "a") == [None, None]
    assert sorted(objects.rglob("*")) == before


def test_a_sparse_checkout(repo: Repository) -> None:
    file = repo.write("in/a", "one\n")
    out = repo.write("out/b", "two\n")
    repo.commit(date=MON)
    repo.git("sparse-checkout", "set", "in")
    assert not out.exists()
    assert times(file)[0] == us(MON)
    assert times(out, ["two", "more"]) == [us(MON), None]


def test_while_a_merge_is_not_settled(repo: Repository) -> None:
    file = repo.write("a", "one\n")
    repo.commit(date=MON)
    repo.git("checkout", "-q", "-b", "theirs")
    repo.write("a", "one\ntheirs\n")
    repo.commit(date=TUE)
    repo.git("checkout", "-q", "main")
    repo.write("a", "one\nours\n")
    repo.commit(date=WED)
    with pytest.raises(AssertionError):
        repo.git("merge", "-q", "theirs")
    assert "<<<<<<<" in file.read_text()
    assert times(file) == [us(MON), None, us(WED), None, None, None]


def test_a_merge_keeps_the_time_of_each_side(repo: Repository) -> None:
    file = repo.write("a", "top\n\nmiddle\n\nend\n")
    repo.commit(date=MON)
    repo.git("checkout", "-q", "-b", "theirs")
    repo.write("a", "top of theirs\n\nmiddle\n\nend\n")
    repo.commit(date=TUE)
    repo.git("checkout", "-q", "main")
    repo.write("a", "top\n\nmiddle\n\nend of ours\n")
    repo.commit(date=WED)
    repo.git("merge", "-q", "-m", "merge", "theirs", date=THU)
    assert [times(file)[n] for n in (0, 2, 4)] == [us(TUE), us(MON), us(WED)]


@pytest.mark.skipif(os.name == "nt", reason="not a name on this system")
@pytest.mark.parametrize("folder", ["-n", "--help", "new\nline", "a b", "ünï", "[a-z]*", ":(top)x"])
@pytest.mark.parametrize("name", ["-", "--contents", "line\nend", 'quo"te\t', "ü", "*.py", ":!x"])
def test_names_that_mean_something_else_elsewhere(tmp_path: Path, folder: str, name: str) -> None:
    repo = Repository(tmp_path / folder)
    file = repo.write(f"{folder}/{name}", "one\n")
    repo.write(f"{folder}/other", "x\n")
    repo.commit(date=MON)
    repo.git("mv", "--", f"{folder}/{name}", f"{folder}/{name}2")
    repo.commit(date=TUE)
    assert times(Path(f"{file}2"))[0] == us(MON)


@pytest.mark.skipif(os.name == "nt", reason="not a name on this system")
def test_a_name_that_is_no_text(repo: Repository) -> None:
    file = Path(os.fsdecode(os.fsencode(repo.root) + b"/caf\xe9"))
    file.write_bytes(b"one\n")
    repo.commit(date=MON)
    assert times(file)[0] == us(MON)


def test_links_to_files_and_folders(repo: Repository, tmp_path: Path) -> None:
    repo.write("src/a", "one\n")
    (repo.root / "link").symlink_to("src/a")
    repo.commit(date=MON)
    (tmp_path / "elsewhere").symlink_to(repo.root / "src")
    assert times(repo.root / "link")[0] == us(MON)
    assert times(tmp_path / "elsewhere" / "a")[0] == us(MON)
    (repo.root / "loop").symlink_to("loop")
    assert times(repo.root / "loop", ["one"]) == [None]


def test_a_name_in_other_case_is_the_file_only_if_the_disk_says_so(repo: Repository) -> None:
    repo.write("Name.py", "one\n")
    repo.commit(date=MON)
    other = repo.write("name.PY", "one\n")
    if other.samefile(repo.root / "Name.py"):
        assert times(other)[0] == us(MON)
        return
    assert times(other)[0] is None
    other.unlink()
    os.link(repo.root / "Name.py", other)  # what such a disk would say
    assert times(other)[0] == us(MON)


@pytest.mark.skipif(not hasattr(os, "chown") or os.getuid() != 0, reason="only root gives away")
def test_a_repository_of_somebody_else_is_not_asked(repo: Repository) -> None:
    file = repo.write("a", "one\n")
    repo.commit(date=MON)
    for one in [repo.root, *repo.root.rglob("*")]:
        os.chown(one, 12_345, 12_345)
    assert times(file) == [None]


def test_large_files_are_asked_about_in_parts(repo: Repository, git: GitEvidence) -> None:
    lines = [f"line {n}" for n in range(25_000)]
    file = repo.write("a", "\n".join(lines) + "\n")
    repo.commit(date=MON)
    lines[12_000] = "changed"
    repo.write("a", "\n".join(lines) + "\n")
    repo.commit(date=TUE)
    shifted = ["new at the top", *lines]
    assert git.look(file, shifted, 12_001, 12_004).times == (us(MON), us(TUE), us(MON), us(MON))
    assert git.look(file, shifted, 24_990, 25_001).times == (us(MON),) * 12
    assert git.look(file, shifted, 1, 2).times == (None, us(MON))


def test_new_commits_are_seen(repo: Repository, git: GitEvidence) -> None:
    file = repo.write("a", "one\n")
    repo.commit(date=MON)
    assert git.look(file, ["one", "two"]).times == (us(MON), None)
    repo.write("a", "one\ntwo\n")
    repo.commit(date=TUE)
    assert git.look(file, ["one", "two"]).times == (us(MON), us(TUE))
    repo.git("checkout", "-q", "HEAD^")
    assert git.look(file, ["one", "two"]).times == (us(MON), None)


def test_what_takes_too_long_is_there_for_the_next_question(repo: Repository) -> None:
    file = repo.write("a", "one\n")
    repo.commit(date=MON)
    git = GitEvidence(patience_s=0)
    found = git.look(file)
    assert (found.times, found.is_complete) == ((None,), False)
    until = time.monotonic() + 30
    patient = GitEvidence(patience_s=20)
    assert patient.look(file).is_complete
    git._patience_s = 20  # the same one, with time
    assert time.monotonic() < until
    assert git.look(file).times[0] == us(MON)


def test_nothing_takes_longer_than_it_may(repo: Repository) -> None:
    file = repo.write("a", "one\n")
    repo.commit(date=MON)
    assert GitEvidence(patience_s=20, longest_s=0).look(file).times == (None,)


def test_many_questions_at_once(repo: Repository, git: GitEvidence) -> None:
    files = [repo.write(f"{n}", f"one {n}\ntwo\n") for n in range(3)]
    repo.commit(date=MON)
    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda one: git.look(one).times, files * 8))
    assert found == [(us(MON), us(MON))] * 24


def test_only_so_much_is_kept(
    repo: Repository, git: GitEvidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("funes_ls.git_evidence._MOST_LINES", 25)
    files = [repo.write(f"{n}", f"{n}\n" * 9) for n in range(5)]
    repo.commit(date=MON)
    for file in [*files, *files, files[0], files[0]]:
        assert git.look(file).times == (us(MON),) * 9
    assert len(git._known.values()) == 2
    assert [one.place.path for one in git._known.values()] == ["4", "0"]
