"""A memory elsewhere as answers are made from it: current, warm, offline, refused, and several."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from funes_ls import protocol, service
from funes_ls.hub import reading as remote_reading
from funes_ls.indexer.errors import FunesError, MemoryStateError
from funes_ls.indexer.settings import Settings, load_settings
from funes_ls.memories import KeptOpen, Memories, OpenEachTime
from funes_ls.retrieval.answers import RecallAnswer
from tests.hub.fakehub import FakeHub
from tests.hub.published import Encode, extend, publish, row, talk
from tests.tiny_model import STAMP as TINY_STAMP

NAME = "acme/kb"
_PATIENCE_S = 60.0


class Published:
    """A memory on the Hub that its owner goes on publishing."""

    def __init__(self, hub: FakeHub, base: Path, encode: Encode) -> None:
        self.hub, self.base, self.encode = hub, base, encode
        publish(base, talk("alpha", 8), encode, stamp=TINY_STAMP)
        self.push()

    def push(self) -> None:
        self.hub.upload(NAME, self.base)

    def add(self, session: str, about: str) -> None:
        extend(self.base, talk(session, 4, about=about), self.encode)
        self.push()


@pytest.fixture
def published(hub: FakeHub, tmp_path: Path, encode: Encode) -> Published:
    return Published(hub, tmp_path / "made", encode)


@pytest.fixture
def settings(hub_env: dict[str, str], own_home: Path) -> Settings:
    return load_settings(hub_env)[0]


@pytest.fixture
def kept(settings: Settings, hub_env: dict[str, str]) -> Iterator[KeptOpen]:
    opened = KeptOpen(settings, hub_env)
    yield opened
    opened.close()


@pytest.fixture
def always_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every question look for what is new, and wait for it."""
    monkeypatch.setattr(remote_reading, "LOOK_S", 0.0)
    monkeypatch.setattr(remote_reading, "WAIT_S", _PATIENCE_S)
    monkeypatch.setattr(remote_reading, "FIRST_WAIT_S", _PATIENCE_S)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_reading, "FIRST_WAIT_S", _PATIENCE_S)


def ask(opened: Memories, query: str = "valve", **more: object) -> RecallAnswer:
    wanted = {"memory": NAME} | more if "memories" not in more else more
    return service.recall(protocol.RecallParams(query=query, **wanted), opened)  # type: ignore[arg-type]


def sessions_in(answer: RecallAnswer) -> set[str]:
    return {hit.session_id for hit in answer.hits}


def local_memory(settings: Settings, encode: Encode, *, about: str = "valve of home") -> None:
    publish(settings.memory_dir, talk("home", 4, about=about), encode, stamp=TINY_STAMP)


def failure(ask_it: Callable[[], object]) -> FunesError:
    with pytest.raises(FunesError) as caught:
        ask_it()
    return caught.value


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("how", [KeptOpen, OpenEachTime])
def test_a_remote_memory_answers_and_is_named(
    how: type, settings: Settings, hub_env: dict[str, str], published: Published, patient: None
) -> None:
    memories = how(settings, hub_env)
    answer = ask(memories)
    assert (answer.memory, answer.note) == (NAME, "")
    assert answer.legs == {"words": "ran", "vector": "ran"}
    hit = answer.hits[0]
    assert (hit.memory, hit.session_id) == (NAME, "alpha")
    assert hit.get == f"funes get --memory {NAME} alpha {hit.turn_uuid}"
    shown = service.get(
        protocol.GetParams(session_id="alpha", turn_uuid=hit.turn_uuid, memory=NAME), memories
    )
    assert shown.found and shown.memory == NAME and shown.reopen == ()
    listed = service.sessions(protocol.SessionsParams(memory=NAME), memories)
    assert [one.session_id for one in listed.sessions] == ["alpha"] and listed.memory == NAME


