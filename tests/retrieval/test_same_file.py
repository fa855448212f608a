"""Which path of a session is the file that is asked about, after moves and on other disks too."""

import pytest

from funes_ls.retrieval.same_file import Asked, strength_of, with_places

PLACES = {"acme/api": ["/old/api", "/work/web/api"], "acme/web": ["/work/web"]}
HERE = Asked(
    path="/work/api/src/retry.py", root="/work/api", repos=frozenset(("acme/api", "me/api"))
)


@pytest.mark.parametrize(
    ("written", "repos", "expected"),
    [
        ("/work/api/src/retry.py", [], "same"),
        ("/old/api/src/retry.py", ["Acme/API"], "repo"),
        ("/old/api/src/retry.py", ["acme/web"], "tail"),
        ("/old/api/src/retry.py", [], "repo"),
        ("/older/api/src/retry.py", [], "tail"),
        ("/old/api/vendored/src/retry.py", ["acme/api"], "tail"),
        ("/old/api/retry.py", ["acme/api"], None),
        ("/work/web/api/src/retry.py", ["acme/api"], "repo"),
        ("/never/seen/src/retry.py", ["me/api"], "repo"),
        ("src/retry.py", ["me/api"], "repo"),
        ("src/retry.py", [], "tail"),
        ("lib/retry.py", ["me/api"], None),
        ("/work/api/.claude/worktrees/quick/src/retry.py", [], "repo"),
        ("/work/api/.worktrees/quick/src/retry.py", [], "repo"),
        ("/work/api/other/src/retry.py", [], "tail"),
        ("/work/api/src/Retry.py", ["acme/api"], None),
        ("/work/api/src/retry.pyc", ["acme/api"], None),
        ("/work/api/xsrc/retry.py", ["acme/api"], None),
    ],
)
def test_a_path_is_the_file_or_not(written: str, repos: list[str], expected: str | None) -> None:
    assert strength_of(HERE, written, repos=repos, places=PLACES) == expected


def test_a_file_of_the_top_is_not_any_of_its_name() -> None:
    top = Asked(path="/work/api/README.md", root="/work/api", repos=frozenset(("acme/api",)))
    found = {
        path: strength_of(top, path, repos=["acme/api"], places=PLACES)
        for path in ("/old/api/README.md", "/old/api/docs/README.md", "README.md")
    }
    assert found == {
        "/old/api/README.md": "repo",
        "/old/api/docs/README.md": None,
        "README.md": "repo",
    }


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("C:/Dev/api/X.py", "c:/dev/api/x.py"),
        ("/mnt/c/Dev/api/x.py", "C:/dev/api/x.py"),
        ("C:/Dev/api/x.py", "/mnt/c/dev/api/x.py"),
        ("C:/Dev/api/x.py", "/c/Dev/api/x.py"),
        ("/Users/ada/api/x.py", "/Users/Ada/API/X.py"),
    ],
)
def test_disks_without_case_and_drives_by_either_name(path: str, written: str) -> None:
    assert strength_of(Asked(path=path), written) == "same"


def test_links_and_worktrees_are_further_paths() -> None:
    asked = Asked(path="/home/ada/api/x.py", others=("/disk/api/x.py",))
    assert strength_of(asked, "/disk/api/x.py") == "same"
    assert strength_of(asked, "/disk/web/x.py") is None


def test_last_names_alone_find_every_file_of_them() -> None:
    assert strength_of(Asked(path="src/x.py"), "/any/where/src/x.py") == "same"
    assert strength_of(Asked(path="x.py"), "/any/where/y_x.py") is None


def test_a_file_is_of_the_repository_of_the_sessions_nearest_above_it() -> None:
    found = with_places(Asked(path="/work/web/api/src/x.py"), PLACES)
    assert (found.repos, found.root) == ({"acme/api"}, "/work/web/api")
    assert with_places(Asked(path="/elsewhere/x.py"), PLACES).repos == set()
    assert with_places(HERE, PLACES) == HERE
