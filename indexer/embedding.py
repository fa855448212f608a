"""The models that turn text into vectors: where they live on disk, and running one.

A model is a directory of `model.onnx`, `tokenizer.json`, `tokenizer_config.json` and
`funes-model.json` (its card). Nothing here uses the network: `funes_ls.models` installs.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec
from msgspec import Struct

from funes_ls.indexer.embedding_import import text_embedding
from funes_ls.indexer.errors import BackendError
from funes_ls.indexer.home import expanded

if TYPE_CHECKING:
    import numpy as np
    from fastembed import TextEmbedding
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

CARD_FILE = "funes-model.json"
CARD_FORMAT = 1

#: The model of memories shared with the reference, and where fastembed keeps it.
BGE_STAMP = "BAAI/bge-small-en-v1.5"
BGE_REPO = "Qdrant/bge-small-en-v1.5-onnx-Q"
BGE_REVISION = "52398278842ec682c6f32300af41344b1c0b0bb2"
BGE_FILES = ("model_optimized.onnx", "tokenizer.json", "tokenizer_config.json", "config.json")

MINILM_STAMP = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_INT8_STAMP = f"{MINILM_STAMP}#int8"

#: Short names.
ALIASES = {"bge": BGE_STAMP, "minilm": MINILM_INT8_STAMP}

#: Which model `auto` takes when several are there.
AUTO_ORDER = (BGE_STAMP, MINILM_INT8_STAMP, MINILM_STAMP)

#: What `funes model install` knows by name; the rest comes from a path.
_BY_NAME = (*AUTO_ORDER, *(stamp.rpartition("/")[2].replace("#", "-") for stamp in AUTO_ORDER))

_INSTALL_HINT = "Run `funes model install`, or go on with words only."


class FileCheck(Struct, frozen=True, kw_only=True):
    """What a file of a model must be; the size is checked on every load, the hash on install."""

    size_bytes: int
    sha256: str


class ModelCard(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What `funes-model.json` says of the model beside it.

    Attributes:
        stamp: What a memory made with this model is stamped with.
        pooling: What is left to do on the graph's output: "none" when it gives one vector a text.
        output: Which output to take, the first one when "".
        builtin: Name under which fastembed itself knows the model, "" when it does not.
        query_prefix: Put before a query, never before a chunk.
        files: Checks by file name.
    """

    name: str
    stamp: str
    dim: int
    max_tokens: int
    format: int = CARD_FORMAT
    precision: str = "fp32"
    pooling: Literal["none", "mean", "cls"] = "none"
    output: str = ""
    builtin: str = ""
    query_prefix: str = ""
    model_file: str = "model.onnx"
    origin: str = ""
    license: str = ""
    files: dict[str, FileCheck] = {}


class InstalledModel(Struct, frozen=True, kw_only=True):
    """A model that can be loaded without the network."""

    name: str
    stamp: str
    dim: int
    max_tokens: int
    precision: str
    path: Path
    size_bytes: int
    origin: str


class Embedder(Protocol):
    """A loaded model; safe to call from several threads."""

    stamp: str
    dim: int
    max_tokens: int

    def encode(self, texts: Sequence[str]) -> "Vectors":
        """Return (len(texts), dim) float32, L2-normalised, in input order."""
        ...

    def encode_iter(self, texts: Sequence[str]) -> Iterator[tuple[int, "Vectors"]]:
        """Yield (position, vector) as each is done; closing the iterator ends the work."""
        ...

    def encode_query(self, text: str) -> "Vectors":
        """Return (dim,) float32, L2-normalised."""
        ...


def load(ref: str, models_dir: Path, *, threads: int = 2, nice: int = 5) -> Embedder:
    """Return the embedder of a model; takes about a second, most of it imports.

    Args:
        ref: `auto`, a stamp, the name of an installed model, or a model directory.
        models_dir: Where models are installed.
        threads: How many texts are encoded at once, each on one thread.
        nice: By how much the threads of `encode` step back behind other work (Linux only).

    Raises:
        BackendError: kind `no_model` when nothing here answers to `ref`, `bad_model` when its
            files are damaged.
    """
    directory, card = _locate(ref, models_dir)
    _check_sizes(directory, card)
    from funes_ls.indexer.embedding_run import Graph, Runner

    try:
        graph = Graph.of(_open(directory, card), card)
    except Exception as exc:  # onnxruntime and tokenizers raise types of their own for bad files
        raise _bad_model(card.name, directory, str(exc).splitlines()[0]) from exc
    return Runner(graph, card, threads=threads, nice=nice)


def installed(models_dir: Path) -> list[InstalledModel]:
    """Return every model that loads without the network, by name; damaged cards are left out."""
    found = []
    for path in sorted(models_dir.glob(f"*/{CARD_FILE}")):
        card = _read_card(path.parent)
        if card is not None:
            found.append(describe(path.parent, card))
    snapshot = cached_bge(models_dir)
    if snapshot is not None and all(model.stamp != BGE_STAMP for model in found):
        found.append(describe(snapshot, bge_card("cache")))
    return found


def describe(directory: Path, card: ModelCard) -> InstalledModel:
    """Return a model directory as it is listed."""
    return InstalledModel(
        name=card.name,
        stamp=card.stamp,
        dim=card.dim,
        max_tokens=card.max_tokens,
        precision=card.precision,
        path=directory,
        size_bytes=sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()),
        origin=card.origin,
    )


def resolve_auto(models_dir: Path) -> str | None:
    """Return the stamp that `auto` means with what is on this disk, None when nothing is.

    `models_dir/default`, written by `funes model use`, goes first.
    """
    there = installed(models_dir)
    chosen = read_default(models_dir)
    for wanted in (chosen, *AUTO_ORDER):
        for model in there:
            if wanted in (model.stamp, model.name):
                return model.stamp
    return there[0].stamp if there else None


