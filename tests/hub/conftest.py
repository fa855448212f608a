"""A loopback Hub for each test, and the environment that leads a process to it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from funes_ls.indexer import embedding
from tests.hub.fakehub import FakeHub
from tests.hub.published import Encode


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[FakeHub]:
    """Give a Hub that nobody has used yet."""
    with FakeHub(tmp_path / "hub") as served:
        yield served


@pytest.fixture
def owner(hub: FakeHub) -> str:
    """Return a token that may write to `acme/…`."""
    return hub.token("acme")


@pytest.fixture
def hub_env(hub: FakeHub, tmp_path: Path, own_home: Path, owner: str) -> dict[str, str]:
    """Return the environment of a process that speaks to the Hub as `acme`."""
    return {**os.environ, **hub.env(tmp_path / "hf", owner)}


@pytest.fixture(scope="session")
def encode(tiny_model: Path) -> Encode:
    """Return what gives texts the vectors of the tiny model."""
    return embedding.load(str(tiny_model), tiny_model.parent, nice=0).encode
