"""The engine gives memory back once work has ended, and not between two questions."""

from pathlib import Path

import pytest

from funes_ls.engine import core as cores
from funes_ls.engine.core import Core


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list that grows whenever memory is given back."""
    times: list[float] = []
    monkeypatch.setattr(cores, "give_back", lambda: times.append(1.0))
    return times


@pytest.fixture
def core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Core:
    monkeypatch.setattr(cores, "_QUIET_S", 0.0)
    made = Core(tmp_path, {"HOME": str(tmp_path)})
    made.address = "inline"
    return made


def test_it_is_given_back_once_after_work(core: Core, given: list[float]) -> None:
    core.tick()
    core.tick()
    assert len(given) == 1
    core.note_activity()
    core.tick()
    core.tick()
    assert len(given) == 2


def test_not_while_a_question_is_answered(core: Core, given: list[float]) -> None:
    core.answering = 1
    core.tick()
    assert given == []
    core.answering = 0
    core.tick()
    assert len(given) == 1


def test_not_before_it_has_been_quiet(
    core: Core, given: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "_QUIET_S", 60.0)
    core.note_activity()
    core.tick()
    assert given == []
