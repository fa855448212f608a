"""Repository identity, asked of a real git."""

import subprocess
from pathlib import Path

import pytest

from funes_ls.indexer.repos import repo_of


def git(folder: Path, *args: str) -> None:
    subprocess.run(["git", "-C", str(folder), *args], check=True, capture_output=True)


def test_every_remote_sorted(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", "git@example.invalid:team/tool.git")
    git(tmp_path, "remote", "add", "fork", "https://example.invalid/dev/tool")
    assert repo_of(str(tmp_path)) == "dev/tool team/tool"


def test_a_folder_below_the_root_answers_too(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", "ssh://git@example.invalid:22/a/b/c.git")
    below = tmp_path / "x" / "y"
    below.mkdir(parents=True)
    assert repo_of(str(below)) == "b/c"


@pytest.mark.parametrize("cwd", ["", "/gone/for/ever", "\0"])
def test_without_a_folder_the_trace_may_tell(cwd: str) -> None:
    assert repo_of(cwd) == ""
    assert repo_of(cwd, ["https://example.invalid/o/n.git"]) == "o/n"


def test_no_repository_is_no_identity(tmp_path: Path) -> None:
    assert repo_of(str(tmp_path)) == ""


def test_variables_of_another_repository_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        git(tmp_path / name, "init", "-q")
        git(tmp_path / name, "remote", "add", "origin", f"https://example.invalid/team/{name}")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "there" / ".git"))
    assert repo_of(str(tmp_path / "here")) == "team/here"
