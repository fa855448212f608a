"""A cross-encoder: installed from a directory, tried before it is kept, run by fastembed."""

from pathlib import Path

import pytest

from funes_ls.indexer.embedding import installed
from funes_ls.indexer.errors import BackendError, UsageError
from funes_ls.models import cross_encoder, reranker_install
from funes_ls.models.cross_encoder import KeptReranker, installed_rerankers, load_reranker
from funes_ls.models.reranker_install import KNOWN_RERANKER, install_reranker, names_reranker
from tests.pair_model import build_pair_model
from tests.tiny_model import build_tiny_model


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def given(tmp_path: Path) -> Path:
    return build_pair_model(tmp_path / "given", graph="onnx/model.onnx")


def left_behind(models_dir: Path) -> list[str]:
    return sorted(path.name for path in models_dir.iterdir() if path.name != ".install.lock")


def test_it_scores_a_passage_that_answers_above_one_that_does_not(
    given: Path, models_dir: Path
) -> None:
    install_reranker("", source=str(given), models_dir=models_dir)
    model = load_reranker(models_dir, threads=1)
    near = model.score("gauge poller dies", "because the gauge poller dies at night")
    assert near > 0.8
    assert model.score("gauge poller dies", "nothing else") < 0.5


def test_pieces_cover_a_text_however_long(given: Path, models_dir: Path) -> None:
    install_reranker("", source=str(given), models_dir=models_dir)
    model = load_reranker(models_dir, threads=1)
    text = "gauge " * 2_000
    found = model.pieces(text)
    assert text[found[0].start : found[-1].end] == text.strip()
    assert found[0].token == model.pieces("gauge")[0].token


def test_it_is_no_embedding_model(given: Path, models_dir: Path) -> None:
    done = install_reranker("", source=str(given), models_dir=models_dir)
    assert (done.name, done.path) == ("given", models_dir / "given")
    assert len(done.graph_sha256) == 64
    assert [one.name for one in installed_rerankers(models_dir)] == ["given"]
    assert installed(models_dir) == []
    assert left_behind(models_dir) == ["given"]


def test_what_cannot_score_pairs_is_not_kept(tmp_path: Path, models_dir: Path) -> None:
    embedder = build_tiny_model(tmp_path / "embedder", dim=16)
    with pytest.raises(BackendError) as caught:
        install_reranker("mine", source=str(embedder), models_dir=models_dir)
    assert caught.value.kind == "bad_model"
    assert left_behind(models_dir) == []


@pytest.mark.parametrize("missing", ["onnx/model.onnx", "tokenizer.json"])
def test_a_directory_without_what_it_takes_is_refused(
    given: Path, models_dir: Path, missing: str
) -> None:
    (given / missing).unlink()
    with pytest.raises(BackendError) as caught:
        install_reranker("", source=str(given), models_dir=models_dir)
    assert caught.value.kind == "bad_model"


def test_a_damaged_one_is_told(given: Path, models_dir: Path) -> None:
    done = install_reranker("", source=str(given), models_dir=models_dir)
    (done.path / "onnx" / "model.onnx").write_bytes(b"cut")
    with pytest.raises(BackendError, match="missing or damaged"):
        load_reranker(models_dir)


def test_without_one_the_command_is_told(models_dir: Path) -> None:
    with pytest.raises(BackendError) as caught:
        load_reranker(models_dir)
    assert KNOWN_RERANKER in caught.value.hint


def test_the_hub_is_asked_only_when_it_answers(
    models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reranker_install, "hub_answers", lambda: False)
    with pytest.raises(BackendError) as caught:
        install_reranker(KNOWN_RERANKER, source="hub", models_dir=models_dir)
    assert caught.value.kind == "offline"
    with pytest.raises(UsageError):
        install_reranker(KNOWN_RERANKER, source="pypi", models_dir=models_dir)
    assert left_behind(models_dir) == []


def test_a_name_or_a_directory_tells_which_kind_is_meant(given: Path, tmp_path: Path) -> None:
    embedder = build_tiny_model(tmp_path / "embedder", dim=16)
    assert names_reranker(KNOWN_RERANKER, "")
    assert names_reranker("ms-marco-minilm-l-6-v2", str(embedder))
    assert names_reranker("", str(given))
    assert not names_reranker("", str(embedder))
    assert not names_reranker("minilm", "pypi")


def test_it_is_let_go_when_nobody_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, loads = KeptReranker(), []

    class Model:
        name = "m"

    def load() -> Model:
        loads.append(1)
        return Model()

    first = kept.get(load)  # type: ignore[arg-type]  # nothing of it is used
    kept.drop_idle()
    assert kept.get(load) is first  # type: ignore[arg-type]
    monkeypatch.setattr(cross_encoder, "_IDLE_S", 0.0)
    kept.drop_idle()
    assert kept.get(load) is not first  # type: ignore[arg-type]
    assert len(loads) == 2
