"""Folders and files as people and traces spell them."""

from pathlib import Path

import pytest

from funes_ls.retrieval import paths


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("/work/api/", "/work/api"),
        ("/work//api/./x/../y", "/work/api/y"),
        ("C:\\Users\\ann\\api", "C:/Users/ann/api"),
        ("src/a.py", "src/a.py"),
        ("/", "/"),
        ("cafe\u0301", "caf\u00e9"),
    ],
)
def test_spellings_become_one(written: str, normal: str) -> None:
    assert paths.normal(written) == normal


def test_home_and_relative_paths_are_made_whole() -> None:
    assert paths.normal("~/x") == f"{Path.home().as_posix()}/x"
    assert paths.normal("src/a.py", base="/work/api") == "/work/api/src/a.py"
    assert paths.normal("/etc/x", base="/work/api") == "/etc/x"


def test_whole_names_are_compared() -> None:
    assert paths.is_under("/work/api/proxy", "/work/api")
    assert paths.is_under("/work/api", "/work/api")
    assert not paths.is_under("/work/api-proxy", "/work/api")
    assert paths.ends_with("/work/api/proxy", "api/proxy")
    assert not paths.ends_with("/work/api-proxy", "proxy")
    assert paths.holds("/work/src/core/a.py", "src/core")
    assert not paths.holds("/work/src/corex/a.py", "src/core")
    assert paths.is_under("/anything", "/")


def test_case_counts_but_on_windows_drives() -> None:
    assert not paths.is_under("/Work/api", "/work")
    assert paths.is_under("C:/Work/api", "c:/work")


def test_the_munged_form_is_ascii_only() -> None:
    assert paths.munged("/work/外注") == "-work---"
