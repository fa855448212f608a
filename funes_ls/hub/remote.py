"""What every place that a memory can lie at does: say where it stands, give files, take a change.

All of it raises `MemoryStateError` of kind `missing`, `unauthorised`, `read_only_token`, `offline`,
`empty`, `not_a_memory`, `wrong_model` or `newer_format`, and `BackendError` of kind `hub` for what
else the other side does. None of these names a token.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from funes_ls.hub.spec import MemorySpec
from funes_ls.indexer.errors import BackendError

#: Told of the bytes that have come, and of all that are to come where that is known.
Progress = Callable[[int, int | None], None]

#: Files of a memory, by their name in it: the dataset, and what is said of its sessions.
DATASET = "chunks.lance"
SESSIONS = "sessions.parquet"


class Head(Struct, frozen=True, kw_only=True):
    """Where a remote memory stands.

    Attributes:
        revision: Of the Hub the id of a commit, of a store the version of the dataset.
        is_empty: The repository is there and holds no memory.
        private: Whether others cannot read it; None where that is not told.
        version: Of the dataset, None without one. Others may have written into what was fetched,
            so that the newest version on disk need not be this one.
        has_card: Whether there is a README.
        has_others: Whether there are files of another kind where the memory would be.
    """

    revision: str
    is_empty: bool = False
    private: bool | None = None
    version: int | None = None
    has_card: bool = False
    has_others: bool = False


class Change(Struct, frozen=True, kw_only=True):
    """What one commit does.

    Attributes:
        add: Path in the repository or bucket -> the file, or its bytes.
        delete: Paths that are removed.
        message: First line of the commit.
    """

    add: dict[str, Path | bytes]
    delete: tuple[str, ...] = ()
    message: str = ""


class HeadMoved(Exception):
    """Another one committed first: read the head anew, and do it again."""


class Remote(Protocol):
    """One memory that is elsewhere."""

    @property
    def spec(self) -> MemorySpec:
        """Return which memory it is."""
        ...

    def head(self) -> Head:
        """Return where it stands now; asks the network."""
        ...

    def fetched(self, head: Head, *, progress: Progress | None = None) -> Path:
        """Return a directory that holds `chunks.lance`, and `sessions.parquet` if there is one.

        It is pinned to the head and must never be written to. What was fetched before is not
        fetched again.

        Raises:
            MemoryStateError: kind `empty`, too, when the head holds no memory.
            HeadMoved: this head is no longer to be had; read it anew.
        """
        ...

    def kept(self, head: Head) -> Path | None:
        """Return what `fetched` returned if all of it is still here; asks no network."""
        ...

    def read(self, name: str, *, head: Head) -> bytes | None:
        """Return a small file of a head by its path in the repository or bucket.

        It is None where there is no such file; used for the card.
        """
        ...

    def commit(self, change: Change, *, parent: Head) -> Head:
        """Do all of a change or nothing, and return the new head.

        Raises:
            HeadMoved: the memory no longer stands at the parent.
        """
        ...

    def create(self, *, private: bool) -> Head:
        """Make the repository, empty, and return its head; one that is there stays as it is."""
        ...

    def squash(self, message: str) -> bool:
        """Drop the history, so that only the newest state stays; False where that cannot be."""
        ...


def open_remote(spec: MemorySpec, env: Mapping[str, str], *, cache_dir: Path) -> Remote:
    """Return a remote memory; nothing is asked of the network yet.

    Args:
        spec: One whose `is_remote` holds.
        env: Where tokens and addresses are looked up.
        cache_dir: `<home>/remote`, for what has no cache of its own; the Hub has one.

    Raises:
        BackendError: kind `unsupported`: this version cannot read such a place.
    """
    if spec.kind == "hub":
        from funes_ls.hub.hub_remote import HubRemote

        return HubRemote(spec, env)
    if spec.kind == "store":
        from funes_ls.hub.object_store import StoreRemote

        return StoreRemote(spec, env, cache_dir=cache_dir)
    raise BackendError(
        f"{spec.text} is a database of LanceDB's service, which keeps no files to read.",
        hint="Copy the memory to a bucket or to the Hub and name that.",
        kind="unsupported",
    )
