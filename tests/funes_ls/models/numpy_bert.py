"""A BERT sentence encoder in plain numpy, written for clarity: what the ONNX graph must equal."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from funes_ls.models.bert_onnx import BertShape

Array = NDArray[np.float64]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def encode(
    ids: Sequence[int], weights: Mapping[str, NDArray[np.float32]], shape: BertShape
) -> tuple[Array, Array]:
    """Return the unit vector of one text, and its last layer (tokens, hidden), in float64."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    hidden = w["embeddings.word_embeddings.weight"][list(ids)]
    hidden = hidden + w["embeddings.position_embeddings.weight"][: len(ids)]
    hidden = hidden + w["embeddings.token_type_embeddings.weight"][0]
    hidden = _normalise(hidden, w, "embeddings.LayerNorm", shape)
    for layer in range(shape.num_hidden_layers):
        name = f"encoder.layer.{layer}"
        attended = _attend(hidden, w, name, shape)
        attended = _dense(attended, w, f"{name}.attention.output.dense")
        hidden = _normalise(hidden + attended, w, f"{name}.attention.output.LayerNorm", shape)
        wide = _dense(hidden, w, f"{name}.intermediate.dense")
        wide = wide * 0.5 * (1 + _erf(wide / math.sqrt(2)))
        narrow = _dense(wide, w, f"{name}.output.dense")
        hidden = _normalise(hidden + narrow, w, f"{name}.output.LayerNorm", shape)
    mean = hidden.mean(axis=0)
    return mean / np.linalg.norm(mean), hidden


def random_weights(
    shape: BertShape, *, vocab: int, intermediate: int, positions: int = 64
) -> dict[str, NDArray[np.float32]]:
    """Return the weights of a small untrained BERT, always the same."""
    rng = np.random.default_rng(3)
    width = shape.hidden_size
    sizes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (vocab, width),
        "embeddings.position_embeddings.weight": (positions, width),
        "embeddings.token_type_embeddings.weight": (2, width),
        **_norm_sizes("embeddings.LayerNorm", width),
    }
    for layer in range(shape.num_hidden_layers):
        name = f"encoder.layer.{layer}"
        for part in ("attention.self.query", "attention.self.key", "attention.self.value"):
            sizes |= _dense_sizes(f"{name}.{part}", width, width)
        sizes |= _dense_sizes(f"{name}.attention.output.dense", width, width)
        sizes |= _dense_sizes(f"{name}.intermediate.dense", width, intermediate)
        sizes |= _dense_sizes(f"{name}.output.dense", intermediate, width)
        sizes |= _norm_sizes(f"{name}.attention.output.LayerNorm", width)
        sizes |= _norm_sizes(f"{name}.output.LayerNorm", width)
    weights = {}
    for name, size in sizes.items():
        scale = 1.0 if "embeddings.weight" in name else 0.3
        value = rng.standard_normal(size) * scale + ("LayerNorm.weight" in name)
        weights[name] = value.astype(np.float32)
    return weights


def _attend(hidden: Array, w: dict[str, Array], name: str, shape: BertShape) -> Array:
    tokens = len(hidden)
    heads = shape.num_attention_heads
    split = {
        part: _dense(hidden, w, f"{name}.attention.self.{part}")
        .reshape(tokens, heads, -1)
        .transpose(1, 0, 2)
        for part in ("query", "key", "value")
    }
    scores = split["query"] @ split["key"].transpose(0, 2, 1)
    scores = scores / math.sqrt(shape.hidden_size // heads)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores = scores / scores.sum(axis=-1, keepdims=True)
    joined: Array = (scores @ split["value"]).transpose(1, 0, 2).reshape(tokens, -1)
    return joined


def _dense(value: Array, w: dict[str, Array], name: str) -> Array:
    result: Array = value @ w[f"{name}.weight"].T + w[f"{name}.bias"]
    return result


def _normalise(value: Array, w: dict[str, Array], name: str, shape: BertShape) -> Array:
    centred = value - value.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + shape.layer_norm_eps)
    result: Array = centred / spread * w[f"{name}.weight"] + w[f"{name}.bias"]
    return result


def _dense_sizes(name: str, wide_in: int, wide_out: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (wide_out, wide_in), f"{name}.bias": (wide_out,)}


def _norm_sizes(name: str, width: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}
