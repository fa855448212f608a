"""Nothing tells anybody of a person's work: libraries that would are kept from it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.cli import COMMAND

#: What a library takes for a machine of tests, where it is silent by itself.
_KEPT = ("PATH", "HOME", "USERPROFILE", "FUNES_HOME", "FUNES_MODEL", "FUNES_RULES_CACHE", "TERM")


def run(*argv: str) -> "subprocess.CompletedProcess[str]":
    """Run a program as on a person's machine; whatever it would reach for is not there."""
    nowhere = {name: "http://127.0.0.1:9" for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")}
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return subprocess.run(
        argv,
        env={**env, **nowhere, "FUNES_ENGINE": "inline"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def made_in(home: Path) -> set[str]:
    """Return the files of a home but for those of funes and the sessions."""
    files = (path.relative_to(home) for path in home.rglob("*") if path.is_file())
    return {str(path) for path in files if path.parts[0] not in (".funes", ".claude")}


@pytest.mark.skipif(sys.platform != "linux", reason="where files would be is known for Linux")
def test_vectors_leave_no_file_but_our_own(own_home: Path, samples: Path) -> None:
    before = made_in(own_home)
    bare = run(sys.executable, "-c", "import onnxruntime")
    assert bare.returncode == 0, bare.stderr
    if made_in(own_home) == before:
        pytest.skip("this onnxruntime tells nobody by itself")
    for path in made_in(own_home) - before:
        (own_home / path).unlink()
    ran = run(*COMMAND, "index", "--yes")
    assert ran.returncode == 0, ran.stderr
    ran = run(*COMMAND, "recall", "where does the cache live")
    assert "→ get" in ran.stdout
    assert made_in(own_home) == before