def read_default(models_dir: Path) -> str:
    """Return what `funes model use` chose, "" when nothing."""
    try:
        return (models_dir / "default").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def read_card(directory: Path) -> ModelCard:
    """Return the card of a model directory.

    Raises:
        BackendError: kind `no_model` without one, `bad_model` when it cannot be used.
    """
    if not (directory / CARD_FILE).is_file():
        raise BackendError(
            f"There is no model in {directory}: it has no {CARD_FILE}.",
            hint=f"Run `funes model install --from {directory}`.",
            kind="no_model",
        )
    card = _read_card(directory)
    if card is None or card.format > CARD_FORMAT:
        raise _bad_model(directory.name, directory, f"{CARD_FILE} is not one this version reads")
    return card


def bge_card(origin: str) -> ModelCard:
    """Return the card of the model that fastembed knows by itself."""
    return ModelCard(
        name="bge-small-en-v1.5",
        stamp=BGE_STAMP,
        dim=384,
        max_tokens=512,
        precision="fp16",
        pooling="cls",
        builtin=BGE_STAMP,
        model_file=BGE_FILES[0],
        origin=origin,
        license="MIT",
    )


def cached_bge(models_dir: Path) -> Path | None:
    """Return a whole snapshot of bge-small that some program already downloaded, or None."""
    for cache in hub_caches(models_dir):
        for snapshot in sorted(_snapshots(cache), key=lambda path: path.name != BGE_REVISION):
            if all((snapshot / name).is_file() for name in BGE_FILES[:3]):
                return snapshot
    return None


def hub_caches(models_dir: Path) -> list[Path]:
    """Return the folders where hub downloads may lie, our own first."""
    env = os.environ
    hf_home = env.get("HF_HOME") or Path(env.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    named = [
        str(models_dir / "hub"),
        env.get("FASTEMBED_CACHE_PATH"),
        env.get("HF_HUB_CACHE"),
        str(Path(hf_home) / "hub"),
    ]
    return [expanded(name) for name in named if name]


def _snapshots(cache: Path) -> Iterator[Path]:
    """Older fastembed wrote the repository's name in lower case."""
    folder = f"models--{BGE_REPO.replace('/', '--')}"
    for name in (folder, f"models--{BGE_REPO.lower().replace('/', '--')}"):
        yield from (cache / name / "snapshots").glob("*")


def _locate(ref: str, models_dir: Path) -> tuple[Path, ModelCard]:
    wanted = resolve_auto(models_dir) if ref == "auto" else ALIASES.get(ref, ref)
    if wanted is None:
        raise BackendError("No model is installed.", hint=_INSTALL_HINT, kind="no_model")
    for path in sorted(models_dir.glob(f"*/{CARD_FILE}")):
        card = _read_card(path.parent)
        if card is not None and wanted in (card.stamp, card.name):
            return path.parent, read_card(path.parent)
    snapshot = cached_bge(models_dir) if wanted in (BGE_STAMP, bge_card("").name) else None
    if snapshot is not None:
        return snapshot, bge_card("cache")
    directory = expanded(wanted)
    if directory.is_dir():
        return directory, read_card(directory)
    source = wanted if wanted in _BY_NAME else "--from PATH"
    raise BackendError(
        f"The model {wanted} is not installed.",
        hint=f"Run `funes model install {source}`, or go on with words only.",
        kind="no_model",
    )


def _read_card(directory: Path) -> ModelCard | None:
    try:
        return msgspec.json.decode((directory / CARD_FILE).read_bytes(), type=ModelCard)
    except (OSError, msgspec.MsgspecError):
        return None


def _check_sizes(directory: Path, card: ModelCard) -> None:
    for name, check in card.files.items():
        try:
            size_bytes = (directory / name).stat().st_size
        except OSError:
            raise _bad_model(card.name, directory, f"{name} is missing") from None
        if size_bytes != check.size_bytes:
            raise _bad_model(card.name, directory, f"{name} is damaged")


def _bad_model(name: str, directory: Path, reason: str) -> BackendError:
    return BackendError(
        f"The model {name} in {directory} cannot be used: {reason}.",
        hint=f"Run `funes model install {name}` to get it again.",
        kind="bad_model",
    )


def _open(directory: Path, card: ModelCard) -> "TextEmbedding":
    """Open it in fastembed, which is given the directory and so never looks for a download."""
    return text_embedding()(
        model_name=card.builtin or _register(directory, card),
        cache_dir=str(directory),
        specific_model_path=str(directory),
        threads=1,
        providers=["CPUExecutionProvider"],
        # It keeps what the longest text took, for each thread, and saves no time.
        enable_cpu_mem_arena=False,
    )


_register_lock = threading.Lock()


def _register(directory: Path, card: ModelCard) -> str:
    """Make the model known to fastembed, whose registry is one per process and only grows."""
    models = text_embedding()
    from fastembed.common.model_description import ModelSource, PoolingType

    pooling = {"none": PoolingType.DISABLED, "mean": PoolingType.MEAN, "cls": PoolingType.CLS}
    name = f"funes:{card.pooling}:{card.dim}:{card.output}:{directory.resolve() / card.model_file}"
    with _register_lock:
        known = {model["model"].lower() for model in models.list_supported_models()}
        if name.lower() not in known:
            models.add_custom_model(
                model=name,
                pooling=pooling[card.pooling],
                normalization=True,
                sources=ModelSource(hf=name),
                dim=card.dim,
                model_file=card.model_file,
                output_name=card.output or None,
            )
    return name
