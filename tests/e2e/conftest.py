"""A memory made from the sample sessions."""

import shutil
from pathlib import Path

import pytest

from tests.e2e.cli import index

SAMPLES = Path(__file__).resolve().parents[1] / "traces"


@pytest.fixture
def samples(own_home: Path) -> Path:
    """Lay the sample sessions into this test's home and index them, words only."""
    shutil.copytree(SAMPLES / "home", own_home, dirs_exist_ok=True)
    index("--yes", "--words-only")
    return own_home
