"""Which memories are open: one at a time for a command, kept open and current for the engine."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from funes_ls.index_run import model_ref
from funes_ls.indexer.errors import BackendError, FunesError, UsageError
from funes_ls.indexer.memory import Memory, open_memory
from funes_ls.indexer.settings import Settings

if TYPE_CHECKING:
    from funes_ls.indexer.embedding import Embedder

_log = logging.getLogger(__name__)

#: A memory that is not the home's own is closed when nobody asked it for so long.
_IDLE_S = 600.0
#: A model that could not be loaded is tried again after so long.
_RETRY_S = 30.0


class Memories(Protocol):
    """Where answers come from."""

    @property
    def settings(self) -> Settings:
        """Return the settings in force."""
        ...

    def reading(self, spec: str) -> AbstractContextManager[Memory]:
        """Give a memory, current, for reading.

        Args:
            spec: `local` or "", or the path of a memory.

        Raises:
            MemoryStateError: it is missing, damaged, or of a newer format.
            UsageError: it is a kind of memory that cannot be read yet.
        """
        ...

    def embedder(self, memory: Memory) -> "Embedder | None":
        """Return the model a memory's vectors are of; None when it has none or it is not here."""
        ...


def memory_path(settings: Settings, spec: str) -> Path:
    """Return the directory of a memory as a person named it.

    Raises:
        UsageError: there is no such path, or it is a kind that cannot be read yet.
    """
    if spec in ("", "local"):
        return settings.memory_dir
    path = Path(spec).expanduser()
    if "://" in spec or not _exists(path):
        raise UsageError(
            f"No memory at {spec}.",
            hint="Name `local` or the path of a memory; remote memories come in a later version.",
            kind="no_such_memory",
        )
    nested = path / "memory"
    return nested if nested.is_dir() else path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, or with a NUL
        return False


class OpenEachTime:
    """Opens what is asked for and closes it after the answer; for a command without an engine."""

    def __init__(self, settings: Settings) -> None:
        """Read as the settings say."""
        self.settings = settings

    @contextmanager
    def reading(self, spec: str) -> Iterator[Memory]:
        """Give a memory for one answer; see `Memories`."""
        memory = _opened(self.settings, memory_path(self.settings, spec))
        try:
            yield memory
        finally:
            memory.close()

    def embedder(self, memory: Memory) -> "Embedder | None":
        """Return the model of a memory's vectors; see `Memories`."""
        return _embedder(self.settings, memory)


class _Kept:
    """An open memory, who uses it, and as of which generation it is."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.users = 0
        self.used_at = time.monotonic()
        self.generation = memory.generation


class KeptOpen:
    """Keeps memories and models open, and current; several threads may ask at once."""

    def __init__(self, settings: Settings) -> None:
        """Read as the settings say."""
        self.settings = settings
        self._lock = threading.RLock()
        self._kept: dict[Path, _Kept] = {}
        self._loading = threading.Lock()
        self._models: dict[str, Embedder | None] = {}
        self._failed_at: dict[str, float] = {}

    @contextmanager
    def reading(self, spec: str) -> Iterator[Memory]:
        """Give a memory as it is now; see `Memories`."""
        path = memory_path(self.settings, spec)
        with self._lock:
            kept = self._kept.get(path)
            if kept is None:
                kept = self._kept[path] = _Kept(_opened(self.settings, path))
            self._make_current(kept)
            kept.users += 1
            kept.used_at = time.monotonic()
        try:
            yield kept.memory
        finally:
            with self._lock:
                kept.users -= 1
                if kept.users == 0 and self._kept.get(path) is not kept:
                    kept.memory.close()

    def embedder(self, memory: Memory) -> "Embedder | None":
        """Return the model of a memory's vectors, loaded once; see `Memories`."""
        stamp = memory.state().stamp
        if not stamp:
            return None
        with self._loading:
            failed = self._failed_at.get(stamp)
            if stamp not in self._models and (
                failed is None or time.monotonic() - failed >= _RETRY_S
            ):
                found = _embedder(self.settings, memory)
                if found is None:
                    self._failed_at[stamp] = time.monotonic()
                else:
                    self._models[stamp] = found
            return self._models.get(stamp)

    def use(self, settings: Settings) -> None:
        """Answer by other settings from now on."""
        before, self.settings = self.settings, settings
        if (before.model, before.threads) != (settings.model, settings.threads):
            with self._loading:
                self._models.clear()
                self._failed_at.clear()

    def warm_up(self) -> None:
        """Open the home's memory and load its model, so that the first question need not wait."""
        try:
            with self.reading("local") as memory:
                self.embedder(memory)
        except FunesError as exc:
            _log.info("nothing to warm up (%s)", exc.kind)

    def known(self) -> tuple[int, str]:
        """Return generation and model of the home's memory as far as it is open; 0 and ""."""
        with self._lock:
            kept = self._kept.get(self.settings.memory_dir)
            if kept is None:
                return 0, ""
            return kept.memory.generation, kept.memory.state().stamp

    def reopen(self) -> None:
        """Let go of what is open, so that the next answer sees files that were made anew."""
        with self._lock:
            dropped, self._kept = self._kept, {}
            for kept in dropped.values():
                if kept.users == 0:
                    kept.memory.close()

    def close_idle(self) -> None:
        """Close memories that are not the home's own and that nobody asked for a while."""
        now = time.monotonic()
        with self._lock:
            for path, kept in list(self._kept.items()):
                own = path == self.settings.memory_dir
                if not own and kept.users == 0 and now - kept.used_at >= _IDLE_S:
                    del self._kept[path]
                    kept.memory.close()

    def close(self) -> None:
        """Close everything."""
        self.reopen()

    def _make_current(self, kept: _Kept) -> None:
        generation = kept.memory.generation
        if generation != kept.generation:
            kept.memory.refresh()
            kept.generation = generation


def _opened(settings: Settings, path: Path) -> Memory:
    return open_memory(path, derived=settings.home / "derived")


def _embedder(settings: Settings, memory: Memory) -> "Embedder | None":
    from funes_ls.indexer import embedding

    state = memory.state()
    if not state.embedded:
        return None
    try:
        return embedding.load(
            model_ref(settings, state.stamp), settings.models_dir, threads=settings.threads
        )
    except BackendError as exc:
        _log.info("the model %s is not at hand (%s)", state.stamp, exc.kind)
        return None
