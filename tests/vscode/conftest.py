"""A home with the sample sessions and the extension, built once."""

import subprocess
from pathlib import Path

import pytest

from tests.editors.conftest import indexed, sample
from tests.vscode.code import ENV, EXTENSION, absent, node

__all__ = ["indexed", "sample"]


@pytest.fixture(scope="session")
def built() -> Path:
    """Build the extension and its tests, or skip where its tools are not installed."""
    if not (EXTENSION / "node_modules" / "esbuild").is_dir():
        absent("the extension's tools are not installed")
    run = subprocess.run(
        [node(), "esbuild.mjs"],
        cwd=EXTENSION,
        env=ENV,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return EXTENSION
