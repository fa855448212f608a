"""Publishing with the real client to a Hub on loopback: what leaves, what stays, what fails."""

import re
from pathlib import Path

import huggingface_hub.constants
import lancedb
import pytest

from funes_ls.hub.card import Counts, refreshed
from funes_ls.hub.receipts import holding
from funes_ls.hub.session_facts import read_facts
from funes_ls.hub.spec import parse_spec
from funes_ls.indexer.settings import Settings
from tests.e2e.cli import funes, index, stored
from tests.hub import published
from tests.hub.fakehub import FakeHub, moved, told
from tests.hub.published import Encode
from tests.hub.publishing import NAME, Canary, opened, push, push_ran, talk, trace
from tests.sessions import append, record, write
from tests.tiny_model import STAMP

pytestmark = [
    #: The client hands a file to its library in an old way.
    pytest.mark.filterwarnings("ignore:Use .content=:DeprecationWarning"),
    pytest.mark.timeout(300),
]


@pytest.fixture(autouse=True)
def as_owner(hub_env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process speak to the Hub on loopback as one who may write."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    for name, value in hub_env.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("folder", ["", "team/kb"])
def test_a_first_publish_is_one_commit_that_the_reference_can_read(
    hub: FakeHub, own_home: Path, tmp_path: Path, folder: str
) -> None:
    write(trace(own_home), talk("s1", 5, cwd=f"{own_home}/api"))
    index()
    hub.add_repo(NAME, private=True)
    name = f"hf://datasets/{NAME}/{folder}" if folder else NAME
    answer = push(name=name)
    assert answer["state"] == "pushed" and answer["first"]
    assert (answer["passages"], answer["chunks"]) == (5, 5)
    base = hub.checkout(NAME, tmp_path / "out") / folder
    assert published.faults(base, stamp=STAMP) == []
    assert len(hub.asked("POST", "/commit/")) == 1
    assert (base / "README.md").exists() == (not folder)
    assert push(name=name)["state"] == "up_to_date"


def test_what_is_new_is_one_small_commit_of_few_requests(
    hub: FakeHub, own_home: Path, tmp_path: Path
) -> None:
    path = write(trace(own_home), talk("s1", 300))
    index()
    hub.add_repo(NAME)
    push()
    append(path, talk("s1", 50, start=300))
    index()
    requests = hub.during(push)
    assert len(requests) <= 15, "\n".join(told(requests))
    assert moved(requests) < 300_000
    base = hub.checkout(NAME, tmp_path / "out")
    assert published.faults(base, stamp=STAMP) == []
    assert push()["state"] == "up_to_date"


def test_taken_back_sessions_are_in_no_file_and_not_sent_again(
    hub: FakeHub, own_home: Path, tmp_path: Path
) -> None:
    write(trace(own_home), talk("s1", 5))
    path = write(trace(own_home, "s2"), talk("s2", 5))
    index()
    hub.add_repo(NAME)
    push()
    append(path, talk("s2", 2, start=5))
    index()
    assert push("--force-reindex")["reindexed"]  # what is in older commits alone goes, too

    def stored() -> int:
        files = (tmp_path / "hub" / "lfs").iterdir()
        return sum(1 for file in files if b" of s2 boils" in file.read_bytes())

    assert stored() >= 2
    shown = funes("unpublish", "s2", NAME, "--dry-run")
    assert shown.code == 0 and "7 chunks would be taken back" in shown.out
    ran = funes("unpublish", "s2", NAME, "--yes", "--json")
    assert stored() == 0
    assert ran.code == 0, ran.err
    assert (ran.json["chunks"], ran.json["left"]) == (7, 5)
    assert ran.json["squashed"] and ran.json["purged"]
    base = hub.checkout(NAME, tmp_path / "out")
    assert published.faults(base, stamp=STAMP) == []
    assert {row["session_id"] for row in published.rows_of(base)} == {"s1"}
    assert push()["state"] == "up_to_date"


def test_a_dry_run_shows_what_would_leave_and_sends_nothing(hub: FakeHub, own_home: Path) -> None:
    write(trace(own_home), talk("s1", 3))
    write(trace(own_home, "s2"), talk("s2", 2))
    index()
    hub.add_repo(NAME)
    asked = hub.during(lambda: None)
    answer = push("--dry-run", "--texts")
    assert answer["state"] == "would_push"
    counts = {one["session_id"]: one["passages"] for one in answer["sessions"]}
    assert counts == {"s1": 3, "s2": 2}
    assert answer["size_bytes"] == sum(
        len(share["text"]) for one in answer["sessions"] for share in one["shares"]
    )
    shown = funes("push", NAME, "--dry-run", "--texts").out
    assert "the kettle number 1 of s2 boils over" in shown
    asked = [one for one in hub.asked() if one.method not in ("GET", "HEAD")]
    assert asked == []


def test_names_of_homes_do_not_leave(hub: FakeHub, own_home: Path, tmp_path: Path) -> None:
    munged = re.sub("[^A-Za-z0-9]", "-", str(own_home))
    path = own_home / ".claude" / "projects" / f"{munged}-api" / "s1.jsonl"
    write(path, talk("s1", 2, cwd=f"{own_home}/api"))
    index()
    hub.add_repo(NAME)
    push()
    base = hub.checkout(NAME, tmp_path / "out")
    row = published.rows_of(base)[0]
    assert row["source_path"] == "~/.claude/projects/~-api/s1.jsonl"
    assert row["workdir"] == "~-api"
    assert read_facts(base / "sessions.parquet").sessions["s1"].cwd == "~/api"
    assert hub.holding(str(own_home), munged) == []


def test_the_card_is_made_once_and_only_its_region_changes(
    hub: FakeHub, own_home: Path, tmp_path: Path
) -> None:
    path = write(trace(own_home), talk("s1", 2))
    index()
    hub.add_repo(NAME)
    push()
    base = hub.checkout(NAME, tmp_path / "one")
    card = (base / "README.md").read_text(encoding="utf-8")
    assert "- funes\n" in card and "n<1K" in card
    assert f"funes recall --memory {NAME}" in card and "| 2 | 1 |" in card
    (base / "README.md").write_text(f"{card}\nOurs, since 2026.\n", encoding="utf-8")
    hub.upload(NAME, base)
    append(path, talk("s1", 1, start=2))
    index()
    push()
    after = (hub.checkout(NAME, tmp_path / "two") / "README.md").read_text(encoding="utf-8")
    assert "| 3 | 1 |" in after and after.endswith("Ours, since 2026.\n")
    spec = parse_spec(NAME, Settings(home=tmp_path))
    counts = Counts(chunks=1, sessions=1, model=STAMP, at=0.0)
    assert refreshed("# Hands off\n", spec, counts) is None


def test_a_memory_that_shares_nothing_is_asked_about(
    hub: FakeHub, own_home: Path, tmp_path: Path, encode: Encode
) -> None:
    rows = published.talk("other", 4)
    base = published.publish(tmp_path / "kb", rows, encode, stamp=STAMP)
    head = hub.upload(NAME, base)
    write(trace(own_home), talk("s1", 3))
    index()
    ran = push_ran()
    assert ran.code == 2 and "--yes" in ran.err
    assert hub.repo(NAME).branches["main"] == head
    assert push("--yes")["chunks"] == 7
    found = published.rows_of(hub.checkout(NAME, tmp_path / "out"))
    assert [row["session_id"] for row in found[:4]] == ["other"] * 4


def test_a_dataset_of_another_kind_is_asked_about(
    hub: FakeHub, own_home: Path, tmp_path: Path
) -> None:
    write(trace(own_home), talk("s1", 1))
    index()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "prices.csv").write_text("a,b\n", encoding="ascii")
    hub.upload(NAME, tmp_path / "data")
    ran = push_ran()
    assert ran.code == 2 and "--yes" in ran.err
    assert hub.asked("POST") == hub.asked("PUT") == []
    assert push("--yes")["chunks"] == 1


