"""Fetches datasets of traces from the Hub, to be indexed as one's own sessions are.

The Hub makes a Parquet copy of many datasets; where that has the columns of agent traces it is
taken, else the files as they were uploaded: Parquet, or the harnesses' own transcripts.
"""

import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct

from funes_ls.hub import hub_client
from funes_ls.hub.hub_remote import bar_of
from funes_ls.hub.remote import DATASET, Progress
from funes_ls.hub.spec import MemorySpec, parse_spec
from funes_ls.indexer.errors import FunesError, UsageError
from funes_ls.indexer.home import expanded, make_private
from funes_ls.indexer.settings import Settings

_TYPE = "dataset"
#: Where the Hub keeps the Parquet copy it makes.
_CONVERTED = "refs/convert/parquet"
_ASK_S = 15.0
_DOWNLOADS = 8
_PARQUET = (".parquet",)
_TRANSCRIPTS = (".jsonl", ".jsonl.zst")
_COLUMNS = ("session_id", "messages")
#: More than this is not fetched unless somebody says so.
LARGE_BYTES = 1 << 30
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)

#: Asked, with the bytes there are to fetch, whether to go on.
GoOn = Callable[[int], bool]


class Fetched(Struct, frozen=True, kw_only=True):
    """Files that were fetched.

    Attributes:
        root: Folder they lie in under their own names.
        origin: What they are known by, `hf://datasets/<org>/<repo>`.
    """

    root: Path
    origin: str


class _Chosen(Struct, frozen=True, kw_only=True):
    """Which files of which commit are taken, by their size."""

    sha: str
    files: dict[str, int]


def names_dataset(target: str) -> bool:
    """Return whether a target of `funes index` is a dataset on the Hub; what exists is a path."""
    if target.startswith(("hf://", "https://huggingface.co/")):
        return True
    with suppress(OSError, ValueError):  # too long, or with a NUL
        return bool(_NAME.fullmatch(target)) and not expanded(target).exists()
    return False


def fetch(
    target: str,
    settings: Settings,
    env: Mapping[str, str],
    *,
    go_on: GoOn = lambda _size: True,
    progress: Progress | None = None,
) -> Fetched:
    """Fetch the traces of a dataset, only what is new since the last time.

    Args:
        target: `<org>/<repo>`, or `hf://datasets/<org>/<repo>/<folder>`.
        settings: Tell the home.
        env: Where tokens and addresses are looked up.
        go_on: Asked before a lot is fetched.
        progress: Told how many bytes have come.

    Raises:
        UsageError: kind `no_such_path` or `no_traces`, or it was not to be fetched.
        MemoryStateError: it is private, missing, or the Hub cannot be reached.
        BackendError: the Hub or the disk failed.
    """
    spec = parse_spec(target, settings)
    hub = _Hub(spec, env)
    chosen = hub.chosen()
    size = sum(chosen.files.values())
    if size > LARGE_BYTES and not go_on(size):
        raise UsageError(
            f"The traces of {spec.text} are {size / 1e9:.1f} GB; they were not fetched.",
            hint="Pass `--yes` to fetch them, or name a folder: hf://datasets/<org>/<repo>/<folder>.",
            kind="large",
        )
    snapshot = hub.downloaded(chosen, progress)
    root = settings.home / "remote" / f"traces-{spec.key}"
    _as_folder(snapshot, root, chosen.files)
    return Fetched(root=root, origin=f"hf://datasets/{spec.repo}")


