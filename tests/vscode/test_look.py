"""What a person sees: a real VS Code in a browser, with screenshots."""

from pathlib import Path

import pytest

from tests.editors.editor import Sample, program
from tests.vscode.code import SHOTS, look, running

pytestmark = pytest.mark.timeout(300)


def test_a_person_looks(vsix: Path, sample: Sample, tmp_path: Path) -> None:
    """Status item, lens, hover, views, recall and a turn; no notification, quick typing."""
    machine = {"funes.server.command": [str(program("funes-ls"))]}
    shots = Path(SHOTS) if SHOTS else tmp_path / "shots"
    shots.mkdir(parents=True, exist_ok=True)
    with running(sample, tmp_path / "code", machine=machine, vsix=vsix) as base:
        told = look(f"{base}/?folder={sample.project}", sample, shots)
    assert "seen" in told
    assert {"vscode-hover.png", "vscode-recall.png"} <= {path.name for path in shots.iterdir()}
