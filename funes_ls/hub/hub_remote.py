"""A memory in a dataset repository of the Hugging Face Hub."""

from collections.abc import Mapping
from pathlib import Path

from funes_ls.hub.remote import Change, Head, Progress
from funes_ls.hub.spec import MemorySpec


class HubRemote:
    """See `Remote`."""

    def __init__(self, spec: MemorySpec, env: Mapping[str, str]) -> None:
        """Ask nothing yet."""
        self.spec = spec
        self._env = env

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
        """Make the repository."""
        raise NotImplementedError

    def squash(self, message: str) -> bool:
        """Drop the history."""
        raise NotImplementedError
