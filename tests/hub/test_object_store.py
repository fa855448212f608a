"""A memory in a bucket of a real S3 server: published, read, extended, and what goes wrong."""

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from funes_ls.hub.object_store import StoreRemote
from funes_ls.hub.remote import DATASET, SESSIONS, Change, Head, HeadMoved
from funes_ls.hub.spec import parse_spec
from funes_ls.hub.store_access import explained
from funes_ls.indexer.errors import BackendError, FunesError, MemoryStateError
from funes_ls.indexer.settings import load_settings
from tests.hub import published
from tests.hub.published import Encode
from tests.hub.store import Way
from tests.tiny_model import STAMP


@pytest.fixture
def place(s3: Way) -> str:
    return f"s3://{s3.server.bucket()}/team/kb"


def remote(place: str, cache: Path) -> StoreRemote:
    spec = parse_spec(place, load_settings(os.environ)[0])
    return StoreRemote(spec, os.environ, cache_dir=cache)


def ids(base: Path) -> list[str]:
    return [one["id"] for one in published.rows_of(base)]


def whole(at: StoreRemote, base: Path) -> Change:
    """Return a first publication of a memory directory."""
    files = [path for path in sorted(base.rglob("*")) if path.is_file()]
    return Change(add={at.spec.inside(path.relative_to(base).as_posix()): path for path in files})


def more(
    at: StoreRemote, base: Path, copy: Path, rows: list[dict[str, object]], encode: Encode
) -> Change:
    """Return an addition prepared in a copy that lacks the rows that are there."""
    shutil.copytree(base, copy, ignore=shutil.ignore_patterns("data", "_indices"))
    before = {path for path in copy.rglob("*") if path.is_file()}
    published.extend(copy, rows, encode)
    fresh = [path for path in copy.rglob("*") if path.is_file() and path not in before]
    return Change(add={at.spec.inside(path.relative_to(copy).as_posix()): path for path in fresh})


def first(at: StoreRemote, tmp_path: Path, encode: Encode, count: int = 12) -> Head:
    base = published.publish(tmp_path / "first", published.talk("s1", count), encode, stamp=STAMP)
    (base / SESSIONS).write_bytes(b"facts 1")
    return at.commit(whole(at, base), parent=at.create(private=True))


def test_what_is_published_comes_back_and_grows(
    s3: Way, place: str, tmp_path: Path, encode: Encode
) -> None:
    at = remote(place, tmp_path / "cache")
    assert at.head().is_empty
    head = first(at, tmp_path, encode, count=300)
    assert not head.is_empty
    base = at.fetched(head)
    assert ids(base) == [one["id"] for one in published.talk("s1", 300)]
    assert published.faults(base, stamp=STAMP) == []
    assert (base / SESSIONS).read_bytes() == b"facts 1"

    change = more(at, base, tmp_path / "copy", published.talk("s2", 4), encode)
    after = at.commit(change, parent=head)
    assert after.revision != head.revision
    s3.requests.clear()
    newer = at.fetched(after)
    got = [one for one in s3.requests if one[0] == "GET" and "list-type" not in one[1]]
    assert sum(size for *_, size in got) < 60_000  # the 300 rows do not come again
    assert len(ids(newer)) == 304
    assert len(ids(base)) == 300  # what was read before stays as it was
    s3.requests.clear()
    assert at.fetched(after) == newer == at.kept(after)
    assert s3.requests == []


def test_another_machine_reads_the_same(place: str, tmp_path: Path, encode: Encode) -> None:
    head = first(remote(place, tmp_path / "one"), tmp_path, encode)
    other = remote(place, tmp_path / "two")
    assert other.head() == head
    assert len(ids(other.fetched(other.head()))) == 12


def test_who_prepared_for_an_older_head_is_told(place: str, tmp_path: Path, encode: Encode) -> None:
    at = remote(place, tmp_path / "cache")
    head = first(at, tmp_path, encode)
    base = at.fetched(head)
    one = more(at, base, tmp_path / "a", published.talk("s2", 2), encode)
    two = more(at, base, tmp_path / "b", published.talk("s3", 2), encode)
    now = at.commit(one, parent=head)
    with pytest.raises(HeadMoved):
        at.commit(two, parent=head)
    assert at.head() == now
    assert len(ids(at.fetched(now))) == 14


