"""A crash loop ends; good ends and a clock that jumps do not make one."""

import time
from pathlib import Path

import pytest

from funes_ls.engine import starts
from funes_ls.engine.client import EngineError, connect


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path


def test_more_than_four_bad_ends_in_three_minutes_are_a_loop(home: Path) -> None:
    for _ in range(starts.MAX_CRASHES):
        starts.note_start(home)
        assert not starts.is_crashing(home)
    starts.note_start(home)
    assert starts.is_crashing(home)


def test_good_ends_do_not_count(home: Path) -> None:
    for _ in range(20):
        starts.note_start(home)
        starts.note_end(home)
    assert not starts.is_crashing(home)


def test_a_person_may_try_again(home: Path) -> None:
    for _ in range(9):
        starts.note_start(home)
    starts.forget_crashes(home)
    assert not starts.is_crashing(home)


@pytest.mark.parametrize("jump_s", [-86_400.0, starts.WINDOW_S + 1])
def test_the_loop_is_over_with_its_window_whatever_the_clock_does(
    home: Path, monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    for _ in range(9):
        starts.note_start(home)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + jump_s)
    assert not starts.is_crashing(home)


def test_a_damaged_or_missing_note_is_none(home: Path) -> None:
    (home / "run" / "engine.starts").write_bytes(b"\xff nonsense")
    assert not starts.is_crashing(home)
    starts.note_start(home)
    starts.note_start(home / "nowhere")
    assert not starts.is_crashing(home / "nowhere")


def test_one_that_ends_as_it_starts_is_not_waited_for(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put a file where the log is to go."""
    monkeypatch.delenv("FUNES_ENGINE")
    (home / "logs").write_text("", encoding="ascii")
    with pytest.raises(EngineError, match="ended as it started"):
        connect(home, client="test", wait_s=120.0)
