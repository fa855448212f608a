"""A short form of `benchmarks/load.py`: ten clients and growing sessions for some seconds."""

import shutil
import sys
from pathlib import Path

import pytest

from benchmarks import load
from benchmarks.latency import make_memory

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
    pytest.mark.timeout(180),
]

CLIENTS = 10
SECONDS = 20.0


@pytest.fixture
def home(tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home with a few hundred chunks, all embedded by the tiny model."""
    monkeypatch.delenv("FUNES_ENGINE")
    models = tmp_path / "models"
    shutil.copytree(tiny_model, models / "test-tiny")
    made = tmp_path / "made"
    about = make_memory.make(
        made, chunks=400, real=10_000, history=None, models_from=models, seed=3
    )
    assert about.chunks == about.real_vectors >= 400
    return made


def test_ten_clients_while_sessions_grow(home: Path, tmp_path: Path) -> None:
    user = tmp_path / "user"
    user.mkdir()
    asked = load.Load(clients=CLIENTS, seconds=SECONDS, think_s=0.2)
    result = load.run(home, user, asked)
    assert (result.errors[:5], result.stale[:5]) == ([], [])
    assert {"recall", "staged", "get", "related", "sessions", "status", "cancel"} == set(
        result.took_s
    )
    assert sum(map(len, result.took_s.values())) > 20 * CLIENTS
    assert len(result.fresh_s) >= 2 * load.LIVE_SESSIONS
    assert max(result.rss_mb) < 600
