"""What is to leave a memory leaves it: processes killed, no engine that starts, a full disk."""

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.credentials import Source, github
from tests.e2e.cli import COMMAND, funes, index, recall, status, stored
from tests.e2e.disks import small_disk
from tests.e2e.engines import Engines, until, with_fault
from tests.leftovers import traces_of, within
from tests.sessions import append, record, write

pytestmark = pytest.mark.skipif(os.name == "nt", reason="processes and signals of POSIX")

WORD = "Qz7flamingoRex"
SESSIONS, TURNS = 12, 40


@pytest.fixture
def projects(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUNES_REDACTION", "off")
    return own_home / ".claude" / "projects"


def turns(name: str, *texts: str) -> list[dict[str, object]]:
    return [record(text, uuid=f"{name}-{n}", sessionId=name) for n, text in enumerate(texts)]


def history(projects: Path, word: str) -> None:
    """Index sessions that stay, and `s1`, which says a word in many of its turns."""
    for n in range(SESSIONS):
        texts = [f"session {n} turn {turn} speaks of valve {turn}" for turn in range(TURNS)]
        write(projects / "p" / f"b{n}.jsonl", turns(f"b{n}", *texts))
    said = [f"turn {turn}: the key is {word} today" for turn in range(TURNS)]
    write(projects / "p" / "s1.jsonl", turns("s1", *said))
    index()


def killed(seed: int, *argv: str) -> None:
    """Run a command four times, each killed at some moment it may not have reached."""
    chance = random.Random(seed)
    for _ in range(4):
        run = subprocess.Popen(
            [*COMMAND, *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ,
        )
        try:
            run.wait(timeout=0.3 + chance.random() * 1.2)
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGKILL)
        run.wait()


def others_are_whole(home: Path) -> None:
    rows = [row for row in stored(home) if row.session_id != "s1"]
    assert len(rows) == len({row.id for row in rows}) == SESSIONS * TURNS
    assert len(recall("valve 7")) == 8


@pytest.mark.parametrize("seed", range(3))
def test_a_forget_killed_again_and_again_is_finished_by_the_next(
    own_home: Path, projects: Path, seed: int
) -> None:
    history(projects, WORD)
    killed(seed, "forget", "s1", "--yes")
    ran = funes("forget", "s1", "--yes", "-q")
    assert ran.code == 0, ran.err
    assert list(traces_of(own_home / ".funes", WORD)) == []
    assert list(within(own_home / ".funes", WORD)) == []
    others_are_whole(own_home / ".funes")
    again = funes("forget", "s1", "--yes", "-q")
    assert again.out == "No session matches; nothing was forgotten. It was forgotten before.\n"
    index()
    assert status()["sessions"] == SESSIONS


def test_what_a_forget_left_is_removed_by_the_next_though_nothing_matches(
    own_home: Path, projects: Path
) -> None:
    history(projects, WORD)
    code = (
        "import os, sys\nfrom funes_ls.indexer.memory import Memory\n"
        "Memory.rewrite = lambda *a, **k: os._exit(9)\n"
        "from funes_ls.cli import main\nsys.exit(main(['forget', 's1', '--yes']))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], env=os.environ).returncode == 9
    assert list(traces_of(own_home / ".funes", WORD))
    answer = funes("forget", "--match", WORD, "--yes", "--json", "-q").json
    assert (answer["total"], answer["forgotten"], answer["pure"]) == (0, False, True)
    assert "cut off" in answer["note"]
    assert list(traces_of(own_home / ".funes", WORD)) == []
    assert funes("forget", "s-unknown", "--yes").code == 2


@pytest.mark.parametrize("seed", range(3))
def test_a_scrub_killed_again_and_again_is_finished_by_the_next(
    own_home: Path, projects: Path, seed: int
) -> None:
    token = github(Source(seed))
    history(projects, token)
    killed(seed, "scrub", "-q")
    ran = funes("scrub", "-q")
    assert ran.code == 0, ran.err
    assert list(traces_of(own_home / ".funes", token[6:])) == []
    assert list(within(own_home / ".funes", token[6:])) == []
    others_are_whole(own_home / ".funes")
    texts = sorted(row.text for row in stored(own_home / ".funes") if row.session_id == "s1")
    assert texts == sorted(f"turn {n}: the key is <redacted> today" for n in range(TURNS))
    assert funes("scrub", "--json", "-q").json["state"] == "clean"


#: An engine that ends before it can listen; everything else is as it was.
_NO_ENGINE = "import os, sys\nif any('engine' in one for one in sys.orig_argv[1:]): os._exit(3)\n"


@pytest.mark.parametrize("command", [("scrub",), ("forget", "s1", "--yes")], ids=lambda one: one[0])
def test_without_an_engine_that_starts_it_is_done_all_the_same(
    own_home: Path, projects: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    token = github(Source(8))
    history(projects, token)
    env = with_fault(os.environ, tmp_path / "fault", _NO_ENGINE)
    env.pop("FUNES_ENGINE", None)
    ran = subprocess.run([*COMMAND, *command], capture_output=True, text=True, env=env, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert "Working without it." in ran.stderr
    assert list(traces_of(own_home / ".funes", token[6:])) == []
    others_are_whole(own_home / ".funes")


def test_an_engine_that_runs_scrubs_while_it_answers(
    own_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUNES_ENGINE")
    token = github(Source(9))
    with Engines(own_home / ".funes", os.environ) as engines:
        history(projects, token)
        with engines.connect() as other:
            run = subprocess.Popen([*COMMAND, "scrub", "-q"], env=os.environ)
            asked = 0
            while run.poll() is None:
                hits = other.request("funes/recall", {"query": "valve 7"}, timeout_s=20)["hits"]
                assert len(hits) == 8
                asked += 1
        assert run.returncode == 0 and asked > 0
        assert list(traces_of(own_home / ".funes", token[6:])) == []
        others_are_whole(own_home / ".funes")


@pytest.mark.parametrize("command", [("scrub",), ("forget", "s1", "--yes")], ids=lambda one: one[0])
def test_a_full_disk_is_told_and_loses_nothing(
    own_home: Path, projects: Path, command: tuple[str, ...]
) -> None:
    home, token = own_home / ".funes", github(Source(10))
    with small_disk(home, megabytes=64):
        history(projects, token)
        filler = home / "filler"
        with pytest.raises(OSError), filler.open("wb") as file:
            while True:
                file.write(b"\0" * 4096)
                file.flush()
        ran = funes(*command, "-q")
        assert ran.code == 1
        assert str(home) in ran.err and "disk" in ran.err and "Traceback" not in ran.err
        assert token not in ran.err + ran.out
        filler.unlink()
        others_are_whole(home)
        assert funes(*command, "-q").code == 0
        assert list(traces_of(home, token[6:])) == []
        assert list(within(home, token[6:])) == []
        others_are_whole(home)


def test_a_marker_that_comes_late_takes_every_byte_out(
    own_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUNES_ENGINE")
    home = own_home / ".funes"
    with Engines(home, os.environ) as engines:
        history(projects, WORD)
        assert engines.recall(WORD)
        trace = projects / "p" / "s1.jsonl"
        append(trace, turns("s1", *[""] * TURNS, "funes:private")[TURNS:])
        until(lambda: not list(traces_of(home, WORD)), what="its bytes are gone")
        assert list(within(home, WORD)) == []
        append(trace, turns("s1", *[""] * TURNS, "", f"and {WORD} again")[TURNS + 1 :])
        append(projects / "p" / "b0.jsonl", turns("b0", *[""] * TURNS, "the samovar sings")[TURNS:])
        until(lambda: recall("samovar"), what="other sessions are followed")
        assert list(traces_of(home, WORD)) == []
    (one,) = funes("status", "--excluded", "--json").json["excluded"]
    assert (one["session_id"], one["reason"]) == ("s1", "marker")
    shutil.copy(trace, projects / "p" / "copy.jsonl")
    index()
    assert list(traces_of(home, WORD)) == []
