"""Listing, choosing and checking models, and what `auto` does on a fresh machine."""

from pathlib import Path

import pytest

from funes_ls.indexer.embedding import resolve_auto
from funes_ls.indexer.errors import BackendError, UsageError
from funes_ls.models import choose
from funes_ls.models.choose import acquire, list_models, status, use
from funes_ls.models.installer import install
from tests.tiny_model import build_tiny_model


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    for name in ("first", "second"):
        given = build_tiny_model(tmp_path / name, dim=8, stamp=f"test/{name}")
        install("", source=str(given), models_dir=folder)
    return folder


def test_known_models_are_listed_before_any_is_here(tmp_path: Path) -> None:
    listed = list_models(tmp_path)
    assert [(model.name, model.source) for model in listed] == [
        ("bge-small-en-v1.5", "hub"),
        ("all-MiniLM-L6-v2-int8", "pypi"),
        ("all-MiniLM-L6-v2", "pypi"),
    ]
    assert not any(model.installed or model.selected for model in listed)


def test_installed_models_come_first_with_the_one_in_use(models_dir: Path) -> None:
    listed = list_models(models_dir, setting="second")
    assert [(m.name, m.installed, m.selected) for m in listed][:3] == [
        ("first", True, False),
        ("second", True, True),
        ("bge-small-en-v1.5", False, False),
    ]
    assert listed[0].size_bytes > 100_000


def test_use_decides_what_auto_means(models_dir: Path) -> None:
    assert resolve_auto(models_dir) == "test/first"
    assert use("second", models_dir).stamp == "test/second"
    assert resolve_auto(models_dir) == "test/second"
    state = status(models_dir)
    assert state.default == "test/second"
    assert state.selected is not None
    assert state.selected.name == "second"


def test_only_an_installed_model_can_be_used(models_dir: Path) -> None:
    with pytest.raises(BackendError) as caught:
        use("minilm", models_dir)
    assert caught.value.hint == "Run `funes model install all-MiniLM-L6-v2-int8`."
    with pytest.raises(UsageError, match="No known model is called third"):
        use("third", models_dir)
    assert resolve_auto(models_dir) == "test/first"


def test_a_directory_in_the_settings_is_the_model_in_use(models_dir: Path, tmp_path: Path) -> None:
    state = status(models_dir, setting=str(tmp_path / "second"))
    assert state.selected is not None
    assert (state.selected.stamp, state.selected.path) == ("test/second", tmp_path / "second")
    assert status(models_dir, setting=str(tmp_path / "none")).selected is None


def test_status_without_models(tmp_path: Path) -> None:
    state = status(tmp_path / "none")
    assert (state.selected, state.installed, state.problems) == (None, [], [])


def test_damage_is_found_by_size_and_with_verify_by_hash(models_dir: Path) -> None:
    assert status(models_dir, verify=True).problems == []
    path = models_dir / "first" / "tokenizer.json"
    good = path.read_bytes()
    path.write_bytes(good[:-1] + b" ")
    assert status(models_dir).problems == []
    said = "first: tokenizer.json is missing or damaged. Run `funes model install first`."
    assert status(models_dir, verify=True).problems == [said]
    path.write_bytes(good[:-1])
    assert status(models_dir).problems == [said]


def test_a_card_that_cannot_be_read_is_a_problem(models_dir: Path) -> None:
    (models_dir / "first" / "funes-model.json").write_text("{", encoding="utf-8")
    (problem,) = status(models_dir).problems
    assert "funes-model.json is not one this version reads" in problem


def test_auto_takes_what_is_here_without_asking_anyone(
    models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "hub_answers", _never)
    monkeypatch.setattr(choose, "index_answers", _never)
    assert acquire(models_dir).stamp == "test/first"


@pytest.mark.parametrize(
    ("hub", "broken", "taken"),
    [(True, "", ["bge"]), (False, "", ["minilm"]), (True, "bge", ["bge", "minilm"])],
)
def test_auto_prefers_the_hub_then_the_index(
    hub: bool, broken: str, taken: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def install_or_fail(name: str, **options: object) -> None:
        asked.append(name)
        if name == broken:
            raise BackendError("it stopped half-way", kind="offline")

    monkeypatch.setattr(choose, "hub_answers", lambda: hub)
    monkeypatch.setattr(choose, "index_answers", lambda: True)
    monkeypatch.setattr(choose, "install", install_or_fail)
    acquire(tmp_path)
    assert asked == taken


def test_auto_that_cannot_download_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str, **options: object) -> None:
        raise BackendError(f"{name} stopped half-way", kind="offline")

    monkeypatch.setattr(choose, "hub_answers", lambda: True)
    monkeypatch.setattr(choose, "index_answers", lambda: True)
    monkeypatch.setattr(choose, "install", fail)
    with pytest.raises(BackendError, match="minilm stopped half-way"):
        acquire(tmp_path)


def test_auto_offline_names_every_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(BackendError) as caught:
        acquire(tmp_path)
    assert caught.value.kind == "offline"
    assert str(caught.value) == (
        "No model is here, and neither the model hub nor pip's index answers. "
        "Words-only recall works without one. To get a model later, run "
        "`funes model install --from pypi`, `--from hub` or `--from PATH`."
    )


def _never() -> bool:
    raise AssertionError("the network was asked")
