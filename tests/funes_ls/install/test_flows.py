"""`funes add` and `funes remove` from end to end, with commands that stand in for the agents."""

import json
import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from funes_ls.install import apply
from funes_ls.install.plan import wanted_for
from funes_ls.install.registry import setup_of
from tests.e2e.cli import Ran, funes
from tests.funes_ls.install.fake_agents import write_agent

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="agents are scripts here")

CLAUDE_FILES = {
    ".claude.json": '{"mcpServers":{"other":{"type":"stdio","command":"x"}},   "n": 1}',
    ".claude/settings.json": '{\n    "model":"opus",\n  "hooks": {}\n}\n',
}
CODEX_FILES = {
    ".codex/config.toml": "# mine\nmodel = 'x' # keep\n\n[mcp_servers.other]\ncommand = 'x'\n",
    ".codex/hooks.json": '{ "hooks": {"Stop": [ {"hooks":[{"type":"command","command":"a"}]} ]} }',
}
HERMES_FILES = {
    ".hermes/config.yaml": "# mine\nmodel: x # keep\nhooks:\n  post_llm_call:\n  - command: a\n",
    ".hermes/shell-hooks-allowlist.json": '{"approvals": [{"event": "e", "command": "a"}]}',
}
CURSOR_FILES = {".cursor/mcp.json": '{\n\t// mine\n\t"mcpServers": {},\n}\n'}
CODE_FILES = {
    ".config/Code/User/mcp.json": '{ "inputs": [], "servers": { "o": {"url": "u"} } }',
    ".config/VSCodium/User/settings.json": "{}",
}


