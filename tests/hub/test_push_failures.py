"""Publishing while things go wrong: what must not leave never does, what is there stays."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest

from funes_ls.gate import process
from funes_ls.hub import publishable
from funes_ls.hub.hub_remote import HubRemote
from funes_ls.hub.push import PushRequest, push
from funes_ls.hub.spec import parse_spec
from funes_ls.hub.unpublish import unpublish
from funes_ls.indexer.settings import Settings
from funes_ls.memories import OpenEachTime
from tests.e2e.cli import COMMAND, funes, index
from tests.hub import published
from tests.hub.fakehub import FakeHub
from tests.hub.publishing import NAME, Canary, push_ran, talk, trace
from tests.hub.publishing import push as pushed
from tests.sessions import append, record, write
from tests.tiny_model import STAMP

pytestmark = [
    #: The client hands a file to its library in an old way.
    pytest.mark.filterwarnings("ignore:Use .content=:DeprecationWarning"),
    pytest.mark.timeout(400),
]

CANARY = Canary()
#: Of the sessions below, by what holds the canary and by what does not.
CLEAN, DIRTY = 12, 3


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the memory of these tests is kept once it is made."""
    return tmp_path_factory.mktemp("template") / "home"


@pytest.fixture(autouse=True)
def memory(
    template: Path,
    own_home: Path,
    funes_home: Path,
    hub_env: dict[str, str],
    hub: FakeHub,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Give a memory of which some blocks hold the canary, as if redaction had missed it."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    for name, value in hub_env.items():
        monkeypatch.setenv(name, value)
    if not template.exists():
        turns = [*talk("s1", 6), CANARY.turn("s1-env"), *talk("s1", 3, start=6)]
        answer = record(f"I set GITHUB_TOKEN={CANARY.value}", uuid="s2-a", role="assistant")
        write(trace(own_home), turns)
        write(trace(own_home, "s2"), [CANARY.turn("s2-0"), *talk("s2", 3), answer])
        monkeypatch.setenv("FUNES_REDACTION", "off")
        index()
        monkeypatch.delenv("FUNES_REDACTION")
        funes_home.rename(template)
    shutil.copytree(template, funes_home)
    hub.add_repo(NAME)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the rests between tries away."""
    monkeypatch.setattr("time.sleep", lambda _s: None)


def rows(hub: FakeHub, tmp_path: Path) -> list[dict[str, Any]]:
    """Return what the Hub's memory says, after a check that the reference could use it."""
    base = hub.checkout(NAME, tmp_path / "out")
    assert published.faults(base, stamp=STAMP) == []
    found = published.rows_of(base)
    shutil.rmtree(base)
    return found


def is_whole(hub: FakeHub, tmp_path: Path) -> None:
    """Insist that the Hub holds every clean row, and the canary nowhere."""
    assert len(rows(hub, tmp_path)) == CLEAN
    assert CANARY.places(hub) == []


def is_untouched(hub: FakeHub) -> None:
    """Insist that no commit has landed, and the canary is nowhere."""
    assert not any(path.startswith("chunks.lance") for path in hub.repo(NAME).tree("main"))
    assert CANARY.places(hub) == []


def test_blocks_with_secrets_stay_whole_and_the_rest_goes(hub: FakeHub, tmp_path: Path) -> None:
    answer = pushed()
    assert answer["withheld_blocks"] == DIRTY
    assert sum(answer["withheld"].values()) >= DIRTY
    assert answer["passages"] == CLEAN
    is_whole(hub, tmp_path)
    told = push_ran()
    assert told.code == 2  # what is left holds secrets, all of it
    assert CANARY.secret not in told.out + told.err


def test_a_canary_that_leaves_would_be_seen(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, funes_home: Path, tmp_path: Path
) -> None:
    """Look whether these tests would see a leak, with a gate that lets everything through."""
    real = publishable.check
    monkeypatch.setattr(
        publishable, "check", lambda blocks, **more: _all_passed(real((), **more), blocks)
    )
    hub.fail("POST", "/commit/", times=99, status=400)
    assert push_ran().code == 1
    assert CANARY.places(hub) != []  # in what was uploaded and belongs to no commit


def _all_passed(report: Any, blocks: Any) -> Any:
    for block in blocks:
        report.passed[block.key] = publishable.digest(block.text)
    return report


Harm = Callable[[FakeHub], object]
HARMS: dict[str, Harm] = {
    "5xx in mid-upload": lambda hub: hub.fail("PUT", "/_lfs/put", status=503),
    "connection lost in mid-upload": lambda hub: hub.fail("PUT", "/_lfs/put", drop=True),
    "commit lost with its connection": lambda hub: hub.fail(
        "POST", "/commit/", drop=True, done=True
    ),
    "head moved": lambda hub: hub.fail("POST", "/commit/", status=412),
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
@pytest.mark.usefixtures("impatient")
def test_what_goes_wrong_once_is_done_again(hub: FakeHub, tmp_path: Path, harm: Harm) -> None:
    harm(hub)
    answer = pushed()
    assert (answer["state"], answer["chunks"]) == ("pushed", CLEAN)
    is_whole(hub, tmp_path)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PUT", "/_lfs/put", 500),
        ("POST", "/commit/", 500),
        ("GET", "/api/datasets/acme/kb", 401),
    ],
)
@pytest.mark.usefixtures("impatient")
def test_what_goes_on_going_wrong_is_told_and_later_made_good(
    hub: FakeHub, tmp_path: Path, method: str, path: str, status: int
) -> None:
    hub.fail(method, path, times=999, status=status)
    ran = push_ran()
    assert ran.code == 1
    assert "internal error" not in ran.err and "hf_" not in ran.err
    assert len(ran.err.strip().splitlines()[-1]) < 300
    is_untouched(hub)
    hub.mend()
    assert pushed()["state"] == "pushed"
    is_whole(hub, tmp_path)


