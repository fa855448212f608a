"""Who wrote which line: the benchmark's floor holds, on projects nobody looked at before."""

import os
from pathlib import Path

import pytest

from benchmarks.blame.__main__ import below_floor, measured


@pytest.mark.timeout(300)
def test_lines_are_traced_to_the_turns_that_wrote_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOME", "FUNES_HOME", "FUNES_ENGINE"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # put back what the benchmark sets
    rows, _ = measured(tmp_path, projects=4, seed=20)
    assert below_floor(rows) == []
