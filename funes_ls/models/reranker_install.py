"""Installs a cross-encoder: from a directory, or from the model hub when a person asks for it."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
from filelock import FileLock

from funes_ls.indexer.errors import BackendError, UsageError
from funes_ls.indexer.home import expanded, make_private
from funes_ls.models.cross_encoder import (
    KNOWN_RERANKER,
    RERANKER_CARD,
    InstalledReranker,
    RerankerCard,
    installed_rerankers,
    open_reranker,
    read_reranker_card,
)
from funes_ls.models.hub import hub_answers
from funes_ls.models.installer import file_checks
from funes_ls.models.progress import Progress, silent, watched

_GRAPHS = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx", "onnx/model_quantized.onnx")
_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "config.json")
_DOWNLOAD_BYTES = 91_700_000
_METADATA_TIMEOUT_S = 10.0
_PROBE = ("what is asked?", "What would answer it, or would not.")
_HINT = "Name a directory with `--from PATH`: an ONNX graph that scores pairs, and its tokenizer."


def names_reranker(name: str, source: str) -> bool:
    """Tell whether a cross-encoder is meant rather than an embedding model."""
    if name.lower() in (KNOWN_RERANKER.lower(), KNOWN_RERANKER.rpartition("/")[2].lower()):
        return True
    if source in ("", "hub", "pypi"):
        return False
    directory = expanded(source)
    return (directory / RERANKER_CARD).is_file() or _classifies(directory)


def install_reranker(
    name: str, *, source: str, models_dir: Path, progress: Progress = silent
) -> InstalledReranker:
    """Return the cross-encoder after installing it, in place of one of the same name.

    Args:
        name: What is known by name; may be "" when `source` is a path.
        source: "" or `hub`, or the path of a model's directory.
        models_dir: Where its directory goes.
        progress: Told of every step.

    Raises:
        UsageError: The source does not have it.
        BackendError: kind `offline` or `bad_model`, or the disk failed; nothing was changed then.
    """
    if source == "pypi":
        raise UsageError(f"{name} does not come from pypi.", hint=_HINT)
    try:
        make_private(models_dir)
        with FileLock(models_dir / ".install.lock"):
            staging = Path(tempfile.mkdtemp(prefix=".installing-", dir=models_dir))
            try:
                return _installed(staging, name, source, models_dir, progress)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except OSError as exc:
        raise BackendError(
            f"The model could not be written to {models_dir}: {exc.strerror or exc}.",
            hint="Free some space or set FUNES_HOME to a folder that can be written.",
        ) from exc


def _installed(
    staging: Path, name: str, source: str, models_dir: Path, progress: Progress
) -> InstalledReranker:
    target = staging / "model"
    target.mkdir()
    if source in ("", "hub"):
        card = _from_hub(target, progress)
    else:
        card = _from_directory(expanded(source), target, name, progress)
    progress(0, None, "Checking the model")
    sealed = msgspec.structs.replace(card, files=file_checks(target))
    encoded = msgspec.json.format(msgspec.json.encode(sealed), indent=1)
    (target / RERANKER_CARD).write_bytes(encoded + b"\n")
    _try(target, sealed.name)
    final = models_dir / card.name.rpartition("/")[2]
    if final.exists():
        final.rename(staging / "old")
    target.rename(final)
    return next(one for one in installed_rerankers(models_dir) if one.path == final)


def _from_directory(source: Path, target: Path, name: str, progress: Progress) -> RerankerCard:
    if not source.is_dir():
        raise UsageError(f"{source} is no model directory.", hint=_HINT)
    known = read_reranker_card(source)
    graphs = (known.model_file,) if known is not None else _GRAPHS
    graph = next((one for one in graphs if (source / one).is_file()), None)
    if graph is None or not (source / "tokenizer.json").is_file():
        what = "ONNX graph" if graph is None else "tokenizer.json"
        raise BackendError(f"{source} has no {what}.", hint=_HINT, kind="bad_model")
    progress(0, None, "Copying the model")
    beside = [
        path.relative_to(source) for path in (source / graph).parent.glob(f"{Path(graph).name}*")
    ]
    for path in [*beside, *(Path(one) for one in (*_FILES, "LICENSE", "NOTICE"))]:
        if (source / path).is_file():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / path, target / path)
    named = name or (known.name if known is not None else source.resolve().name)
    return RerankerCard(name=named, model_file=graph, origin="directory")


def _from_hub(target: Path, progress: Progress) -> RerankerCard:
    if not hub_answers():
        raise _offline("The model hub does not answer")
    graph = "onnx/model.onnx"
    watched(
        _fetch(target, graph),
        target,
        total_bytes=_DOWNLOAD_BYTES,
        what=f"Downloading {KNOWN_RERANKER}",
        progress=progress,
    )
    shutil.rmtree(target / ".cache", ignore_errors=True)
    return RerankerCard(
        name=KNOWN_RERANKER, model_file=graph, origin=f"hub {KNOWN_RERANKER}", license="Apache-2.0"
    )


def _fetch(target: Path, graph: str) -> Callable[[], None]:
    def fetch() -> None:
        from huggingface_hub import hf_hub_download, utils

        utils.disable_progress_bars()  # type: ignore[attr-defined]  # exported, but not by name
        try:
            for name in (graph, *_FILES):
                hf_hub_download(
                    KNOWN_RERANKER, name, local_dir=target, etag_timeout=_METADATA_TIMEOUT_S
                )
        except Exception as exc:  # lookup, connection, TLS and proxy errors share no base
            reason = (str(exc).strip().splitlines() or [type(exc).__name__])[0]
            raise _offline(f"The download from the model hub failed ({reason})") from exc

    return fetch


def _try(target: Path, name: str) -> None:
    """See that it scores a pair.

    Raises:
        BackendError: kind `bad_model` when it does not.
    """
    try:
        score = open_reranker(target, threads=1).score(*_PROBE)
        is_number = score == score and abs(score) != float("inf")
    except (RuntimeError, ValueError, IndexError, TypeError) as exc:
        reason = (str(exc).splitlines() or [type(exc).__name__])[0]
        raise _unfit(name, reason) from exc
    if not is_number:
        raise _unfit(name, "it gives no number")


def _classifies(directory: Path) -> bool:
    """Tell whether a model's config says that it judges texts rather than embeds them."""
    try:
        config = msgspec.json.decode((directory / "config.json").read_bytes(), type=dict)
    except (OSError, msgspec.MsgspecError):
        return False
    kinds = config.get("architectures")
    return isinstance(kinds, list) and any("SequenceClassification" in str(one) for one in kinds)


def _unfit(name: str, reason: str) -> BackendError:
    return BackendError(
        f"{name} does not score pairs of texts: {reason}.", hint=_HINT, kind="bad_model"
    )


def _offline(what: str) -> BackendError:
    return BackendError(f"{what}.", hint=_HINT, kind="offline")