def test_what_is_kept_of_memories_that_nobody_reads_is_removed(
    kept: KeptOpen, settings: Settings, published: Published, patient: None
) -> None:
    ages = {"unread": 121, "lately": 119}
    for name, days in ages.items():
        record = settings.home / "derived" / name / "snapshot.json"
        record.parent.mkdir(parents=True)
        record.write_text("{}", encoding="ascii")
        (settings.home / "remote" / name).mkdir(parents=True)
        then = time.time() - days * 86_400
        os.utime(record, (then, then))
    (settings.home / "derived" / "of-a-path").mkdir()
    ask(kept)
    places = {one.name for one in (settings.home / "derived").iterdir()}
    assert places >= {"lately", "of-a-path"} and "unread" not in places and len(places) == 3
    assert [one.name for one in (settings.home / "remote").iterdir()] == ["lately"]


def test_warm_questions_use_no_network(
    kept: KeptOpen, published: Published, hub: FakeHub, patient: None
) -> None:
    ask(kept)
    assert hub.during(lambda: [ask(kept) for _ in range(5)]) == []


def test_a_new_push_shows_with_the_next_question(
    kept: KeptOpen, published: Published, hub: FakeHub, always_due: None
) -> None:
    before = ask(kept, "anvils")
    assert "beta" not in sessions_in(before)
    published.add("beta", "anvils")
    asked = hub.during(lambda: None)
    after = ask(kept, "anvils")
    assert "beta" in sessions_in(after) and after.generation > before.generation
    assert asked == []
    assert not hub.asked("GET", "data/.*") or len(hub.asked("GET", "/_cdn/|data/")) < 20


def test_a_question_does_not_wait_for_a_slow_hub(
    kept: KeptOpen,
    published: Published,
    hub: FakeHub,
    patient: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask(kept)
    published.add("beta", "anvils")
    monkeypatch.setattr(remote_reading, "LOOK_S", 0.0)
    held = hub.hold("GET", f"/api/datasets/{NAME}$")
    first = ask(kept, "anvils")
    assert held.reached.is_set()
    assert "beta" not in sessions_in(first) and first.note == ""
    held.release()
    until(lambda: "beta" in sessions_in(ask(kept, "anvils")))


@pytest.mark.parametrize("how", [KeptOpen, OpenEachTime])
def test_without_network_the_last_snapshot_answers_and_says_so(
    how: type,
    settings: Settings,
    hub_env: dict[str, str],
    published: Published,
    hub: FakeHub,
    always_due: None,
) -> None:
    ask(how(settings, hub_env))
    hub.fail("*", ".", drop=True, times=99)  # what is connected stays so when it stops
    answer = ask(how(settings, hub_env))
    assert sessions_in(answer) == {"alpha"} and answer.memory == NAME
    assert "cannot be reached" in answer.note and "copy of" in answer.note


@pytest.mark.parametrize("how", [KeptOpen, OpenEachTime])
def test_without_any_snapshot_the_local_memory_answers_and_is_named(
    how: type,
    settings: Settings,
    hub_env: dict[str, str],
    hub: FakeHub,
    encode: Encode,
    patient: None,
) -> None:
    hub.stop()
    local_memory(settings, encode)
    memories = how(settings, hub_env)
    answer = ask(memories)
    assert (answer.memory, sessions_in(answer)) == ("local", {"home"})
    assert f"{NAME} is unreachable, answered from the local memory" in answer.note
    assert all("--memory" not in hit.get and hit.memory == "local" for hit in answer.hits)
    only = failure(lambda: ask(memories, only_named=True))
    assert only.kind == "offline"


def test_without_a_snapshot_and_a_local_memory_it_is_offline(
    settings: Settings, hub_env: dict[str, str], hub: FakeHub
) -> None:
    hub.stop()
    assert failure(lambda: ask(OpenEachTime(settings, hub_env))).kind == "offline"


@pytest.mark.parametrize("status", [429, 503])
def test_a_hub_that_fails_is_as_good_as_none(
    settings: Settings, hub_env: dict[str, str], published: Published, hub: FakeHub, status: int
) -> None:
    ask(OpenEachTime(settings, hub_env))
    hub.fail("GET", "/api/datasets", status=status, times=9)
    answer = ask(OpenEachTime(settings, hub_env))
    assert sessions_in(answer) == {"alpha"} and "cannot be reached" in answer.note


@pytest.mark.parametrize("how", [KeptOpen, OpenEachTime])
@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("gone", "missing"),
        ("empty", "empty"),
        ("half", "damaged"),
        ("rowless", "damaged"),
        ("other", "not_a_memory"),
        ("odd", "not_a_memory"),
    ],
)
def test_what_cannot_be_read_is_told_apart_and_nothing_answers_for_it(
    how: type,
    settings: Settings,
    hub_env: dict[str, str],
    hub: FakeHub,
    encode: Encode,
    tmp_path: Path,
    state: str,
    kind: str,
    patient: None,
) -> None:
    local_memory(settings, encode)
    _put(hub, state, tmp_path / "put", encode)
    memories = how(settings, hub_env)
    for _ in range(2):
        error = failure(lambda: ask(memories))
        assert error.kind == kind, error
        assert NAME in error.message and error.hint
        assert str(tmp_path) not in error.message


