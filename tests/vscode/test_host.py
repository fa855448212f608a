"""The extension in the extension host of a real VS Code, against the real server."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.editors.editor import Sample, program
from tests.vscode import agent, hostile
from tests.vscode.code import passing, running, shots_in, suite

pytestmark = pytest.mark.timeout(400)


def test_the_suite_in_the_extension_host(built: Path, sample: Sample, tmp_path: Path) -> None:
    """Everything that suite.ts, ask.ts and odd.ts of editors/vscode/src/test/host say."""
    data, shots = tmp_path / "code", shots_in(tmp_path)
    bin_dir = agent.install(tmp_path / "bin")
    # VS Code takes the PATH of a login shell, in which there is no such program, nor that agent.
    path = f"PATH={bin_dir}{os.pathsep}/usr/bin{os.pathsep}/bin"
    machine = {"funes.server.command": ["/usr/bin/env", path, str(program("funes-ls"))]}
    env = {
        "FUNES_TEST_SUITE": "suite,ask,odd",
        "FUNES_TEST_FILE": str(sample.file),
        "FUNES_TEST_HOSTILE": str(_with_hostile(sample)),
        "FUNES_TEST_AGENT": str(bin_dir),
        "FUNES_TEST_MACHINE": str(data / "Machine" / "settings.json"),
        "FUNES_TEST_SHOTS": str(shots),
    }
    with running(sample, data, machine=machine, env=env) as base:
        told = suite(base, sample, sample.project, shots=shots)
    assert passing(told) >= 70
    assert "asked elsewhere: []" in told


def test_untrusted_and_without_a_server(built: Path, sample: Sample, tmp_path: Path) -> None:
    """What editors/vscode/src/test/host/untrusted.ts says; the workspace's program never runs."""
    folder = tmp_path / "untrusted"
    ran = tmp_path / "ran"
    server = folder / ".venv" / "bin" / "funes-ls"
    server.parent.mkdir(parents=True)
    server.write_text(f"#!/bin/sh\ntouch '{ran}'\n", encoding="utf-8")
    server.chmod(0o755)
    settings = folder / ".vscode" / "settings.json"
    settings.parent.mkdir()
    wanted = {"funes.memory": "theirs", "funes.server.command": [str(server)]}
    settings.write_text(json.dumps(wanted), encoding="utf-8")
    shots = shots_in(tmp_path)
    env = {"FUNES_TEST_SUITE": "untrusted", "FUNES_TEST_SHOTS": str(shots)}
    with running(sample, tmp_path / "code", options=(), env=env) as base:
        suite(base, sample, folder, shots=shots)
    assert not ran.exists()


def _with_hostile(sample: Sample) -> Path:
    file = hostile.write(sample)
    run = subprocess.run(
        [str(program("funes")), "index", "--yes"],
        env={**sample.env, "FUNES_ENGINE": "inline"},
        cwd=sample.home,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0, run.stderr
    return file


def test_a_workspace_of_two_folders(built: Path, sample: Sample, tmp_path: Path) -> None:
    """What editors/vscode/src/test/host/multiroot.ts says."""
    other = tmp_path / "other"
    other.mkdir()
    workspace = tmp_path / "two.code-workspace"
    folders = [{"path": str(sample.project)}, {"path": str(other)}]
    workspace.write_text(json.dumps({"folders": folders}), encoding="utf-8")
    machine = {"funes.server.command": [str(program("funes-ls"))]}
    env = {"FUNES_TEST_SUITE": "multiroot", "FUNES_TEST_FILE": str(sample.file)}
    with running(sample, tmp_path / "code", machine=machine, env=env) as base:
        suite(base, sample, workspace, shots=shots_in(tmp_path))
