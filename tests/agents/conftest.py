"""A place for agents to work in."""

from pathlib import Path

import pytest

from tests.agents.agents import Place, make_place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return an empty place."""
    return make_place(tmp_path / "place")
