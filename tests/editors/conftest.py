"""A home with the sample sessions, whose project lies on this disk where they say it does."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.known import client
from tests.editors.editor import Sample, alive, processes_of, program, within
from tests.tiny_model import tiny_model_dir

SAMPLES = Path(__file__).resolve().parents[1] / "traces" / "home"


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Make the home once."""
    return make_sample(tmp_path_factory.mktemp("editors") / "home")


def make_sample(home: Path, **more: str) -> Sample:
    """Make a home: sessions moved to a project of this disk, indexed with the tiny model."""
    shutil.copytree(SAMPLES, home)
    project = home / "src" / "tidewater"
    for trace in (home / ".claude").rglob("*.jsonl"):
        text = trace.read_text(encoding="utf-8")
        trace.write_text(text.replace("/home/dev/src", str(home / "src")), encoding="utf-8")
    file = project / "src" / "tidewater" / "http.py"
    file.parent.mkdir(parents=True)
    file.write_text(client().text, encoding="utf-8")
    (project / ".git").mkdir()
    sample = Sample(home=home, project=project, file=file, env={**_env(home), **more})
    run = subprocess.run(
        [str(program("funes")), "index", "--yes"],
        env={**sample.env, "FUNES_ENGINE": "inline"},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0, run.stderr
    return sample


def _env(home: Path) -> dict[str, str]:
    temporary = home / "tmp"
    temporary.mkdir()
    path = f"{program('funes-ls').parent}{os.pathsep}{os.environ['PATH']}"
    folders = {f"XDG_{name}_HOME": str(home / f".{name.lower()}") for name in _XDG}
    return {
        **folders,
        "PATH": path,
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "FUNES_HOME": str(home / ".funes"),
        "FUNES_MODEL": str(tiny_model_dir()),
        "FUNES_ENGINE_IDLE": "120",
        "FUNES_RULES_CACHE": os.environ["FUNES_RULES_CACHE"],
    }


_XDG = ("CONFIG", "DATA", "STATE", "CACHE")


@pytest.fixture
def sample(indexed: Sample) -> Iterator[Sample]:
    """Return the home; whatever process of it is left at the end is ended, so that none stays."""
    for name in _XDG:
        shutil.rmtree(indexed.env[f"XDG_{name}_HOME"], ignore_errors=True)
    yield indexed
    for pid in processes_of(indexed):
        os.kill(pid, signal.SIGTERM)
    if not within(10, lambda: not processes_of(indexed)):
        for pid in processes_of(indexed):
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
