"""What a memory is called."""

from pathlib import Path

import pytest

from funes_ls.hub.spec import parse_spec
from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.settings import Settings

SETTINGS = Settings(home=Path("/home/dev/.funes"))


@pytest.mark.parametrize(
    ("given", "kind", "text", "repo", "prefix"),
    [
        ("", "local", "local", "", ""),
        (" local ", "local", "local", "", ""),
        ("acme/kb", "hub", "acme/kb", "acme/kb", ""),
        ("hf://acme/kb", "hub", "acme/kb", "acme/kb", ""),
        ("hf://datasets/acme/kb/", "hub", "acme/kb", "acme/kb", ""),
        ("HF://datasets/acme/kb/a/b", "hub", "hf://datasets/acme/kb/a/b", "acme/kb", "a/b"),
        ("hf://datasets/acme/kb/a/chunks.lance", "hub", "hf://datasets/acme/kb/a", "acme/kb", "a"),
        ("https://huggingface.co/datasets/acme/kb", "hub", "acme/kb", "acme/kb", ""),
        ("s3://bucket", "store", "s3://bucket", "", ""),
        ("s3://bucket/a//b/", "store", "s3://bucket/a/b", "", "a/b"),
        ("gs://bucket/a", "store", "gs://bucket/a", "", "a"),
        ("az://box/a", "store", "az://box/a", "", "a"),
        ("db://team", "db", "db://team", "", ""),
    ],
)
def test_names_of_memories(given: str, kind: str, text: str, repo: str, prefix: str) -> None:
    found = parse_spec(given, SETTINGS)
    assert (found.kind, found.text, found.repo, found.prefix) == (kind, text, repo, prefix)
    assert found.is_remote is (kind not in ("local", "path"))
    assert parse_spec(found.text, SETTINGS) == found
    assert found.key == parse_spec(found.text, SETTINGS).key


@pytest.mark.parametrize(
    "given",
    [
        "kb",
        "acme/kb/more",
        "acme/../kb",
        "acme/..",
        "a--b/kb",
        "/no/where",
        "~/no-where-at-all",
        "./none",
        "s3://",
        "s3://bucket/../x",
        "s3://b/a\x07",
        "hf://acme",
        "hf://datasets/acme/kb/..",
        "ftp://acme/kb",
        "acme/kb\nacme/other",
        "\x1b[2J",
        "a\0b",
        "x" * 5_000,
    ],
)
def test_what_names_no_memory_is_told_on_one_short_line(given: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec(given, SETTINGS)
    assert caught.value.kind == "no_such_memory"
    assert str(caught.value).isprintable() and len(str(caught.value)) < 600
    assert caught.value.hint


@pytest.mark.parametrize(
    ("given", "meant"), [("locl", "`local`"), ("s4://bucket/x", "s3://"), ("hff://a/b", "hf://")]
)
def test_slips_are_told(given: str, meant: str) -> None:
    with pytest.raises(UsageError, match="Did you mean") as caught:
        parse_spec(given, SETTINGS)
    assert meant in caught.value.hint


def test_a_memory_here_wins_over_a_repository_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "acme" / "kb").mkdir(parents=True)
    assert parse_spec("acme/kb", SETTINGS).kind == "hub"
    (tmp_path / "acme" / "kb" / "chunks.lance").mkdir()
    found = parse_spec("acme/kb", SETTINGS)
    assert found.kind == "path" and found.path == Path("acme/kb")
    assert parse_spec("hf://acme/kb", SETTINGS).kind == "hub"


def test_a_home_stands_for_the_memory_in_it(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    assert parse_spec(str(tmp_path), SETTINGS).path == tmp_path / "memory"
