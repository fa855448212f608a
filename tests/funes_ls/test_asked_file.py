"""What else a file is called: through links, in worktrees, by its repository."""

from pathlib import Path

import pytest

from funes_ls.asked_file import asked_file
from tests.funes_ls.repositories import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "main")
    made.git("remote", "add", "origin", "git@example.org:Acme/API.git")
    made.write("src/retry.py", "x = 1\n")
    made.commit(date=1_700_000_000)
    return made


def test_a_file_has_its_checkout_and_repository(repository: Repository) -> None:
    found = asked_file(str(repository.root / "src" / "retry.py"))
    assert found.path == f"{repository.root.as_posix()}/src/retry.py"
    assert (found.root, found.repos) == (repository.root.as_posix(), {"acme/api"})
    assert found.others == ()


@pytest.mark.parametrize("asked_in", ["main", "fix", "other"])
def test_worktrees_know_of_one_another(
    repository: Repository, tmp_path: Path, asked_in: str
) -> None:
    for name in ("fix", "other"):
        repository.git("worktree", "add", "-q", str(tmp_path / name))
    found = asked_file(str(tmp_path / asked_in / "src" / "retry.py"))
    trees = {"main", "fix", "other"} - {asked_in}
    assert set(found.others) == {f"{(tmp_path / name).as_posix()}/src/retry.py" for name in trees}
    assert (found.root, found.repos) == ((tmp_path / asked_in).as_posix(), {"acme/api"})


def test_a_link_and_what_it_leads_to_are_one_file(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository.root)
    found = asked_file(str(tmp_path / "link" / "src" / "retry.py"))
    assert found.path == f"{repository.root.as_posix()}/src/retry.py"
    assert found.others == (f"{tmp_path.as_posix()}/link/src/retry.py",)


def test_a_deleted_file_is_known_by_its_folder(repository: Repository) -> None:
    assert asked_file(str(repository.root / "gone" / "x.py")).repos == {"acme/api"}


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("src\\retry.py", "src/retry.py"),
        ("", ""),
        ("/a/../b.py", "/b.py"),
        ("/nul\0/x", "/nul\0/x"),
        ("/" + "x" * 5000, "/" + "x" * 5000),
        ("C:\\dev\\x.py", "C:/dev/x.py"),
    ],
)
def test_any_path_can_be_asked_about(path: str, normal: str) -> None:
    assert asked_file(path).path == normal


def test_a_damaged_worktree_is_no_repository(tmp_path: Path) -> None:
    for n, text in enumerate(["", "gitdir:", "gitdir: /no/where", "\udcff"]):
        root = tmp_path / str(n)
        root.mkdir()
        (root / ".git").write_text(text, encoding="utf-8", errors="surrogateescape")
        found = asked_file(str(root / "x.py"))
        assert (found.root, found.others, found.repos) == (root.as_posix(), (), frozenset())
