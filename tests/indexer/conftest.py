"""A memory to write into and a place for Claude's sessions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from funes_ls.indexer.memory import Memory, open_memory


@pytest.fixture
def memory(funes_home: Path) -> Iterator[Memory]:
    base, derived = funes_home / "memory", funes_home / "derived"
    with open_memory(base, derived=derived, writable=True) as opened:
        yield opened


@pytest.fixture
def projects(own_home: Path) -> Path:
    return own_home / ".claude" / "projects"
