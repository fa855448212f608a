"""`funes pull`: a memory is carried to another machine, and goes on there."""

import json
import os
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest

from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.settings import load_settings
from funes_ls.memories import OpenEachTime
from funes_ls.protocol_pull import PullParams
from funes_ls.pulling import pull
from tests.e2e.cli import funes, index, recall, status, stored
from tests.e2e.engines import Engines
from tests.hub import published
from tests.hub.fakehub import FakeHub
from tests.hub.published import Encode
from tests.hub.publishing import Canary, push
from tests.sessions import append, record, write
from tests.tiny_model import STAMP

NAME = "acme/kb"


@pytest.fixture(autouse=True)
def at_hub(hub_env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in hub_env.items():
        monkeypatch.setenv(name, value)


def put(hub: FakeHub, base: Path, rows: list[dict[str, Any]], encode: Encode, **how: Any) -> None:
    hub.upload(NAME, published.publish(base, rows, encode, **{"stamp": STAMP, **how}))


def pulled(*argv: str) -> dict[str, Any]:
    ran = funes("pull", NAME, *argv, "--json")
    assert ran.code == 0, ran.err
    answer: dict[str, Any] = ran.json
    return answer


def test_a_memory_of_the_reference_comes_to_a_new_machine(
    hub: FakeHub, tmp_path: Path, funes_home: Path, encode: Encode
) -> None:
    rows = published.talk("s1", 40) + published.talk("s2", 4, about="spindles")
    put(hub, tmp_path / "kb", rows, encode, without=published.LATER)
    assert pulled()["chunks"] == 44
    found = {row.id: row for row in stored(funes_home)}
    assert found.keys() == {one["id"] for one in rows}
    assert all(found[one["id"]].text == one["text"] for one in rows)
    assert published.faults(funes_home / "memory", stamp=STAMP) == []
    told = status()
    assert (told["chunks"], told["sessions"], told["words_only"]) == (44, 2, 0)
    assert told["model"] == STAMP
    assert told["scrub_due"]
    assert recall("spindles valve")[0]["session_id"] == "s2"
    again = pulled()
    assert (again["state"], again["chunks"], again["known"]) == ("up_to_date", 0, 44)


def test_indexing_goes_on_in_it(
    hub: FakeHub, tmp_path: Path, own_home: Path, funes_home: Path, encode: Encode
) -> None:
    # On one machine a session is indexed and its rows are published …
    trace = own_home / ".claude" / "projects" / "p" / "s1.jsonl"
    turns = [record(f"the kettle number {n} boils", uuid=f"u{n}") for n in range(5)]
    write(trace, turns)
    index()
    hub.upload(NAME, funes_home / "memory", below="")
    hub_ids = {row.id for row in stored(funes_home)}
    funes_home.rename(own_home / "old")
    # … and on another it goes on.
    assert pulled()["chunks"] == 5
    assert index()["chunks"] == 0
    append(trace, [record("and a spindle turns", uuid="u5")])
    assert index()["chunks"] == 1
    rows = stored(funes_home)
    assert len(rows) == 6
    assert {row.id for row in rows} > hub_ids
    assert {row.session_id for row in rows} == {"s1"}
    assert status()["sessions"] == 1


def test_memories_of_one_model_are_put_together(
    hub: FakeHub, tmp_path: Path, own_home: Path, funes_home: Path, encode: Encode
) -> None:
    put(hub, tmp_path / "kb", published.talk("s1", 6), encode)
    write(own_home / ".claude" / "projects" / "p" / "own.jsonl", [record("a gasket", uuid="u1")])
    index()
    ran = funes("pull", NAME)
    assert ran.code == 2
    assert "shares nothing with the local memory" in ran.err
    assert "--yes" in ran.err
    assert len(stored(funes_home)) == 1
    assert pulled("--yes")["chunks"] == 6
    published.extend(tmp_path / "kb", published.talk("s2", 4), encode)
    hub.upload(NAME, tmp_path / "kb")
    more = pulled()  # it is known by now
    assert (more["chunks"], more["known"], more["sessions"]) == (4, 6, 1)
    assert {row.session_id for row in stored(funes_home)} == {"own", "s1", "s2"}
    assert status()["words_only"] == 0


@pytest.mark.filterwarnings("ignore:Use .content=:DeprecationWarning")
def test_what_others_say_passes_the_gate_before_it_is_sent_on(
    hub: FakeHub, tmp_path: Path, funes_home: Path, encode: Encode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    canary = Canary()
    rows = [*published.talk("s1", 3), published.row("s1", 3, f"GITHUB_TOKEN={canary.value}")]
    base = published.publish(tmp_path / "kb", rows, encode, stamp=STAMP)
    assert funes("pull", str(base)).code == 0
    hub.add_repo("acme/other")
    answer = push(name="acme/other")
    assert (answer["passages"], answer["withheld_blocks"]) == (3, 1)
    assert canary.places(hub) == []


def test_another_model_is_refused(
    hub: FakeHub, tmp_path: Path, own_home: Path, funes_home: Path, encode: Encode
) -> None:
    put(hub, tmp_path / "kb", published.talk("s1", 3), encode, stamp="test/other")
    ran = funes("pull", NAME)
    assert ran.code == 1
    assert "test/other" in ran.err
    assert "Traceback" not in ran.err
    assert not (funes_home / "memory" / "chunks.lance").exists()


def test_what_was_forgotten_stays_away_and_false_ids_are_left_out(
    hub: FakeHub, tmp_path: Path, funes_home: Path, encode: Encode
) -> None:
    rows = published.talk("s1", 3) + published.talk("s2", 3)
    false = {**published.row("s3", 0, "in the place of another"), "id": "0" * 16}
    put(hub, tmp_path / "kb", [*rows, false], encode)
    first = pulled()
    assert (first["chunks"], first["odd"]) == (6, 1)
    assert funes("forget", "s2", "--yes").code == 0
    again = pulled()
    assert (again["chunks"], again["known"], again["forgotten"]) == (0, 3, 3)
    assert {row.session_id for row in stored(funes_home)} == {"s1"}


def test_a_memory_at_a_path(tmp_path: Path, funes_home: Path, encode: Encode) -> None:
    base = published.publish(tmp_path / "kb", published.talk("s1", 3), encode, stamp=STAMP)
    assert json.loads(funes("pull", str(base), "--json").out)["chunks"] == 3
    ran = funes("pull", str(funes_home))
    assert ran.code == 1
    assert "the local memory itself" in ran.err
    assert funes("pull", "local").code == 1


def test_what_was_broken_off_is_made_up_for(
    tmp_path: Path, funes_home: Path, encode: Encode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("funes_ls.indexer.merge._BATCH_ROWS", 3)
    rows = published.talk("s1", 6) + published.talk("s2", 5)
    base = published.publish(tmp_path / "kb", rows, encode, stamp=STAMP)
    settings, _ = load_settings(os.environ)
    params = PullParams(memory="kb", base=str(base))
    asked: list[bool] = []

    def cancelled() -> bool:
        asked.append(True)
        return len(asked) > 2

    with pytest.raises(FunesError) as exc:
        pull(params, OpenEachTime(settings), cancelled=cancelled)
    assert exc.value.kind == "cancelled"
    half = status()
    assert 0 < half["chunks"] < 11
    answer = pull(params, OpenEachTime(settings))
    assert answer.chunks == 11 - half["chunks"]
    told = status()
    assert (told["chunks"], told["sessions"], told["words_only"]) == (11, 2, 0)
    listed = funes("sessions", "--json").json["sessions"]
    assert {one["session_id"]: one["chunks"] for one in listed} == {"s1": 6, "s2": 5}


def test_what_goes_wrong_is_told(hub: FakeHub, tmp_path: Path, encode: Encode) -> None:
    assert "no dataset acme/kb" in funes("pull", NAME).err
    hub.add_repo(NAME)
    assert "holds no memory yet" in funes("pull", NAME).err
    put(hub, tmp_path / "kb", published.talk("s1", 3), encode)
    hub.fail("GET", "/api/", status=503, times=99)
    ran = funes("pull", NAME)
    assert ran.code == 1
    assert "503" in ran.err
    hub.mend()
    assert pulled()["chunks"] == 3
    half = published.publish(tmp_path / "half", published.talk("s2", 3), encode, stamp=STAMP)
    for path in (half / "chunks.lance" / "data").iterdir():
        path.unlink()
    hub.upload("acme/half", half)
    for command in (["pull"], ["push"], ["unpublish", "s2"]):
        ran = funes(*command, "acme/half", "--yes")
        assert ran.code == 1 and "incomplete or damaged" in ran.err, command


def test_an_engine_takes_it_in_and_answers_from_it(
    hub: FakeHub,
    tmp_path: Path,
    own_home: Path,
    funes_home: Path,
    encode: Encode,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put(hub, tmp_path / "kb", published.talk("s2", 4, about="spindles"), encode)
    write(own_home / ".claude" / "projects" / "p" / "own.jsonl", [record("a gasket", uuid="u1")])
    index()
    monkeypatch.delenv("FUNES_ENGINE")
    with Engines(funes_home, os.environ) as engines:
        assert engines.recall("spindles valve") != []
        assert pulled("--yes")["chunks"] == 4
        assert engines.pid
        assert "of s2 on spindles" in engines.recall("spindles valve")[0]
        assert pulled()["known"] == 4
