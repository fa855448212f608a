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
    assert CLAUDE.reason_of(line) == CODEX.reason_of(line) == PI.reason_of(line) == ""


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


def options(arguments: list[str]) -> set[str]:
    return {arguments[at + 1] for at, one in enumerate(arguments) if one == "-c"}


def codex_arguments(folder: Path, config: str) -> list[str]:
    (folder / "config.toml").write_text(config, encoding="utf-8")
    return CODEX.arguments({"CODEX_HOME": str(folder)})


def test_codex_has_no_way_to_run_anything(tmp_path: Path) -> None:
    arguments = CODEX.arguments({"HOME": str(tmp_path)})
    assert {"--ephemeral", "--ignore-user-config", "--ignore-rules"} <= set(arguments)
    assert arguments[arguments.index("--sandbox") + 1] == "read-only"
    off = ("shell_tool", "unified_exec", "hooks", "plugins", "apps")
    assert {f"features.{name}=false" for name in off} <= options(arguments)
    assert {'web_search="disabled"', "notify=[]", "analytics.enabled=false"} <= options(arguments)


def test_codex_keeps_the_users_model_and_login_and_nothing_else(tmp_path: Path) -> None:
    arguments = codex_arguments(
        tmp_path,
        'model = "m-1"\nmodel_provider = "mine"\ncli_auth_credentials_store = "keyring"\n'
        '[model_providers.mine]\nname = "x"\nrequest_max_retries = 3\n'
        '[model_providers.other]\nexperimental_bearer_token = "s3cret"\n'
        '[mcp_servers.other]\ncommand = "spy"\n',
    )
    kept = {'model="m-1"', 'model_provider="mine"', 'cli_auth_credentials_store="keyring"'}
    assert kept <= options(arguments)
    assert 'model_providers={"mine"={"name"="x","request_max_retries"=3}}' in arguments
    assert "spy" not in " ".join(arguments)
    assert "s3cret" not in " ".join(arguments)
    assert "--ignore-user-config" in arguments


@pytest.mark.parametrize(
    "secret",
    [
        'experimental_bearer_token = "s3cret"',
        'http_headers = { x-api-key = "s3cret" }',
        'base_url = "https://host/v1?key=s3cret"',
        'base_url = "https://me:s3cret@host/v1"',
    ],
)
def test_a_secret_is_not_put_where_others_can_read_it(tmp_path: Path, secret: str) -> None:
    arguments = codex_arguments(
        tmp_path,
        f'model_provider = "mine"\n[model_providers.mine]\n{secret}\n'
        '[mcp_servers.one]\ncommand = "spy"\n[mcp_servers.two-2]\nurl = "http://x"\n',
    )
    assert "s3cret" not in " ".join(arguments)
    assert "--ignore-user-config" not in arguments  # or the provider would be unknown
    assert {"mcp_servers.one.enabled=false", "mcp_servers.two-2.enabled=false"} <= options(
        arguments
    )
    assert {"features.hooks=false", "features.shell_tool=false"} <= options(arguments)


def test_a_damaged_configuration_is_none(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff = [")
    damaged = CODEX.arguments({"CODEX_HOME": str(tmp_path)})
    assert damaged == CODEX.arguments({"CODEX_HOME": str(tmp_path / "none")})
    assert damaged == CODEX.arguments({})


def test_why_an_agent_failed_is_taken_from_what_it_prints() -> None:
    result = {"type": "result", "is_error": True, "result": "Please log in"}
    assert CLAUDE.reason_of(json.dumps(result)) == "Please log in"
    assert CLAUDE.reason_of(json.dumps({**result, "is_error": False})) == ""
    failed = {"type": "turn.failed", "error": {"message": "usage limit"}}
    assert CODEX.reason_of(json.dumps(failed)) == "usage limit"
    assert CODEX.reason_of(json.dumps({"type": "turn.failed"})) == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (3, "3"), ('a"b', '"a\\"b"'), ([1, "x"], '[1,"x"]'), ("é😀", '"é😀"')],
)
def test_values_as_toml(value: object, text: str) -> None:
    assert toml_value(value) == text


def test_agents_are_named_as_harnesses() -> None:
    assert list(AGENTS) == ["claude", "codex", "pi"]
