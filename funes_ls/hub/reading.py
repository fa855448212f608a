"""A memory elsewhere as it is read here: its newest snapshot, or the last one that was fetched."""

import contextlib
import logging
import os
import shutil
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from funes_ls.hub.remote import SESSIONS, Head, HeadMoved, Progress, Remote, open_remote
from funes_ls.hub.session_facts import read_facts
from funes_ls.hub.spec import MemorySpec
from funes_ls.indexer.errors import BackendError, FunesError, MemoryStateError
from funes_ls.indexer.home import make_private
from funes_ls.indexer.memory_pinned import Pinned, Told

_log = logging.getLogger(__name__)
Opened = TypeVar("Opened")

#: Kinds of errors that say nothing of the memory itself: what was fetched before is as good.
OUT_OF_REACH = frozenset({"offline", "hub"})
#: What was asked so long ago is asked again with the next question, and so long after that question
#: by itself while the memory is in use.
LOOK_S, LOOK_AHEAD_S = 10.0, 60.0
#: A question waits so long for the network when there is something to answer from, and when not.
WAIT_S, FIRST_WAIT_S = 1.0, 1.5
#: What was refused is asked for again this soon: somebody may just have logged in.
_AGAIN_S = 1.0
_TRIES = 3
_RECORD = "snapshot.json"
#: What is kept here of a memory that nobody has read for so long is removed.
_UNREAD_S = 120 * 86_400.0
_AWAY, _SLOW = "cannot be reached", "has not answered yet"
_BROKEN = "cannot be read as it is now"
#: Errors in spite of which a copy answers: of a broken push there is an older one.
_PASSING = OUT_OF_REACH | {"damaged"}


class Snapshot(Struct, frozen=True, kw_only=True):
    """What was fetched last, and when, in epoch seconds; kept beside what is derived from it."""

    text: str
    head: Head
    at_s: float


class Found(Struct, frozen=True, kw_only=True):
    """What there is to answer from, and what a person should know of it."""

    pinned: Pinned
    note: str = ""


class RemoteMemory:
    """One memory elsewhere; `look` and `last` are for one thread at a time."""

    def __init__(self, spec: MemorySpec, env: Mapping[str, str], home: Path) -> None:
        """Ask nothing yet."""
        self.spec = spec
        self.place = home / "derived" / spec.key
        self._copies = home / "remote"
        self.remote: Remote = open_remote(spec, env, cache_dir=home / "remote")
        self._looked: Head | None = None

    def look(self, *, progress: Progress | None = None) -> Pinned:
        """Return the newest snapshot, fetched as far as it is not here.

        Raises:
            MemoryStateError: see `funes_ls.hub.remote`.
            BackendError: kind `hub`.
        """
        for _ in range(_TRIES):
            head = self.remote.head()
            try:
                base = self.remote.fetched(head, progress=progress)
            except HeadMoved:
                continue
            self._looked = head
            return self._pinned(base, head)
        raise BackendError(
            f"{self.spec.text} changes faster than it can be read.",
            hint="Ask again in a moment.",
            kind="hub",
        )

    def last(self) -> Found | None:
        """Return the snapshot that was fetched last if all of it is still here; asks no network."""
        known = self._recorded()
        if known is None or known.head.is_empty:
            return None
        base = self.remote.kept(known.head)
        if base is None:
            return None
        with contextlib.suppress(OSError):
            os.utime(self.place / _RECORD)
        return Found(pinned=self._pinned(base, known.head), note=self.note(_AWAY))

    def note(self, why: str) -> str:
        """Return what to tell of an answer from the snapshot that was fetched last."""
        known = self._recorded()
        at = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(known.at_s if known else None))
        return f"{self.spec.text} {why}: answered from the copy of {at}."

    def _recorded(self) -> Snapshot | None:
        try:
            raw = (self.place / _RECORD).read_bytes()
            known = msgspec.json.decode(raw, type=Snapshot)
        except (OSError, msgspec.MsgspecError):
            return None
        return known if known.text == self.spec.text else None

    def _pinned(self, base: Path, head: Head) -> Pinned:
        return Pinned(
            base=base,
            place=self.place,
            revision=head.revision,
            version=head.version,
            told=lambda: told_in(base),
        )

    def keep(self) -> None:
        """Note that what was looked at last can be read: it is what `last` gives from now on."""
        if self._looked is None:
            return
        known = Snapshot(text=self.spec.text, head=self._looked, at_s=time.time())
        with contextlib.suppress(OSError):  # then there is none to fall back on
            make_private(self.place)
            fresh = self.place / f"{_RECORD}.{threading.get_ident()}"
            fresh.write_bytes(msgspec.json.encode(known))
            fresh.replace(self.place / _RECORD)
        self._drop_unread()

    def _drop_unread(self) -> None:
        """Remove what is kept here of other memories that nobody reads any more."""
        for record in self.place.parent.glob(f"*/{_RECORD}"):
            with contextlib.suppress(OSError):
                if time.time() - record.stat().st_mtime > _UNREAD_S:
                    shutil.rmtree(self._copies / record.parent.name, ignore_errors=True)
                    shutil.rmtree(record.parent, ignore_errors=True)


def told_in(base: Path) -> Told:
    """Return what is published of sessions beside their rows; nothing where it cannot be read."""
    try:
        facts = read_facts(base / SESSIONS)
    except Exception as exc:  # it is anybody's file
        _log.info("%s cannot be read (%s)", SESSIONS, type(exc).__name__)
        return {}
    return {name: asdict(fact) for name, fact in facts.sessions.items()}


