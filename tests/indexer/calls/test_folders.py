"""What happens to a folder happens to its files."""

from funes_ls.indexer.calls.folders import for_each_file
from funes_ls.indexer.facts import EventKind, FileEvent


def given(kind: EventKind, path: str, known: list[str], source: str = "") -> list[tuple[str, ...]]:
    event = FileEvent(kind=kind, path=path, source=source)
    return [(one.kind, one.path, one.source) for one in for_each_file([event], known)]


def test_a_folder_that_moves_takes_its_files_along() -> None:
    known = ["/w/a/x.py", "/w/a/b/y.py", "/w/ab.py"]
    assert given("move", "/w/c", known, "/w/a") == [
        ("move", "/w/c/b/y.py", "/w/a/b/y.py"),
        ("move", "/w/c/x.py", "/w/a/x.py"),
    ]
    assert sorted(known) == ["/w/ab.py", "/w/c/b/y.py", "/w/c/x.py"]


def test_a_copy_leaves_them_there() -> None:
    known = ["/w/a/x.py"]
    assert given("copy", "/w/c", known, "/w/a") == [("copy", "/w/c/x.py", "/w/a/x.py")]
    assert known == ["/w/a/x.py", "/w/c/x.py"]


def test_into_a_folder_that_is_there() -> None:
    known = ["/w/src/a.py", "/w/b.py"]
    assert given("move", "/w/src", known, "/w/b.py") == [("move", "/w/src/b.py", "/w/b.py")]
    assert given("move", "/w/src", known, "/w/new.py") == [("move", "/w/src/new.py", "/w/new.py")]


def test_a_folder_that_is_removed() -> None:
    known = ["/w/a/x.py", "/w/b.py"]
    assert given("delete", "/w/a", known) == [("delete", "/w/a/x.py", "")]
    assert given("delete", "/w/elsewhere", known) == [("delete", "/w/elsewhere", "")]
    assert known == ["/w/b.py"]


def test_other_events_stay_as_they_are_and_what_is_known_is_bounded() -> None:
    known: list[str] = []
    for number in range(1_000):
        assert given("write", f"/w/{number}", known) == [("write", f"/w/{number}", "")]
    assert given("mention", "/w/x", known) == [("mention", "/w/x", "")]
    assert len(known) == 300
    assert known[-1] == "/w/999"