def _put(hub: FakeHub, state: str, base: Path, encode: Encode) -> None:
    import lancedb
    import pyarrow as pa

    if state == "gone":
        return
    if state == "empty":
        hub.add_repo(NAME)
        return
    if state in ("other", "odd"):
        columns = {"name": pa.array(["x"])}
        if state == "odd":
            table = publish(base / "good", talk("alpha", 2), encode)
            rows = lancedb.connect(table).open_table("chunks").to_arrow()
            columns = {name: rows[name] for name in rows.schema.names}
            columns["text"] = pa.array([1, 2])
        lancedb.connect(base / "odd").create_table("chunks", data=pa.table(columns))
        hub.upload(NAME, base / "odd")
        return
    publish(base, talk("alpha", 4), encode, indexed=False)
    gone = "_versions" if state == "half" else "data"
    for path in (base / "chunks.lance" / gone).iterdir():
        path.unlink()
    hub.upload(NAME, base)


def test_a_token_that_was_taken_back_ends_the_reading(
    kept: KeptOpen, published: Published, hub: FakeHub, hub_env: dict[str, str], always_due: None
) -> None:
    ask(kept)
    hub.repo(NAME).private = True
    hub.accounts.clear()
    assert failure(lambda: ask(kept)).kind == "unauthorised"


def test_a_broken_push_does_not_end_the_reading_of_what_is_here(
    kept: KeptOpen, published: Published, hub: FakeHub, tmp_path: Path, always_due: None
) -> None:
    ask(kept)
    hub.fail("GET", "/_cdn/|resolve", status=503, times=200)
    published.add("beta", "anvils")
    answer = ask(kept)
    assert sessions_in(answer) == {"alpha"} and "cannot be reached" in answer.note


def test_a_memory_of_another_model_is_answered_by_words(
    settings: Settings, hub_env: dict[str, str], hub: FakeHub, encode: Encode, tmp_path: Path
) -> None:
    base = publish(tmp_path / "other", talk("alpha", 4), encode, stamp="someone/else")
    hub.upload(NAME, base)
    answer = ask(OpenEachTime(settings, hub_env))
    assert sessions_in(answer) == {"alpha"}
    assert answer.legs["words"] == "ran" and answer.legs["vector"] in ("no_model", "wrong_model")
    assert "by words only" in answer.note


def test_of_a_push_that_broke_the_memory_the_copy_before_answers(
    kept: KeptOpen,
    settings: Settings,
    hub_env: dict[str, str],
    published: Published,
    hub: FakeHub,
    always_due: None,
) -> None:
    ask(kept)
    extend(published.base, talk("beta", 4), published.encode)
    for path in (published.base / "chunks.lance" / "data").iterdir():
        path.write_bytes(b"no rows")
    published.push()
    answer = ask(kept)
    assert sessions_in(answer) == {"alpha"}
    assert f"{NAME} cannot be read as it is now: answered from the copy of" in answer.note
    hub.fail("*", ".", drop=True, times=99)
    assert sessions_in(ask(OpenEachTime(settings, hub_env))) == {"alpha"}