def readable(spec: MemorySpec, ask: Callable[[], Opened]) -> Opened:
    """Return what opening a snapshot gives; what is wrong with it is told of the memory.

    Raises:
        MemoryStateError: kind `not_a_memory` or `damaged`, or as `ask` does.
    """
    try:
        return ask()
    except FunesError as exc:
        if exc.kind == "foreign":
            raise MemoryStateError(
                f"{spec.text} holds a dataset that is no memory ({_reason(exc)}).",
                hint="Check its name.",
                kind="not_a_memory",
            ) from exc
        if exc.kind == "damaged":
            raise _damaged(spec, exc) from exc
        raise
    except (OSError, ValueError, RuntimeError) as exc:  # lancedb and Arrow, over files of others
        raise _damaged(spec, exc) from exc


def _damaged(spec: MemorySpec, exc: Exception) -> MemoryStateError:
    _log.info("%s cannot be read: %s", spec.text, type(exc).__name__)
    return MemoryStateError(
        f"The dataset of {spec.text} cannot be read: it is incomplete or damaged.",
        hint="Whoever publishes it can push it anew.",
        kind="damaged",
    )


def _reason(exc: FunesError) -> str:
    found = exc.message.partition("(")[2].rpartition(")")[0]
    return found[:200] or "other columns"


#: Brings what is derived from a memory to a snapshot, and returns what ends that.
Advance = Callable[[Pinned], Callable[[], None]]


def _nothing() -> None:
    """Do nothing."""


class Watch:
    """Looks after one memory elsewhere on threads of its own: no question waits for long."""

    def __init__(self, memory: RemoteMemory, advance: Advance) -> None:
        """Know nothing yet.

        Args:
            memory: Which.
            advance: Brings what is derived from it to a snapshot; called from the thread. What it
                returns is called once questions are answered from that snapshot.
        """
        self.memory = memory
        self._advance = advance
        self._lock = threading.Lock()
        self._found: Found | None = None
        self._error: FunesError | None = None
        self._looked_at = float("-inf")
        self._asked_at = float("-inf")
        self._done: threading.Event | None = None
        self._is_slow = False
        self._progress: tuple[int, int | None] = (0, None)

    def found(self, *, waits: bool = True) -> Found:
        """Return what there is to answer from; looks for what is new when that is due.

        Args:
            waits: Whether a moment may pass for what is new.

        Raises:
            MemoryStateError: the memory refuses to be read, or nothing of it is here yet.
            BackendError: kind `hub`: as before, for a Hub that fails.
        """
        self._asked_at = time.monotonic()
        error = self._error
        refused = error is not None and error.kind not in _PASSING
        known = self._known() is not None  # before anything is known to fail
        looking = self._begin(min(LOOK_S, _AGAIN_S) if refused else LOOK_S)
        if looking is not None:
            wait_s = WAIT_S if waits and not self._is_slow else 0.0
            self._is_slow = not looking.wait(wait_s if known else FIRST_WAIT_S) and waits
        with self._lock:
            found, error = self._found, self._error
        if error is not None and (error.kind not in _PASSING or found is None):
            raise error
        if found is None:
            raise self._not_yet()
        return found

    def look_ahead(self) -> None:
        """Look for what is new while the memory is in use."""
        if time.monotonic() - self._asked_at < LOOK_AHEAD_S * 10:
            self._begin(LOOK_AHEAD_S)

    def _begin(self, after_s: float) -> threading.Event | None:
        """Begin to look unless that was done lately; return what tells the end of it."""
        with self._lock:
            if self._done is None and time.monotonic() - self._looked_at >= after_s:
                self._done, self._is_slow = threading.Event(), False
                threading.Thread(target=self._look, name="remote", daemon=True).start()
            return self._done

    def _look(self) -> None:
        error: FunesError | None = None
        found: Found | None = None
        finish: Callable[[], None] = _nothing
        try:
            pinned = self.memory.look(progress=self._tell)
            if self._found is None or self._found.pinned.revision != pinned.revision:
                finish = readable(self.memory.spec, lambda: self._advance(pinned))
            self.memory.keep()
            found = Found(pinned=pinned)
        except FunesError as exc:
            error = exc
        except Exception as exc:  # its message may quote what is in the memory
            where = "".join(traceback.format_tb(exc.__traceback__))
            _log.error("looking at a memory elsewhere failed\n%s%s", where, type(exc).__name__)
            error = BackendError(
                f"{self.memory.spec.text} could not be looked at.",
                hint="The engine's log says why.",
                kind="hub",
            )
        with self._lock:
            self._error, self._looked_at = error, time.monotonic()
            if found is not None:
                self._found = found
            elif self._found is not None and error is not None:
                why = _AWAY if error.kind in OUT_OF_REACH else _BROKEN
                self._found = Found(pinned=self._found.pinned, note=self.memory.note(why))
            done = self._done
        try:
            finish()
        except (FunesError, OSError, ValueError, RuntimeError) as exc:
            _log.info("what is open is not made current (%s)", type(exc).__name__)
        finally:
            with self._lock:
                self._done = None
            if done is not None:
                done.set()

    def _known(self) -> Found | None:
        """Return what is known, at first what was fetched by an earlier process."""
        if self._found is None:
            last = self.memory.last()
            with self._lock:
                if self._found is None and last is not None:
                    self._found = Found(pinned=last.pinned, note=self.memory.note(_SLOW))
        return self._found

    def _tell(self, done: int, total: int | None) -> None:
        self._progress = (done, total)

    def _not_yet(self) -> MemoryStateError:
        done, total = (round((n or 0) / 1e6, 1) for n in self._progress)
        how_far = f" ({done:g} of {total:g} MB)" if total else ""
        # Before anything has come it may well be a place that never answers.
        is_coming = f"is being fetched{how_far}" if done or total else _SLOW
        return MemoryStateError(
            f"{self.memory.spec.text} {is_coming}.",
            hint="Ask again in a moment.",
            kind="fetching",
        )
