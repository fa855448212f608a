"""A home with the sample sessions and the extension, built once."""

import fcntl
import hashlib
import subprocess
from pathlib import Path

import pytest

from tests.editors.conftest import make_sample, sample
from tests.editors.editor import Sample
from tests.vscode.code import ENV, EXTENSION, absent, node

__all__ = ["sample"]


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Make the home once. Taking out secrets has tests of its own, and takes time to start."""
    return make_sample(tmp_path_factory.mktemp("vscode") / "home", FUNES_REDACTION="off")


@pytest.fixture(scope="session")
def built() -> Path:
    """Build the extension and its tests, or skip where its tools are not installed."""
    if not (EXTENSION / "node_modules" / "esbuild").is_dir():
        absent("the extension's tools are not installed")
    files = [path for folder in ("src", "test") for path in (EXTENSION / folder).rglob("*.*")]
    files += [EXTENSION / "package-lock.json", EXTENSION / "esbuild.mjs"]
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(files))).hexdigest()
    done = EXTENSION / "node_modules" / ".built"
    # Tests run in several processes; one of them builds.
    with (EXTENSION / "node_modules" / ".building").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (done.is_file() and done.read_text() == digest and (EXTENSION / "out").is_dir()):
            _build()
            done.write_text(digest)
    return EXTENSION


def _build() -> None:
    run = subprocess.run(
        [node(), "esbuild.mjs"],
        cwd=EXTENSION,
        env=ENV,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope="session")
def vsix(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Package the extension."""
    made = tmp_path_factory.mktemp("vsix") / "funes.vsix"
    options = ["--no-dependencies", "--skip-license", "--allow-missing-repository"]
    run = subprocess.run(
        [node(), "node_modules/@vscode/vsce/vsce", "package", *options, "-o", str(made)],
        cwd=built,
        env=ENV,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return made
