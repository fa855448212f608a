"""`funes index <org>/<repo>` and `funes index file.parquet`: datasets of traces become sessions."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.credentials import Source, github
from tests.e2e.cli import Ran, funes, stored
from tests.e2e.engines import Engines
from tests.hub.fakehub import FakeHub
from tests.hub.fakehub_repos import CONVERTED
from tests.sessions import record, write

NAME = "acme/traces"
ORIGIN = "hf://datasets/acme/traces"


@pytest.fixture(autouse=True)
def at_hub(hub_env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in hub_env.items():
        monkeypatch.setenv(name, value)


def table(sessions: dict[str, list[str]], **columns: list[Any]) -> pa.Table:
    """Return agent traces: each session's texts are those of a user."""
    messages = [
        [json.dumps({"role": "user", "content": text}) for text in texts]
        for texts in sessions.values()
    ]
    return pa.table({"session_id": list(sessions), "messages": messages, **columns})


def parquet(folder: Path, name: str, sessions: dict[str, list[str]], **columns: list[Any]) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table(sessions, **columns), path)


def index(*argv: str) -> dict[str, Any]:
    ran = funes("index", *argv, "--json")
    assert ran.code == 0, ran.err
    report: dict[str, Any] = ran.json
    return report


def refused(*argv: str) -> Ran:
    ran = funes("index", *argv)
    assert ran.code != 0
    assert "Traceback" not in ran.err
    return ran


def test_the_parquet_the_hub_made_is_read_once(
    hub: FakeHub, tmp_path: Path, funes_home: Path
) -> None:
    folder = tmp_path / "converted"
    parquet(folder, "default/train/0000.parquet", {"a": ["a kettle"], "b": ["a spindle", "two"]})
    meta = {"file_path": ["/srv/c.jsonl"], "metadata": ['{"cwd": "/srv/demo"}']}
    parquet(folder, "default/train/0001.parquet", {"c": ["a gasket"]}, harness=["codex"], **meta)
    hub.add_repo(NAME)
    hub.upload(NAME, folder, branch=CONVERTED)
    report = index(NAME)
    assert (report["sessions"], report["chunks"], report["embedded"]) == (3, 4, 4)
    rows = {row.text: row for row in stored(funes_home)}
    assert rows["two"].turn_uuid == "b-1"
    assert rows["two"].source_path == f"{ORIGIN}/default/train/0000.parquet"
    assert rows["a gasket"].source_path == "/srv/c.jsonl"
    assert (rows["a gasket"].harness, rows["a gasket"].workdir) == ("codex", "-srv-demo")
    asked = hub.during(lambda: index(NAME))
    assert len(asked) <= 2  # where it stands, and nothing else
    again = index(f"{ORIGIN}")
    assert (again["sessions"], again["current"], again["chunks"]) == (0, 3, 0)


def test_a_newer_state_brings_only_what_is_new(
    hub: FakeHub, tmp_path: Path, funes_home: Path
) -> None:
    folder = tmp_path / "converted"
    parquet(folder, "default/train/0000.parquet", {"a": ["one"], "b": ["two"]})
    hub.upload(NAME, folder, branch=CONVERTED)
    index(NAME)
    shutil.rmtree(folder)  # sessions move to other files as a dataset grows
    parquet(folder, "default/train/0000.parquet", {"b": ["two", "three"], "d": ["four"]})
    parquet(folder, "default/train/0001.parquet", {"a": ["one"]})
    hub.upload(NAME, folder, branch=CONVERTED)
    assert index(NAME)["chunks"] == 2
    rows = stored(funes_home)
    assert sorted(row.text for row in rows) == ["four", "one", "three", "two"]
    assert {row.session_id for row in rows} == {"a", "b", "d"}


def test_raw_transcripts_are_read_where_the_copy_has_no_messages(
    hub: FakeHub, tmp_path: Path, funes_home: Path, own_home: Path
) -> None:
    converted, main = tmp_path / "converted", tmp_path / "main"
    converted.mkdir()
    pq.write_table(pa.table({"type": ["user"], "uuid": ["u1"]}), converted / "0000.parquet")
    turns = [record("the kettle boils", uuid="u1"), record("all day", uuid="u2")]
    write(main / "claude" / "s1.jsonl", turns)
    meta = {"timestamp": "t", "type": "session_meta", "payload": {"id": "c1", "cwd": "/srv"}}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hum"}]}
    write(
        main / "codex.jsonl", [meta, {"timestamp": "t", "type": "response_item", "payload": said}]
    )
    hub.upload(NAME, main)
    hub.upload(NAME, converted, branch=CONVERTED)
    assert index(NAME)["sessions"] == 2
    rows = {row.text: row for row in stored(funes_home)}
    assert rows["hum"].harness == "codex"
    assert rows["all day"].session_id == "s1"
    assert rows["all day"].source_path == f"{ORIGIN}/claude/s1.jsonl"
    assert str(own_home) not in funes("sessions", "--json").out
    # The user's own copy of the same session adds nothing, and neither does theirs to his.
    own = write(own_home / ".claude" / "projects" / "p" / "s1.jsonl", turns)
    assert index("--yes")["chunks"] == 0
    write(main / "claude" / "s1.jsonl", [*turns, record("and night", uuid="u3")])
    hub.upload(NAME, main)
    assert index(NAME)["chunks"] == 1
    assert {row.session_id for row in stored(funes_home)} == {"s1", "c1"}
    assert own.is_file()


