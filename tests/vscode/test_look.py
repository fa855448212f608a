"""What a person sees: a real VS Code in a browser, with screenshots."""

from pathlib import Path

import pytest

from tests.editors.editor import Sample, program
from tests.vscode.code import look, running, shots_in

pytestmark = pytest.mark.timeout(400)


def test_a_person_looks(vsix: Path, sample: Sample, tmp_path: Path) -> None:
    """Everything that editors/vscode/test/look.mjs does and sees, with hands on the keyboard."""
    machine = {"funes.server.command": [str(program("funes-ls"))]}
    shots, data = shots_in(tmp_path), tmp_path / "code"
    with running(sample, data, machine=machine, vsix=vsix) as base:
        told = look(f"{base}/?folder={sample.project}", sample, data, shots)
    assert "seen" in told
    pictures = {"vscode-hover", "vscode-recall", "vscode-sessions", "vscode-contrast"}
    assert {f"{name}.png" for name in pictures} <= {path.name for path in shots.iterdir()}
