"""Builds an ONNX graph of a BERT sentence encoder out of its weights.

The graph maps token ids to finished vectors: encoder, mean over the tokens, L2. It uses the fused
operators of onnxruntime's `com.microsoft` domain, which are what makes it quick on a CPU.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray

    Weights = Mapping[str, NDArray[np.float32]]

_OPSET = 17
_IR_VERSION = 8
_FUSED = "com.microsoft"


class BertShape(Struct, frozen=True, kw_only=True):
    """The fields of a BERT `config.json` that shape its graph."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    layer_norm_eps: float = 1e-12
    hidden_act: str = "gelu"


def read_shape(config: bytes) -> BertShape:
    """Return the shape that a BERT `config.json` declares.

    Raises:
        ValueError: For a config this graph does not fit.
    """
    shape = msgspec.json.decode(config, type=BertShape)
    if shape.hidden_act != "gelu":
        raise ValueError(f"the activation {shape.hidden_act} is not supported")
    return shape


def build_encoder(
    weights: "Weights", shape: BertShape, *, byte_words: bool = False
) -> "onnx.ModelProto":
    """Return the model: `input_ids` and `attention_mask` (batch, tokens) int64 in.

    Its outputs are `sentence_embedding` (batch, hidden) float32, L2-normalised, and
    `token_embeddings` (batch, tokens, hidden), the last layer as it is.

    Args:
        weights: By the names of the checkpoint.
        shape: Of the encoder.
        byte_words: Keep the table of words, most of a small model, as one byte a number.
    """
    graph = _Graph(weights, shape)
    hidden = _embeddings(graph, byte_words=byte_words)
    for layer in range(shape.num_hidden_layers):
        hidden = _layer(graph, f"encoder.layer.{layer}", hidden)
    graph.add("Identity", [hidden], "token_embeddings")
    _pool(graph, "token_embeddings")
    return graph.finish()