class _Hub:
    """Asks the Hub for one dataset."""

    def __init__(self, spec: MemorySpec, env: Mapping[str, str]) -> None:
        self._spec = spec
        self._env = env
        self._token, self._token_from = hub_client.token_of(env)

    def chosen(self) -> _Chosen:
        """Return what to take.

        Raises:
            UsageError: kind `no_traces`: there is nothing that can be read as traces.
        """
        if not self._spec.prefix:
            converted = self._listed(_CONVERTED)
            if converted is not None:
                found = self._parquet_of(converted)
                if found.files:
                    return found
        main = self._listed("main")
        assert main is not None  # asking for the main branch raises where there is none
        found = self._parquet_of(main)
        raw = self._with(main, _TRANSCRIPTS).files
        if found.files or raw:
            return _Chosen(sha=main.sha, files={**found.files, **raw})
        raise self._no_traces(main)

    def downloaded(self, chosen: _Chosen, progress: Progress | None = None) -> Path:
        """Return the snapshot that holds these files; what is in the Hub's cache is not fetched."""
        bar = bar_of(progress) if progress is not None else None
        root = self._asked(
            lambda api: api.snapshot_download(
                self._spec.repo,
                repo_type=_TYPE,
                revision=chosen.sha,
                allow_patterns=[_escaped(name) for name in chosen.files],
                cache_dir=hub_client.cache_dir(self._env),
                etag_timeout=_ASK_S,
                max_workers=_DOWNLOADS,
                tqdm_class=bar,
            )
        )
        return Path(root)

    def _listed(self, revision: str) -> _Chosen | None:
        """Return all files of a revision; None for one that is not there but might be."""
        from huggingface_hub.errors import RevisionNotFoundError

        def ask(api: Any) -> Any:
            try:
                return api.repo_info(
                    self._spec.repo,
                    repo_type=_TYPE,
                    revision=revision,
                    timeout=_ASK_S,
                    files_metadata=True,
                )
            except RevisionNotFoundError:
                if revision == "main":
                    raise
                return None

        info = self._asked(ask)
        if info is None:
            return None
        files = {str(one.rfilename): int(one.size or 0) for one in info.siblings or ()}
        return _Chosen(sha=str(info.sha), files=files)

    def _with(self, listed: _Chosen, suffixes: tuple[str, ...]) -> _Chosen:
        start = f"{self._spec.prefix}/" if self._spec.prefix else ""
        files = {
            name: size
            for name, size in sorted(listed.files.items())
            if name.startswith(start) and name.lower().endswith(suffixes) and not _is_odd(name)
        }
        return _Chosen(sha=listed.sha, files=files)

    def _parquet_of(self, listed: _Chosen) -> _Chosen:
        """Return the Parquet files that hold traces, by the columns of one of each main folder."""
        found = self._with(listed, _PARQUET).files
        folders: dict[str, list[str]] = {}
        for name in found:
            folders.setdefault(name.partition("/")[0], []).append(name)
        firsts = {names[0]: found[names[0]] for names in folders.values()}
        if not firsts:
            return _Chosen(sha=listed.sha, files={})
        root = self.downloaded(_Chosen(sha=listed.sha, files=firsts))
        kept = [
            name for names in folders.values() if _holds_traces(root / names[0]) for name in names
        ]
        return _Chosen(sha=listed.sha, files={name: found[name] for name in kept})

    def _no_traces(self, main: _Chosen) -> UsageError:
        text = self._spec.text
        if any(f"{DATASET}/_versions/" in name for name in main.files):
            return UsageError(
                f"{text} is a memory, which is already indexed.",
                hint=f"`funes recall --memory {text}` asks it, `funes pull {text}` brings it here.",
                kind="no_traces",
            )
        return UsageError(
            f"{text} holds no traces.",
            hint="There must be transcripts (.jsonl), or .parquet files with the columns "
            "`session_id` and `messages`.",
            kind="no_traces",
        )

    def _asked(self, ask: Callable[[Any], Any]) -> Any:
        try:
            return ask(hub_client.client(self._env, self._token))
        except FunesError:
            raise
        except Exception as exc:  # the client's errors share no base
            raise hub_client.explained(
                exc, self._spec.text, self._env, token_from=self._token_from
            ) from exc


def _is_odd(name: str) -> bool:
    return any(part in ("", ".", "..") for part in name.split("/"))


def _escaped(name: str) -> str:
    """Return a pattern for one name."""
    pattern = re.sub(r"[\[\]*?]", lambda found: f"[{found[0]}]", name)
    assert fnmatchcase(name, pattern)
    return pattern


def _holds_traces(path: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
    except (OSError, pa.ArrowException):
        return True  # whatever is wrong with it is told where it is read
    return all(name in names for name in _COLUMNS)


def _as_folder(snapshot: Path, root: Path, files: Mapping[str, int]) -> None:
    """Have a folder hold these files under their names, and no others.

    In the Hub's cache they are links, and what they lead to has no names that tell what it is.
    """
    make_private(root)
    wanted = {root / name: (snapshot / name).resolve() for name in files}
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir():
            with suppress(OSError):  # it is not empty
                path.rmdir()
        elif path not in wanted:
            path.unlink()
    for path, source in wanted.items():
        if path.is_file() and _same(path, source):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        try:
            path.hardlink_to(source)
        except OSError:  # another disk, or one that knows no links
            shutil.copy2(source, path)


def _same(path: Path, source: Path) -> bool:
    one, other = path.stat(), source.stat()
    return (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)