def test_a_token_that_may_only_read_is_told_in_a_sentence(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token("acme", "read"))
    ran = push_ran()
    assert ran.code == 1 and "write" in ran.err and "internal" not in ran.err
    is_untouched(hub)


_CHILDREN = {
    "missing": "import sys; sys.exit(3)",
    "silent": "import sys; sys.stdin.buffer.read()",
    "blind": """
import hashlib, msgspec, sys
from funes_ls.gate.messages import *
from funes_ls.indexer.pipes import read_message, write_message
source, target, total = sys.stdin.buffer, sys.stdout.buffer, 0
while (body := read_message(source)) is not None:
    ask = msgspec.msgpack.decode(body, type=Ask)
    digests = [hashlib.sha256(text.encode()).digest() for text in ask.texts]
    reply = Reply(len(digests) or total, digests)
    total += len(digests)
    write_message(target, msgspec.msgpack.encode(reply))
""",
    "crashing": """
import msgspec, os, sys
from funes_ls.gate import child
from funes_ls.gate.messages import *
from funes_ls.indexer.pipes import read_message, write_message
from betterleaks import scan_string
source, target, total = sys.stdin.buffer, sys.stdout.buffer, 0
while (body := read_message(source)) is not None:
    ask = msgspec.msgpack.decode(body, type=Ask)
    if any("GITHUB_TOKEN" in text and "PORT=80" in text for text in ask.texts):
        os._exit(139)
    reply = child.answer(ask, scan_string) if ask.texts else Reply(total)
    total += reply.count if ask.texts else 0
    write_message(target, msgspec.msgpack.encode(reply))
    if not ask.texts: break
""",
}


@pytest.mark.parametrize("child", ["missing", "blind"])
def test_without_a_scanner_to_trust_nothing_is_sent(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, child: str
) -> None:
    monkeypatch.setattr(process, "COMMAND", (sys.executable, "-c", _CHILDREN[child]))
    ran = push_ran()
    assert ran.code == 1 and "internal error" not in ran.err
    assert hub.asked("PUT") == hub.asked("POST") == []
    is_untouched(hub)


def test_what_ends_the_scanner_stays(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process, "COMMAND", (sys.executable, "-c", _CHILDREN["crashing"]))
    answer = pushed()
    assert answer["withheld"]["scanner-crashed"] == 2
    is_whole(hub, tmp_path)


def test_a_push_that_is_killed_leaves_the_memory_readable(
    hub: FakeHub, funes_home: Path, tmp_path: Path
) -> None:
    held = hub.hold("PUT", "/_lfs/put")
    running = subprocess.Popen(
        [*COMMAND, "push", NAME],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ,
    )
    try:
        assert held.reached.wait(120)
        running.send_signal(signal.SIGKILL if os.name != "nt" else signal.SIGTERM)
        running.wait(60)
    finally:
        running.kill()
        hub.mend()
    is_untouched(hub)
    assert list((funes_home / "run").glob("push-*"))
    assert pushed()["state"] == "pushed"
    assert not list((funes_home / "run").glob("push-*"))
    is_whole(hub, tmp_path)


