"""What others than the traces know of a file's lines: until when each was written, and by whom.

Three witnesses: git (the commit that last changed a line), git-ai's notes and Agent Trace records.
They are asked within a time limit. What takes longer goes on and is there for the next question.
"""

import contextlib
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as OutOfTime
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct

from funes_ls import agent_trace, git_lines, git_notes
from funes_ls.git_views import Evidence, Known, View, gathered, project_of, view_of
from funes_ls.indexer.git import end_running
from funes_ls.retrieval.diff import pairs
from funes_ls.source_text import lines_of, read_text

T = TypeVar("T")

_log = logging.getLogger(__name__)

#: How long an answer waits, and how long what was begun for it may take.
_PATIENCE_S = 0.3
_LONGEST_S = 30.0
#: Lines up to which a file is asked about whole, and the steps in which of larger ones.
_WHOLE = 6_000
_STEP = 1_000
#: Lines kept in memory, some 300 bytes each.
_MOST_LINES = 100_000
#: So long a folder's repository is taken to be the same.
_ROOT_S = 10.0
_MOST_FOLDERS = 1_000
_MOST_AT_ONCE = 4


class Findings(Struct, frozen=True, kw_only=True):
    """What was found out about some lines of a document.

    Attributes:
        times: By line, from the first that was asked about: UTC microseconds after which it
            cannot have been written, None where nothing is known (it is not committed so).
        evidence: In the order of the document, no line twice.
        is_complete: There was time for all of it.
    """

    times: tuple[int | None, ...]
    evidence: tuple[Evidence, ...]
    is_complete: bool


