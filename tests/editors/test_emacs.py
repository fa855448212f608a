"""Emacs with each of its language clients, with the configurations of docs/editors.md."""

from pathlib import Path

import pytest

from tests.editors import checks
from tests.editors.editor import PROBES, Sample, Seen, configuration, emacs_with, run_editor

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]


def run(sample: Sample, tmp_path: Path, program: str, *, config: str, probe: str) -> Seen:
    """Run an Emacs whose user has one of the guide's configurations."""
    init = tmp_path / "init.el"
    init.write_text(";; -*- lexical-binding: t; -*-\n" + configuration(config), encoding="utf-8")
    argv = [program, "-q", "--no-site-file", "--batch", "-l", str(PROBES / probe)]
    return run_editor(sample, argv, tmp_path / "told.jsonl", FUNES_PROBE_INIT=str(init))


def test_eglot(sample: Sample, tmp_path: Path) -> None:
    seen = run(sample, tmp_path, emacs_with("eglot"), config="eglot", probe="eglot.el")
    assert "attempt" in seen["command_recall"]
    checks.everything(seen, sample)
    assert "gauge" in "".join(seen["symbol_opened"]["lines"]).lower()


def test_lsp_mode(sample: Sample, tmp_path: Path) -> None:
    seen = run(sample, tmp_path, emacs_with("lsp-mode"), config="lsp-mode", probe="lsp_mode.el")
    checks.everything(seen, sample)