@pytest.fixture
def person(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a home with spaces and letters of other alphabets, and return it."""
    home = tmp_path / "ho me ü 家"
    own_home.rename(home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("FUNES_HOME", str(home / ".funes"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return home


@pytest.fixture
def with_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Return what puts an agent's command first on the path."""

    def put(name: str, kind: str = "whole") -> None:
        folder = write_agent(tmp_path / "bin", name, kind)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    return put


def lay(home: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def seen(home: Path) -> dict[str, Any]:
    """Return every file and folder of a home but funes' own and the list of calls."""
    found: dict[str, Any] = {}
    for path in home.rglob("*"):
        name = str(path.relative_to(home))
        if not name.startswith(".funes") and name != "calls.jsonl":
            found[name] = path.read_bytes() if path.is_file() else None
    return found


def calls(home: Path) -> list[list[str]]:
    path = home / "calls.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def add(agent: str, *options: str) -> Ran:
    return funes("add", agent, "--yes", "--no-index", *options)


CASES = [
    pytest.param("claude", "claude", CLAUDE_FILES, id="claude"),
    pytest.param("claude", "claude", {}, id="claude-new"),
    pytest.param("codex", "", CODEX_FILES, id="codex"),
    pytest.param("hermes", "", HERMES_FILES, id="hermes"),
    pytest.param("hermes", "", {".hermes/x": ""}, id="hermes-new"),
    pytest.param("vscode", "", CODE_FILES, id="vscode"),
    pytest.param("cursor", "", CURSOR_FILES, id="cursor"),
    pytest.param("cursor", "", {".cursor/x": ""}, id="cursor-new"),
]


@pytest.mark.parametrize(("agent", "program", "files"), CASES)
def test_what_is_added_is_gone_after_removing(
    agent: str,
    program: str,
    files: dict[str, str],
    person: Path,
    with_agent: Callable[..., None],
) -> None:
    if program:
        with_agent(program)
    lay(person, files)
    before = seen(person)
    shown = funes("add", agent, "--dry-run")
    assert shown.code == 0, shown.err
    assert "funes" in shown.out
    assert seen(person) == before
    assert not (person / ".funes").exists()

    added = add(agent)
    assert added.code == 0, added.err
    after = seen(person)
    assert after != before
    again = add(agent)
    assert (again.code, seen(person)) == (0, after)
    assert "nothing to change" in again.out or agent == "codex"

    shown = funes("remove", agent, "--dry-run")
    assert (shown.code, seen(person)) == (0, after)
    removed = funes("remove", agent, "--yes")
    assert removed.code == 0, removed.err
    assert seen(person) == before
    assert not (person / ".funes" / "agents").exists()
    once_more = funes("remove", agent, "--yes")
    assert (once_more.code, seen(person)) == (0, before)
    assert "nothing to remove" in once_more.out


@pytest.mark.parametrize(
    ("agent", "name", "old", "new"),
    [
        ("codex", ".codex/hooks.json", '"command":"a"', '"command":"b"'),
        ("codex", ".codex/config.toml", "# keep", "# kept"),
        ("hermes", ".hermes/config.yaml", "# keep", "# kept"),
        ("hermes", ".hermes/shell-hooks-allowlist.json", '"e"', '"f"'),
        ("vscode", ".config/Code/User/mcp.json", '"u"', '"v"'),
        ("cursor", ".cursor/mcp.json", "// mine", "// yours"),
    ],
)
def test_what_others_changed_since_stays(
    agent: str, name: str, old: str, new: str, person: Path
) -> None:
    files = {**CODEX_FILES, **HERMES_FILES, **CODE_FILES, **CURSOR_FILES}
    lay(person, files)
    assert add(agent).code == 0
    path = person / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    removed = funes("remove", agent, "--yes")
    assert removed.code == 0, removed.err
    wanted = {**files, name: files[name].replace(old, new, 1)}
    assert {one: (person / one).read_text(encoding="utf-8") for one in wanted} == wanted


def test_claude_changed_since_loses_our_entries_alone(
    person: Path, with_agent: Callable[..., None]
) -> None:
    with_agent("claude")
    lay(person, CLAUDE_FILES)
    assert add("claude").code == 0
    for name in (".claude.json", ".claude/settings.json"):
        said = json.loads((person / name).read_text())
        (person / name).write_text(json.dumps({**said, "since": 2}, indent=3))
    removed = funes("remove", "claude", "--yes")
    assert removed.code == 0, removed.err
    said = json.loads((person / ".claude.json").read_text())
    assert said == {"mcpServers": {"other": {"type": "stdio", "command": "x"}}, "n": 1, "since": 2}
    settings = json.loads((person / ".claude/settings.json").read_text())
    assert {key: value for key, value in settings.items() if value} == {"model": "opus", "since": 2}
    assert not (person / ".claude/plugins").exists()
    assert calls(person)[-1] == ["claude", "plugin", "marketplace", "remove", "funes-local"]


def test_claude_is_removed_also_where_its_command_is_gone(
    person: Path, with_agent: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_agent("claude")
    lay(person, CLAUDE_FILES)
    assert add("claude").code == 0
    for name in (".claude.json", ".claude/settings.json"):
        said = json.loads((person / name).read_text())
        (person / name).write_text(json.dumps({**said, "since": 2}))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert funes("remove", "claude", "--yes").code == 0
    settings = json.loads((person / ".claude/settings.json").read_text())
    assert settings == {"model": "opus", "hooks": {}, "since": 2}
    assert "funes" not in (person / ".claude.json").read_text()


def test_another_memory_takes_the_place_of_the_one_before(
    person: Path, with_agent: Callable[..., None], tmp_path: Path
) -> None:
    with_agent("claude")
    lay(person, CLAUDE_FILES)
    before = seen(person)
    assert add("claude").code == 0
    other = tmp_path / "shared memory"
    other.mkdir()
    empty = funes("add", "claude", str(other), "--yes")
    assert (empty.code, f"No memory at {other}" in empty.err) == (2, True)
    (other / "catalog.db").touch()
    assert funes("add", "claude", str(other), "--yes").code == 0
    servers = json.loads((person / ".claude.json").read_text())["mcpServers"]
    assert servers["funes"]["args"] == ["mcp", str(other)]
    assert funes("remove", "claude", "--yes").code == 0
    assert seen(person) == before


def test_a_memory_that_is_not_there_is_refused_before_anything(person: Path) -> None:
    lay(person, CURSOR_FILES)
    before = seen(person)
    ran = funes("add", "cursor", "/no/such/memory", "--yes")
    assert ran.code == 2
    assert "No memory at /no/such/memory" in ran.err
    assert seen(person) == before


@pytest.mark.parametrize("agent", ["claude", "codex", "pi", "hermes"])
def test_without_the_agent_files_are_prepared_and_the_rest_is_told(
    agent: str, person: Path
) -> None:
    ran = add(agent)
    assert ran.code == 0, ran.err
    assert "is not installed here" in ran.out
    told = {
        "claude": "claude plugin install funes@funes-local",
        "codex": "codex mcp add funes -- ",
        "pi": "pi install ",
        "hermes": "mcp_servers:",
    }
    assert told[agent] in ran.out
    assert list((person / ".funes" / "agents" / agent).iterdir())
    assert set(seen(person)) <= {".codex", ".codex/hooks.json"}
    assert funes("remove", agent, "--yes").code == 0
    assert seen(person) == {}
    assert not (person / ".funes" / "agents").exists()


@pytest.mark.parametrize(
    ("agent", "name", "text"),
    [
        ("claude", ".claude.json", '{"mcpServers": {'),
        ("claude", ".claude/plugins/known_marketplaces.json", "no"),
        ("claude", ".claude.json", '{"mcpServers": []}'),
        ("codex", ".codex/config.toml", "[mcp_servers"),
        ("codex", ".codex/hooks.json", '{"hooks": {"Stop": {}}}'),
        ("codex", ".codex/hooks.json", "\x00"),
        ("pi", ".pi/agent/settings.json", '{"packages": "x"}'),
        ("pi", ".pi/agent/settings.json", "{packages}"),
        ("hermes", ".hermes/config.yaml", "a: [\n"),
        ("hermes", ".hermes/config.yaml", "hooks: {post_llm_call: [{command: a}]}\n"),
        ("hermes", ".hermes/shell-hooks-allowlist.json", "[]"),
        ("vscode", ".config/Code/User/mcp.json", '{"servers": '),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": 1}'),
    ],
)
def test_a_malformed_file_is_left_alone_and_the_block_is_told(
    agent: str, name: str, text: str, person: Path, with_agent: Callable[..., None]
) -> None:
    if agent in ("claude", "pi"):
        with_agent(agent)
    lay(person, {name: text})
    ran = add(agent)
    assert ran.code == 1
    assert str(person / name) in ran.err
    assert "left alone" in ran.err
    assert (person / name).read_text(encoding="utf-8") == text
    if "allowlist" not in name:
        assert "funes" in ran.out.split("To do by hand:")[1]
    removed = funes("remove", agent, "--yes")
    assert (person / name).read_text(encoding="utf-8") == text
    assert "Traceback" not in removed.err


@pytest.mark.parametrize(
    ("agent", "name", "fixed"),
    [
        ("claude", ".claude.json", "file"),
        ("claude", ".claude/settings.json", "folder"),
        ("codex", ".codex/hooks.json", "file"),
        ("codex", ".codex/hooks.json", "folder"),
        ("cursor", ".cursor/mcp.json", "file"),
        ("cursor", ".cursor/mcp.json", "folder"),
    ],
)
def test_a_read_only_configuration_is_said_and_nothing_changes(
    agent: str, name: str, fixed: str, person: Path, with_agent: Callable[..., None]
) -> None:
    if agent == "claude":
        with_agent("claude")
    lay(person, {**CLAUDE_FILES, **CODEX_FILES, **CURSOR_FILES})
    path = person / name if fixed == "file" else (person / name).parent
    path.chmod(0o444 if fixed == "file" else 0o555)
    before = seen(person)
    try:
        ran = add(agent)
    finally:
        path.chmod(0o644 if fixed == "file" else 0o755)
    assert ran.code == 1
    assert "read-only" in ran.err
    assert seen(person) == before
    assert calls(person) == []


def test_a_configuration_behind_a_link_stays_behind_it(person: Path) -> None:
    lay(person, {"dotfiles/mcp.json": CURSOR_FILES[".cursor/mcp.json"], ".cursor/x": ""})
    link = person / ".cursor" / "mcp.json"
    link.symlink_to("../dotfiles/mcp.json")
    before = seen(person)
    assert add("cursor").code == 0
    assert link.is_symlink()
    assert "funes" in (person / "dotfiles" / "mcp.json").read_text()
    assert funes("remove", "cursor", "--yes").code == 0
    assert link.is_symlink()
    assert seen(person) == before


def test_an_old_agent_gets_the_server_and_is_told_what_failed(
    person: Path, with_agent: Callable[..., None]
) -> None:
    with_agent("claude", "old")
    lay(person, CLAUDE_FILES)
    before = seen(person)
    ran = add("claude")
    assert ran.code == 1
    assert "unknown command 'plugin'" in ran.err
    assert "funes" in json.loads((person / ".claude.json").read_text())["mcpServers"]
    assert (person / ".claude/settings.json").read_text() == CLAUDE_FILES[".claude/settings.json"]
    assert funes("remove", "claude", "--yes").code == 0
    assert seen(person) == before


@pytest.mark.parametrize(("kind", "said"), [("failing", "exit 3"), ("silent", "did not take")])
def test_an_agent_that_fails_or_does_nothing_is_reported(
    kind: str, said: str, person: Path, with_agent: Callable[..., None]
) -> None:
    with_agent("claude", kind)
    lay(person, CLAUDE_FILES)
    before = seen(person)
    ran = add("claude")
    assert ran.code == 1
    assert said in ran.err
    assert seen(person) == before
    assert funes("remove", "claude", "--yes").code == 0
    assert seen(person) == before


def test_two_at_once_leave_one_entry_each(person: Path) -> None:
    lay(person, {**CURSOR_FILES, **CODEX_FILES})
    before = seen(person)
    plans: list[Any] = []

    def run(agent: str) -> None:
        setup = setup_of(agent)
        wanted = wanted_for(agent, "", memory="", env=os.environ)
        plans.append(apply.add(setup, wanted))

    threads = [threading.Thread(target=run, args=(one,)) for one in ("cursor", "codex") * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(plans) == len(threads)
    hooks = json.loads((person / ".codex" / "hooks.json").read_text())["hooks"]
    assert [len(hooks[event]) for event in ("Stop", "SessionStart")] == [2, 1]
    assert (person / ".cursor" / "mcp.json").read_text().count('"funes"') == 1
    for agent in ("codex", "cursor"):
        assert funes("remove", agent, "--yes").code == 0
    assert seen(person) == before


def test_without_a_terminal_nothing_changes_unasked(person: Path) -> None:
    lay(person, CURSOR_FILES)
    for command in ("add", "remove"):
        before = seen(person)
        ran = funes(command, "cursor")
        assert ran.code == 2
        assert "--yes" in ran.err
        assert seen(person) == before
        assert funes("add", "cursor", "--yes").code == 0


def test_what_changes_nothing_needs_no_yes(person: Path) -> None:
    lay(person, CURSOR_FILES)
    before = seen(person)
    ran = funes("remove", "cursor")
    assert (ran.code, "nothing to remove" in ran.out) == (0, True)
    ran = funes("add", "generic")
    assert (ran.code, '"mcpServers"' in ran.out) == (0, True)
    assert seen(person) == before
    assert funes("add", "cursor", "--yes").code == 0
    ran = funes("add", "cursor")
    assert (ran.code, "nothing to change" in ran.out) == (0, True)


def test_json_names_each_step(person: Path, with_agent: Callable[..., None]) -> None:
    with_agent("claude")
    ran = funes("add", "claude", "--dry-run", "--json")
    assert ran.code == 0
    assert ran.json["agent"] == "claude"
    assert not ran.json["done"]
    runs = [step["run"][1:3] for step in ran.json["steps"] if "run" in step]
    assert runs == [["mcp", "add"], ["plugin", "marketplace"], ["plugin", "install"]]
    assert all(step["own"] for step in ran.json["steps"] if "file" in step)


def test_a_home_of_its_own_is_told_to_the_agent(
    person: Path, with_agent: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_agent("claude")
    elsewhere = person / "else where"
    monkeypatch.setenv("FUNES_HOME", str(elsewhere))
    assert add("claude").code == 0
    server = json.loads((person / ".claude.json").read_text())["mcpServers"]["funes"]
    assert server["env"] == {"FUNES_HOME": str(elsewhere)}
    script = (elsewhere / "agents" / "claude" / "hook").read_text()
    assert f"FUNES_HOME='{elsewhere}'" in script


def test_without_a_parser_of_yaml_hermes_is_left_alone_and_the_block_is_told(
    person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(person, HERMES_FILES)
    monkeypatch.setitem(sys.modules, "yaml", None)
    ran = add("hermes")
    assert ran.code == 1
    assert "no parser of YAML" in ran.err
    monkeypatch.undo()
    told = ran.out.split("To do by hand:")[1]
    assert set(import_module("yaml").safe_load(told)) == {"mcp_servers", "hooks"}
