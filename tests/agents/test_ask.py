"""`funes ask` with the real agents: an answer, its sources, and nothing left behind."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from funes_ls import ask as asking
from funes_ls.agents import child
from funes_ls.agents.registry import AGENTS
from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.settings import load_settings
from funes_ls.memories import OpenEachTime
from funes_ls.protocol import AskParams
from tests.agents.agents import need
from tests.agents.kinds import CLAUDE, CODEX, PI
from tests.agents.one_answer import Model, scripted
from tests.e2e.cli import index

pytestmark = pytest.mark.skipif(os.name == "nt", reason="processes and signals of POSIX")

QUESTION = "three attempts with full jitter"
SESSION = "8845927a-3cb6-420d-ad22-3a9129b12318"
TRACES = Path(__file__).resolve().parents[1] / "traces" / "home" / ".claude"
KINDS = {"claude": CLAUDE, "codex": CODEX, "pi": PI}


@pytest.fixture
def samples(own_home: Path) -> None:
    """Index the session that the question is about, words only."""
    [trace] = TRACES.rglob(f"{SESSION}.jsonl")
    folder = own_home / ".claude" / "projects" / trace.parent.name
    folder.mkdir(parents=True)
    shutil.copy(trace, folder)
    index("--yes", "--words-only")


@pytest.fixture
def model() -> Iterator[Model]:
    with scripted(f"Three, with jitter [{SESSION[:8]}].\nAnd über [deadbeef].") as one:
        yield one


@pytest.fixture(params=list(KINDS))
def name(request: pytest.FixtureRequest) -> str:
    """Return which agent is asked; it is installed."""
    need(KINDS[request.param])
    return str(request.param)


@pytest.fixture
def real(name: str, model: Model, samples: None, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """Return an agent and its environment: all it could start by itself is set up."""
    programs = KINDS[name].bin
    node = shutil.which("node")
    folders = [str(programs), *([str(Path(node).parent)] if node else []), "/usr/bin", "/bin"]
    home = tmp_path / "agent-home"
    temporary = tmp_path / "agent-tmp"
    home.mkdir()
    temporary.mkdir()
    env = {"PATH": ":".join(folders), "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb"}
    env["TMPDIR"] = str(temporary)
    env.update(_SET_UP[name](home, model.url))
    return name, env


def _spy(home: Path, what: str) -> str:
    return f"touch {home}/{what}-was-started"


def _hooks(home: Path, *events: str) -> str:
    hook = [{"hooks": [{"type": "command", "command": _spy(home, "hook")}]}]
    return json.dumps({"hooks": {event: hook for event in events}})


def _claude(home: Path, url: str) -> Mapping[str, str]:
    (home / ".claude").mkdir()
    hooks = _hooks(home, "SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")
    (home / ".claude" / "settings.json").write_text(hooks, encoding="utf-8")
    server = {"type": "stdio", "command": "sh", "args": ["-c", _spy(home, "mcp")]}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"spy": server}}), "utf-8")
    quiet = ("DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "IS_SANDBOX")
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        **dict.fromkeys(quiet, "1"),
    }


def _codex(home: Path, url: str) -> Mapping[str, str]:
    folder = home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(
        f'model = "gpt-5.5"\nmodel_provider = "here"\n'
        f'notify = ["touch", "{home}/notify-was-started"]\n'
        f'[model_providers.here]\nname = "here"\nbase_url = "{url}/v1"\n'
        f'wire_api = "responses"\nenv_key = "HERE_KEY"\n'
        f'[mcp_servers.spy]\ncommand = "touch"\nargs = ["{home}/mcp-was-started"]\n',
        encoding="utf-8",
    )
    return {"HERE_KEY": "none"}


def _pi(home: Path, url: str) -> Mapping[str, str]:
    folder = home / ".pi" / "agent"
    (folder / "extensions").mkdir(parents=True)
    spy = f'import {{ writeFileSync }} from "node:fs"; writeFileSync("{home}/ext-was-started", "");'
    (folder / "extensions" / "spy.ts").write_text(
        spy + "\nexport default function () {}\n", encoding="utf-8"
    )
    cost = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
    one = {
        "id": "scripted",
        "name": "scripted",
        "reasoning": False,
        "input": ["text"],
        "cost": cost,
    }
    models = [{**one, "contextWindow": 100000, "maxTokens": 8000}]
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "none"}
    providers = {"providers": {"here": {**provider, "models": models}}}
    (folder / "models.json").write_text(json.dumps(providers), encoding="utf-8")
    chosen = {"defaultProvider": "here", "defaultModel": "scripted"}
    (folder / "settings.json").write_text(json.dumps(chosen), encoding="utf-8")
    return {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}


_SET_UP: dict[str, Callable[[Path, str], Mapping[str, str]]] = {
    "claude": _claude,
    "codex": _codex,
    "pi": _pi,
}
#: What today's codex offers whatever is switched off; nobody answers the one, and the sandbox
#: refuses the other.
_HARMLESS = {"codex": {"request_user_input", "apply_patch"}}


def holding(folder: Path, text: str) -> list[Path]:
    return [
        file
        for file in folder.rglob("*")
        if file.is_file() and not file.is_symlink() and text.encode() in file.read_bytes()
    ]


#: How each is asked without any of our precautions.
_CARELESS = {
    "claude": ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"],
    "codex": ["exec", "--json", "--skip-git-repo-check", "-"],
    "pi": ["-p"],
}


@pytest.mark.timeout(180)
def test_asked_carelessly_it_does_all_that(real: tuple[str, dict[str, str]], model: Model) -> None:
    """Show that the next test could fail: servers, hooks, traces and tools are there to be had."""
    name, env = real
    careless = AGENTS[name]._replace(arguments=lambda _env: _CARELESS[name])
    ended = child.run(
        careless,
        QUESTION,
        env=env,
        on_text=lambda _: None,
        cancelled=lambda: False,
        limit_s=120,
    )
    assert ended.why == "done", ended
    home = Path(env["HOME"])
    assert list(home.glob("*-was-started")) != []
    assert holding(home, QUESTION) != []
    assert set(model.tools()) > _HARMLESS.get(name, set())


def memories_here() -> OpenEachTime:
    return OpenEachTime(load_settings(os.environ)[0])


@pytest.mark.timeout(180)
def test_a_real_agent_answers_and_leaves_nothing(
    real: tuple[str, dict[str, str]], model: Model
) -> None:
    name, env = real
    pieces: list[str] = []
    answer = asking.ask(
        AskParams(question=QUESTION, agent=name), memories_here(), on_text=pieces.append, env=env
    )
    assert answer.answer == model.text
    assert "".join(pieces).strip() == model.text
    assert {one.session_id for one in answer.sources if one.cited} == {SESSION}
    assert answer.unknown == ("deadbeef",)
    assert any(QUESTION in json.dumps(request) for request in model.requests)
    assert set(model.tools()) <= _HARMLESS.get(name, set())
    home = Path(env["HOME"])
    assert list(home.glob("*-was-started")) == []
    assert holding(home, QUESTION) == []
    assert holding(Path(env["TMPDIR"]), QUESTION) == []


@pytest.mark.timeout(180)
def test_a_real_agent_ends_when_nobody_waits(
    real: tuple[str, dict[str, str]], model: Model
) -> None:
    name, env = real
    model.go_on.clear()
    withdrawn_at: list[float] = []

    def cancelled() -> bool:
        if model.asked.is_set() and not withdrawn_at:
            withdrawn_at.append(time.monotonic())
        return bool(withdrawn_at)

    with pytest.raises(FunesError) as caught:
        asking.ask(
            AskParams(question=QUESTION, agent=name),
            memories_here(),
            on_text=lambda _: None,
            cancelled=cancelled,
            env=env,
        )
    assert caught.value.kind == "cancelled"
    assert time.monotonic() - withdrawn_at[0] < 3
    assert holding(Path(env["HOME"]), QUESTION) == []
