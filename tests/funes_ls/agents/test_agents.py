"""What is passed to each agent, and what is taken from what it prints."""

import json
from pathlib import Path

import pytest

from funes_ls.agents.claude import CLAUDE
from funes_ls.agents.codex import CODEX, toml_value
from funes_ls.agents.pi import PI
from funes_ls.agents.registry import AGENTS


@pytest.mark.parametrize("line", ["", "no json", "[]", "5", '{"type":"stream_event"}', "null"])
def test_odd_lines_add_nothing(line: str) -> None:
    assert CLAUDE.text_of(line) == ""
    assert CODEX.text_of(line) == ""


def test_claude_adds_text_and_not_thinking() -> None:
    def event(kind: str, key: str) -> str:
        delta = {"type": kind, key: "words"}
        return json.dumps({"type": "stream_event", "event": {"delta": delta}})

    assert CLAUDE.text_of(event("text_delta", "text")) == "words"
    assert CLAUDE.text_of(event("thinking_delta", "thinking")) == ""


def test_codex_adds_messages_and_not_reasoning() -> None:
    def event(kind: str) -> str:
        return json.dumps({"type": "item.completed", "item": {"type": kind, "text": "words"}})

    assert CODEX.text_of(event("agent_message")) == "words\n"
    assert CODEX.text_of(event("reasoning")) == ""


def test_pi_prints_its_answer() -> None:
    assert PI.text_of("words\n") == "words\n"


def test_codex_keeps_the_users_model_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        'model = "m-1"\nmodel_provider = "mine"\n'
        '[model_providers.mine]\nname = "x"\nport = 8080\n'
        '[mcp_servers.other]\ncommand = "spy"\n',
        encoding="utf-8",
    )
    arguments = CODEX.arguments({"CODEX_HOME": str(tmp_path)})
    assert 'model="m-1"' in arguments
    assert 'model_providers={"mine"={"name"="x","port"=8080}}' in arguments
    assert "spy" not in " ".join(arguments)
    assert "--ignore-user-config" in arguments


def test_a_damaged_configuration_is_none(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff = [")
    assert "-c" not in CODEX.arguments({"CODEX_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (3, "3"), ('a"b', '"a\\"b"'), ([1, "x"], '[1,"x"]')]
)
def test_values_as_toml(value: object, text: str) -> None:
    assert toml_value(value) == text


def test_agents_are_named_as_harnesses() -> None:
    assert list(AGENTS) == ["claude", "codex", "pi"]
