"""An index run may be killed or interrupted at any moment: nothing is lost, nothing doubled."""

import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.cli import COMMAND, funes, index, recall, status, stored
from tests.sessions import append, record, write

SESSIONS = 30
TURNS = 12


def history(projects: Path) -> None:
    for s in range(SESSIONS):
        records = [
            record(f"session {s} turn {t} speaks of valve {s * 100 + t}", uuid=f"s{s}t{t}")
            for t in range(TURNS)
        ]
        write(projects / "p" / f"s{s}.jsonl", records, mtime_s=1_700_000_000 + s)


def started() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*COMMAND, "index", "--yes"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ,
    )


def wait_for(run: "subprocess.Popen[bytes]", said: bytes) -> None:
    """Return when the run has said something on stderr, or has ended."""
    assert run.stderr is not None
    for line in run.stderr:
        if said in line:
            return


@pytest.mark.parametrize("seed", range(3))
def test_killed_and_run_again(own_home: Path, funes_home: Path, seed: int) -> None:
    history(own_home / ".claude" / "projects")
    chance = random.Random(seed)
    for _ in range(3):
        run = started()
        wait_for(run, b"Reading sessions" if seed else b"Embedding")
        try:
            run.wait(timeout=chance.random() * 1.5)
        except subprocess.TimeoutExpired:
            run.kill()
        run.communicate()
    report = index()
    assert (report["words_only"], report["stopped"]) == (0, "")
    rows = stored(funes_home)
    assert len(rows) == SESSIONS * TURNS
    assert len({row.id for row in rows}) == SESSIONS * TURNS
    assert all(row.embedded for row in rows)
    told = status()
    assert (told["sessions"], told["chunks"], told["words_only"]) == (SESSIONS, len(rows), 0)
    assert recall("valve 1705", "-k", "1")[0]["text"] == "session 17 turn 5 speaks of valve 1705"


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_interrupted_with_a_message(own_home: Path, end: signal.Signals) -> None:
    history(own_home / ".claude" / "projects")
    run = started()
    wait_for(run, b"Reading sessions")
    run.send_signal(end)
    _, err = run.communicate(timeout=60)
    if run.returncode == 0:  # it was done before the signal came
        assert status()["words_only"] == 0
    else:
        assert run.returncode == 130
        assert b"interrupted" in err.splitlines()[-1]
    assert index()["words_only"] == 0
    assert status()["chunks"] == SESSIONS * TURNS


def test_turn_by_turn_equals_all_at_once(
    own_home: Path, funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [record(f"turn {t} of many", uuid=f"u{t}") for t in range(6)]
    path = write(own_home / ".claude" / "projects" / "p" / "s.jsonl", records[:1])
    index()
    for one in records[1:]:
        append(path, [one])
        assert index()["embedded"] == 1
    grown = [(row.id, row.seq, row.text) for row in stored(funes_home)]
    assert len(grown) == 6
    monkeypatch.setenv("FUNES_HOME", str(own_home / "fresh"))
    index()
    assert [(row.id, row.seq, row.text) for row in stored(own_home / "fresh")] == grown


def test_rows_outlive_their_transcript(own_home: Path) -> None:
    path = write(
        own_home / ".claude" / "projects" / "p" / "s.jsonl", [record("a lasting note", uuid="u1")]
    )
    other = write(
        own_home / ".claude" / "projects" / "p" / "t.jsonl", [record("another", uuid="u2")]
    )
    index()
    path.unlink()
    append(other, [record("and more", uuid="u3")])
    index()
    assert [hit["text"] for hit in recall("lasting note", "-k", "1")] == ["a lasting note"]
    assert funes("get", "s", "u1").out.splitlines()[1] == "a lasting note"


def test_status_counts_traces_that_have_changed(own_home: Path) -> None:
    projects = own_home / ".claude" / "projects"
    path = write(projects / "p" / "s.jsonl", [record("one", uuid="u1")])
    write(projects / "p" / "t.jsonl", [record("two", uuid="u2")])
    index("--yes", "--words-only")
    assert status()["pending_sources"] == 0
    append(path, [record("three", uuid="u3")])
    assert status()["pending_sources"] == 1
    assert "changed   1 trace since last read" in funes("status").out
    index("--yes", "--words-only")
    assert status()["pending_sources"] == 0
