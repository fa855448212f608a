"""Bad input is named, says what helps, exits as documented, and loses nothing."""

import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funes_ls.indexer import dataset
from funes_ls.indexer.catalog_schema import FORMAT
from tests.e2e.cli import COMMAND, Ran, funes, funes_process, index, problems, recall, status
from tests.e2e.disks import small_disk
from tests.sessions import record, write
from tests.tiny_model import tiny_model_dir


@pytest.fixture
def projects(own_home: Path) -> Path:
    return own_home / ".claude" / "projects"


def one_session(projects: Path) -> Path:
    return write(projects / "p" / "s1.jsonl", [record("the kettle boils at noon", uuid="u1")])


def refused(ran: Ran, *, code: int, names: str, hint: str) -> None:
    """Assert that a command failed with one message that names the thing and a next step."""
    assert ran.code == code, ran.err
    assert ran.out == ""
    said = ran.err.splitlines()[-1]
    assert said.startswith("funes: ")
    assert names in said
    assert hint in said
    assert "Traceback" not in ran.err


def test_an_unknown_harness() -> None:
    for command in (
        ["index", "--harness"],
        ["recall", "x", "--harness"],
        ["sessions", "--harness"],
    ):
        if command[0] != "index":
            continue
        refused(funes(*command, "clippy"), code=2, names="clippy", hint="claude")


@pytest.mark.parametrize("command", ["recall", "sessions"])
def test_an_unknown_harness_as_a_filter(projects: Path, command: str) -> None:
    one_session(projects)
    index()
    words = ["kettle"] if command == "recall" else []
    refused(funes(command, *words, "--harness", "clippy"), code=2, names="clippy", hint="claude")


def test_an_unknown_block_type(projects: Path) -> None:
    one_session(projects)
    index()
    refused(funes("recall", "x", "--type", "prose"), code=2, names="prose", hint="tool_use")


def test_a_missing_path() -> None:
    refused(funes("index", "/no/such/place"), code=2, names="/no/such/place", hint="No such path")
    refused(funes("parse", "/no/such/place"), code=2, names="/no/such/place", hint="No such path")


def test_no_agent_ever_ran_here() -> None:
    refused(funes("index", "--yes"), code=2, names="known place", hint="funes index PATH")
    refused(funes("index", "--harness", "pi"), code=2, names="pi", hint="funes index PATH")


def test_without_a_terminal_something_must_be_named(projects: Path) -> None:
    one_session(projects)
    refused(funes("index"), code=2, names="Without a terminal", hint="--yes")


@pytest.mark.parametrize("command", [["recall", "x"], ["get", "s", "t"], ["sessions"]])
def test_no_memory_yet(command: list[str]) -> None:
    refused(funes(*command), code=1, names="No memory", hint="funes index")


def test_status_without_a_memory_is_no_error() -> None:
    ran = funes("status")
    assert ran.code == 0
    assert "funes index" in ran.out
    assert status()["state"] == "missing"


