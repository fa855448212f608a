"""A memory in a dataset repository of the Hugging Face Hub."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from funes_ls.hub import hub_client
from funes_ls.hub.remote import DATASET, SESSIONS, Change, Head, HeadMoved, Progress
from funes_ls.hub.spec import MemorySpec
from funes_ls.indexer.errors import FunesError, MemoryStateError

Answer = TypeVar("Answer")
_TYPE = "dataset"
#: What lies beside a memory, or in a repository that holds nothing yet.
_USUAL = ("README.md", ".gitattributes", ".gitignore", "LICENSE")
_BRANCH = "main"
#: Limit for questions that have a short answer.
_ASK_S = 15.0
_DOWNLOADS = 8
_UPLOADS = 2
#: A commit is sent so often before its failure is told; the parent keeps it from landing twice.
_SENDS = 3
_PAUSE_S = 1.0
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
_MOVED = frozenset({409, 412})
_NEWEST_FIRST = 2**64 - 1


class HubRemote:
    """See `Remote`; several threads may use one."""

    def __init__(self, spec: MemorySpec, env: Mapping[str, str]) -> None:
        """Ask nothing yet; tokens are looked up anew for every request."""
        self._spec = spec
        self._env = env
        self._files: dict[str, frozenset[str]] = {}

    @property
    def spec(self) -> MemorySpec:
        """Return which memory it is."""
        return self._spec

    def head(self) -> Head:
        """Return where it stands now, in one request."""
        info = self._asked(
            lambda api: api.repo_info(self._spec.repo, repo_type=_TYPE, timeout=_ASK_S)
        )
        files = frozenset(str(one.rfilename) for one in info.siblings or ())
        revision = str(info.sha)
        self._files = {revision: files}
        return self._head(revision, files, private=bool(info.private))

    def _head(self, revision: str, files: frozenset[str], *, private: bool | None) -> Head:
        dataset = self._spec.inside(DATASET)
        return Head(
            revision=revision,
            # Half of a memory is not the same as none.
            is_empty=not any(name.startswith(f"{dataset}/") for name in files),
            private=private,
            version=newest_version(files, dataset),
            has_card="README.md" in files,
            has_others=any(self._is_other(name) for name in files),
        )

    def _is_other(self, name: str) -> bool:
        inside = name.removeprefix(self._spec.inside(""))
        own = inside.startswith(f"{DATASET}/") or inside == SESSIONS
        return name.startswith(self._spec.inside("")) and not own and inside not in _USUAL

    def fetched(self, head: Head, *, progress: Progress | None = None) -> Path:
        """Return the snapshot of a head in the standard cache; see `Remote`."""
        if head.is_empty:
            raise MemoryStateError(
                f"The dataset {self._spec.text} holds no memory yet.",
                hint=f"`funes push {self._spec.text}` publishes the local one there.",
                kind="empty",
            )
        if head.version is None:
            raise MemoryStateError(
                f"The dataset of {self._spec.text} is only half there.",
                hint="Whoever publishes it can push it anew.",
                kind="damaged",
            )
        wanted = [self._spec.inside(f"{DATASET}/**"), self._spec.inside(SESSIONS)]
        bar = bar_of(progress) if progress is not None else None
        try:
            root = self._asked(
                lambda api: api.snapshot_download(
                    self._spec.repo,
                    repo_type=_TYPE,
                    revision=head.revision,
                    allow_patterns=wanted,
                    cache_dir=hub_client.cache_dir(self._env),
                    etag_timeout=_ASK_S,
                    max_workers=_DOWNLOADS,
                    tqdm_class=bar,
                ),
                gone=HeadMoved,
            )
        except MemoryStateError as exc:
            if exc.kind != "offline":
                raise
            found = self.kept(head)
            if found is None:
                raise
            return found
        return Path(root) / self._spec.prefix

    def kept(self, head: Head) -> Path | None:
        """Return the snapshot of a head if all of it is in the cache; asks no network."""
        from huggingface_hub import snapshot_download

        wanted = [self._spec.inside(f"{DATASET}/**"), self._spec.inside(SESSIONS)]
        try:
            root = snapshot_download(
                self._spec.repo,
                repo_type=_TYPE,
                revision=head.revision,
                allow_patterns=wanted,
                cache_dir=hub_client.cache_dir(self._env),
                local_files_only=True,
            )
        except (OSError, ValueError):  # whatever is wrong with it, it is not whole
            return None
        base = Path(root) / self._spec.prefix
        return base if (base / DATASET).is_dir() else None

    def read(self, name: str, *, head: Head) -> bytes | None:
        """Return a small file of a head; see `Remote`."""
        files = self._files.get(head.revision)
        if files is not None and name not in files:
            return None
        try:
            path = self._asked(
                lambda api: api.hf_hub_download(
                    self._spec.repo,
                    name,
                    repo_type=_TYPE,
                    revision=head.revision,
                    cache_dir=hub_client.cache_dir(self._env),
                    etag_timeout=_ASK_S,
                ),
                gone=FileNotFoundError,
            )
        except FileNotFoundError:
            return None
        return Path(path).read_bytes()

    def commit(self, change: Change, *, parent: Head) -> Head:
        """Do all of a change or nothing; see `Remote`."""
        token, source = hub_client.token_of(self._env)
        for tried in range(1, _SENDS + 1):
            try:
                return self._sent(change, parent, token)
            except FunesError:
                raise
            except Exception as exc:  # the client's errors share no base
                status = hub_client.status_of(exc)
                landed = self._landed(change, parent) if status in _MOVED or not status else None
                if landed is not None:
                    return landed
                if status in _MOVED:
                    raise HeadMoved from exc
                if tried == _SENDS or (status and status not in _TRANSIENT):
                    raise hub_client.explained(
                        exc, self._spec.text, self._env, token_from=source, writing=True
                    ) from exc
            time.sleep(_PAUSE_S * tried)
        raise AssertionError("the last try returns or raises")

    def _sent(self, change: Change, parent: Head, token: str | None) -> Head:
        api = hub_client.client(self._env, token)
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        adds = [
            CommitOperationAdd(path_in_repo=path, path_or_fileobj=content)
            for path, content in change.add.items()
        ]
        drops = [CommitOperationDelete(path_in_repo=path) for path in change.delete]
        done = api.create_commit(
            self._spec.repo,
            [*adds, *drops],
            repo_type=_TYPE,
            commit_message=change.message or "Update the memory",
            parent_commit=parent.revision,
            num_threads=_UPLOADS,
        )
        files = self._files.get(parent.revision, frozenset()) | change.add.keys()
        files -= set(change.delete)
        self._files = {str(done.oid): frozenset(files)}
        return self._head(str(done.oid), frozenset(files), private=parent.private)

    def _landed(self, change: Change, parent: Head) -> Head | None:
        """Return the head when it holds what was to be added: the answer alone was lost.

        Files of a dataset have names that nobody else gives.
        """
        before = self._files.get(parent.revision)
        fresh = change.add.keys() - (before or frozenset())
        if before is None or not fresh:
            return None
        try:
            head = self.head()
        except FunesError:
            return None
        own = {path for path in fresh if "/data/" in path}
        if head.revision != parent.revision and own and own <= self._files[head.revision]:
            return head
        self._files[parent.revision] = before
        return None

    def create(self, *, private: bool) -> Head:
        """Make the repository, empty, and return its head; see `Remote`."""
        self._asked(
            lambda api: api.create_repo(
                self._spec.repo, repo_type=_TYPE, private=private, exist_ok=True
            ),
            writing=True,
        )
        return self.head()

    def squash(self, message: str) -> bool:
        """Drop the history of the branch; False where this Hub cannot."""
        try:
            self._asked(
                lambda api: api.super_squash_history(
                    self._spec.repo, repo_type=_TYPE, branch=_BRANCH, commit_message=message
                ),
                writing=True,
                gone=_CannotSquash,
            )
        except _CannotSquash:
            return False
        return True

    def purge(self) -> bool:
        """Remove contents of the memory's files that no commit names any more, for good.

        What came after the newest file of the head stays: somebody may be about to commit it. False
        where this Hub cannot, or where other branches or tags may name them.
        """

        def drop(api: Any) -> bool:
            repo: dict[str, str] = {"repo_id": self._spec.repo, "repo_type": _TYPE}
            refs = api.list_repo_refs(**repo)
            if len(refs.branches) > 1 or refs.tags:
                return False
            tree = api.list_repo_tree(**repo, recursive=True, revision=_BRANCH)
            kept = {one.lfs.sha256 for one in tree if getattr(one, "lfs", None)}
            found = list(api.list_lfs_files(**repo))
            newest = max((one.pushed_at for one in found if one.file_oid in kept), default=None)
            own = (self._spec.inside(f"{DATASET}/"), self._spec.inside(SESSIONS))
            gone = [
                one
                for one in found
                if one.file_oid not in kept
                and str(one.filename).startswith(own)
                and (newest is None or one.pushed_at <= newest)
            ]
            if gone:
                api.permanently_delete_lfs_files(**repo, lfs_files=gone, rewrite_history=False)
            return True

        try:
            return self._asked(drop, writing=True, gone=_CannotSquash)
        except _CannotSquash:
            return False

    def _asked(
        self,
        ask: Callable[[Any], Answer],
        *,
        writing: bool = False,
        gone: type[Exception] | None = None,
    ) -> Answer:
        """Return what the Hub says.

        Args:
            ask: Asks its client.
            writing: Whether something is changed.
            gone: Raised where what was asked for is not there, although the repository is.
        """
        token, source = hub_client.token_of(self._env)
        try:
            return ask(hub_client.client(self._env, token))
        except Exception as exc:  # the client's errors share no base
            if gone is not None and _is_gone(exc):
                raise gone from exc
            raise hub_client.explained(
                exc, self._spec.text, self._env, token_from=source, writing=writing
            ) from exc


class _CannotSquash(Exception):
    """The Hub asked knows no squashing."""


def _is_gone(exc: Exception) -> bool:
    from huggingface_hub.errors import RepositoryNotFoundError

    is_absent = hub_client.status_of(exc) in (404, 405, 501)
    return is_absent and not isinstance(exc, RepositoryNotFoundError)


def newest_version(files: Iterable[str], dataset: str) -> int | None:
    """Return the version of a dataset by the names of its files; None for no dataset.

    Others may write into a snapshot, so the version that belongs to it is not the newest on disk.
    """
    wanted = re.compile(rf"{re.escape(dataset)}/_versions/(\d{{1,20}})\.manifest")
    numbers = [int(found[1]) for name in files if (found := wanted.fullmatch(name))]
    # Names count down from the greatest number so that the newest comes first, or up in old ones.
    versions = [_NEWEST_FIRST - n if n > _NEWEST_FIRST // 2 else n for n in numbers]
    return max(versions, default=None)


def bar_of(progress: Progress) -> Any:
    """Return what the Hub's client tells of its downloads, made to tell `progress` instead."""
    import io

    from huggingface_hub import utils

    base: Any = utils.tqdm  # type: ignore[attr-defined]  # exported, but not by name

    class Bar(base):  # type: ignore[misc]  # it is not typed
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("name", None)
            self._counts_bytes = kwargs.get("unit") == "B"
            self._done = 0
            super().__init__(*args, **{**kwargs, "file": io.StringIO()})

        def update(self, n: float | None = 1) -> bool | None:
            self._done += int(n or 0)
            if self._counts_bytes:
                progress(self._done, int(self.total) if self.total else None)
            return False

    return Bar
