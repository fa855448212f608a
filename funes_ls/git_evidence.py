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
from typing import Literal

from msgspec import Struct

from funes_ls import agent_trace, git_lines, git_notes
from funes_ls.git_lines import Blame, Origin
from funes_ls.indexer.git import end_running
from funes_ls.retrieval.diff import pairs

_log = logging.getLogger(__name__)

#: How long an answer waits, and how long what was begun for it may take.
_PATIENCE_S = 0.3
_LONGEST_S = 30.0
#: Lines up to which a file is asked about whole, and the steps in which of larger ones.
_WHOLE = 6_000
_STEP = 1_000
_MOST_FILES = 64
#: So long a folder's repository is taken to be the same.
_ROOT_S = 10.0
_MOST_FOLDERS = 1_000
_MOST_AT_ONCE = 4
#: The harness of each name that others have for it.
_HARNESSES = {
    "claude": "claude_code",
    "claude-code": "claude_code",
    "codex": "codex",
    "codex-cli": "codex",
    "hermes": "hermes",
    "hermes-agent": "hermes",
    "pi": "pi",
    "pi-agent": "pi",
    "pi-coding-agent": "pi",
}


class Evidence(Struct, frozen=True, kw_only=True):
    """Lines of a document and who is recorded to have written them.

    Attributes:
        start: From 1, as is `end`, which is included.
        who: `ai`, `human`, `mixed` or `unknown`.
        tool: As the record names the agent; `harness` is our name for it, "" if it has none.
        session_ids: What may name the session; see `is_of`.
        keys: Of git-ai: digests of the session's id.
        tool_use_id: The call that wrote the lines, where it is recorded.
        ts_us: They were written no later.
        path: Of the file they were written in, from the project's root.
        prompt: What the user asked, where it is recorded.
    """

    start: int
    end: int
    kind: Literal["git-ai", "agent-trace"]
    who: str
    tool: str
    harness: str
    session_ids: tuple[str, ...]
    keys: tuple[str, ...] = ()
    tool_use_id: str = ""
    url: str = ""
    model: str = ""
    ts_us: int | None = None
    path: str = ""
    prompt: str = ""

    def is_of(self, session_id: str) -> bool:
        """Return whether this speaks of a session of ours, by its id or a digest of it."""
        if session_id.partition("@")[0] in self.session_ids:
            return True
        named = () if self.session_ids else self.keys
        tools = [self.tool] if self.tool else ["claude", "codex", "pi", "hermes"]
        return any(key in named for tool in tools for key in git_notes.keys_of(tool, session_id))


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


class _Known(Struct, frozen=True, kw_only=True):
    """What git says of some lines of a committed file."""

    place: git_lines.Place
    first: int = 1
    last: int = 0
    texts: Sequence[str] = ()
    blame: Blame = Blame(origins={}, until_us={})
    notes: dict[str, git_notes.Note] = {}


class GitEvidence:
    """Asks git and the records beside it; keeps what it learned of the last files."""

    def __init__(self, *, patience_s: float = _PATIENCE_S, longest_s: float = _LONGEST_S) -> None:
        """Take the time limits: of an answer, and of what is begun for it."""
        self._patience_s = patience_s
        self._longest_s = longest_s
        self._guard = threading.Lock()
        self._asked: dict[tuple[str, int, int], Future[_Known | None]] = {}
        self._roots: dict[str, tuple[str, float]] = {}
        self._known: OrderedDict[tuple[git_lines.Place, int, int], _Known] = OrderedDict()

    def line_times(
        self, path: Path, lines: Sequence[str] | None = None, first: int = 1, last: int = 0
    ) -> tuple[int | None, ...]:
        """Return until when lines can have been written; see `Findings.times` and `look`."""
        return self.look(path, lines, first, last).times

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
        saved = _saved(path)
        lines = lines if lines is not None else saved[0]
        last = min(last or len(lines), len(lines))
        first = max(first, 1)
        if first > last:
            return Findings(times=(), evidence=(), is_complete=True)
        known, is_complete = self._wait(path, lines, first, last)
        now = _now(known, lines, saved)
        times = tuple(
            now.until_us.get(origin.commit) if origin else None
            for origin in now.origins[first - 1 : last]
        )
        witnesses = _witnesses(known, now, path)
        return Findings(
            times=times,
            evidence=tuple(_gathered(witnesses[first - 1 : last], first)),
            is_complete=is_complete,
        )

    def close(self) -> None:
        """End what still runs."""
        end_running()

    def _wait(
        self, path: Path, lines: Sequence[str], first: int, last: int
    ) -> tuple[_Known | None, bool]:
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
        self, key: tuple[str, int, int], learn: Callable[[], _Known | None]
    ) -> "Future[_Known | None] | None":
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
        future: "Future[_Known | None]",
        learn: Callable[[], _Known | None],
    ) -> None:
        found: _Known | None = None
        try:
            found = learn()
        except Exception:
            _log.exception("what git knows could not be found out")
        finally:
            with self._guard:
                del self._asked[key]
            future.set_result(found)

    def _learn(self, path: Path, lines: Sequence[str], first: int, last: int) -> _Known | None:
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
    ) -> _Known | None:
        with self._guard:
            mine = [one for one in self._known.values() if one.place == place]
        for one in mine:
            low, high = _stretch(lines, first, last, one.texts)
            if one.first <= low and high <= one.last:
                return one
        return None

    def _keep(self, known: _Known) -> None:
        with self._guard:
            self._known[known.place, known.first, known.last] = known
            while len(self._known) > _MOST_FILES:
                self._known.popitem(last=False)


