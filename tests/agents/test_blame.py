"""A program that real agents write and change together: each of its lines has the right author."""

import pytest

from tests.agents import twists
from tests.agents.agents import Agent, Place, need
from tests.agents.blamed import check, check_question
from tests.agents.kinds import CLAUDE, CODEX, CODEX_SHELL, PI
from tests.agents.story import Stage, beginning, by_hand, continuation, renaming

AGENTS = [
    pytest.param(CLAUDE, id="claude"),
    pytest.param(CODEX, id="codex"),
    pytest.param(CODEX_SHELL, id="codex-shell"),
    pytest.param(PI, id="pi"),
]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("agent", AGENTS)
def test_every_line_names_the_turn_that_wrote_it(agent: Agent, place: Place) -> None:
    need(agent)
    _tell(place, default=agent)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_agents_take_turns(place: Place) -> None:
    need(CLAUDE)
    need(CODEX)
    _tell(place, default=CLAUDE, second=CODEX, fifth=CODEX)


def _tell(place: Place, **agents: Agent) -> None:
    """Tell the story: agents write, a person changes something, agents go on, the file moves."""
    file, new = place.project / "ledger.py", place.project / "dues.py"
    stage = Stage(place)
    stage.play(beginning(file), **agents)
    by_hand(file)
    stage.witness.look(None)
    stage.play(continuation(file), **agents)
    _index(place)
    check(place, file, stage.witness.files[file])
    check_question(place, file, stage.witness.files[file])

    stage.play(renaming(file, new), **agents)
    _index(place)
    check(place, new, stage.witness.files[new], moved=True)


def _index(place: Place) -> None:
    run = place.funes("index", "--yes")
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("agent", AGENTS)
def test_lines_that_were_taken_back_removed_copied_and_changed(agent: Agent, place: Place) -> None:
    need(agent)
    stage = Stage(place)
    stage.play(twists.writing(place.project), default=agent)
    twists.by_hand(place.project)
    stage.witness.look(None)
    stage.play(twists.changing(place.project), default=agent)
    twists.tidied_by_hand(place.project)
    stage.witness.look(None)
    _index(place)
    for file, truth in stage.witness.files.items():
        check(place, file, truth, moved=True)
