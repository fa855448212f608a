"""Builds a small cross-encoder: a real ONNX graph that is given two texts and scores the pair.

Words are cut into letters' runs as those of the tiny embedding model; the score is the share of
the first text's tokens that stand in the second.
"""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers.processors import TemplateProcessing

from tests.tiny_model import MAX_TOKENS, word_tokenizer

GRAPH = "model.onnx"


def build_pair_model(target: Path, *, name: str = "tiny-pairs", graph: str = GRAPH) -> Path:
    """Write a cross-encoder as an export leaves it, without a card, and return its directory."""
    (target / graph).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(_graph(), str(target / graph))
    tokenizer = word_tokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A", pair="[CLS] $A $B:1", special_tokens=[("[CLS]", 2)]
    )
    tokenizer.save(str(target / "tokenizer.json"), pretty=False)
    _write(target / "tokenizer_config.json", {"model_max_length": MAX_TOKENS, "pad_token": "[PAD]"})
    config = {"pad_token_id": 0, "architectures": ["BertForSequenceClassification"], "name": name}
    _write(target / "config.json", config)
    return target


def _write(path: Path, value: dict[str, object]) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def _graph() -> onnx.ModelProto:
    """Return a graph: of the tokens of type 0, how many equal one of type 1."""
    node = helper.make_node
    constants = {
        "last": np.array([2], np.int64),
        "middle": np.array([1], np.int64),
        "axis_one": np.array([1], np.int64),
        "axis_two": np.array([2], np.int64),
        "little": np.array(1e-6, np.float32),
    }
    nodes = [
        node("Cast", ["token_type_ids"], ["second"], to=TensorProto.FLOAT),
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        node("Sub", ["mask", "second"], ["first"]),  # of those that are read, the others
        node("Unsqueeze", ["input_ids", "last"], ["down"]),
        node("Unsqueeze", ["input_ids", "middle"], ["across"]),
        node("Equal", ["down", "across"], ["same"]),
        node("Cast", ["same"], ["same_f"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["second", "middle"], ["second_across"]),
        node("Mul", ["same_f", "second_across"], ["met"]),
        node("ReduceMax", ["met"], ["is_met"], axes=[2], keepdims=0),
        node("Mul", ["is_met", "first"], ["counted"]),
        node("ReduceSum", ["counted", "axis_one"], ["hits"], keepdims=1),
        node("ReduceSum", ["first", "axis_one"], ["asked"], keepdims=1),
        node("Add", ["asked", "little"], ["asked_safe"]),
        node("Div", ["hits", "asked_safe"], ["logits"]),
    ]
    inputs = [
        helper.make_tensor_value_info(one, TensorProto.INT64, ["batch", "tokens"])
        for one in ("input_ids", "attention_mask", "token_type_ids")
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])
    used = {name for one in nodes for name in one.input}
    held = [
        numpy_helper.from_array(value, name) for name, value in constants.items() if name in used
    ]
    graph = helper.make_graph(nodes, "pairs", inputs, [output], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