def _asked_of_git(
    place: git_lines.Place,
    lines: Sequence[str],
    first: int,
    last: int,
    deadline: float,
) -> _Known:
    nothing = _Known(place=place)
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
    return _Known(
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


def _saved(path: Path) -> tuple[list[str], int | None]:
    """Return the lines of a file and when it was written."""
    with contextlib.suppress(OSError, ValueError):
        if path.is_file():
            stamp = path.stat().st_mtime_ns // 1_000
            text = path.read_bytes().decode("utf-8", "surrogateescape").removeprefix("\ufeff")
            return text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), stamp
    return [], None


def _now(
    known: _Known | None, lines: Sequence[str], saved: tuple[list[str], int | None]
) -> agent_trace.Now:
    origins: list[Origin | None] = [None] * len(lines)
    if known is not None:
        for i, j in pairs(known.texts, lines):
            origins[j] = known.blame.origins.get(i + 1)
    return agent_trace.Now(
        lines=lines,
        origins=origins,
        until_us=known.blame.until_us if known else {},
        saved_us=saved[1] if list(lines) == saved[0] else None,
    )


def _witnesses(
    known: _Known | None, now: agent_trace.Now, path: Path
) -> list[tuple[str, git_notes.Author | agent_trace.Range, int | None, str] | None]:
    """Return what is recorded of each line: git-ai's notes first, then Agent Trace records."""
    found: list[tuple[str, git_notes.Author | agent_trace.Range, int | None, str] | None]
    found = [None] * len(now.lines)
    root, name = (Path(known.place.root), known.place.path) if known else _project(path)
    for start, end, record in agent_trace.claims(agent_trace.ranges_of(root, name), now):
        found[start:end] = [("agent-trace", record, record.ts_us, record.path)] * (end - start)
    for n, origin in enumerate(now.origins):
        note = known.notes.get(origin.commit) if known and origin else None
        author = note.author(origin.path, origin.line) if note and origin else None
        if author is not None and origin is not None:
            found[n] = ("git-ai", author, now.until_us.get(origin.commit), origin.path)
    return found


def _project(path: Path) -> tuple[Path, str]:
    """Return the nearest folder with Agent Trace records above a file, and its path from there."""
    real = Path(git_lines.resolved(path))
    with contextlib.suppress(OSError, ValueError):
        for folder in real.parents:
            if (folder / agent_trace.FOLDER).is_dir():
                return folder, real.relative_to(folder).as_posix()
    return real.parent, real.name


def _gathered(
    witnesses: Sequence[tuple[str, git_notes.Author | agent_trace.Range, int | None, str] | None],
    first: int,
) -> list[Evidence]:
    found: list[Evidence] = []
    start = 0
    for n in range(1, len(witnesses) + 1):
        if n < len(witnesses) and witnesses[n] == witnesses[start]:
            continue
        witness = witnesses[start]
        if witness is not None:
            found.append(_evidence(witness, first + start, first + n - 1))
        start = n
    return found


def _evidence(
    witness: tuple[str, git_notes.Author | agent_trace.Range, int | None, str], start: int, end: int
) -> Evidence:
    _, record, ts_us, path = witness
    harness = _HARNESSES.get(record.tool.lower().replace("_", "-").replace(" ", "-"), "")
    if isinstance(record, git_notes.Author):
        return Evidence(
            start=start,
            end=end,
            kind="git-ai",
            who=record.who,
            tool=record.tool,
            harness=harness,
            session_ids=(record.session_id,) if record.session_id else (),
            keys=(record.key,),
            model=record.model,
            ts_us=ts_us,
            path=path,
            prompt=record.prompt,
        )
    return Evidence(
        start=start,
        end=end,
        kind="agent-trace",
        who=record.who,
        tool=record.tool,
        harness=harness,
        session_ids=record.session_ids,
        tool_use_id=record.tool_use_id,
        url=record.url,
        model=record.model,
        ts_us=ts_us,
        path=path,
    )
