"""Installs a model from a directory somebody made: an ONNX export with its tokenizer."""

import hashlib
import shutil
from pathlib import Path
from typing import Any, Literal

import msgspec

from funes_ls.indexer.embedding import CARD_FILE, ModelCard, read_card
from funes_ls.indexer.errors import BackendError, UsageError
from funes_ls.models.catalog import KNOWN
from funes_ls.models.progress import Progress, folder_bytes

_GRAPHS = ("model.onnx", "model_optimized.onnx", "onnx/model.onnx")
_DEFAULT_MAX_TOKENS = 512


def copy_directory(source: Path, target: Path, *, name: str, progress: Progress) -> ModelCard:
    """Copy the model in `source` into the empty directory `target` and return its card.

    A directory without a card gets one: known files are recognised by their hash; others are
    stamped `local/<name>#<start of the hash of the graph>`.

    Raises:
        UsageError: When there is no such directory.
        BackendError: kind `bad_model` when it lacks a graph or a tokenizer that can be used.
    """
    if not source.is_dir():
        raise UsageError(
            f"{source} is neither a model directory nor a wheel.",
            hint="Run `funes model list` for the models that can be had by name.",
        )
    graph = _graph_file(source)
    total_bytes = folder_bytes(source)
    done_bytes = 0
    for path in _wanted_files(source, graph):
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
        done_bytes += path.stat().st_size
        progress(done_bytes, total_bytes, "Copying the model")
    if (source / CARD_FILE).is_file():
        card = read_card(source)
        return msgspec.structs.replace(card, name=name or card.name)
    return _make_card(target, graph.relative_to(source), name=name or source.resolve().name)


def _graph_file(source: Path) -> Path:
    declared = (read_card(source).model_file,) if (source / CARD_FILE).is_file() else _GRAPHS
    graph = next((source / name for name in declared if (source / name).is_file()), None)
    for found, what in (
        (graph is not None, f"ONNX graph ({' or '.join(declared)})"),
        ((source / "tokenizer.json").is_file(), "tokenizer.json"),
    ):
        if not found:
            raise _unusable(source, f"it has no {what}")
    assert graph is not None
    return graph


def _wanted_files(source: Path, graph: Path) -> list[Path]:
    """The graph with its external data, the tokenizer's files, the licence."""
    beside = [path for path in graph.parent.glob(f"{graph.name}*") if path.is_file()]
    tops = [
        path
        for path in source.iterdir()
        if path.is_file()
        and (path.suffix in (".json", ".txt", ".model") or path.name in ("LICENSE", "NOTICE"))
        and path.name != CARD_FILE
    ]
    return sorted({*beside, *tops, *source.glob("1_Pooling/config.json")})


def _make_card(target: Path, graph: Path, *, name: str) -> ModelCard:
    with (target / graph).open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    for known in KNOWN:
        if known.sha256.get(graph.as_posix()) == digest:
            return known.card
    dim, rank = _output_shape(target / graph)
    return ModelCard(
        name=name,
        stamp=f"local/{name}#{digest[:12]}",
        dim=dim,
        max_tokens=_max_tokens(target),
        precision="as given",
        pooling="none" if rank == 2 else _pooling(target),
        model_file=graph.as_posix(),
        origin="directory",
    )


def _output_shape(graph: Path) -> tuple[int, int]:
    """Return the width and the number of axes of the graph's first output."""
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    except Exception as exc:  # onnxruntime raises types of its own
        raise _unusable(graph.parent, str(exc).splitlines()[0]) from exc
    shape: list[Any] = session.get_outputs()[0].shape
    if len(shape) not in (2, 3) or not isinstance(shape[-1], int):
        raise _unusable(graph.parent, f"its output has the shape {shape}")
    return shape[-1], len(shape)


def _max_tokens(target: Path) -> int:
    """Return how many tokens the tokenizer keeps, after making sure its config says so."""
    path = target / "tokenizer_config.json"
    config = _json(path)
    limit = config.get("model_max_length")
    if not isinstance(limit, int) or isinstance(limit, bool) or not 0 < limit <= 1 << 20:
        limit = _DEFAULT_MAX_TOKENS
    table = _json(target / "config.json").get("max_position_embeddings")
    limit = min(limit, table) if isinstance(table, int) and table > 0 else limit
    config |= {"model_max_length": limit, "pad_token": config.get("pad_token") or "[PAD]"}
    path.write_bytes(msgspec.json.encode(config))
    return int(limit)


def _pooling(target: Path) -> Literal["mean", "cls"]:
    cls = _json(target / "1_Pooling" / "config.json").get("pooling_mode_cls_token")
    return "cls" if cls is True else "mean"


def _json(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        return {}
    except msgspec.MsgspecError as exc:
        raise _unusable(path.parent, f"{path.name} is not a JSON object") from exc


def _unusable(directory: Path, reason: str) -> BackendError:
    return BackendError(
        f"The model in {directory} cannot be used: {reason}.",
        hint="Run `funes model list` for the models that can be had by name.",
        kind="bad_model",
    )