def test_what_changes_between_scan_and_sending_stays(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Swap a clean row for the canary once the gate has spoken."""
    real = publishable._chunk

    def swapped(values: dict[str, Any]) -> Any:
        if values["turn_uuid"] == "s1-0":
            values = {**values, "text": f"GITHUB_TOKEN={CANARY.value}"}
        return real(values)

    monkeypatch.setattr(publishable, "_chunk", swapped)
    pushed()
    assert {row["turn_uuid"] for row in rows(hub, tmp_path)}.isdisjoint({"s1-0"})
    assert CANARY.places(hub) == []


@pytest.fixture
def other_home(template: Path, tmp_path: Path) -> Iterator[Path]:
    """Give the home of another machine, with sessions of its own."""
    home = tmp_path / "other"
    yield home


def test_two_publishers_at_once_lose_nothing(
    hub: FakeHub, own_home: Path, funes_home: Path, other_home: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, hub_env: dict[str, str],
) -> None:  # fmt: skip
    pushed()
    write(trace(own_home, "s3"), talk("s3", 4))
    index()
    shutil.copytree(funes_home, other_home)
    monkeypatch.setenv("FUNES_HOME", str(other_home))
    write(trace(own_home, "s4"), talk("s4", 5))
    index()
    assert funes("forget", "s3", "--yes").code == 0
    monkeypatch.setenv("FUNES_HOME", str(funes_home))
    together = threading.Barrier(2)
    real = HubRemote.commit

    def commit(self: HubRemote, change: Any, *, parent: Any) -> Any:
        if not together.broken and parent.revision == first:
            together.wait(60)  # both have seen the same head
        return real(self, change, parent=parent)

    first = HubRemote(parse_spec(NAME, Settings(home=funes_home)), hub_env).head().revision
    monkeypatch.setattr(HubRemote, "commit", commit)
    faults: list[BaseException] = []

    def publish(home: Path) -> None:
        settings = Settings(home=home)
        try:
            with OpenEachTime(settings).reading("local") as memory, memory.snapshot() as view:
                remote = HubRemote(parse_spec(NAME, settings), hub_env)
                push(view, remote, home, PushRequest(), is_meant=lambda _name, _doubt: True)
        except BaseException as exc:
            faults.append(exc)

    threads = [threading.Thread(target=publish, args=(home,)) for home in (funes_home, other_home)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert faults == []
    sessions = [row["session_id"] for row in rows(hub, tmp_path)]
    assert (sessions.count("s3"), sessions.count("s4")) == (4, 5)
    assert len(sessions) == CLEAN + 9
    assert CANARY.places(hub) == []


def test_what_was_taken_back_meanwhile_is_not_sent(
    hub: FakeHub,
    own_home: Path,
    tmp_path: Path,
    hub_env: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Let another machine take a session back after this one has read what is there."""
    path = write(trace(own_home, "s6"), talk("s6", 2))
    index()
    pushed()
    append(path, talk("s6", 2, start=2))
    write(trace(own_home, "s5"), talk("s5", 2))
    index()
    other = tmp_path / "other"
    real = HubRemote.commit
    remote = HubRemote(parse_spec(NAME, Settings(home=other)), hub_env)

    def commit(self: HubRemote, change: Any, *, parent: Any) -> Any:
        if self is not remote and not (other / "curation").exists():
            unpublish(remote, other, ["s6"])
        return real(self, change, parent=parent)

    monkeypatch.setattr(HubRemote, "commit", commit)
    answer = pushed()
    assert {row["session_id"] for row in rows(hub, tmp_path)} == {"s1", "s2", "s5"}
    assert [one["session_id"] for one in answer["sessions"]] == ["s5"]
    assert CANARY.places(hub) == []


def test_after_a_scrub_nothing_is_held_back(
    hub: FakeHub, own_home: Path, funes_home: Path, tmp_path: Path
) -> None:
    pushed()
    copy = funes_home / "pushed"
    assert list(copy.glob("*/head"))
    assert funes("scrub").code == 0
    assert not list(copy.glob("*/head"))  # titles are kept there
    write(trace(own_home, "s7"), talk("s7", 1))
    index()
    answer = pushed()
    assert (answer["state"], answer["withheld_blocks"]) == ("pushed", 0)
    assert len(rows(hub, tmp_path)) == CLEAN + DIRTY + 1
    assert CANARY.places(hub) == []
