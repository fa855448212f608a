"""Which memories are open: one at a time for a command, kept open and current for the engine."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from funes_ls.hub.reading import OUT_OF_REACH, Found, RemoteMemory, Watch, readable
from funes_ls.hub.spec import MemorySpec, parse_spec
from funes_ls.index_run import model_ref
from funes_ls.indexer.errors import BackendError, FunesError, MemoryStateError, UsageError
from funes_ls.indexer.memory import (
    CATALOG,
    Memory,
    Pinned,
    open_for_words,
    open_memory,
    open_snapshot,
    take_in_snapshot,
)
from funes_ls.indexer.memory_pinned import open_pinned
from funes_ls.indexer.settings import Settings
from funes_ls.models.cross_encoder import KeptReranker, load_reranker

if TYPE_CHECKING:
    from funes_ls.indexer.embedding import Embedder
    from funes_ls.indexer.memory_held import Moved
    from funes_ls.retrieval.cross import PairModel

_log = logging.getLogger(__name__)

#: A memory that is not the home's own is closed when nobody asked it for so long.
_IDLE_S = 600.0
#: A model that could not be loaded is tried again after so long.
_RETRY_S = 30.0
#: Answers wait so long, from the start, for what vectors need; then words alone must do.
_PATIENCE_S = 6.0
#: And so long for a writer that makes or mends what cannot be read yet; a command, which has
#: nobody else waiting for it, a little longer.
_WRITER_S = 3.0
_COMMAND_S = 20.0


class Origin:
    """Where an answer really comes from; who passes one may get another memory than was named.

    Attributes:
        falls_back: Whether the local memory may answer for one that cannot be reached.
        waits: Whether a moment may pass to look for what is new elsewhere.
        name: Of the memory that was read.
        note: What a person should know of that, "" for nothing.
    """

    def __init__(self, *, falls_back: bool = True, waits: bool = True) -> None:
        """Know nothing yet."""
        self.falls_back = falls_back
        self.waits = waits
        self.name = ""
        self.note = ""


class Memories(Protocol):
    """Where answers come from."""

    @property
    def settings(self) -> Settings:
        """Return the settings in force."""
        ...

    def reading(
        self, spec: str, *, whole: bool = False, origin: Origin | None = None
    ) -> AbstractContextManager[Memory]:
        """Give a memory, current, for reading.

        Args:
            spec: Its name, see `funes_ls.hub.spec`; "" is the local one.
            whole: Wait for what vectors need, which words and rows do not.
            origin: Told which memory is read. Without it an answer is of the memory that was
                named or there is none; with it, one that cannot be reached and of which nothing
                is here is answered for by the local one.

        Raises:
            MemoryStateError: it is missing, damaged, of a newer format, or one elsewhere that
                cannot be read: see `funes_ls.hub.remote`.
            UsageError: there is no such memory.
        """
        ...

    def embedder(self, memory: Memory) -> "Embedder | None":
        """Return the model a memory's vectors are of; None when it has none or it is not here."""
        ...

    def pair_model(self) -> "PairModel":
        """Return the cross-encoder that is installed.

        Raises:
            BackendError: there is none, or it cannot be used.
        """
        ...

    @property
    def is_whole(self) -> bool:
        """Return whether all that an answer needs is open and loaded already."""
        ...

    def wait_until_whole(self) -> bool:
        """Return whether more than words can be answered; wait for that, but not for long."""
        ...


#: A memory elsewhere and the snapshot of it that is read.
_Snapshot = tuple[MemorySpec, Pinned]


def memory_path(settings: Settings, spec: str) -> Path:
    """Return the directory of a memory on this machine as a person named it.

    Raises:
        UsageError: there is no such path, or it is elsewhere.
    """
    found = parse_spec(spec, settings)
    if found.path is None:
        raise UsageError(
            f"{found.text} is not on this machine.",
            hint="Name `local` or the path of a memory.",
            kind="no_such_memory",
        )
    return found.path


def _fall_back(
    settings: Settings, spec: MemorySpec, exc: FunesError, origin: Origin | None
) -> None:
    """Let the local memory answer for one that cannot be reached.

    Raises:
        FunesError: that it cannot be reached, where nobody would be told or there is no other.
    """
    is_away = exc.kind in OUT_OF_REACH and _exists(settings.memory_dir)
    if origin is None or not origin.falls_back or not is_away:
        raise exc
    origin.name = "local"
    origin.note = f"{spec.text} is unreachable, answered from the local memory. {exc.message}"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


