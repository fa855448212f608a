"""Finds real coding agents and runs them in a home of their own, against a scripted model alone."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.agents.scripted_model import ModelLog, Reply, ScriptedModel
from tests.tiny_model import tiny_model_dir

ROOT = Path(__file__).resolve().parents[2]
PINNED = ROOT / "scripts" / "agents"
#: Where they are installed, and which have to be; read before fixtures take variables away.
INSTALLED = Path(
    os.environ.get("FUNES_TEST_AGENTS") or Path.home() / ".cache" / "funes-tests" / "agents"
)
REQUIRED = frozenset(filter(None, os.environ.get("FUNES_REQUIRE_AGENTS", "").split(",")))
RUN_S = 60
FUNES_S = 60
#: Where requests to anything but this machine end at once: the discard port.
_NOWHERE = "http://127.0.0.1:9"


class Place(Struct, frozen=True, kw_only=True):
    """A person's machine: a home, a project in it, and nothing of the machine it really is."""

    root: Path

    @property
    def home(self) -> Path:
        """Return the home directory."""
        return self.root / "home"

    @property
    def project(self) -> Path:
        """Return the folder that agents work in."""
        return self.home / "src" / "harbour"

    def env(self, *folders: Path) -> dict[str, str]:
        """Return all that a process of this person sees, some folders first on the PATH."""
        node = shutil.which("node")
        path = [*map(str, folders), *([str(Path(node).parent)] if node else []), "/usr/bin", "/bin"]
        proxies = {name: _NOWHERE for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")}
        return {
            **proxies,
            **{name.lower(): value for name, value in proxies.items()},
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            "PATH": os.pathsep.join(dict.fromkeys(path)),
            "HOME": str(self.home),
            # Beside the home: Codex wants no home within the folder of temporary files.
            "TMPDIR": str(self.root / "tmp"),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "NO_COLOR": "1",
            # Also engines that hooks start need not make it anew.
            "FUNES_RULES_CACHE": os.environ["FUNES_RULES_CACHE"],
        }

    def funes_env(self) -> dict[str, str]:
        """Return what makes funes work in this home, with the tiny model and no engine."""
        return {
            "FUNES_HOME": str(self.home / ".funes"),
            "FUNES_MODEL": str(tiny_model_dir()),
            "FUNES_ENGINE": "inline",
        }

    def funes(
        self, *words: str, folders: Sequence[Path] = (), more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line, with further folders on its PATH and further variables."""
        env = self.env(Path(sys.executable).parent, *folders)
        return subprocess.run(
            [str(Path(sys.executable).parent / "funes"), *words],
            env={**env, **self.funes_env(), **(more or {})},
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=FUNES_S,
        )

    def funes_json(self, *words: str) -> Any:
        """Return the object that a command prints with --json."""
        run = self.funes(*words, "--json")
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)


def make_place(root: Path) -> Place:
    """Return a place whose folders are there and empty."""
    place = Place(root=root)
    place.project.mkdir(parents=True)
    (root / "tmp").mkdir()
    return place


class Ran(Struct, frozen=True, kw_only=True):
    """What a run of an agent came to."""

    returncode: int
    output: str
    log: ModelLog


class Written(Struct, frozen=True, kw_only=True):
    """Where a call is in the traces: ids as `funes` names them."""

    session_id: str
    turn_uuid: str


class _Kind(ABCMeta, type(Struct)):
    """What kinds of agents are made of; one that lacks a method cannot be made."""


class Agent(Struct, metaclass=_Kind, frozen=True, kw_only=True):
    """A coding agent: where it is, how it is called, where it leaves its traces.

    Attributes:
        name: Folder of its installation, and its program.
        harness: What funes calls it.
        traces: Folder below the home.
        model: The model it believes it talks to.
    """

    name: str
    harness: str
    traces: str
    model: str

    @property
    def bin(self) -> Path:
        """Return the folder of its program."""
        return INSTALLED / self.name / "node_modules" / ".bin"

    @abstractmethod
    def prepare(self, place: Place, url: str) -> dict[str, str]:
        """Write what configuration it needs and return further variables."""

    @abstractmethod
    def argv(
        self, prompt: str, *, url: str, resume: str, denied: bool, flags: Sequence[str]
    ) -> list[str]:
        """Return its arguments for one question without a terminal."""

    @abstractmethod
    def written(self, trace: Path, call_id: str) -> Written:
        """Return where a call is in a trace that has it."""

    @abstractmethod
    def resumable(self, trace: Path) -> str:
        """Return what it calls the session of a trace."""

    def trace_with(self, place: Place, call_id: str) -> Path:
        """Return the one trace that holds a call."""
        files = (place.home / self.traces).rglob("*.jsonl")
        found = [path for path in files if call_id in path.read_text(encoding="utf-8")]
        assert len(found) == 1, f"{call_id} is in {len(found)} traces of {self.name}"
        return found[0]

    def run(
        self,
        place: Place,
        prompt: str,
        replies: Sequence[Reply | Callable[[], Reply]],
        *,
        resume: str = "",
        denied: bool = False,
        before: Callable[[ModelLog], None] = lambda log: None,
        beside: Mapping[str, Sequence[Reply]] | None = None,
        may_leave: int = 0,
        flags: Sequence[str] = (),
        more: Mapping[str, str] | None = None,
    ) -> Ran:
        """Put one question to the agent, whose model then says all but `may_leave` of the replies.

        `resume` is the session to go on with, as `resumable` says; "" begins one. When `denied`,
        nothing may be written. `before` and `beside` are the scripted model's. `flags` are further
        options of the agent, `more` goes into its environment.
        """
        with ScriptedModel(replies, before=before, beside=beside) as model:
            words = self.argv(prompt, url=model.url, resume=resume, denied=denied, flags=flags)
            env = {**self.prepare(place, model.url), **(more or {})}
            code, output = self.command(place, *words, more=env)
            for failure in model.log.failures:
                raise failure
            before(model.log)
        assert not model.log.spare, f"{self.name} went on after the script's end: {output}"
        assert model.left <= may_leave, f"{self.name} left {model.left} replies unasked: {output}"
        return Ran(returncode=code, output=output, log=model.log)

    def command(
        self, place: Place, *words: str, more: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Run its program with some arguments and return the exit code and what it wrote."""
        env = {**place.env(self.bin), **(more or {})}
        return _run([str(self.bin / self.name), *words], cwd=place.project, env=env)


def _run(argv: list[str], *, cwd: Path, env: Mapping[str, str]) -> tuple[int, str]:
    """Run a program to its end; of its processes none is left, also when it takes too long."""
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=RUN_S)
    except subprocess.TimeoutExpired:
        _end_group(process.pid)
        output, _ = process.communicate()
        output += f"\n(ended after {RUN_S} s)"
    finally:
        _end_group(process.pid)
    return process.returncode, output


def _end_group(pid: int) -> None:
    """End what is left of a process group that was started here."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def records(trace: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a trace."""
    for line in trace.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def lock_of(name: str) -> Path:
    """Return the file that pins an agent's packages."""
    return PINNED / name / "package-lock.json"


def pinned_version(name: str) -> str:
    """Return the version of an agent that the tests are made for."""
    wanted = json.loads((PINNED / name / "package.json").read_bytes())["dependencies"]
    return str(next(iter(wanted.values())))


def need(agent: Agent) -> None:
    """Skip the test when an agent is not installed; fail it where the agent has to be there."""
    lock = INSTALLED / agent.name / "package-lock.json"
    why = f"{agent.name} is not installed"
    if (agent.bin / agent.name).exists() and lock.is_file():
        if lock.read_bytes() == lock_of(agent.name).read_bytes():
            return
        why = f"another version of {agent.name} is installed"
    if agent.name in REQUIRED:
        pytest.fail(f"{agent.name} is required by FUNES_REQUIRE_AGENTS, but {why}")
    pytest.skip(f"{why} (scripts/install_agents.sh installs it)")