class _Graph:
    """Nodes and constants as they are added; a node's output is named by the caller."""

    def __init__(self, weights: "Weights", shape: BertShape) -> None:
        self.weights = weights
        self.shape = shape
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(
        self, op: str, inputs: list[str], output: str, *, domain: str = "", **attrs: Any
    ) -> str:
        from onnx import helper

        self.nodes.append(
            helper.make_node(op, inputs, [output], name=output, domain=domain, **attrs)
        )
        return output

    def constant(self, name: str, value: "NDArray[Any]") -> str:
        import numpy as np
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def weight(self, name: str, *, transpose: bool = False) -> str:
        value = self.weights[name]
        return self.constant(name, value.T if transpose else value)

    def finish(self) -> "onnx.ModelProto":
        from onnx import TensorProto, checker, helper

        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask")
        ]
        width = self.shape.hidden_size
        shapes: dict[str, list[str | int | None]] = {
            "sentence_embedding": ["batch", width],
            "token_embeddings": ["batch", "tokens", width],
        }
        outputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
            for name, dims in shapes.items()
        ]
        graph = helper.make_graph(self.nodes, "bert", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        checker.check_model(model)
        return model


def _embeddings(graph: _Graph, *, byte_words: bool) -> str:
    """Word plus position plus type, normalised; one text has one type, so it joins the position."""
    import numpy as np

    prefix = "embeddings"
    positions = graph.weights[f"{prefix}.position_embeddings.weight"]
    kind = graph.weights[f"{prefix}.token_type_embeddings.weight"][0]
    words = (_byte_words if byte_words else _words)(graph, f"{prefix}.word_embeddings.weight")
    graph.add("Shape", ["input_ids"], "token_count", start=1, end=2)
    placed = graph.add(
        "Slice",
        [
            graph.constant("positions_of_type_0", positions + kind),
            graph.constant("from_start", np.array([0], np.int64)),
            "token_count",
            graph.constant("first_axis", np.array([0], np.int64)),
        ],
        "positions",
    )
    graph.add("Cast", ["attention_mask"], "mask", to=6)  # int32, as the attention kernel wants
    summed = graph.add("Add", [words, placed], "embedded")
    norm = [graph.weight(f"{prefix}.LayerNorm.{part}") for part in ("weight", "bias")]
    return graph.add(
        "LayerNormalization",
        [summed, *norm],
        "embedded_normalised",
        axis=-1,
        epsilon=graph.shape.layer_norm_eps,
    )


def _words(graph: _Graph, table: str) -> str:
    return graph.add("Gather", [graph.weight(table), "input_ids"], "words")


def _byte_words(graph: _Graph, table: str) -> str:
    """Look words up in a table of bytes, and multiply by what each row's bytes are multiples of."""
    import numpy as np

    rows = graph.weights[table]
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scale = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    graph.constant(f"{table}.bytes", np.rint(rows / scale).astype(np.int8))
    graph.constant(f"{table}.scale", scale)
    graph.add("Gather", [f"{table}.bytes", "input_ids"], "word_bytes")
    graph.add("Gather", [f"{table}.scale", "input_ids"], "word_scale")
    graph.add("Cast", ["word_bytes"], "word_numbers", to=1)  # float32
    return graph.add("Mul", ["word_numbers", "word_scale"], "words")


def _layer(graph: _Graph, prefix: str, hidden: str) -> str:
    attended = graph.add(
        "Attention",
        [hidden, *_query_key_value(graph, prefix), "mask"],
        f"{prefix}.attended",
        domain=_FUSED,
        num_heads=graph.shape.num_attention_heads,
    )
    projected = _project(graph, f"{prefix}.attention.output.dense", attended)
    hidden = _add_and_normalise(graph, f"{prefix}.attention.output", projected, hidden)
    wide = _project(graph, f"{prefix}.intermediate.dense", hidden)
    bias = graph.weight(f"{prefix}.intermediate.dense.bias")
    active = graph.add("BiasGelu", [wide, bias], f"{prefix}.active", domain=_FUSED)
    narrow = _project(graph, f"{prefix}.output.dense", active)
    return _add_and_normalise(graph, f"{prefix}.output", narrow, hidden)


def _query_key_value(graph: _Graph, prefix: str) -> list[str]:
    """The three projections side by side, as one matrix and one bias."""
    import numpy as np

    parts = [f"{prefix}.attention.self.{part}" for part in ("query", "key", "value")]
    matrix = np.concatenate([graph.weights[f"{part}.weight"].T for part in parts], axis=1)
    bias = np.concatenate([graph.weights[f"{part}.bias"] for part in parts])
    return [
        graph.constant(f"{prefix}.qkv.weight", matrix),
        graph.constant(f"{prefix}.qkv.bias", bias),
    ]


def _project(graph: _Graph, dense: str, source: str) -> str:
    """Multiply by the dense layer's matrix; its bias is added by the operator that follows."""
    return graph.add(
        "MatMul", [source, graph.weight(f"{dense}.weight", transpose=True)], f"{dense}.product"
    )


def _add_and_normalise(graph: _Graph, prefix: str, product: str, residual: str) -> str:
    """Normalise the sum with the residual.

    Not the fused SkipLayerNormalization, which is eight times slower on CPUs (measured with
    onnxruntime 1.32); `Sum` in place of `Add` keeps the optimiser from fusing them.
    """
    bias = graph.weight(f"{prefix}.dense.bias")
    summed = graph.add("Sum", [product, residual, bias], f"{prefix}.sum")
    norm = [graph.weight(f"{prefix}.LayerNorm.{part}") for part in ("weight", "bias")]
    return graph.add(
        "LayerNormalization",
        [summed, *norm],
        f"{prefix}.normalised",
        axis=-1,
        epsilon=graph.shape.layer_norm_eps,
    )


def _pool(graph: _Graph, hidden: str) -> str:
    """Mean over the real tokens, then length one."""
    import numpy as np

    axis = graph.constant("token_axis", np.array([1], np.int64))
    last = graph.constant("last_axis", np.array([2], np.int64))
    graph.add("Cast", ["attention_mask"], "weight_of_token", to=1)  # float32
    graph.add("Unsqueeze", ["weight_of_token", last], "weights")
    graph.add("Mul", [hidden, "weights"], "weighted")
    graph.add("ReduceSum", ["weighted", axis], "sum", keepdims=0)
    return graph.add("LpNormalization", ["sum"], "sentence_embedding", axis=1, p=2)
