"""Agents that were given the memory: files before and after, and the engine behind them."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.agents.agents import RUN_S, Agent, Place, make_place
from tests.e2e.engines import until

#: An engine may run: the one that a hook starts is the one that is asked.
SERVED = {"FUNES_ENGINE": ""}
#: What an agent keeps for itself whenever it runs; no part of its configuration.
_ITS_OWN = (".codex/tmp", ".npm", ".cache", ".funes")

#: A machine that first makes its rules for secrets takes so long, where others work on it too.
PATIENCE_S = 60.0


def add(agent: Agent, place: Place, *options: str, more: Mapping[str, str] | None = None) -> Any:
    """Give an agent the memory and return what was done."""
    words = ["add", agent.name, "--yes", "--json", *options]
    ran = place.funes(*words, folders=[agent.bin], more={**SERVED, **(more or {})})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(ran.stdout)


def remove(agent: Agent, place: Place) -> Any:
    """Take it back and return what was done."""
    ran = place.funes("remove", agent.name, "--yes", "--json", folders=[agent.bin], more=SERVED)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(ran.stdout)


def files_of(place: Place) -> dict[str, bytes]:
    """Return every file of a home but funes' own and what agents keep for themselves."""
    found = {}
    for path in place.home.rglob("*"):
        name = str(path.relative_to(place.home))
        if path.is_file() and not name.startswith(_ITS_OWN):
            found[name] = path.read_bytes()
    return found


def status(place: Place) -> Any:
    """Return what the engine that runs says of itself; none is started."""
    ran = place.funes("engine", "status", "--json", more=SERVED)
    return json.loads(ran.stdout)


def recall(place: Place, question: str, *options: str) -> list[dict[str, Any]]:
    """Return the hits of a question, from the engine."""
    ran = place.funes("recall", *options, "--json", "--", question, more=SERVED)
    assert ran.returncode == 0, ran.stderr
    hits: list[dict[str, Any]] = json.loads(ran.stdout)["hits"]
    return hits


def recalled(place: Place, text: str) -> list[dict[str, Any]]:
    """Return the hits that say a text, as soon as there are any."""

    def look() -> list[dict[str, Any]]:
        return [hit for hit in recall(place, text) if hit["text"] == text]

    found: list[dict[str, Any]] = until(look, seconds=PATIENCE_S, what=f"{text!r} is found")
    return found


@contextmanager
def short_place() -> Iterator[Place]:
    """Yield a place whose name has spaces and letters of other alphabets, and room for a socket."""
    with TemporaryDirectory(prefix="plá ce 家 ", ignore_cleanup_errors=True) as root:
        yield make_place(Path(root))


@contextmanager
def no_engine_after(place: Place) -> Iterator[None]:
    """End the engine of a place when all is done."""
    try:
        yield
    finally:
        place.funes("engine", "stop", "--quiet", more=SERVED)


def trust_codex_hooks(agent: Agent, place: Place) -> list[str]:
    """Do what a person does who looks at the hooks and consents; return the commands."""
    with _app_server(agent, place) as ask:
        hooks = ask("hooks/list", {"cwds": [str(place.project)]})["data"][0]["hooks"]
        ours = [hook for hook in hooks if "agents/codex/hook" in (hook.get("command") or "")]
        trusted = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in ours}
        edit = {"keyPath": "hooks.state", "value": trusted, "mergeStrategy": "upsert"}
        ask("config/batchWrite", {"edits": [edit]})
    return [hook["command"] for hook in ours]


def codex_trust(agent: Agent, place: Place) -> set[str]:
    """Return what Codex says of the trust in our hooks."""
    with _app_server(agent, place) as ask:
        hooks = ask("hooks/list", {"cwds": [str(place.project)]})["data"][0]["hooks"]
    return {one["trustStatus"] for one in hooks if "agents/codex/hook" in str(one.get("command"))}


@contextmanager
def _app_server(agent: Agent, place: Place) -> Iterator[Any]:
    process = subprocess.Popen(
        [str(agent.bin / agent.name), "app-server"],
        cwd=place.project,
        env=place.env(agent.bin),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )
    numbers = iter(range(1, 1000))
    assert process.stdin is not None and process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def send(message: dict[str, Any]) -> None:
        stdin.write(json.dumps(message) + "\n")
        stdin.flush()

    def ask(method: str, params: dict[str, Any]) -> Any:
        number = next(numbers)
        send({"id": number, "method": method, "params": params})
        for line in stdout:
            told = json.loads(line)
            if told.get("id") == number:
                assert "result" in told, told
                return told["result"]
        raise AssertionError(f"no answer to {method}")

    try:
        ask("initialize", {"clientInfo": {"name": "test", "version": "0"}})
        send({"method": "initialized"})
        yield ask
    finally:
        stdin.close()
        process.terminate()
        process.wait(RUN_S)
        stdout.close()


def script_of(agent: Agent, place: Place) -> Path:
    """Return the script that an agent's hooks run."""
    return place.home / ".funes" / "agents" / agent.name / "hook"
