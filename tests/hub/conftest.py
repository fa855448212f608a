"""A loopback Hub for each test, and the environment that leads a process to it."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from funes_ls.indexer import embedding
from tests.hub.fakehub import FakeHub
from tests.hub.published import Encode
from tests.hub.store import S3Server, Way


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


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Give a real S3 server."""
    if find_spec("moto") is None or find_spec("flask") is None:
        pytest.skip("moto's server is not installed")
    server = S3Server(tmp_path_factory.mktemp("s3") / "log")
    yield server
    server.stop()


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Way]:
    """Give a way to the S3 server, with the environment that leads there."""
    with Way(s3_server) as way:
        for name, value in way.env().items():
            monkeypatch.setenv(name, value)
        yield way