class OpenEachTime:
    """Opens what is asked for and closes it after the answer; for a command without an engine."""

    def __init__(self, settings: Settings, env: Mapping[str, str] | None = None) -> None:
        """Read as the settings say; `env` tells who asks elsewhere, by default this process's."""
        self.settings = settings
        self._env = os.environ if env is None else env

    @contextmanager
    def reading(
        self, spec: str, *, whole: bool = False, origin: Origin | None = None
    ) -> Iterator[Memory]:
        """Give a memory for one answer, always a whole one; see `Memories`."""
        memory = self._opened(parse_spec(spec, self.settings), origin)
        try:
            yield memory
        finally:
            memory.close()

    def _opened(self, spec: MemorySpec, origin: Origin | None) -> Memory:
        if origin is not None:
            origin.name, origin.note = spec.text, ""
        if spec.path is not None:
            return _opened(self.settings, spec.path, patience_s=_COMMAND_S)
        remote = RemoteMemory(spec, self._env, self.settings.home)
        try:
            found = self._found(remote)
        except FunesError as exc:
            _fall_back(self.settings, spec, exc, origin)
            return _opened(self.settings, self.settings.memory_dir, patience_s=_COMMAND_S)
        if origin is not None:
            origin.note = found.note
        memory = _snapshot(spec, found.pinned, patience_s=_COMMAND_S)
        if not found.note:
            remote.keep()
        return memory

    def _found(self, remote: RemoteMemory) -> Found:
        try:
            return Found(pinned=remote.look())
        except FunesError as exc:
            last = remote.last() if exc.kind in OUT_OF_REACH else None
            if last is None:
                raise
            return last

    def embedder(self, memory: Memory) -> "Embedder | None":
        """Return the model of a memory's vectors; see `Memories`."""
        return _embedder(self.settings, memory)

    def pair_model(self) -> "PairModel":
        """Return the cross-encoder; see `Memories`."""
        return _pair_model(self.settings)

    @property
    def is_whole(self) -> bool:
        """Return False: each answer opens what it needs."""
        return False

    def wait_until_whole(self) -> bool:
        """Return True: whatever is needed is loaded when it is asked for."""
        return True


