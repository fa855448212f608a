"""Files and folders whose names are not UTF-8 are read, stored and shown like any other."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funes_ls.indexer.model import path_text
from tests.e2e.cli import funes, funes_process, index, problems, recall, texts
from tests.sessions import append, record, write

BAD = os.fsdecode(b"bad\xff")


@pytest.fixture
def projects(own_home: Path) -> Path:
    """Return where sessions are, on a file system that takes such names."""
    place = own_home / ".claude" / "projects"
    try:
        (place / BAD).mkdir(parents=True)
    except (OSError, UnicodeError):
        pytest.skip("this file system takes no such name")
    return place


def test_a_path_as_text() -> None:
    assert path_text(Path("/a/é 外.jsonl")) == str(Path("/a/é 外.jsonl"))
    assert path_text("/a/\udcff\udcc3\ud800") == "/a/\\xff\\xc3\\ud800"


def test_sessions_beside_a_good_one_are_all_recalled(projects: Path) -> None:
    write(projects / "-w" / "good.jsonl", [record("the kettle boils at noon", uuid="u1")])
    file = write(projects / "-w" / f"{BAD}.jsonl", [record("the kettle whistles", uuid="u2")])
    write(projects / BAD / "s3.jsonl", [record("the kettle is red", uuid="u3", cwd="")])
    assert index("--yes", "--words-only")["chunks"] == 3
    found = {hit["text"]: hit for hit in recall("kettle")}
    assert set(found) == {"the kettle boils at noon", "the kettle whistles", "the kettle is red"}
    assert found["the kettle whistles"]["session_id"] == "bad\\xff"
    assert "the kettle whistles" in funes("get", "bad\\xff", "u2").out
    assert funes("sessions").code == 0
    append(file, [record("and is switched off", uuid="u4")])
    assert index("--yes", "--words-only")["chunks"] == 1
    assert index("--yes", "--words-only")["chunks"] == 0


def test_two_living_sessions_of_one_id_stay_two(projects: Path) -> None:
    for folder, text in ((BAD, "a red kettle"), (os.fsdecode(b"-\xfe"), "a blue kettle")):
        write(projects / folder / "same.jsonl", [record(text, uuid="u1", ts=None)], mtime_s=10**9)
    assert index("--yes", "--words-only")["chunks"] == 2
    assert set(texts(recall("kettle"))) == {"a red kettle", "a blue kettle"}
    assert len({hit["session_id"] for hit in recall("kettle")}) == 2


def test_problems_name_such_files(projects: Path) -> None:
    write(projects / "-w" / "good.jsonl", [record("the kettle boils at noon", uuid="u1")])
    (projects / BAD / f"{BAD}.jsonl").write_bytes(b"prose\n")
    (projects / BAD / "gone.jsonl").symlink_to(projects / BAD / "nowhere")
    index("--yes", "--words-only")
    listed = sorted(Path(one["path"]).name for one in problems())
    assert listed == ["bad\\xff.jsonl", "gone.jsonl"]
    assert all(Path(one["path"]).parent.name == "bad\\xff" for one in problems())


def _database(path: Path) -> None:
    plain = path.with_name("plain.db")
    db = sqlite3.connect(plain)
    db.execute("CREATE TABLE messages(id INTEGER PRIMARY KEY, session_id, role, content)")
    db.execute("INSERT INTO messages VALUES (1, 's', 'user', 'the kettle boils at noon')")
    db.commit()
    db.close()
    plain.rename(path)


def _table(path: Path) -> None:
    plain = path.parent.with_name("plain.parquet")
    message = '{"role":"user","content":"the kettle boils at noon"}'
    pq.write_table(pa.table({"session_id": ["s"], "messages": [[message]]}), plain)
    plain.rename(path)


@pytest.mark.parametrize(("name", "make"), [("state.db", _database), ("x.parquet", _table)])
def test_databases_and_tables(projects: Path, name: str, make: Callable[[Path], None]) -> None:
    make(projects / BAD / name)
    assert index(str(projects / BAD), "--words-only")["chunks"] == 1
    assert texts(recall("kettle")) == ["the kettle boils at noon"]


def test_such_a_file_is_parsed_in_every_form(projects: Path) -> None:
    file = write(projects / BAD / f"{BAD}.jsonl", [record("the kettle whistles", uuid="u2")])
    for options in ([], ["--rows"], ["--json"]):
        ran = funes_process("parse", *options, str(file))
        assert ran.code == 0, ran.err
        assert "bad" in ran.out
