"""The graph gives what a plain forward pass over the same weights gives."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from funes_ls.models.bert_onnx import BertShape, build_encoder, read_shape
from funes_ls.models.wheel import save
from tests.funes_ls.models.numpy_bert import encode, random_weights

SHAPE = BertShape(hidden_size=48, num_hidden_layers=2, num_attention_heads=4)
WEIGHTS = random_weights(SHAPE, vocab=50, intermediate=96)
TEXTS = [[2, 7, 9, 3], [2, 3], [2, *range(10, 40), 3]]


def run(path: Path, texts: list[list[int]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Run texts as one batch, padded with zeros."""
    longest = max(map(len, texts))
    ids = np.zeros((len(texts), longest), np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = text
        mask[row, : len(text)] = 1
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    vectors, tokens = session.run(None, {"input_ids": ids, "attention_mask": mask})
    return np.asarray(vectors), np.asarray(tokens)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("graphs")
    paths = {precision: folder / f"{precision}.onnx" for precision in ("fp32", "int8")}
    for precision, path in paths.items():
        graph = build_encoder(WEIGHTS, SHAPE, byte_words=precision == "int8")
        save(graph, path, precision=precision)
    return paths


@pytest.mark.parametrize("text", TEXTS)
def test_one_text_equals_the_plain_forward_pass(text: list[int], graphs: dict[str, Path]) -> None:
    vectors, tokens = run(graphs["fp32"], [text])
    vector, hidden = encode(text, WEIGHTS, SHAPE)
    assert np.allclose(vectors[0], vector, atol=2e-6)
    assert np.allclose(tokens[0], hidden, atol=2e-5)


def test_padding_changes_nothing(graphs: dict[str, Path]) -> None:
    vectors, tokens = run(graphs["fp32"], TEXTS)
    for row, text in enumerate(TEXTS):
        vector, hidden = encode(text, WEIGHTS, SHAPE)
        assert np.allclose(vectors[row], vector, atol=2e-6)
        assert np.allclose(tokens[row, : len(text)], hidden, atol=2e-5)


@pytest.mark.parametrize("text", TEXTS)
def test_int8_stays_close(text: list[int], graphs: dict[str, Path]) -> None:
    vectors, _ = run(graphs["int8"], [text])
    vector, _ = encode(text, WEIGHTS, SHAPE)
    assert vectors[0] @ vector > 0.99
    assert not np.allclose(vectors[0], vector, atol=1e-6)


def test_int8_matrices_take_a_quarter(graphs: dict[str, Path]) -> None:
    sizes = {precision: path.stat().st_size for precision, path in graphs.items()}
    matrices = sum(
        value.nbytes for name, value in WEIGHTS.items() if "encoder" in name and value.ndim == 2
    )
    assert sizes["fp32"] - sizes["int8"] > matrices * 0.6


def test_words_as_bytes_stay_close(tmp_path: Path) -> None:
    path = tmp_path / "words.onnx"
    save(build_encoder(WEIGHTS, SHAPE, byte_words=True), path, precision="fp32")
    for text in TEXTS:
        vector, _ = encode(text, WEIGHTS, SHAPE)
        assert run(path, [text])[0][0] @ vector > 0.9999


def test_words_as_bytes_take_a_quarter(tmp_path: Path, graphs: dict[str, Path]) -> None:
    path = tmp_path / "words.onnx"
    save(build_encoder(WEIGHTS, SHAPE, byte_words=True), path, precision="fp32")
    words = WEIGHTS["embeddings.word_embeddings.weight"].nbytes
    assert graphs["fp32"].stat().st_size - path.stat().st_size > words * 0.6


def test_a_config_of_another_activation_is_refused() -> None:
    config = b'{"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, %s}'
    assert read_shape(config % b'"hidden_act": "gelu"').hidden_size == 8
    with pytest.raises(ValueError, match="relu"):
        read_shape(config % b'"hidden_act": "relu"')
