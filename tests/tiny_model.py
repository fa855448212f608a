"""Builds a real, tiny and deterministic ONNX model, so that tests embed without real weights.

Words are cut into three-letter pieces; each piece, and each pair of neighbouring pieces, picks a
random direction; a text is their mean. Texts that share words are close, others nearly orthogonal.
"""

import itertools
import json
import os
import shutil
import string
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordPiece
from tokenizers.processors import TemplateProcessing

STAMP = "test/tiny"
MAX_TOKENS = 512

_BUCKETS = 4096
_VERSION = 1
_COMMON = "a an and are as at be by do for from i in is it of on or that the this to was we with"


def tiny_model_dir(*, dim: int = 384, stamp: str = STAMP) -> Path:
    """Return the directory of the tiny model, built at most once per machine and shape."""
    name = f"funes-tiny-{_VERSION}-{dim}-{stamp.replace('/', '_')}-{os.getuid()}"
    ready = Path(tempfile.gettempdir()) / name
    if not (ready / "funes-model.json").is_file():
        staging = Path(tempfile.mkdtemp(prefix=name))
        build_tiny_model(staging, dim=dim, stamp=stamp)
        try:
            staging.rename(ready)
        except OSError:  # another worker was quicker
            shutil.rmtree(staging)
    return ready


def build_tiny_model(target: Path, *, dim: int = 384, stamp: str = STAMP) -> Path:
    """Write a loadable model directory into `target` and return it."""
    target.mkdir(parents=True, exist_ok=True)
    onnx.save(_graph(dim), str(target / "model.onnx"))
    word_tokenizer().save(str(target / "tokenizer.json"), pretty=False)
    _write(target / "tokenizer_config.json", {"model_max_length": MAX_TOKENS, "pad_token": "[PAD]"})
    _write(target / "config.json", {"pad_token_id": 0, "hidden_size": dim})
    card = {"format": 1, "name": stamp.rpartition("/")[2], "stamp": stamp, "dim": dim}
    card |= {"max_tokens": MAX_TOKENS, "pooling": "none", "origin": "tests"}
    _write(target / "funes-model.json", card)
    return target


def _write(path: Path, value: dict[str, object]) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def word_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(WordPiece(_vocab(), unk_token="[UNK]", max_input_chars_per_word=100_000))
    common = Regex(rf"\b(?:{'|'.join(_COMMON.split())})\b")
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Lowercase(), normalizers.Replace(common, " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 2)])
    return tokenizer


def _vocab() -> dict[str, int]:
    """Every byte, so that any script has tokens, and every run of three letters."""
    letters = ["".join(run) for run in itertools.product(string.ascii_lowercase, repeat=3)]
    pieces = sorted(pre_tokenizers.ByteLevel.alphabet()) + letters
    tokens = ["[PAD]", "[UNK]", "[CLS]", *pieces, *("##" + piece for piece in pieces)]
    return {token: number for number, token in enumerate(tokens)}


def _graph(dim: int) -> onnx.ModelProto:
    table = np.random.default_rng(7).standard_normal((_BUCKETS, dim)).astype(np.float32)
    table[2] *= 0.05  # [CLS], there so that even an empty text has a direction
    constants: dict[str, NDArray[Any]] = {
        "table": table,
        "buckets": np.array(_BUCKETS, np.int64),
        "factor": np.array(31, np.int64),
        "zero": np.array([0], np.int64),
        "one": np.array([1], np.int64),
        "minus_one": np.array([-1], np.int64),
        "far": np.array([1 << 40], np.int64),
        "axis": np.array([1], np.int64),
        "last": np.array([2], np.int64),
    }
    node = helper.make_node
    nodes = [
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["mask", "last"], ["weights"]),
        node("Mod", ["input_ids", "buckets"], ["bucket"]),
        node("Gather", ["table", "bucket"], ["single"]),
        node("Mul", ["single", "weights"], ["single_kept"]),
        node("ReduceSum", ["single_kept", "axis"], ["singles"], keepdims=0),
        node("Slice", ["input_ids", "zero", "minus_one", "axis"], ["left"]),
        node("Slice", ["input_ids", "one", "far", "axis"], ["right"]),
        node("Mul", ["left", "factor"], ["left_scaled"]),
        node("Add", ["left_scaled", "right"], ["pair"]),
        node("Mod", ["pair", "buckets"], ["pair_bucket"]),
        node("Gather", ["table", "pair_bucket"], ["double"]),
        node("Slice", ["weights", "one", "far", "axis"], ["pair_weights"]),
        node("Mul", ["double", "pair_weights"], ["double_kept"]),
        node("ReduceSum", ["double_kept", "axis"], ["doubles"], keepdims=0),
        node("Add", ["singles", "doubles"], ["sum"]),
        node("LpNormalization", ["sum"], ["sentence_embedding"], axis=1, p=2),
    ]
    ids = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    out = helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", dim])
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny", ids, [out], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
