"""A memory made from the sample sessions."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cli import index
from tests.e2e.engines import Engines
from tests.e2e.lsp_client import Server, Servers

SAMPLES = Path(__file__).resolve().parents[1] / "traces"


@pytest.fixture
def samples(own_home: Path) -> Path:
    """Lay the sample sessions into this test's home and index them, words only."""
    shutil.copytree(SAMPLES / "home", own_home, dirs_exist_ok=True)
    index("--yes", "--words-only")
    return own_home


def env_of(home: Path, tiny_model: Path) -> dict[str, str]:
    """Return the environment of processes that live in a home of their own, with an engine."""
    nowhere = {name: "http://127.0.0.1:9" for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")}
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "USERPROFILE": str(home),
        "FUNES_HOME": str(home / ".funes"),
        "FUNES_MODEL": str(tiny_model),
        "HF_HOME": os.environ["HF_HOME"],
        "TERM": "dumb",
        **nowhere,
    }


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[Engines]:
    """Run one engine on the indexed sample sessions for all tests of a module."""
    if sys.platform != "linux":
        pytest.skip("looks at /proc")
    home = tmp_path_factory.mktemp("served") / "home"
    shutil.copytree(SAMPLES / "home", home)
    with Engines(home / ".funes", env_of(home, tiny_model)) as engines:
        assert engines.ask("funes/index")["sessions"] > 20
        yield engines


@pytest.fixture
def servers(served: Engines, tmp_path: Path) -> Iterator[Servers]:
    """Start language servers on the sample sessions; nothing they say may go unheard."""
    with Servers(served.env, tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def server_of_all(served: Engines, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Keep one language server for those tests of a module that leave it as it was."""
    with Servers(served.env, tmp_path_factory.mktemp("server")) as found:
        yield found.ready()


@pytest.fixture
def server(server_of_all: Server) -> Iterator[Server]:
    """Return the module's language server, and see that a test has heard all it said."""
    yield server_of_all
    assert server_of_all.leftovers() == []
    assert server_of_all.process.poll() is None
