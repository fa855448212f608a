"""`funes ask` as a person meets it: with a stand-in for an agent, and with the real ones.

The real ones are taken from where `FUNES_AGENTS` says: a folder with `claude`, `codex` and `pi`,
each installed there by npm. They speak to a model on this machine, in a home of their own.
"""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
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
from funes_ls.protocol import AskAnswer, AskParams
from tests.e2e.cli import COMMAND, funes, funes_process
from tests.e2e.engines import alive, until
from tests.e2e.scripted_model import Model, scripted

pytestmark = pytest.mark.skipif(os.name == "nt", reason="processes and signals of POSIX")

QUESTION = "three attempts with full jitter"
SESSION = "8845927a-3cb6-420d-ad22-3a9129b12318"
NOWHERE = "/no/such/folder"
_CLAUDE = """\
#!{python}
import json, os, sys, time
from pathlib import Path
here = Path({here!r})
(here / "prompt").write_text(sys.stdin.read())
(here / "pid").write_text(str(os.getpid()))
def say(text):
    delta = {{"type": "text_delta", "text": text}}
    print(json.dumps({{"type": "stream_event", "event": {{"delta": delta}}}}), flush=True)
{body}
"""


@pytest.fixture
def bin_dir(tmp_path: Path, samples: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder on the path; the sample sessions are indexed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def install(folder: Path, body: str) -> None:
    program = folder / "claude"
    text = _CLAUDE.format(python=sys.executable, here=str(folder), body=body)
    program.write_text(text, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_the_answer_then_what_it_rests_on(bin_dir: Path) -> None:
    install(bin_dir, f"say('Three, '); say('with jitter [{SESSION[:8]}].')")
    ran = funes("ask", "claude", QUESTION)
    assert ran.code == 0, ran.err
    answer, _, sources = ran.out.partition("\n\n")
    assert answer == f"Three, with jitter [{SESSION[:8]}]."
    assert sources.startswith(f"sources:\n  [{SESSION[:8]}] ")
    assert f"funes get {SESSION} " in sources
    assert "reading" not in ran.err  # nobody waits at a terminal
    assert "\r" not in ran.err


def test_a_session_that_was_not_handed_over_is_told(bin_dir: Path) -> None:
    install(bin_dir, "say('As in [deadbeef].\\n')")
    ran = funes("ask", QUESTION)
    assert ran.code == 0, ran.err
    assert "not handed over, do not rely on it: [deadbeef]" in ran.out
    assert "deadbeef" in ran.err
    found = funes("ask", QUESTION, "--json").json
    assert found["unknown"] == ["deadbeef"]
    assert not any(one["cited"] for one in found["sources"])


def test_json_is_one_object(bin_dir: Path) -> None:
    install(bin_dir, f"say('So it was [{SESSION[:8]}].')")
    found = funes("ask", QUESTION, "--json").json
    assert list(found) == list(AskAnswer.__struct_fields__)
    assert found["answer"] == f"So it was [{SESSION[:8]}]."
    assert {one["session_id"] for one in found["sources"] if one["cited"]} == {SESSION}
    assert found["prompt"] == (bin_dir / "prompt").read_text(encoding="utf-8")


def test_escapes_of_an_agent_do_not_reach_the_terminal(bin_dir: Path) -> None:
    install(bin_dir, "say('red \\x1b[31m and \\u202e back')")
    ran = funes("ask", QUESTION)
    assert ran.out.startswith("red [31m and  back\n")


def test_a_dry_run_shows_what_would_go_and_to_whom(bin_dir: Path) -> None:
    install(bin_dir, "say('I was asked.')")
    ran = funes("ask", "claude", QUESTION, "--dry-run")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("This would be sent to claude:\n")
    assert SESSION[:8] in ran.out
    assert ran.out.rstrip().endswith(f"Question: {QUESTION}")
    assert not (bin_dir / "prompt").exists()


def test_nobody_to_ask_is_said_and_what_would_go_can_be_seen(bin_dir: Path) -> None:
    ran = funes("ask", QUESTION)
    assert (ran.code, ran.out) == (2, "")
    assert "No agent to ask is installed" in ran.err
    ran = funes("ask", QUESTION, "--dry-run")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("This would be sent to claude, which is not installed here:\n")


def test_nothing_found_is_said_without_asking(bin_dir: Path) -> None:
    install(bin_dir, "say('I was asked.')")
    ran = funes("ask", QUESTION, "--cwd", NOWHERE)
    assert (ran.code, ran.out) == (0, "")
    assert "Nothing in the memory fits" in ran.err
    assert not (bin_dir / "prompt").exists()


@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [
        (("codex", QUESTION), 2, "codex is not installed"),
        (("claude",), 2, "What do you want to ask claude?"),
        ((), 2, "empty"),
        ((QUESTION, "--memory", NOWHERE), 2, NOWHERE),
    ],
)
def test_what_cannot_be_asked(bin_dir: Path, argv: tuple[str, ...], code: int, told: str) -> None:
    install(bin_dir, "say('I was asked.')")
    ran = funes("ask", *argv)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert not (bin_dir / "prompt").exists()


def test_a_failing_agent(bin_dir: Path) -> None:
    install(bin_dir, "print('secret prompt\\n' * 99 + 'Not logged in', file=sys.stderr); exit(3)")
    ran = funes("ask", QUESTION)
    assert (ran.code, ran.out) == (1, "")
    assert "claude ended with code 3: Not logged in" in ran.err
    assert "secret prompt" not in ran.err


def test_a_question_may_begin_with_a_dash(bin_dir: Path) -> None:
    install(bin_dir, "say('Yes.')")
    ran = funes("ask", "--", "--three attempts with jitter")
    assert ran.code == 0, ran.err
    assert "Question: --three attempts" in (bin_dir / "prompt").read_text(encoding="utf-8")


@pytest.mark.parametrize("number", [signal.SIGINT])
def test_ctrl_c_ends_the_agent_too(bin_dir: Path, number: signal.Signals) -> None:
    install(bin_dir, "say('So far')\ntime.sleep(600)")
    asked = subprocess.Popen(
        [*COMMAND, "ask", QUESTION], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert asked.stdout is not None
        until(lambda: (bin_dir / "pid").exists() and (bin_dir / "pid").read_text())
        assert asked.stdout.read(6) == b"So far"
        asked.send_signal(number)
        _, err = asked.communicate(timeout=10)
    finally:
        asked.kill()
        asked.wait()
    assert asked.returncode == 130
    assert b"Traceback" not in err
    assert not alive(int((bin_dir / "pid").read_text()))


def test_a_reader_that_goes_away(bin_dir: Path) -> None:
    install(bin_dir, "say('x' * 100 + '\\n')\ntime.sleep(0.2)\nfor _ in range(999): say('y' * 999)")
    asked = subprocess.Popen(
        [*COMMAND, "ask", QUESTION], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert asked.stdout is not None
        assert asked.stderr is not None
        assert asked.stdout.read(1) == b"x"
        asked.stdout.close()
        err = asked.stderr.read()
        asked.wait(timeout=20)
    finally:
        asked.kill()
        asked.wait()
        asked.stderr.close()
    assert b"Traceback" not in err
    assert not alive(int((bin_dir / "pid").read_text()))


def test_it_works_as_a_process_of_its_own(bin_dir: Path) -> None:
    install(bin_dir, "say('Yes.')")
    ran = funes_process("ask", QUESTION)
    assert (ran.code, ran.out.partition("\n")[0]) == (0, "Yes."), ran.err


# The real ones.

_PREFIX = Path(os.environ.get("FUNES_AGENTS") or NOWHERE)


@pytest.fixture
def model() -> Iterator[Model]:
    with scripted(f"Three, with jitter [{SESSION[:8]}].\nAnd über [deadbeef].") as one:
        yield one


@pytest.fixture(params=list(AGENTS))
def real(
    request: pytest.FixtureRequest, model: Model, samples: Path, tmp_path: Path
) -> tuple[str, dict[str, str]]:
    """Return an installed agent and its environment: all it could start by itself is set up."""
    name: str = request.param
    programs = _PREFIX / name / "node_modules" / ".bin"
    if not (programs / name).exists():
        pytest.skip(f"no {name} in FUNES_AGENTS={os.environ.get('FUNES_AGENTS', '')}")
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