def test_two_publishers_at_once_lose_nothing(place: str, tmp_path: Path, encode: Encode) -> None:
    first(remote(place, tmp_path / "cache"), tmp_path, encode)
    failed: list[BaseException] = []

    def publish(name: str) -> None:
        at = remote(place, tmp_path / f"cache-{name}")
        try:
            for number in range(2):
                rows = published.talk(f"{name}{number}", 2)
                for tried in range(20):
                    now = at.head()
                    copy = tmp_path / f"copy-{name}-{number}-{tried}"
                    try:
                        at.commit(more(at, at.fetched(now), copy, rows, encode), parent=now)
                        break
                    except HeadMoved:
                        continue
        except BaseException as exc:
            failed.append(exc)

    threads = [threading.Thread(target=publish, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert failed == []
    at = remote(place, tmp_path / "last")
    found = ids(at.fetched(at.head()))
    expected = {row["id"] for n in range(2) for s in "ab" for row in published.talk(f"{s}{n}", 2)}
    assert expected <= set(found)
    assert len(found) == len(set(found)) == 20


def test_rows_that_are_taken_out_leave_no_file_behind(
    s3: Way, place: str, tmp_path: Path, encode: Encode
) -> None:
    at = remote(place, tmp_path / "cache")
    head = first(at, tmp_path, encode)
    kept = published.talk("s2", 3)
    base = published.publish(tmp_path / "rest", kept, encode, stamp=STAMP)
    gone = at.spec.inside(f"{DATASET}/data/gone.lance")
    change = whole(at, base)
    after = at.commit(Change(add=change.add, delete=(gone,)), parent=head)
    assert at.squash("taken out")
    at_last = at.head()
    assert ids(at.fetched(at_last)) == [one["id"] for one in kept]
    assert after.version is not None
    bucket = place.removeprefix("s3://").partition("/")[0]
    listing = s3.server.ask("GET", f"/{bucket}?list-type=2")[1].decode()
    assert listing.count("/data/") == 1
    with pytest.raises(HeadMoved):
        remote(place, tmp_path / "late").fetched(head)


class _Late:
    """A table that somebody adds rows to just before it is written anew."""

    def __init__(self, table: Any, rows: Any) -> None:
        self._table, self._rows = table, rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def add(self, data: Any, **how: Any) -> None:
        if how:
            self._table.add(self._rows)
        self._table.add(data, **how)


def test_rows_that_come_while_others_are_taken_out_stay(
    place: str, tmp_path: Path, encode: Encode, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = remote(place, tmp_path / "cache")
    head = first(at, tmp_path, encode)
    base = published.publish(tmp_path / "rest", published.talk("s2", 3), encode, stamp=STAMP)
    late = published.as_table(published.talk("s9", 2), encode, published.schema(stamp=STAMP))
    real = StoreRemote._table
    monkeypatch.setattr(StoreRemote, "_table", lambda self, way: _Late(real(self, way), late))
    gone = at.spec.inside(f"{DATASET}/data/gone.lance")
    after = at.commit(Change(add=whole(at, base).add, delete=(gone,)), parent=head)
    found = published.rows_of(at.fetched(after))
    assert {one["session_id"] for one in found} == {"s2", "s9"}
    assert len(found) == len({one["id"] for one in found}) == 5


def test_each_refusal_has_its_message(s3: Way, place: str, tmp_path: Path, encode: Encode) -> None:
    at = remote(place, tmp_path / "cache")
    head = first(at, tmp_path, encode)
    more_rows = more(at, at.fetched(head), tmp_path / "copy", published.talk("s2", 2), encode)
    refusals = [
        (403, "AccessDenied", "unauthorised", "read_only_token"),
        (403, "SignatureDoesNotMatch", "unauthorised", "read_only_token"),
        (404, "NoSuchBucket", "missing", "missing"),
    ]
    for status, code, reading, writing in refusals:
        s3.fail("*", ".", times=10_000, status=status, code=code)
        with pytest.raises(FunesError) as exc:
            at.head()
        assert exc.value.kind == reading
        assert exc.value.hint
        s3.mend()
        s3.fail("PUT", ".", times=10_000, status=status, code=code)
        with pytest.raises(FunesError) as exc:
            at.commit(more_rows, parent=head)
        assert exc.value.kind == writing
        assert os.environ["AWS_SECRET_ACCESS_KEY"] not in str(exc.value)
        s3.mend()
        assert at.head() == head  # still readable, and nothing of it half there
    assert len(ids(remote(place, tmp_path / "other").fetched(head))) == 12


def test_a_download_that_is_cut_off_is_not_kept(
    s3: Way, place: str, tmp_path: Path, encode: Encode
) -> None:
    first(remote(place, tmp_path / "one"), tmp_path, encode, count=300)
    at = remote(place, tmp_path / "two")
    head = at.head()
    s3.fail("GET", r"/data/", times=10_000, truncate=1000)
    with pytest.raises((BackendError, MemoryStateError)):
        at.fetched(head)
    assert at.kept(head) is None
    s3.mend()
    s3.fail("GET", r"/data/", times=1, truncate=1000)
    assert len(ids(at.fetched(head))) == 300


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Could not create a OAuth2 access token to authenticate the request", "unauthorised"),
        ("Server failed to authenticate the request. AuthenticationFailed", "unauthorised"),
        ("ContainerNotFound: The specified container does not exist", "missing"),
        ("Fail to get a new connection: Could not resolve hostname", "offline"),
        ("RetryError { inner: Status { status: 503, body: None }, timed out: no }", "hub"),
    ],
)
def test_other_stores_say_it_in_their_own_words(tmp_path: Path, text: str, kind: str) -> None:
    spec = parse_spec("gs://bucket/kb", load_settings(os.environ)[0])
    found = explained(OSError(text), spec)
    assert isinstance(found, FunesError)
    assert found.kind == kind
    assert text not in str(found)