def test_a_hub_that_never_answers_costs_one_question_a_moment(
    settings: Settings, hub_env: dict[str, str], published: Published, hub: FakeHub
) -> None:
    ask(OpenEachTime(settings, hub_env))
    held = hub.hold("GET", f"/api/datasets/{NAME}$")
    kept = KeptOpen(settings, hub_env)
    try:
        first = ask(kept)
        assert held.reached.is_set() and sessions_in(first) == {"alpha"}
        assert "has not answered yet: answered from the copy of" in first.note
        started = time.monotonic()
        for _ in range(5):
            ask(kept)
        assert time.monotonic() - started < 5 * remote_reading.WAIT_S
        held.release()
        until(lambda: ask(kept).note == "")
    finally:
        kept.close()


def test_what_has_not_begun_to_come_is_not_said_to_be_coming(
    settings: Settings, hub_env: dict[str, str], published: Published, hub: FakeHub
) -> None:
    held = hub.hold("GET", f"/api/datasets/{NAME}$")
    kept = KeptOpen(settings, hub_env)
    try:
        with pytest.raises(MemoryStateError) as told:
            ask(kept)
        assert (told.value.kind, told.value.message) == (
            "fetching",
            f"{NAME} has not answered yet.",
        )
        held.release()
        until(lambda: is_there(kept))
        assert sessions_in(ask(kept)) == {"alpha"}
    finally:
        kept.close()


def is_there(kept: KeptOpen) -> bool:
    try:
        ask(kept)
    except MemoryStateError:
        return False
    return True


# Several at once


def test_two_memories_are_asked_at_once(
    kept: KeptOpen, settings: Settings, published: Published, encode: Encode, patient: None
) -> None:
    local_memory(settings, encode)
    answer = ask(kept, memories=("local", NAME))
    assert sessions_in(answer) == {"home", "alpha"}
    assert answer.memory == f"local, {NAME}"
    assert [hit.rank for hit in answer.hits] == list(range(1, len(answer.hits) + 1))
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)
    for hit in answer.hits:
        assert hit.memory == ("local" if hit.session_id == "home" else NAME)
        assert (f"--memory {NAME}" in hit.get) is (hit.memory == NAME)


def test_a_poor_match_of_one_memory_stays_below_a_good_one_of_another(
    kept: KeptOpen, settings: Settings, published: Published, encode: Encode, patient: None
) -> None:
    rows = [row("home", seq, f"nothing of the kind, remark {seq}") for seq in range(6)]
    publish(settings.memory_dir, rows, encode, stamp=TINY_STAMP)
    [first, *_] = ask(kept, "turn the valve 7 degrees kettles", memories=("local", NAME)).hits
    assert first.memory == NAME


def test_a_turn_that_both_hold_is_a_hit_once_and_of_the_first(
    kept: KeptOpen, settings: Settings, published: Published, encode: Encode, patient: None
) -> None:
    publish(settings.memory_dir, talk("alpha", 8), encode, stamp=TINY_STAMP)
    answer = ask(kept, memories=("local", NAME))
    turns = [(hit.session_id, hit.turn_uuid) for hit in answer.hits]
    assert len(turns) == len(set(turns)) and {hit.memory for hit in answer.hits} == {"local"}


def test_one_of_several_that_cannot_be_read_is_told_and_left_out(
    kept: KeptOpen, settings: Settings, hub: FakeHub, encode: Encode, patient: None
) -> None:
    local_memory(settings, encode)
    answer = ask(kept, memories=("local", NAME))
    assert sessions_in(answer) == {"home"} and f"{NAME} was left out" in answer.note
    assert failure(lambda: ask(kept, memories=("acme/x", "acme/y"))).kind == "missing"
