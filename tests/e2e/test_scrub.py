"""`funes scrub`: what it says, that it is done to the last byte, and that it fails closed."""

import os
import secrets
import string
from pathlib import Path
from typing import Any

import pytest

from funes_ls.indexer.errors import ScannerError
from tests.e2e.cli import funes, index, recall, status, stored
from tests.e2e.engines import Engines
from tests.indexer.test_scrub import SECRET, StandIn
from tests.leftovers import traces_of, within
from tests.sessions import record, tool_use, write


@pytest.fixture
def projects(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("funes_ls.scrubbing._loaded", lambda _settings: StandIn())
    monkeypatch.setenv("FUNES_REDACTION", "off")
    return own_home / ".claude" / "projects"


def two_sessions(projects: Path) -> None:
    call = tool_use("Bash", {"command": f'curl -H "X: {SECRET}"'}, id="t1")
    write(
        projects / "p" / "s1.jsonl",
        [record(f"use {SECRET} for it", uuid="u1"), record(call, uuid="u2", role="assistant")],
    )
    write(projects / "p" / "s2.jsonl", [record("plain talk of kettles", uuid="u3")])
    index()


def test_what_is_said_of_no_memory_an_empty_one_and_a_clean_one(
    own_home: Path, projects: Path
) -> None:
    ran = funes("scrub")
    assert ran.code == 1
    assert "Run `funes index`." in ran.err
    write(projects / "p" / "s2.jsonl", [record("plain talk of kettles", uuid="u3")])
    index()
    assert funes("scrub", "-q") == funes("scrub", "-q")
    assert funes("scrub", "-q").out == (
        "Already clean: 1 session with 1 block scanned, no secrets found.\n"
    )
    funes("forget", "s2", "--yes")
    assert funes("scrub", "-q").out == "The memory is empty: there is nothing to scrub.\n"


def test_it_counts_and_cleans_and_says_no_secret(own_home: Path, projects: Path) -> None:
    home = own_home / ".funes"
    two_sessions(projects)
    assert list(traces_of(home, SECRET))
    would = funes("scrub", "--dry-run", "-q")
    assert would.code == 0
    assert "2 blocks would be redacted" in would.out
    assert list(traces_of(home, SECRET))
    done = funes("scrub", "-q")
    assert "2 blocks redacted" in done.out
    assert "The traces themselves were not touched" in done.out
    assert SECRET not in would.out + done.out
    assert list(traces_of(home, SECRET, "zanzibar")) == []
    assert list(within(home, "zanzibar")) == []
    assert {row.text for row in stored(home) if row.session_id == "s1"} == {
        "use <redacted> for it",
        '[tool_use Bash] {"command":"curl -H \\"X: <redacted>\\""}',
    }
    answer: dict[str, Any] = funes("scrub", "--json", "-q").json
    assert (answer["state"], answer["redacted"], answer["counts"]) == ("clean", 0, {})
    assert SECRET in (projects / "p" / "s1.jsonl").read_text(encoding="utf-8")
    index()
    assert status()["words_only"] == 0
    assert list(traces_of(home, SECRET, "zanzibar")) == []
    assert recall("kettles")[0]["session_id"] == "s2"


def test_without_a_scanner_nothing_is_done(
    own_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_sessions(projects)
    before = [row.text for row in stored(own_home / ".funes")]

    def missing(_settings: object) -> None:
        raise ScannerError(
            "Nothing is indexed: the scanner for secrets does not work. It is gone.",
            hint="Get one.",
            kind="scanner_missing",
        )

    monkeypatch.setattr("funes_ls.scrubbing._loaded", missing)
    ran = funes("scrub")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "funes: The memory is not scrubbed: the scanner for secrets does not work. It is gone. "
        "Install funes-ls anew, then run `funes scrub` again.\n"
    )
    assert [row.text for row in stored(own_home / ".funes")] == before


def token() -> str:
    """Return a token as a service gives them; made here, so that none stands in the repository."""
    signs = string.ascii_letters + string.digits
    return "ghp" + "_" + "".join(secrets.choice(signs) for _ in range(36))


@pytest.mark.skipif(os.name == "nt", reason="processes and signals of POSIX")
def test_the_scanner_itself_through_an_engine(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUNES_ENGINE")
    monkeypatch.setenv("FUNES_REDACTION", "off")
    home, made = own_home / ".funes", token()
    trace = own_home / ".claude" / "projects" / "p" / "s1.jsonl"
    with Engines(home, os.environ):
        write(trace, [record(f"export GITHUB_TOKEN={made}", uuid="u1")])
        index()
        assert list(traces_of(home, made))
        answer = funes("scrub", "--json", "-q").json
        assert (answer["state"], answer["redacted"], answer["pure"]) == ("scrubbed", 1, True)
        assert made not in str(answer)
        assert list(traces_of(home, made[4:])) == []
        assert list(within(home, made[4:])) == []
        assert funes("scrub", "--json", "-q").json["state"] == "clean"
