"""Tells which traces change: natively where the system does, by looking again where not.

What is missed all the same (a full queue of the system, a lid that was closed) is found by looking
at every root now and then.
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from funes_ls.indexer.pipeline import where
from funes_ls.indexer.traces import TraceSource
from funes_ls.indexer.traces.registry import is_trace_name
from funes_ls.indexer.watch_places import Poller, Targets, linked_files, mounted, targets_of

_log = logging.getLogger(__name__)

#: How often single files are looked at, and the longest wait for the system.
_TICK_S = 0.2
_STEP_MS, _GATHER_MS = 40, 200
#: How often roots are looked for, since a harness may be used for the first time.
ROOTS_S = 2.0
#: How often every root is looked at for what was missed.
SWEEP_S = 300.0
_SWEEP_APART_S = 30.0
#: A clock that jumps by more tells of a machine that slept.
_JUMP_S = 5.0
#: Trees are looked at again after so long, and never for more than a tenth of the time.
_POLL_S = 0.5
_POLL_SHARE = 0.1
#: How long to go on by looking before native watching is tried again.
_NATIVE_AGAIN_S = 300.0
_ADDED, _DELETED = 1, 3
_UNDECODABLE = re.compile(r'path "(.*)" to string', re.DOTALL)

Places = Callable[[], Sequence[tuple[TraceSource, Path]]]
Mode = Literal["off", "starting", "native", "polling"]


class WatchState(Struct, frozen=True, kw_only=True):
    """How watching is done.

    Attributes:
        mode: `polling` when nothing, or not all, is told by the system.
        roots: Places watched.
        note: Why it is not all native, "" when it is.
    """

    mode: Mode = "off"
    roots: int = 0
    note: str = ""


class Watcher:
    """Watches every root there is, and those that come later, on a thread of its own."""

    def __init__(
        self,
        roots: Places,
        on_paths: Callable[[list[Path]], None],
        *,
        on_sweep: Callable[[], None],
        force_polling: bool = False,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Prepare; see `start`.

        Args:
            roots: Gives the readers and the places that exist now.
            on_paths: Told of changed traces and of new folders that may hold some.
            on_sweep: Asked to look at every root: at the start, now and then, after a sleep.
            force_polling: Do not ask the system.
            clock: Gives seconds, not counting those a machine sleeps.
            wall: Gives the time of day.
        """
        self._places = roots
        self._on_paths = on_paths
        self._on_sweep = on_sweep
        self._force_polling = force_polling
        self._clock = clock
        self._wall = wall
        self._stop = threading.Event()
        self._look_now = threading.Event()
        self._thread = threading.Thread(target=self._run, name="funes-watcher", daemon=True)
        self._targets = Targets()
        self._poller = Poller()
        self._notify: Any = None
        self._native_at = float("-inf")
        self._polled_at: dict[Path, float] = {}
        self._roots_at = self._sweep_at = float("-inf")
        self._offset = wall() - clock()
        self._is_relinked = False
        self.state = WatchState(mode="starting")

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self, *, wait_s: float = 5.0) -> bool:
        """End, and return whether that is done."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(wait_s)
        return not self._thread.is_alive()

    def look_for_roots(self) -> None:
        """Look for new roots now."""
        self._look_now.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._turn()
            except Exception as exc:  # whatever it is, watching goes on
                _log.error("watching is interrupted: %s", where(exc))
                self._close_native()
                self._stop.wait(1.0)
        self._close_native()
        self.state = WatchState()

    def _turn(self) -> None:
        self._look_for_roots()
        self._sweep_if_due()
        paths = self._native_changes()
        paths += self._poller.look_at_files(self._targets.files)
        paths += self._polled_changes()
        if paths:
            self._on_paths(list(dict.fromkeys(paths)))

    # Roots

    def _look_for_roots(self) -> None:
        now = self._clock()
        due = now - self._roots_at >= ROOTS_S or self._look_now.is_set() or self._is_relinked
        if not due:
            return
        self._roots_at = now
        self._look_now.clear()
        targets = targets_of(self._places(), mounted())
        if self._force_polling:
            remote = (*targets.folders, *targets.remote)
            targets = Targets(
                remote=remote, files=targets.files, roots=targets.roots, marks=targets.marks
            )
        again = self._notify is None and targets.folders and now >= self._native_at
        is_first = self.state.mode == "starting"
        if targets != self._targets or again or self._is_relinked or is_first:
            self._watch(targets)

    def _watch(self, targets: Targets) -> None:
        """Watch other targets from now on, and have their roots looked at."""
        is_first = self.state.mode == "starting"
        self._targets, self._is_relinked = targets, False
        before, self._notify = self._notify, None
        note = self._open_native() if self._clock() >= self._native_at else self.state.note
        self._let_go(before)  # only now, so that nothing goes unseen between the two
        for tree in self._trees():
            self._poller.look_at_tree(tree)
        self._poller.keep(self._trees())
        if self._notify is not None or not targets.folders:
            note = _REMOTE_NOTE if targets.remote and not self._force_polling else ""
        polls = bool(self._trees())
        mode: Mode = "polling" if polls else "native"
        self.state = WatchState(mode=mode, roots=targets.roots, note=note)
        if not is_first:
            # Those that are new, and what changed while one watch took over from the other.
            self._on_paths([Path(root) for root, _, _ in sorted(targets.marks)])

    def _trees(self) -> tuple[Path, ...]:
        """Return the trees to look at: all when the system tells of none."""
        native = self._notify is not None
        return self._targets.remote if native else (*self._targets.folders, *self._targets.remote)

    def _sweep_if_due(self) -> None:
        now, offset = self._clock(), self._wall() - self._clock()
        slept = abs(offset - self._offset) > _JUMP_S
        self._offset = offset
        if slept:
            _log.info("the clock jumped; every root is looked at")
        if slept or now - self._sweep_at >= SWEEP_S:
            if self._sweep_at > float("-inf"):
                self._is_relinked = True  # links to single files may have come
            self._sweep_at = now
            self._on_sweep()

    # Told by the system

    def _open_native(self) -> str:
        """Have the system tell of changes; return why it does not, "" when it does."""
        if not self._targets.folders:
            return ""
        from watchfiles._rust_notify import RustNotify

        paths = [*self._targets.folders, *linked_files(self._targets.folders)]
        named = [str(path) for path in paths if _is_decodable(path)]
        try:
            self._notify = RustNotify(named, False, False, 300, True, True)
        except FileNotFoundError:
            self._roots_at = float("-inf")  # one vanished just now
            return ""
        except Exception as exc:  # watchfiles has one error for everything
            self._native_at = self._clock() + _NATIVE_AGAIN_S
            note = _note_of(str(exc))
            _log.warning("%s", note)
            return note
        return ""

    def _close_native(self) -> None:
        notify, self._notify = self._notify, None
        if notify is not None:
            notify.close()

    def _let_go(self, notify: Any) -> None:
        """Take what was told until now and close."""
        if notify is None:
            return
        try:
            told = notify.watch(1, 1, 1, None)
            paths = [] if isinstance(told, str) else list(self._wanted(told))
        except Exception:
            paths = []
        notify.close()
        if paths:
            self._on_paths(paths)

    def _native_changes(self) -> list[Path]:
        """Return what the system tells within a moment."""
        if self._notify is None:
            self._stop.wait(_TICK_S)
            return []
        try:
            told = self._notify.watch(_GATHER_MS, _STEP_MS, int(_TICK_S * 1000), self._stop)
        except Exception as exc:
            return self._after_error(str(exc))
        return [] if isinstance(told, str) else list(self._wanted(told))

    def _wanted(self, told: Iterable[tuple[int, str]]) -> Iterable[Path]:
        for change, name in told:
            path = Path(name)
            if is_trace_name(path.name):
                self._is_relinked |= change == _ADDED and path.is_symlink()
                yield path
            elif change == _ADDED and path.is_dir():
                self._is_relinked |= path.is_symlink()
                yield path
            elif change == _DELETED and path in self._targets.folders:
                self._lose(path)

    def _lose(self, root: Path) -> None:
        """Take a root that was deleted for a new one when it is back.

        What is made anew at once may have the very inode of what was there.
        """
        marks = frozenset(mark for mark in self._targets.marks if mark[0] != str(root))
        self._targets = replace(self._targets, marks=marks)
        self._roots_at = float("-inf")

    def _after_error(self, message: str) -> list[Path]:
        """Begin anew: after a name that is no text, watchfiles tells of nothing else."""
        self._close_native()
        self._roots_at = float("-inf")
        named = _UNDECODABLE.search(message)
        if named is None:
            _log.warning("watching is interrupted: %s", message[:200])
            self._on_sweep()
            return []
        self._open_native()
        if self._clock() - self._sweep_at >= _SWEEP_APART_S:  # what else was told is lost
            self._sweep_at = self._clock()
            self._on_sweep()
        return [Path(_undone(named[1])).parent]

    # Looked at

    def _polled_changes(self) -> list[Path]:
        paths: list[Path] = []
        for tree in self._trees():
            began = self._clock()
            if began < self._polled_at.get(tree, float("-inf")):
                continue
            paths += self._poller.look_at_tree(tree)
            took = self._clock() - began
            self._polled_at[tree] = began + max(_POLL_S, took / _POLL_SHARE)
        return paths


_REMOTE_NOTE = (
    "Some sessions lie on a network disk, whose changes are found by looking: new turns may take "
    "a few seconds longer."
)


def _note_of(message: str) -> str:
    """Return what a person should know of native watching that cannot be had."""
    if "watch limit" in message or "os error 28" in message or "No space" in message:
        why = "The system's limit of watched folders is reached (fs.inotify.max_user_watches)"
    elif "os error 24" in message or "Too many open files" in message:
        why = "The system's limit of watching programs is reached (fs.inotify.max_user_instances)"
    else:
        why = "The system does not tell of changed files"
    return f"{why}: changes are found by looking, and new turns may take a few seconds longer."


def _is_decodable(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _undone(quoted: str) -> str:
    """Return the path that an error of watchfiles quotes, bytes that are no text as Python does."""

    def byte(found: re.Match[str]) -> str:
        if found[1]:
            return bytes([int(found[1], 16)]).decode("utf-8", "surrogateescape")
        return found[2]

    return re.sub(r"\\(?:x([0-9A-Fa-f]{2})|(.))", byte, quoted)
