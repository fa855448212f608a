"""A short form of `benchmarks/freshness.py`: agents of every harness write, all is found soon."""

import shutil
import sys
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks import freshness
from benchmarks.latency import make_memory
from benchmarks.latency.processes import Engine, environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="speaks to a socket"),
    pytest.mark.timeout(180),
]


def test_every_turn_is_found_by_words_and_by_vector(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUNES_ENGINE")
    models = tmp_path / "models"
    shutil.copytree(tiny_model, models / "test-tiny")
    home, user = tmp_path / "made", tmp_path / "user"
    make_memory.make(home, chunks=400, real=10_000, history=None, models_from=models, seed=3)
    writing = freshness.agents(user)
    for agent in writing:
        agent.write(["a first turn"])
    with Engine(home, environment(home, user)) as engine, closing(engine.connect()) as connection:
        freshness.settle(connection)
        found = freshness.measure(connection, writing, seconds=10.0, seed=1)
    assert found["words"].count > 10
    assert {name: one.missing for name, one in found.items()} == dict.fromkeys(found, 0)
    assert found["vector"].p95 <= 5.0
