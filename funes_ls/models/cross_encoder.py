"""Cross-encoders: models that read a question and a passage together, run by fastembed.

One lies in a directory below the models, with `model.onnx` (or as its card says), `tokenizer.json`
and `funes-reranker.json`, its card. It is no embedding model, and nothing here uses the network.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from funes_ls.indexer.embedding import FileCheck
from funes_ls.indexer.errors import BackendError

if TYPE_CHECKING:
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    from funes_ls.retrieval.cross import PairModel, Piece

RERANKER_CARD = "funes-reranker.json"
CARD_FORMAT = 1
#: What is known by name; any other comes from a directory.
KNOWN_RERANKER = "Xenova/ms-marco-MiniLM-L-6-v2"
#: A model that nobody asked for so long is let go.
_IDLE_S = 600.0
INSTALL_HINT = f"Run `funes model install {KNOWN_RERANKER}`."


class RerankerCard(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What `funes-reranker.json` says of the model beside it.

    Attributes:
        model_file: Its graph, below the directory.
        files: Sizes and hashes by file name.
    """

    name: str
    format: int = CARD_FORMAT
    model_file: str = "model.onnx"
    origin: str = ""
    license: str = ""
    files: dict[str, FileCheck] = {}


class InstalledReranker(Struct, frozen=True, kw_only=True):
    """A cross-encoder that can be loaded without the network."""

    name: str
    path: Path
    size_bytes: int
    origin: str
    graph_sha256: str


class CrossEncoder:
    """A loaded cross-encoder; one pair at a time, for several threads."""

    def __init__(self, name: str, model: "TextCrossEncoder") -> None:
        """Read with a model that fastembed has opened."""
        self.name = name
        inner: Any = model.model
        shape = inner.model.get_outputs()[0].shape
        if len(shape) != 2 or (isinstance(shape[1], int) and shape[1] != 1):
            raise ValueError(f"it gives no score a pair: its output has the shape {shape}")
        self._model = model
        # A copy: the one in use cuts pairs to what the model takes, which loses where they are.
        self._whole = type(inner.tokenizer).from_str(inner.tokenizer.to_str())
        self._whole.no_truncation()
        self._whole.no_padding()

    def pieces(self, text: str) -> "list[Piece]":
        """Return the tokens of a text; see `PairModel`."""
        from funes_ls.retrieval.cross import Piece

        found = self._whole.encode(text, add_special_tokens=False)
        return [
            Piece(token=token, start=start, end=end)
            for token, (start, end) in zip(found.ids, found.offsets, strict=True)
        ]

    def score(self, question: str, passage: str) -> float:
        """Return how well a passage answers; see `PairModel`."""
        return float(next(iter(self._model.rerank(question, [passage], batch_size=1))))


class KeptReranker:
    """A cross-encoder that is loaded when it is first needed, and let go when it no longer is."""

    def __init__(self) -> None:
        """Load nothing yet."""
        self._lock = threading.Lock()
        self._model: PairModel | None = None
        self._used_at = 0.0

    def get(self, load: "Callable[[], PairModel]") -> "PairModel":
        """Return the model; who asks while it is being loaded waits."""
        with self._lock:
            if self._model is None:
                self._model = load()
            self._used_at = time.monotonic()
            return self._model

    def drop_idle(self) -> None:
        """Let go of a model that nobody has asked for in a while; who uses it still may."""
        if time.monotonic() - self._used_at >= _IDLE_S and self._lock.acquire(blocking=False):
            self._model = None
            self._lock.release()


def installed_rerankers(models_dir: Path) -> list[InstalledReranker]:
    """Return the cross-encoders that are here, by name; those with damaged cards are left out."""
    found = []
    for path in sorted(models_dir.glob(f"*/{RERANKER_CARD}")):
        card = read_reranker_card(path.parent)
        if card is not None:
            graph = card.files.get(card.model_file)
            found.append(
                InstalledReranker(
                    name=card.name,
                    path=path.parent,
                    size_bytes=sum(check.size_bytes for check in card.files.values()),
                    origin=card.origin,
                    graph_sha256=graph.sha256 if graph is not None else "",
                )
            )
    return found


def read_reranker_card(directory: Path) -> RerankerCard | None:
    """Return the card of a cross-encoder's directory, None without one that can be used."""
    try:
        card = msgspec.json.decode((directory / RERANKER_CARD).read_bytes(), type=RerankerCard)
    except (OSError, msgspec.MsgspecError):
        return None
    return card if card.format <= CARD_FORMAT else None


def load_reranker(models_dir: Path, *, threads: int = 2) -> CrossEncoder:
    """Return the first cross-encoder that is installed; takes about a second.

    Raises:
        BackendError: kind `no_model` when none is, `bad_model` when its files are damaged.
    """
    there = installed_rerankers(models_dir)
    if not there:
        raise BackendError("No cross-encoder is installed.", hint=INSTALL_HINT, kind="no_model")
    return open_reranker(there[0].path, threads=threads)


def open_reranker(directory: Path, *, threads: int = 2) -> CrossEncoder:
    """Return the cross-encoder of a directory.

    Raises:
        BackendError: kind `bad_model` when it cannot be used.
    """
    card = read_reranker_card(directory)
    if card is None:
        raise _bad(directory.name, f"{directory} has no {RERANKER_CARD} that can be read")
    for name, check in card.files.items():
        path = directory / name
        if not path.is_file() or path.stat().st_size != check.size_bytes:
            raise _bad(card.name, f"{name} is missing or damaged")
    try:
        return CrossEncoder(card.name, _opened(directory, card, threads))
    except Exception as exc:  # onnxruntime and tokenizers raise types of their own for bad files
        raise _bad(card.name, (str(exc).splitlines() or [type(exc).__name__])[0]) from exc


_register_lock = threading.Lock()


def _opened(directory: Path, card: RerankerCard, threads: int) -> "TextCrossEncoder":
    """Open it in fastembed, which is given the directory and so never looks for a download."""
    from fastembed.common.model_description import ModelSource
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    name = f"funes:{directory.resolve() / card.model_file}"
    with _register_lock:  # its registry is one for the process and only grows
        known = {model["model"].lower() for model in TextCrossEncoder.list_supported_models()}
        if name.lower() not in known:
            TextCrossEncoder.add_custom_model(
                model=name, sources=ModelSource(hf=name), model_file=card.model_file
            )
    return TextCrossEncoder(
        model_name=name,
        cache_dir=str(directory),
        specific_model_path=str(directory),
        threads=threads,
        providers=["CPUExecutionProvider"],
        enable_cpu_mem_arena=False,
    )


def _bad(name: str, reason: str) -> BackendError:
    return BackendError(
        f"The cross-encoder {name} cannot be used: {reason}.",
        hint="Install it again; see `funes model install`.",
        kind="bad_model",
    )