def unreadable(path: Path) -> None:
    """Make a trace that cannot be read, for root too: its read fails with an I/O error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to("/proc/self/mem")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux's /proc")
def test_an_unreadable_file_is_skipped_and_tried_again(projects: Path) -> None:
    one_session(projects)
    bad = projects / "p" / "s2.jsonl"
    unreadable(bad)
    ran = funes("index", "--yes")
    assert ran.code == 0
    assert any("could not be read" in line for line in ran.err.splitlines())
    assert len(problems()) == 1
    assert [hit["text"] for hit in recall("kettle")] == ["the kettle boils at noon"]
    bad.unlink()
    write(bad, [record("the second kettle", uuid="u2")])
    assert index()["chunks"] == 1
    assert problems() == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_and_a_folder_named_like_traces(projects: Path) -> None:
    one_session(projects)
    os.mkfifo(projects / "p" / "pipe.jsonl")
    (projects / "p" / "folder.jsonl").mkdir()
    ran = funes_process("index", "--yes", "--words-only", timeout_s=60)
    assert ran.code == 0, ran.err
    assert {Path(one["path"]).name for one in problems()} <= {"pipe.jsonl", "folder.jsonl"}
    assert "pipe.jsonl" in {Path(one["path"]).name for one in problems()}
    assert len(recall("kettle")) == 1


def test_a_parquet_file_with_other_columns(tmp_path: Path) -> None:
    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"a": [1], "b": [2]}), path)
    refused(funes("index", str(path)), code=1, names="numbers.parquet", hint="session_id")


def test_a_parquet_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "broken.parquet"
    path.write_bytes(b"PAR1 nothing here")
    refused(funes("index", str(path)), code=1, names="broken.parquet", hint="")


def test_a_damaged_hermes_database(own_home: Path, projects: Path) -> None:
    one_session(projects)
    place = own_home / ".hermes" / "state.db"
    place.parent.mkdir()
    place.write_bytes(b"SQLite format 3\0" + b"\xff" * 4096)
    ran = funes("index", "--yes")
    assert ran.code == 0, ran.err
    assert [Path(one["path"]).name for one in problems()] == ["state.db"]
    assert len(recall("kettle")) == 1
    refused(funes("index", "--harness", "hermes"), code=1, names="state.db", hint="")


def test_another_model_is_refused_and_nothing_is_lost(
    projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_session(projects)
    index()
    other = tiny_model_dir(stamp="test/other")
    monkeypatch.setenv("FUNES_MODEL", str(other))
    ran = funes("index", "--yes")
    refused(ran, code=1, names="test/other", hint="auto")
    monkeypatch.setenv("FUNES_MODEL", str(tiny_model_dir()))
    assert len(recall("kettle")) == 1


def test_a_memory_whose_model_is_not_here_answers_by_words(
    projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_session(projects)
    index()
    monkeypatch.setenv("FUNES_MODEL", "auto")
    ran = funes("recall", "kettle", "--json")
    assert ran.json["legs"] == {"words": "ran", "vector": "no_model"}
    assert "funes model install" in ran.json["note"]
    assert len(ran.json["hits"]) == 1


def test_a_newer_format_is_refused(projects: Path, funes_home: Path) -> None:
    one_session(projects)
    index()
    with sqlite3.connect(funes_home / "memory" / "catalog.db") as db:
        db.execute(f"PRAGMA user_version = {FORMAT + 1}")
    db.close()
    for command in (["recall", "kettle"], ["index", "--yes"], ["status"]):
        refused(funes(*command), code=1, names="newer funes", hint="pip install --upgrade")


def test_vectors_of_another_width(projects: Path, funes_home: Path) -> None:
    one_session(projects)
    dataset.create(funes_home / "memory", stamp="test/tiny", dim=16)
    ran = funes("index", "--yes")
    refused(ran, code=1, names="16", hint="funes model list")
    shutil.rmtree(funes_home / "memory" / "chunks.lance")
    assert index()["words_only"] == 0
    assert len(recall("kettle")) == 1


def test_a_foreign_dataset_is_named(projects: Path, funes_home: Path) -> None:
    import lancedb

    one_session(projects)
    (funes_home / "memory").mkdir(parents=True)
    lancedb.connect(funes_home / "memory").create_table("chunks", pa.table({"x": np.arange(3)}))
    refused(funes("index", "--yes"), code=1, names="chunks.lance", hint="Move it aside")


def test_a_full_disk_says_so_and_loses_nothing(projects: Path, funes_home: Path) -> None:
    one_session(projects)
    with small_disk(funes_home):
        assert index("--yes", "--words-only")["chunks"] == 1
        lines = [f"line {n} of a long report on pumps and valves" for n in range(30)]
        big = [record(f"{n} " + "\n".join(lines), uuid=f"b{n}") for n in range(2_000)]
        path = write(projects / "p" / "big.jsonl", big)
        refused(funes("index", "--yes", "--words-only"), code=1, names=str(funes_home), hint="disk")
        path.unlink()
        assert len(recall("kettle")) == 1


def test_a_read_only_home(projects: Path, funes_home: Path) -> None:
    one_session(projects)
    with small_disk(funes_home):
        index("--yes")
        subprocess.run(["mount", "-o", "remount,ro", str(funes_home)], check=True)
        ran = funes("index", "--yes")
        refused(ran, code=1, names=str(funes_home), hint="FUNES_HOME")
        assert len(recall("kettle")) == 1
        subprocess.run(["mount", "-o", "remount,rw", str(funes_home)], check=True)


def test_a_home_that_is_a_file(projects: Path, funes_home: Path) -> None:
    one_session(projects)
    funes_home.write_text("not a folder", encoding="utf-8")
    refused(funes("index", "--yes"), code=1, names=str(funes_home), hint="FUNES_HOME")


def test_an_empty_or_overlong_question(projects: Path) -> None:
    one_session(projects)
    index()
    for query in ("", "   ", "?!…", '""', "x " * 10_001):
        ran = funes("recall", "--", query)
        assert (ran.code, ran.out) == (2, ""), query[:10]
        assert ran.err.startswith("funes: ")


def test_two_writers_take_turns(projects: Path, funes_home: Path) -> None:
    from funes_ls.indexer.lock import writer_lock

    one_session(projects)
    with writer_lock(funes_home):
        refused(funes_process("index", "--yes"), code=1, names=str(os.getpid()), hint="Wait")
    assert index()["chunks"] == 1


@pytest.mark.parametrize(
    "option",
    ["--since", "--session", "--project", "--path", "--memory", "--type", "--tool", "--branch"],
)
def test_an_empty_filter_is_refused_not_ignored(option: str) -> None:
    refused(funes("recall", "kettle", option, ""), code=2, names=option, hint="empty value")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("-k", "99999999999999999999"),
        ("--candidates", "99999999999999999999"),
        ("--neighbors", "99999999999999999999"),
        ("--half-life", "nan"),
        ("--half-life", "inf"),
        ("--half-life", "1e9"),
    ],
)
def test_a_number_out_of_range_is_refused(option: str, value: str) -> None:
    refused(funes("recall", "kettle", option, value), code=2, names=option.strip("-"), hint="")


@pytest.mark.parametrize("value", ["-1", "0", "1e-320"])
def test_odd_half_lives_answer(projects: Path, value: str) -> None:
    one_session(projects)
    index("--yes", "--words-only")
    ran = funes("recall", "kettle", "--half-life", value, "--json")
    assert (ran.code, len(ran.json["hits"])) == (0, 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_answer_that_cannot_be_written() -> None:
    for place in (">/dev/full", ">&-"):
        shell = ["sh", "-c", f'"$@" {place}', "sh", *COMMAND, "status"]
        run = subprocess.run(shell, capture_output=True, text=True, env=os.environ)
        assert run.returncode == 1
        assert len(run.stderr.splitlines()) == 1
        assert run.stderr.startswith("funes: ")


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_only_its_user_can_enter_a_new_home(projects: Path, funes_home: Path) -> None:
    one_session(projects)
    index("--yes", "--words-only")
    assert funes_home.stat().st_mode & 0o777 == 0o700
    assert (funes_home / "memory").stat().st_mode & 0o777 == 0o700


def test_a_damaged_catalog_is_mended_with_one_sentence(projects: Path, funes_home: Path) -> None:
    one_session(projects)
    index()
    (funes_home / "memory" / "catalog.db").write_bytes(b"garbage")
    ran = funes_process("status")
    assert ran.code == 0
    assert ran.err == ""
    assert "The catalog was damaged" in ran.out
    assert len(recall("kettle")) == 1
