"""The extension in the extension host of a real VS Code, against the real server."""

from pathlib import Path

import pytest

from tests.editors.editor import Sample, program
from tests.vscode.code import running, suite

pytestmark = pytest.mark.timeout(300)


def test_the_suite_in_the_extension_host(built: Path, sample: Sample, tmp_path: Path) -> None:
    """Everything that the suite in editors/vscode/src/test/host says."""
    # VS Code takes the PATH of a login shell, in which there is no such program.
    machine = {"funes.server.command": [str(program("funes-ls"))]}
    with running(sample, tmp_path / "code", machine=machine) as base:
        env = {"FUNES_TEST_FILE": str(sample.file), "FUNES_TEST_SHOTS": str(tmp_path)}
        suite(base, sample, sample.project, env=env)
