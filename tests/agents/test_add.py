"""Real agents are given the memory, and lose it again without a trace."""

import json
import os
import signal
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.agents import Agent, Place, need
from tests.agents.gifted import (
    SERVED,
    add,
    codex_trust,
    files_of,
    no_engine_after,
    recalled,
    remove,
    script_of,
    short_place,
    status,
)
from tests.agents.kinds import CLAUDE, CODEX, PI
from tests.agents.scripted_model import ScriptedModel
from tests.agents.wires import Reply
from tests.e2e.engines import until

AGENTS = [pytest.param(agent, id=agent.name) for agent in (CLAUDE, CODEX, PI)]
PROMPT = "Why did the harbour master keep a heron?"
SAID = "The heron counts the boats at night."

#: What a person has there already, written as no program writes it.
FILES = {
    "claude": {
        ".claude.json": '{"mcpServers":{"other":{"type":"stdio","command":"x","args":[]}},"n":1}',
        ".claude/settings.json": '{\n    "model":"opus",\n  "hooks": {},"env":{}\n}\n',
    },
    "codex": {
        ".codex/config.toml": '# mine\nmodel_verbosity = "low" # keep\n\n[mcp_servers.other]\n'
        'command = "x"\nenabled = false\n',
        ".codex/hooks.json": '{ "hooks": {"Stop": [ {"hooks":[{"type":"command",'
        '"command":"a"}]} ]} }',
    },
    "pi": {".pi/agent/settings.json": '{ "theme":"dark",   "packages": [] }\n'},
}


@pytest.fixture
def place() -> Iterator[Place]:
    with short_place() as one, no_engine_after(one):
        yield one


def lay(agent: Agent, place: Place, *, linked: bool = False) -> None:
    for name, text in FILES[agent.name].items():
        path = place.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if linked:
            kept = place.home / "dot files" / name.replace("/", "-")
            kept.parent.mkdir(exist_ok=True)
            path.symlink_to(os.path.relpath(kept, path.parent))
            path = kept
        path.write_text(text, encoding="utf-8")


def links(place: Place) -> set[str]:
    return {path.name for path in place.home.rglob("*.*") if path.is_symlink()} - {"latest"}


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("state", ["used", "new", "behind links"])
@pytest.mark.timeout(200)
def test_adding_and_removing_leaves_every_file_as_it_was(
    agent: Agent, state: str, place: Place
) -> None:
    need(agent)
    if state != "new":
        lay(agent, place, linked=state == "behind links")
    silent = agent.prepare(place, "http://127.0.0.1:9")
    before, linked = files_of(place), links(place)
    done = add(agent, place)
    assert done["done"] and not done["problems"]
    after = files_of(place)
    assert after != before
    again = add(agent, place)
    assert again["steps"] == []
    assert files_of(place) == after
    registered(agent, place, silent)
    remove(agent, place)
    assert files_of(place) == before
    assert links(place) == linked
    assert not (place.home / ".funes" / "agents").exists()


def registered(agent: Agent, place: Place, silent: dict[str, str]) -> None:
    """Insist that the agent itself says that it has the memory."""
    words = {"claude": ("mcp", "get", "funes"), "codex": ("mcp", "get", "funes"), "pi": ("list",)}
    code, told = agent.command(place, *words[agent.name], more=silent)
    assert code == 0, told
    assert "funes" in told
    if agent is CLAUDE:
        code, told = agent.command(place, "plugin", "list", more=silent)
        assert code == 0, told
        assert "funes@funes-local" in told


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.timeout(200)
def test_after_a_session_only_our_entries_go(agent: Agent, place: Place) -> None:
    need(agent)
    lay(agent, place)
    add(agent, place)
    ran = agent.run(place, PROMPT, [Reply(text=SAID)])
    assert ran.returncode == 0, ran.output
    remove(agent, place)
    left = files_of(place)
    if agent is CLAUDE:
        config: dict[str, Any] = json.loads(left[".claude.json"])
        assert set(config["mcpServers"]) == {"other"}
        assert left[".claude/settings.json"].decode() == FILES["claude"][".claude/settings.json"]
    if agent is CODEX:
        servers = tomllib.loads(left[".codex/config.toml"].decode())["mcp_servers"]
        assert set(servers) == {"other"}
        assert "# keep" in left[".codex/config.toml"].decode()
        assert left[".codex/hooks.json"].decode() == FILES["codex"][".codex/hooks.json"]
    if agent is PI:
        assert json.loads(left[".pi/agent/settings.json"])["packages"] == []


