"""The check that constraints.txt covers pyproject.toml finds each kind of gap."""

from pathlib import Path

import pytest

from scripts.check_constraints import ROOT, gaps

HASH = f"--hash=sha256:{'0' * 64}"
PYPROJECT = """
[build-system]
requires = ["setuptools>=77"]
[project]
dependencies = ["Some_Thing>=2"]
[project.optional-dependencies]
dev = ["pytest>=9"]
"""
GOOD = [f"setuptools==80.0 \\\n    {HASH}", f"some-thing==2.1 {HASH}", f"pytest==9.2 {HASH}"]


def found(tmp_path: Path, lines: list[str]) -> list[str]:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (tmp_path / "constraints.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return gaps(tmp_path / "pyproject.toml", tmp_path / "constraints.txt")


def test_a_covering_file_has_no_gaps(tmp_path: Path) -> None:
    assert found(tmp_path, ["# a comment", *GOOD]) == []


@pytest.mark.parametrize(
    ("lines", "gap"),
    [
        (GOOD[:2], "pytest is missing."),
        ([*GOOD[:2], f"pytest==8.4 {HASH}"], "pytest 8.4 is outside >=9."),
        ([*GOOD[:2], f"pytest>=9 {HASH}"], "pytest is not pinned to one version."),
        ([*GOOD[:2], "pytest==9.2"], "pytest has no hash."),
        (["--index-url https://index.example.invalid/simple", *GOOD], "It holds an address"),
    ],
)
def test_each_gap_is_named(tmp_path: Path, lines: list[str], gap: str) -> None:
    assert any(line.startswith(gap) for line in found(tmp_path, lines))


def test_the_projects_own_file_covers_it() -> None:
    assert gaps(ROOT / "pyproject.toml", ROOT / "constraints.txt") == []
