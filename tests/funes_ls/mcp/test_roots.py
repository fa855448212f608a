"""Where a client's files are."""

from pathlib import Path

import pytest

from funes_ls.mcp.roots import Roots


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    for name in ("here/src", "root one/src"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "here" / "only_here.py").touch()
    (tmp_path / "here" / "both.py").touch()
    (tmp_path / "root one" / "both.py").touch()
    found = Roots(tmp_path / "here")
    found.take({"roots": [{"uri": (tmp_path / "root one").as_uri(), "name": "one"}]})
    return found


def test_folders_of_the_client_come_first(roots: Roots, tmp_path: Path) -> None:
    assert roots.file("both.py") == tmp_path / "root one" / "both.py"
    assert roots.file("only_here.py") == tmp_path / "here" / "only_here.py"
    assert roots.file("neither.py") is None


def test_a_file_may_be_named_in_full(roots: Roots, tmp_path: Path) -> None:
    path = tmp_path / "here" / "only_here.py"
    assert roots.file(str(path)) == path
    assert roots.file(path.as_uri()) == path
    assert roots.file(str(tmp_path / "no.py")) is None


@pytest.mark.parametrize("name", ["\0", "x" * 5000, "~nobody-of-this-name/x", "file://host/x"])
def test_names_that_no_file_can_have(roots: Roots, name: str) -> None:
    assert roots.file(name) is None


def test_filters_are_sent_as_paths_where_they_are_some(roots: Roots, tmp_path: Path) -> None:
    assert roots.sent("src/http.py") == "src/http.py"
    assert roots.sent("api") == "api"
    assert roots.sent(".") == str(tmp_path / "root one")
    assert roots.sent("./both.py") == str(tmp_path / "root one" / "both.py")
    assert roots.sent("./gone.py") == "./gone.py"
    assert roots.sent("") == ""


@pytest.mark.parametrize(
    "result", [None, [], {}, {"roots": None}, {"roots": 5}, {"roots": [{"uri": 5}, {"uri": "x"}]}]
)
def test_answers_that_name_no_folder(roots: Roots, tmp_path: Path, result: object) -> None:
    roots.take(result)
    assert roots.folders == (tmp_path / "here",)