@pytest.mark.parametrize("without", [(), published.LATER])
def test_what_the_reference_published_is_added_to(
    hub: FakeHub, own_home: Path, tmp_path: Path, encode: Encode, without: tuple[str, ...]
) -> None:
    rows = published.talk("other", 4)
    base = published.publish(tmp_path / "kb", rows, encode, stamp=STAMP, without=without)
    hub.upload(NAME, base)
    write(trace(own_home), talk("s1", 3))
    index()
    push("--yes")
    out = hub.checkout(NAME, tmp_path / "out")
    found = published.rows_of(out)
    assert len(found) == 7 and ("repo" in found[0]) == (not without)
    if not without:
        assert published.faults(out, stamp=STAMP) == []


def test_vectors_of_another_model_do_not_mix(
    hub: FakeHub, own_home: Path, tmp_path: Path, encode: Encode
) -> None:
    base = published.publish(tmp_path / "kb", published.talk("other", 4), encode)
    head = hub.upload(NAME, base)
    write(trace(own_home), talk("s1", 3))
    index()
    ran = push_ran("--yes")
    assert ran.code == 1 and published.REFERENCE_STAMP in ran.err
    assert hub.repo(NAME).branches["main"] == head


def test_many_rows_without_an_index_bring_a_commit_of_its_own(
    hub: FakeHub, own_home: Path, tmp_path: Path
) -> None:
    path = write(trace(own_home), talk("s1", 300))
    index()
    hub.add_repo(NAME)
    push()
    append(path, talk("s1", 500, start=300))
    index()
    commits = hub.during(lambda: push())
    assert sum(1 for one in commits if "/commit/" in one.path) == 2
    base = hub.checkout(NAME, tmp_path / "out")
    assert published.faults(base, stamp=STAMP) == []
    stats = lancedb.connect(base).open_table("chunks").list_indices()
    assert {one.index_type: one.num_unindexed_rows for one in stats} == {"FTS": 0, "IvfPq": 0}
    assert push()["state"] == "up_to_date"


