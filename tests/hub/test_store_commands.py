"""The commands over a memory in a bucket: published, recalled, pulled, taken back, and failures."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cli import COMMAND, funes, index, recall, stored
from tests.hub import published
from tests.hub.publishing import Canary, push, push_ran, talk, trace
from tests.hub.store import Way
from tests.sessions import append, write
from tests.tiny_model import STAMP

pytestmark = pytest.mark.timeout(180)
CANARY = Canary()


@pytest.fixture
def place(s3: Way) -> str:
    return f"s3://{s3.server.bucket()}/team/kb"


@pytest.fixture(autouse=True)
def sessions(own_home: Path) -> None:
    write(trace(own_home), talk("s1", 6))
    index()


def rows_there(place: str, tmp_path: Path) -> list[dict[str, Any]]:
    """Return what is in the bucket, as another program reads it."""
    import lancedb

    options = {
        "aws_endpoint": os.environ["AWS_ENDPOINT_URL"],
        "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
        "aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
        "aws_region": "us-east-1",
        "allow_http": "true",
    }
    table = lancedb.connect(place, storage_options=options).open_table("chunks").to_arrow()
    assert table.schema.equals(published.schema(stamp=STAMP), check_metadata=True)
    rows: list[dict[str, Any]] = table.drop_columns(["vector"]).to_pylist()
    return rows


def test_a_memory_lives_in_a_bucket(
    s3: Way, place: str, own_home: Path, funes_home: Path, tmp_path: Path
) -> None:
    first = push("--yes", name=place)
    assert first["chunks"] == 6
    assert {row["session_id"] for row in rows_there(place, tmp_path)} == {"s1"}
    assert recall("kettle number 3", "--memory", place)[0]["session_id"] == "s1"
    assert push(name=place)["state"] == "up_to_date"

    append(trace(own_home), talk("s1", 2, start=6))
    write(trace(own_home, "s2"), talk("s2", 3))
    index()
    s3.requests.clear()
    assert push(name=place)["passages"] == 5
    assert sum(size for *_, size in s3.requests) < 300_000
    assert len(rows_there(place, tmp_path)) == 11
    assert recall("kettle number 2 of s2", "--memory", place)[0]["session_id"] == "s2"

    # On another machine it goes on.
    funes_home.rename(own_home / "old")
    ran = funes("pull", place, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["chunks"] == 11
    append(trace(own_home), talk("s1", 1, start=8))
    assert index()["chunks"] == 1
    assert push(name=place)["passages"] == 1

    ran = funes("unpublish", "s2", place, "--yes", "--json")
    assert ran.code == 0, ran.err
    assert "versioning" in ran.json["note"]
    assert {row["session_id"] for row in rows_there(place, tmp_path)} == {"s1"}
    bucket = place.split("/")[2]
    listing = s3.server.ask("GET", f"/{bucket}?list-type=2")[1].decode()
    assert listing.count(".manifest") == 1
    hits = recall("kettle number 2 of s2", "--memory", place)
    assert {hit["session_id"] for hit in hits} == {"s1"}


def test_without_network_the_last_copy_answers(
    s3: Way, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    push("--yes", name=place)
    assert recall("kettle", "--memory", place)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    ran = funes("recall", "kettle", "--memory", place, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["hits"]
    assert "cannot be reached" in ran.json["note"]


def test_each_refusal_has_its_message(s3: Way, place: str, funes_home: Path) -> None:
    assert "There is no bucket" in push_ran("--yes", name="s3://not-made-by-anyone/kb").err
    ran = funes("recall", "kettle", "--memory", place)
    assert ran.code == 1
    assert "no memory at" in ran.err
    s3.fail("PUT", ".", times=999, status=403, code="AccessDenied")
    ran = push_ran("--yes", name=place)
    assert ran.code == 1
    assert "may not write" in ran.err
    s3.mend()
    push("--yes", name=place)
    s3.fail("*", ".", times=999, status=403, code="InvalidAccessKeyId")
    ran = funes("pull", place)
    assert ran.code == 1
    assert "does not let you read" in ran.err
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in ran.err
    assert len(stored(funes_home)) == 6


def test_a_push_that_is_killed_leaves_the_memory_readable(
    s3: Way, place: str, own_home: Path, tmp_path: Path
) -> None:
    push("--yes", name=place)
    write(trace(own_home, "s2"), talk("s2", 4))
    index()
    s3.fail("PUT", r"/_versions/", times=1, hold=True)
    process = subprocess.Popen(
        [*COMMAND, "push", place, "--yes"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ,
    )
    try:
        assert s3.reached.wait(60)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait(30)
    # What was held is not let through: the killed process never got so far.
    assert len(rows_there(place, tmp_path)) == 6
    assert recall("kettle", "--memory", place)
    assert push(name=place)["passages"] == 4
    assert len({row["id"] for row in rows_there(place, tmp_path)}) == 10


@pytest.mark.parametrize(
    "fault",
    [
        {"method": "PUT", "pattern": "/_versions/", "drop": True},
        {"method": "*", "pattern": ".", "status": 503, "code": "SlowDown"},
    ],
)
def test_nothing_is_lost_and_no_secret_leaves_when_things_go_wrong(
    s3: Way,
    place: str,
    own_home: Path,
    tmp_path: Path,
    fault: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FUNES_REDACTION", "off")
    push("--yes", name=place)
    write(trace(own_home, "s2"), [*talk("s2", 3), CANARY.turn("c1")])
    index()
    s3.fail(**fault, times=3)
    ran = push_ran(name=place)
    assert "Traceback" not in ran.err
    s3.mend()
    if ran.code:
        push(name=place)
    rows = rows_there(place, tmp_path)
    assert len({row["id"] for row in rows}) == len(rows) == 9
    assert not any(CANARY.secret in row["text"] for row in rows)
