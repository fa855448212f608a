"""Real agents tell of each turn by their hooks: it is found though nobody watches the traces."""

import json
from collections.abc import Iterator

import pytest

from tests.agents.actions import Write, calls
from tests.agents.agents import Agent, Place, need
from tests.agents.gifted import (
    SERVED,
    add,
    no_engine_after,
    recalled,
    script_of,
    short_place,
    status,
    trust_codex_hooks,
)
from tests.agents.kinds import CLAUDE, CODEX, PI
from tests.agents.wires import Reply
from tests.e2e.engines import until

AGENTS = [pytest.param(agent, id=agent.name) for agent in (CLAUDE, CODEX, PI)]
PROMPT = "Write down why the harbour master keeps a heron."
SAID = "It counts the boats at night, and it is never wrong."


@pytest.fixture
def place() -> Iterator[Place]:
    with short_place() as one, no_engine_after(one):
        yield one


def unwatched(place: Place) -> None:
    """Have the engine look at nothing by itself."""
    home = place.home / ".funes"
    home.mkdir()
    (home / "config.toml").write_text("[index]\nwatch = false\n", encoding="utf-8")


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.timeout(200)
def test_a_turn_is_found_by_its_hook_alone(agent: Agent, place: Place) -> None:
    need(agent)
    unwatched(place)
    add(agent, place)
    if agent is CODEX:
        assert len(trust_codex_hooks(agent, place)) == 2
    place.funes("engine", "stop", more=SERVED)
    note = place.project / "heron.txt"
    replies = [
        Reply(text="I write it down.", calls=calls(agent, Write(note, "boats\n"))),
        Reply(text=SAID),
    ]
    ran = agent.run(place, PROMPT, replies)
    assert ran.returncode == 0, ran.output
    until(lambda: "pid" in status(place), what="the hook has started an engine")
    assert status(place)["watching"] == "off"
    for text in (PROMPT, SAID):
        hits = recalled(place, text)
        assert [hit["harness"] for hit in hits] == [agent.harness]


@pytest.mark.timeout(200)
def test_hooks_of_codex_that_nobody_has_looked_at_do_not_run(place: Place) -> None:
    need(CODEX)
    add(CODEX, place)
    ran_at = place.home / "it ran"
    script_of(CODEX, place).write_text(f'#!/bin/sh\ntouch "{ran_at}"\n', encoding="utf-8")
    for trusted in (False, True):
        if trusted:
            trust_codex_hooks(CODEX, place)
        ran = CODEX.run(place, PROMPT, [Reply(text=SAID)])
        assert ran.returncode == 0, ran.output
        assert ran_at.exists() == trusted


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.timeout(200)
def test_hooks_and_the_watcher_take_each_turn_once(agent: Agent, place: Place) -> None:
    need(agent)
    add(agent, place)
    if agent is CODEX:
        trust_codex_hooks(agent, place)
    said = [f"{SAID} That was turn {number}." for number in range(3)]
    resume, held = "", list[int]()
    for number, text in enumerate(said):
        prompt = f"{PROMPT} Once more, {number}."
        ran = agent.run(place, prompt, [Reply(text=text)], resume=resume)
        assert ran.returncode == 0, ran.output
        [trace] = [
            path
            for path in (place.home / agent.traces).rglob("*.jsonl")
            if text in path.read_text(encoding="utf-8")
        ]
        resume = agent.resumable(trace)
        recalled(place, text)
        until(lambda: not status(place)["indexing"], what="the engine has read all")
        held.append(chunks(place))
    # The first turn brings what an agent says of itself. Copies are folded by recall, not here.
    assert [count - held[0] for count in held] == [0, 2, 4]


def chunks(place: Place) -> int:
    """Return how many chunks the memory holds."""
    ran = place.funes("status", "--json", more=SERVED)
    assert ran.returncode == 0, ran.stderr
    return int(json.loads(ran.stdout)["chunks"])


@pytest.mark.timeout(200)
def test_an_agent_goes_on_where_funes_is_gone(place: Place) -> None:
    """The script that hooks run is there, and what it would call is not."""
    need(CLAUDE)
    add(CLAUDE, place)
    place.funes("engine", "stop", more=SERVED)
    script = script_of(CLAUDE, place)
    text = script.read_text(encoding="utf-8")
    program = text.split('set -- "$1" ')[1].splitlines()[0]
    script.write_text(text.replace(program, "/no/such/funes"), encoding="utf-8")
    ran = CLAUDE.run(place, PROMPT, [Reply(text=SAID)])
    assert ran.returncode == 0, ran.output
    assert "hook" not in ran.output.lower()
    assert SAID in ran.output