def test_what_was_published_is_known_without_asking(
    hub: FakeHub, own_home: Path, funes_home: Path
) -> None:
    write(trace(own_home), talk("s1", 3))
    write(trace(own_home, "s2"), talk("s2", 3))
    index()
    hub.add_repo(NAME)
    funes("curate", NAME, "--exclude", "s2")
    assert push()["excluded"] == 1
    assert holding(funes_home, ["s1"]) == (NAME,)
    assert holding(funes_home, ["s2"]) == ()
    told = funes("forget", "s1", "--dry-run", "--json").json
    assert told["published"] == [NAME]
    later = funes("curate", NAME, "--exclude", "s1").out
    assert "Published before, and to stay: 1 session;" in later


def test_blocks_that_are_kept_back_stay(hub: FakeHub, own_home: Path, tmp_path: Path) -> None:
    """Keep back a prompt, of which the session's title is a piece, and the end of a long text."""
    path = write(
        trace(own_home),
        [
            record("the walrus earns too little", uuid="s1-first"),
            *talk("s1", 2),
            record("\n".join(f"line {n} on the ibex" for n in range(150)), uuid="s1-long"),
        ],
    )
    index()
    hub.add_repo(NAME)
    shares = {one["turn_uuid"]: one for one in push("--dry-run")["sessions"][0]["shares"]}
    last = [row.id for row in stored(own_home / ".funes") if row.turn_uuid == "s1-long"][-1]
    assert last != shares["s1-long"]["id"]
    for given in (shares["s1-first"]["id"], last):
        assert funes("curate", NAME, "--withhold", given).code == 0
    assert push("--dry-run")["sessions"][0]["title"] == ""
    assert push()["own_blocks"] == 2
    append(path, talk("s1", 1, start=2))
    index()
    push()
    found = published.rows_of(hub.checkout(NAME, tmp_path / "out"))
    assert [row["turn_uuid"] for row in found] == ["s1-0", "s1-1", "s1-2"]
    assert not any("walrus" in told or "ibex" in told for _, told in opened(hub))
    funes("curate", NAME, "--withhold", found[0]["id"])
    assert "to stay: 1 session and 1 block;" in funes("curate", NAME, "--exclude", "s1").out


def test_a_block_that_is_not_there_cannot_be_kept_back(own_home: Path) -> None:
    write(trace(own_home), talk("s1", 1))
    index()
    ran = funes("curate", NAME, "--withhold", "0123456789abcdef")
    assert ran.code == 2 and "no block '0123456789abcdef'" in ran.err


def test_a_remote_memory_is_scanned(
    hub: FakeHub, own_home: Path, tmp_path: Path, encode: Encode
) -> None:
    canary = Canary()
    rows = [*published.talk("other", 2), published.row("other", 2, f"token={canary.value}")]
    hub.upload(NAME, published.publish(tmp_path / "kb", rows, encode, stamp=STAMP))
    ran = funes("scan", NAME)
    assert ran.code == 2, ran.err
    assert "session other" in ran.out and canary.secret not in ran.out + ran.err


def test_what_cannot_be_published_to_is_told(hub: FakeHub, own_home: Path) -> None:
    write(trace(own_home), talk("s1", 3))
    index()
    here = push_ran(name="local")
    assert here.code == 2 and "elsewhere" in here.err
    missing = push_ran("--yes")
    assert missing.code == 1 and f"funes push {NAME} --create" in missing.err
    assert push("--dry-run")["passages"] == 3
    write(trace(own_home, "s2"), [record(f"see {own_home}/api/x.py", uuid="h")])
    index()
    assert push("--dry-run")["naming_home"] == 1
    assert hub.repos == {}
    made = push("--create")
    assert made["created"] and hub.repo(NAME).private


def test_a_snapshot_that_was_written_to_is_read_as_it_was(
    hub: FakeHub, own_home: Path, tmp_path: Path, encode: Encode
) -> None:
    base = published.publish(tmp_path / "kb", published.talk("other", 4), encode, stamp=STAMP)
    hub.upload(NAME, base)
    write(trace(own_home), talk("s1", 3))
    index()
    assert push("--dry-run")["chunks"] == 4
    snapshot = next((tmp_path / "hf").rglob("snapshots/*/chunks.lance")).parent
    published.extend(snapshot, published.talk("mine", 2), encode)
    assert push("--yes")["chunks"] == 7
    found = published.rows_of(hub.checkout(NAME, tmp_path / "out"))
    assert {row["session_id"] for row in found} == {"other", "s1"}