class _Kept:
    """A memory that stays open, and who uses it.

    Attributes:
        lock: Held while it is opened or made current; reading needs it only for a moment.
        there: Tells these files from others that may lie at the same path later.
        revision: Snapshot of a memory elsewhere, "" for one on this machine.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.memory: Memory | None = None
        self.there: tuple[int, int] | None = None
        self.revision = ""
        self.users = 0
        self.dropped = False
        self.used_at = time.monotonic()


class KeptOpen:
    """Keeps memories and models open, and current; several threads may ask at once."""

    def __init__(self, settings: Settings, env: Mapping[str, str] | None = None) -> None:
        """Read as the settings say; `env` tells who asks elsewhere, by default this process's."""
        self.settings = settings
        self._env = os.environ if env is None else env
        self._watches: dict[str, Watch] = {}
        self._lock = threading.Lock()
        self._kept: dict[Path, _Kept] = {}
        self._loading = threading.Lock()
        self._models: dict[str, Embedder] = {}
        self._failed_at: dict[str, float] = {}
        self._pairs = KeptReranker()
        self._early_lock = threading.Lock()
        self._early: _Kept | None = None
        self._is_early = False
        self._is_whole = threading.Event()
        self._is_whole.set()
        self._whole_by = 0.0

    @contextmanager
    def reading(
        self, spec: str, *, whole: bool = False, origin: Origin | None = None
    ) -> Iterator[Memory]:
        """Give a memory as it is now; see `Memories`."""
        path, pinned = self._place(parse_spec(spec, self.settings), origin)
        early = None if whole or not self._is_early else self._taken_early(path)
        kept = early or self._taken(path)
        try:
            with kept.lock:
                memory = self._current(kept, path, pinned)
            yield memory
        finally:
            self._given_back(kept)

    def _place(self, spec: MemorySpec, origin: Origin | None) -> "tuple[Path, _Snapshot | None]":
        """Return where a memory is, and of one elsewhere what there is of it."""
        if origin is not None:
            origin.name, origin.note = spec.text, ""
        if spec.path is not None:
            return spec.path, None
        try:
            found = self._watch(spec).found(waits=origin is None or origin.waits)
        except FunesError as exc:
            _fall_back(self.settings, spec, exc, origin)
            return self.settings.memory_dir, None
        if origin is not None:
            origin.note = found.note
        return found.pinned.place, (spec, found.pinned)

    def _watch(self, spec: MemorySpec) -> Watch:
        with self._lock:
            watch = self._watches.get(spec.text)
            if watch is None:
                remote = RemoteMemory(spec, self._env, self.settings.home)
                watch = self._watches[spec.text] = Watch(remote, self._advance)
            return watch

    def _advance(self, pinned: Pinned) -> Callable[[], None]:
        """Bring what is derived from a memory elsewhere to a newer snapshot; see `Watch`."""
        extended = take_in_snapshot(pinned)

        def finish() -> None:
            with self._lock:
                kept = self._kept.get(pinned.place)
                if kept is None or kept.revision == pinned.revision:
                    return
                if not extended:
                    self._drop(pinned.place, kept)
                    return
                kept.users += 1
            try:
                with kept.lock:
                    if kept.memory is not None and kept.revision != pinned.revision:
                        kept.memory.move_to(pinned.base, open_pinned(pinned))
                        kept.revision = pinned.revision
            except BaseException:
                with self._lock:
                    self._drop(pinned.place, kept)
                raise
            finally:
                self._given_back(kept)

        return finish

    def embedder(self, memory: Memory) -> "Embedder | None":
        """Return the model of a memory's vectors, loaded once; see `Memories`."""
        if memory.dataset is None:
            return None
        stamp = memory.dataset.stamp
        if stamp in self._models:
            return self._models[stamp]
        with self._loading:
            failed = self._failed_at.get(stamp, float("-inf"))
            if stamp not in self._models and time.monotonic() - failed >= _RETRY_S:
                found = _embedder(self.settings, memory)
                if found is None:
                    self._failed_at[stamp] = time.monotonic()
                else:
                    self._models[stamp] = found
            return self._models.get(stamp)

    def pair_model(self) -> "PairModel":
        """Return the cross-encoder, kept until nobody has needed it for a while."""
        return self._pairs.get(lambda: _pair_model(self.settings))

    @property
    def is_whole(self) -> bool:
        """Return whether the warming up is over, without waiting for it."""
        return self._is_whole.is_set()

    def wait_until_whole(self) -> bool:
        """Return whether the warming up is over; see `Memories`."""
        return self._is_whole.wait(max(0.0, self._whole_by - time.monotonic()))

    def loaded(self, stamp: str) -> "Embedder | None":
        """Return the model of a stamp if it has been loaded."""
        return self._models.get(stamp)

    def keep_model(self, embedder: "Embedder") -> None:
        """Answer with a model that was loaded elsewhere, rather than load it twice."""
        self._models.setdefault(embedder.stamp, embedder)

    def use(self, settings: Settings) -> None:
        """Answer by other settings from now on."""
        before, self.settings = self.settings, settings
        if (before.model, before.threads) != (settings.model, settings.threads):
            with self._loading:
                self._models.clear()
                self._failed_at.clear()

    def warm_up(self) -> None:
        """Open the home's memory and load its model, so that the first question need not wait.

        Meanwhile words are answered from a memory that was opened for them alone.
        """
        self._is_early = True
        self._whole_by = time.monotonic() + _PATIENCE_S
        self._is_whole.clear()
        try:
            with self.reading("local"):
                pass
            with self.reading("local", whole=True) as memory:
                self.embedder(memory)
                with memory.snapshot() as now:
                    now.vectors()
        except FunesError as exc:
            _log.info("nothing to warm up (%s)", exc.kind)
        finally:
            self._is_whole.set()
            self._leave_early()

    def moved(self, step: "Moved") -> None:
        """Take over what has just gone into the home's dataset, rather than read it."""
        with self._lock:
            kept = self._kept.get(self.settings.memory_dir)
            if kept is None or kept.memory is None:
                return
            kept.users += 1
        try:
            with kept.lock:
                kept.memory.refresh(step)
        except FunesError as exc:
            _log.info("the memory is not made current now (%s)", exc.kind)
        finally:
            self._given_back(kept)

    def _taken_early(self, path: Path) -> _Kept | None:
        """Take the memory that is open for words alone; None where there is none."""
        with self._early_lock:
            if not self._is_early or path != self.settings.memory_dir:
                return None
            if self._early is None:
                memory = open_for_words(path)
                if memory is None:
                    self._is_early = False
                    return None
                self._early = _Kept()
                self._early.memory = memory
            with self._lock:
                self._early.users += 1
            return self._early

    def _leave_early(self) -> None:
        with self._early_lock, self._lock:
            self._is_early = False
            if self._early is not None:
                self._early.dropped = True
                self._close_if_unused(self._early)
                self._early = None

    def known(self) -> tuple[int, str]:
        """Return generation and model of the home's memory if it is open, else 0 and ""."""
        with self._lock:
            kept = self._kept.get(self.settings.memory_dir)
            memory = kept.memory if kept is not None else None
            if kept is None or memory is None:
                kept, memory = self._early, self._early.memory if self._early else None
            if kept is None or memory is None:
                return 0, ""
            kept.users += 1
        try:
            dataset = memory.dataset
            return memory.generation, dataset.stamp if dataset is not None else ""
        finally:
            self._given_back(kept)

    def close_idle(self) -> None:
        """Close memories that are not the home's own and that nobody asked for a while."""
        for watch in list(self._watches.values()):
            watch.look_ahead()
        now = time.monotonic()
        self._pairs.drop_idle()
        with self._lock:
            for path, kept in list(self._kept.items()):
                if path != self.settings.memory_dir and now - kept.used_at >= _IDLE_S:
                    self._drop(path, kept)

    def close(self) -> None:
        """Close everything, what is in use once it is given back."""
        with self._lock:
            for path, kept in list(self._kept.items()):
                self._drop(path, kept)

    def _taken(self, path: Path) -> _Kept:
        there = _identity(path)
        with self._lock:
            kept = self._kept.get(path)
            if kept is not None and kept.memory is not None and kept.there != there:
                self._drop(path, kept)  # its files were removed or made anew
                kept = None
            if kept is None:
                kept = self._kept[path] = _Kept()
            kept.users += 1
            kept.used_at = time.monotonic()
            return kept

    def _current(self, kept: _Kept, path: Path, pinned: "_Snapshot | None" = None) -> Memory:
        if kept.memory is None:
            try:
                kept.memory = (
                    _opened(self.settings, path, patience_s=_WRITER_S)
                    if pinned is None
                    else _snapshot(*pinned, patience_s=_WRITER_S)
                )
            except BaseException:
                with self._lock:
                    self._drop(path, kept)
                raise
            kept.there = _identity(path)
            kept.revision = pinned[1].revision if pinned is not None else ""
        else:
            kept.memory.refresh()
        return kept.memory

    def _given_back(self, kept: _Kept) -> None:
        with self._lock:
            kept.users -= 1
            self._close_if_unused(kept)

    def _drop(self, path: Path, kept: _Kept) -> None:
        """Let go of a memory; whoever uses it may finish."""
        if self._kept.get(path) is kept:
            del self._kept[path]
        kept.dropped = True
        self._close_if_unused(kept)

    def _close_if_unused(self, kept: _Kept) -> None:
        if kept.dropped and kept.users == 0 and kept.memory is not None:
            kept.memory.close()
            kept.memory = None


def _opened(settings: Settings, path: Path, *, patience_s: float) -> Memory:
    try:
        return open_memory(path, derived=settings.home / "derived", patience_s=patience_s)
    except MemoryStateError as exc:
        if exc.kind != "locked":
            raise
        raise MemoryStateError(
            f"The memory at {path} is being made ready.",
            hint="Ask again in a moment.",
            kind="locked",
        ) from exc


def _snapshot(spec: MemorySpec, pinned: Pinned, *, patience_s: float) -> Memory:
    return readable(spec, lambda: open_snapshot(pinned, patience_s=patience_s))


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a memory's files from others at the same path, None for none."""
    for name in (CATALOG, ""):
        try:
            found = (path / name).stat()
        except OSError:
            continue
        return (found.st_dev, found.st_ino)
    return None


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


def _pair_model(settings: Settings) -> "PairModel":
    return load_reranker(settings.models_dir, threads=settings.threads)