@pytest.mark.timeout(200)
def test_the_consent_to_hooks_of_codex_is_left_to_its_user(place: Place) -> None:
    need(CODEX)
    done = add(CODEX, place)
    assert any("/hooks" in note for note in done["notes"])
    assert codex_trust(CODEX, place) == {"untrusted"}
    config = (place.home / ".codex" / "config.toml").read_text(encoding="utf-8")
    assert "trust" not in config


@pytest.mark.timeout(200)
def test_the_first_look_is_a_part_of_adding(place: Place) -> None:
    need(CLAUDE)
    ran = CLAUDE.run(place, PROMPT, [Reply(text=SAID)])
    assert ran.returncode == 0, ran.output
    done = add(CLAUDE, place)
    assert done["done"]
    [hit] = recalled(place, SAID)
    assert hit["harness"] == "claude_code"


def _traces_with(place: Place, text: str) -> list[Path]:
    traces = (place.home / CLAUDE.traces).rglob("*.jsonl")
    return [path for path in traces if text in path.read_text(encoding="utf-8")]


@pytest.mark.timeout(200)
def test_asking_an_agent_that_has_the_memory_leaves_nothing(place: Place) -> None:
    """Neither its hooks run nor its tools are there, and no trace tells of it afterwards."""
    need(CLAUDE)
    ran = CLAUDE.run(place, PROMPT, [Reply(text=SAID)])
    assert ran.returncode == 0, ran.output
    add(CLAUDE, place)
    recalled(place, SAID)
    place.funes("engine", "stop", more=SERVED)
    traces = _traces_with(place, PROMPT)
    asked = "Which bird counts the boats?"
    with ScriptedModel([Reply(text="A heron.")], without_tools=True) as model:
        more = {"FUNES_ENGINE": "inline", **CLAUDE.prepare(place, model.url)}
        told = place.funes("ask", "claude", asked, folders=[CLAUDE.bin], more=more)
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("A heron.")
    assert [request.tools for request in model.log.asked] == [()]
    assert _traces_with(place, asked) == []
    assert _traces_with(place, PROMPT) == traces
    assert "pid" not in status(place)


@pytest.mark.timeout(200)
def test_an_agent_that_is_killed_in_a_turn_loses_nothing(place: Place) -> None:
    need(CLAUDE)
    lay(CLAUDE, place)
    add(CLAUDE, place)

    def killed() -> Reply:
        until(lambda: _traces_with(place, PROMPT), what="the question is on the disk")
        for folder in Path("/proc").iterdir():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if PROMPT.encode() in words:
                os.kill(int(folder.name), signal.SIGKILL)
        return Reply(text=SAID)

    ran = CLAUDE.run(place, PROMPT, [killed])
    assert ran.returncode != 0
    assert json.loads((place.home / ".claude.json").read_text())["mcpServers"]["funes"]
    recalled(place, PROMPT)
    assert add(CLAUDE, place)["steps"] == []
    remove(CLAUDE, place)
    servers = json.loads((place.home / ".claude.json").read_text())["mcpServers"]
    assert set(servers) == {"other"}
    settings = (place.home / ".claude" / "settings.json").read_text()
    assert settings == FILES["claude"][".claude/settings.json"]


@pytest.mark.timeout(200)
def test_the_plugin_is_put_right_when_its_files_are_spoilt(place: Place) -> None:
    need(CLAUDE)
    add(CLAUDE, place)
    script = script_of(CLAUDE, place)
    text = script.read_text(encoding="utf-8")
    script.write_text("#!/bin/sh\nexit 1\n")
    done = add(CLAUDE, place)
    assert [step.get("file") for step in done["steps"]] == [str(script)]
    assert script.read_text(encoding="utf-8") == text
    ran = place.funes("add", "claude", "--dry-run", "--force", folders=[CLAUDE.bin], more=SERVED)
    assert "claude plugin install funes@funes-local" in ran.stdout