def test_a_folder_of_a_private_dataset(hub: FakeHub, tmp_path: Path) -> None:
    parquet(tmp_path / "main", "one/x.parquet", {"a": ["one"]})
    parquet(tmp_path / "main", "two/y.parquet", {"b": ["two"]})
    hub.add_repo(NAME, private=True)
    hub.upload(NAME, tmp_path / "main")
    assert index(f"{ORIGIN}/two")["sessions"] == 1
    assert not hub.asked("GET", "one/x.parquet")


def test_what_is_no_dataset_of_traces_is_told(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "main").mkdir()
    (tmp_path / "main" / "README.md").write_text("# nothing here\n")
    hub.upload(NAME, tmp_path / "main")
    assert f"{NAME} holds no traces." in refused(NAME).err
    manifest = tmp_path / "kb" / "chunks.lance" / "_versions" / "1.manifest"
    manifest.parent.mkdir(parents=True)
    manifest.write_bytes(b"m")
    hub.upload("acme/kb", tmp_path / "kb")
    assert "funes pull acme/kb" in refused("acme/kb").err
    assert "There is no dataset acme/none" in refused("acme/none").err
    hub.repo(NAME).private = True
    monkeypatch.delenv("HF_TOKEN")
    assert "private" in refused(NAME).err
    assert "No such path" in refused("./acme/traces").err


def test_a_path_that_exists_wins(
    hub: FakeHub, tmp_path: Path, funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet(tmp_path, NAME, {"mine": ["a kettle"]})
    (tmp_path / NAME).rename(tmp_path / "acme" / "t.parquet")
    (tmp_path / NAME).mkdir()
    (tmp_path / "acme" / "t.parquet").rename(tmp_path / NAME / "t.parquet")
    monkeypatch.chdir(tmp_path)
    assert index(NAME)["sessions"] == 1
    assert index(f"{NAME}/t.parquet")["current"] == 1
    assert hub.requests == []


def test_secrets_of_others_are_taken_out(hub: FakeHub, tmp_path: Path, funes_home: Path) -> None:
    made = github(Source(5))
    parquet(tmp_path / "main", "x.parquet", {"a": [f"export TOKEN={made}", "a kettle"]})
    hub.upload(NAME, tmp_path / "main")
    assert index(NAME)["redacted"]
    assert [row.text for row in stored(funes_home) if made in row.text] == []


def test_what_goes_wrong_is_told_and_made_up_for(
    hub: FakeHub, tmp_path: Path, funes_home: Path
) -> None:
    parquet(tmp_path / "main", "x.parquet", {"a": ["a kettle" * 20]})
    hub.upload(NAME, tmp_path / "main")
    faults: list[tuple[str, dict[str, Any]]] = [
        ("503", {"status": 503}),
        ("token", {"status": 401}),
        ("let you read", {"status": 403}),
        ("too many requests", {"status": 429, "headers": {"Retry-After": "1"}}),
        ("cannot be reached", {"drop": True}),
        ("cannot be reached", {"truncate": 40}),
    ]
    for said, fault in faults:
        hub.fail("GET", "/_blobs/|/api/datasets", times=99, **fault)
        assert said in refused(NAME).err
        hub.mend()
    assert not (funes_home / "memory" / "catalog.db").exists()
    assert index(NAME)["sessions"] == 1


def test_an_engine_reads_what_was_fetched(
    hub: FakeHub, tmp_path: Path, funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet(tmp_path / "main", "x.parquet", {"a": ["a spindle turns"]})
    hub.upload(NAME, tmp_path / "main")
    monkeypatch.delenv("FUNES_ENGINE")
    with Engines(funes_home, os.environ) as engines:
        engines.connect()
        assert index(NAME)["sessions"] == 1
        assert engines.recall("spindle turns") == ["a spindle turns"]
        assert index(NAME)["current"] == 1
    assert {row.source_path for row in stored(funes_home)} == {f"{ORIGIN}/x.parquet"}
