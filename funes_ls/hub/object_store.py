"""A memory in an object store."""

from collections.abc import Mapping
from pathlib import Path

from funes_ls.hub.remote import Change, Head, Progress
from funes_ls.hub.spec import MemorySpec


class StoreRemote:
    """See `Remote`."""

    def __init__(self, spec: MemorySpec, env: Mapping[str, str], *, cache_dir: Path) -> None:
        """Ask nothing yet."""
        self.spec = spec
        self._env = env
        self._cache_dir = cache_dir

    def head(self) -> Head:
        """Return where it stands now."""
        raise NotImplementedError

    def fetched(self, head: Head, *, progress: Progress | None = None) -> Path:
        """Return a directory with the files of the head."""
        raise NotImplementedError

    def commit(self, change: Change, *, parent: Head) -> Head:
        """Do all of a change or nothing."""
        raise NotImplementedError

    def create(self, *, private: bool) -> Head:
        """Make the place."""
        raise NotImplementedError

    def squash(self, message: str) -> bool:
        """Drop the history."""
        raise NotImplementedError