class GitEvidence:
    """Asks git and the records beside it; keeps what it learned of the last files."""

    def __init__(self, *, patience_s: float = _PATIENCE_S, longest_s: float = _LONGEST_S) -> None:
        """Take the time limits: of an answer, and of what is begun for it."""
        self._patience_s = patience_s
        self._longest_s = longest_s
        self._guard = threading.Lock()
        self._asked: dict[tuple[str, int, int], Future[Known | None]] = {}
        self._roots: dict[str, tuple[str, float]] = {}
        self._views: _Kept[View] = _Kept()
        self._known: _Kept[Known] = _Kept()

    def look(
        self, path: Path, lines: Sequence[str] | None = None, first: int = 1, last: int = 0
    ) -> Findings:
        """Return what is known of the lines `first` to `last` of a document.

        Args:
            path: Of its file.
            lines: Of its text, without their ends; None: as they are on the disk.
            first: From 1.
            last: Included; 0 is the last there is.
        """
        lines = _lines_on_disk(path) if lines is None else lines
        last = min(last or len(lines), len(lines))
        first = max(first, 1)
        if first > last:
            return Findings(times=(), evidence=(), is_complete=True)
        known, is_complete = self._wait(path, lines, first, last)
        try:
            view = self._view(path, lines, known)
        except (OSError, ValueError):  # folders that were moved or linked anew meanwhile
            view = View(times=(None,) * len(lines), witnesses=(None,) * len(lines))
        return Findings(
            times=view.times[first - 1 : last],
            evidence=tuple(gathered(view.witnesses[first - 1 : last], first)),
            is_complete=is_complete,
        )

    def _view(self, path: Path, lines: Sequence[str], known: Known | None) -> View:
        """Return what is known of each line of a document; kept while nothing changes."""
        folder = project_of(path, known)
        stamps = agent_trace.stamps_of(folder) if folder else ()
        version = (known.place, known.first, known.last) if known else None
        key = (path, hash(tuple(lines)), len(lines), version, stamps)
        with self._guard:
            view = self._views.get(key)
        if view is None:
            view = view_of(path, lines, known, folder, stamps)
            with self._guard:
                self._views.keep(key, view, len(lines))
        return view

    def close(self) -> None:
        """End what still runs."""
        end_running()

    def _wait(
        self, path: Path, lines: Sequence[str], first: int, last: int
    ) -> tuple[Known | None, bool]:
        deadline = time.monotonic() + self._patience_s
        key = (os.fspath(path), (first - 1) // _STEP, (last - 1) // _STEP)
        future = self._begin(key, lambda: self._learn(path, lines, first, last))
        if future is None:
            return None, False
        try:
            return future.result(max(deadline - time.monotonic(), 0)), True
        except OutOfTime:
            return None, False

    def _begin(
        self, key: tuple[str, int, int], learn: Callable[[], Known | None]
    ) -> "Future[Known | None] | None":
        """Return what is being found out, by a thread of its own; None when too much already is."""
        with self._guard:
            future = self._asked.get(key)
            if future is not None:
                return future
            if len(self._asked) >= _MOST_AT_ONCE:
                return None
            future = self._asked[key] = Future()
        thread = threading.Thread(
            target=self._work, args=(key, future, learn), name="git-evidence", daemon=True
        )
        thread.start()
        return future

    def _work(
        self,
        key: tuple[str, int, int],
        future: "Future[Known | None]",
        learn: Callable[[], Known | None],
    ) -> None:
        found: Known | None = None
        try:
            found = learn()
        except Exception:
            _log.exception("what git knows could not be found out")
        finally:
            with self._guard:
                del self._asked[key]
            future.set_result(found)

    def _learn(self, path: Path, lines: Sequence[str], first: int, last: int) -> Known | None:
        deadline = time.monotonic() + self._longest_s
        root = self._root(git_lines.folder_of(path), deadline)
        place = git_lines.place_of(path, root, deadline) if root else None
        if place is None:
            return None
        found = self._recall(place, lines, first, last)
        if found is None:
            found = _asked_of_git(place, lines, first, last, deadline)
            if found.last:
                self._keep(found)
        return found

    def _root(self, folder: str, deadline: float) -> str:
        now = time.monotonic()
        root, until = self._roots.get(folder, ("", 0.0))
        if until < now:
            root = git_lines.root_of(folder, deadline)
            if len(self._roots) >= _MOST_FOLDERS:
                self._roots.clear()
            self._roots[folder] = root, now + _ROOT_S
        return root

    def _recall(
        self,
        place: git_lines.Place,
        lines: Sequence[str],
        first: int,
        last: int,
    ) -> Known | None:
        with self._guard:
            mine = [one for one in self._known.values() if one.place == place]
        for one in mine:
            low, high = _stretch(lines, first, last, one.texts)
            if one.first <= low and high <= one.last:
                return one
        return None

    def _keep(self, known: Known) -> None:
        with self._guard:
            self._known.keep((known.place, known.first, known.last), known, len(known.texts))


class _Kept(Generic[T]):
    """The things last kept, as many as have so many lines together."""

    def __init__(self) -> None:
        self._kept: OrderedDict[object, tuple[T, int]] = OrderedDict()
        self._lines = 0

    def keep(self, key: object, thing: T, lines: int) -> None:
        """Keep a thing instead of the oldest ones."""
        self._lines += lines - self._kept.pop(key, (thing, 0))[1]
        self._kept[key] = thing, lines
        while self._lines > _MOST_LINES and len(self._kept) > 1:
            self._lines -= self._kept.popitem(last=False)[1][1]

    def get(self, key: object) -> T | None:
        """Return a thing, None if it is not kept; it is the last one to go then."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def values(self) -> list[T]:
        """Return all that is kept."""
        return [thing for thing, _ in self._kept.values()]


def _asked_of_git(
    place: git_lines.Place,
    lines: Sequence[str],
    first: int,
    last: int,
    deadline: float,
) -> Known:
    nothing = Known(place=place)
    blob = git_lines.blob_of(place, deadline)
    texts = git_lines.text_of(place, blob, deadline) if blob else None
    if blob is None or not texts:
        return nothing
    low, high = _stretch(lines, first, last, texts)
    count = len(texts) - (not texts[-1])
    blame = git_lines.blame_of(place, blob, low, min(high, count), deadline) if count else None
    if blame is None:
        return nothing
    notes = git_notes.notes_of(place, blame.until_us, deadline) if place.notes else {}
    return Known(
        place=place,
        first=low,
        last=high,
        texts=texts,
        blame=blame,
        notes=notes or {},
    )


def _stretch(lines: Sequence[str], first: int, last: int, texts: Sequence[str]) -> tuple[int, int]:
    """Return which committed lines matter for lines of a document: all of a file not too large."""
    if len(texts) <= _WHOLE:
        return 1, len(texts)
    there = [i for i, j in pairs(texts, lines) if first - 1 <= j < last]
    if not there:
        return 1, 1
    low, high = there[0] // _STEP * _STEP, (there[-1] // _STEP + 1) * _STEP
    return low + 1, min(high, len(texts))


def _lines_on_disk(path: Path) -> list[str]:
    with contextlib.suppress(OSError, ValueError):
        text = read_text(path) if path.is_file() else None
        return lines_of(text) if text is not None else []
    return []
