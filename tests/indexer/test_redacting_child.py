"""The scanner in a process of its own: started when needed, ended after, and never trusted."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from funes_ls.indexer.errors import ScannerError, TraceError
from funes_ls.indexer.model import Block, SessionMeta, Turn
from funes_ls.indexer.redaction.base import current_stamp
from funes_ls.indexer.redaction.child import RedactingChild
from tests.indexer.hushing import SECRET

_RUN = """
import sys
sys.path[:0] = {path!r}
from funes_ls.indexer.redaction import base, child
base._SCANNER = "tests.indexer.hushing"
child.main(sys.argv[1:])
"""
COMMAND = [sys.executable, "-c", _RUN.format(path=[str(Path(__file__).resolve().parents[2])])]
#: Ends at once.
DEAD = [sys.executable, "-c", "raise SystemExit(1)"]


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedactingChild]:
    monkeypatch.chdir(tmp_path)
    child = RedactingChild(tmp_path, idle_s=0.2, asked_s=1.0, command=COMMAND)
    yield child
    child.close()


def turn(text: str) -> Turn:
    return Turn(
        session_id="s", turn_uuid="u", parent_uuid=None, seq=0, ts="", role="user",
        blocks=(Block(block_type="text", text=text),), workdir="", source_path="",
        harness="claude_code", record=0,
    )  # fmt: skip


def test_all_that_is_asked_is_cleaned(child: RedactingChild) -> None:
    assert not child.is_running
    found = child.text(f"a {SECRET} b")
    assert (found.text, found.counts) == ("a <redacted> b", {"hush": 1})
    assert child.text("plain").text == "plain"
    clean, counts = child.turn(turn(f"say {SECRET}"))
    assert (clean.blocks[0].text, counts) == ("say <redacted>", {"hush": 1})
    same = turn("nothing")
    assert child.turn(same) == (same, {})
    meta, _ = child.meta(SessionMeta(session_id="s", harness="pi", title=SECRET))
    assert meta.title == "<redacted>"
    assert child.stamp == "hush-1"
    assert child.text("\udcff lone").text == "\\xff lone"


def test_it_ends_when_it_has_nothing_to_do(child: RedactingChild) -> None:
    child.text("x")
    assert child.is_running and child.is_ready
    left_s = child.rest()
    assert left_s is not None and left_s <= 0.2
    time.sleep(left_s)
    assert child.rest() is None
    assert not child.is_running
    assert child.text("again").text == "again"


def test_nobody_waits_until_it_is_ready(child: RedactingChild) -> None:
    assert not child.is_ready
    child.prepare()
    assert child.is_running
    deadline = time.monotonic() + 20
    while not child.is_ready and time.monotonic() < deadline:
        time.sleep(0.01)
    assert child.is_ready
    assert child.text(SECRET).text == "<redacted>"


def test_it_is_started_again_once(child: RedactingChild, tmp_path: Path) -> None:
    assert child.text("end once").text == "end once"
    assert (tmp_path / "ended").exists()


@pytest.mark.parametrize("text", ["end", "hang", "fail"])
def test_a_text_that_cannot_be_scanned_is_told_of(child: RedactingChild, text: str) -> None:
    with pytest.raises(TraceError) as caught:
        child.text(text)
    assert caught.value.kind == "unscannable"
    assert "of no use" not in str(caught.value)
    assert child.text(SECRET).text == "<redacted>"


def test_a_scanner_that_does_not_load_says_why(tmp_path: Path) -> None:
    child = RedactingChild(tmp_path / "broken", command=COMMAND)
    for _ in range(2):
        with pytest.raises(ScannerError) as caught:
            child.text("x")
        assert "do not compile" in caught.value.message
        assert "`redaction`" in caught.value.hint
    child.close()


def test_a_process_that_does_not_start_is_no_scanner(tmp_path: Path) -> None:
    for command in (DEAD, [str(tmp_path / "nothing")]):
        child = RedactingChild(tmp_path, command=command)
        with pytest.raises(ScannerError):
            child.text("x")
        child.close()


def test_no_process_is_needed_to_tell_the_scanner(child: RedactingChild) -> None:
    if not current_stamp():
        pytest.skip("the scanner is not installed")
    assert child.stamp == current_stamp()
    assert not child.is_running
