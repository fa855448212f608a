"""Puts together, line by line, what git, git-ai's notes and Agent Trace records say of a text."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from funes_ls import agent_trace, git_lines, git_notes
from funes_ls.git_lines import Blame, Origin
from funes_ls.retrieval.diff import pairs
from funes_ls.source_text import lines_of, read_text

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


class Known(Struct, frozen=True, kw_only=True):
    """What git says of some lines of a committed file."""

    place: git_lines.Place
    first: int = 1
    last: int = 0
    texts: Sequence[str] = ()
    blame: Blame = Blame(origins={}, until_us={})
    notes: dict[str, git_notes.Note] = {}


#: What is recorded of a line, until when it was written and in which file.
_Witness = tuple[git_notes.Author | agent_trace.Range, int | None, str]


class View(Struct, frozen=True, kw_only=True):
    """What is known of each line of a document."""

    times: tuple[int | None, ...]
    witnesses: Sequence[_Witness | None]


def view_of(
    path: Path,
    lines: Sequence[str],
    known: Known | None,
    folder: Path | None,
    stamps: agent_trace.Stamps,
) -> View:
    """Return what is known of each line of a document.

    Args:
        path: Of its file.
        lines: Of its text.
        known: What git says, as far as it said anything.
        folder: Of the project that has Agent Trace records; see `project_of`.
        stamps: Of the files of records.
    """
    origins: list[Origin | None] = [None] * len(lines)
    if known is not None:
        for i, j in pairs(known.texts, lines):
            origins[j] = known.blame.origins.get(i + 1)
    until = known.blame.until_us if known else {}
    witnesses: list[_Witness | None] = [None] * len(lines)
    if folder is not None and stamps:
        witnesses = _recorded(path, lines, known, origins, folder, stamps)
    for n, origin in enumerate(origins):
        note = known.notes.get(origin.commit) if known and origin else None
        author = note.author(origin.path, origin.line) if note and origin else None
        if author is not None and origin is not None:
            witnesses[n] = (author, until.get(origin.commit), origin.path)
    times = tuple(until.get(origin.commit) if origin else None for origin in origins)
    return View(times=times, witnesses=witnesses)


def _recorded(
    path: Path,
    lines: Sequence[str],
    known: Known | None,
    origins: Sequence[Origin | None],
    folder: Path,
    stamps: agent_trace.Stamps,
) -> list[_Witness | None]:
    """Return what Agent Trace records say of each line."""
    real = Path(git_lines.resolved(path))
    root = Path(known.place.root) if known else folder
    inside = folder.relative_to(root).as_posix()
    prefix = "" if inside == "." else f"{inside}/"
    local = [
        Origin(one.commit, one.path.removeprefix(prefix), one.line) if one else None
        for one in origins
    ]
    names = [real.relative_to(folder).as_posix(), *(one.path for one in local if one)]
    ranges = agent_trace.ranges_of(stamps, folder, dict.fromkeys(names))
    if not ranges:
        return [None] * len(lines)
    now = agent_trace.Now(
        lines=lines,
        origins=local,
        until_us=known.blame.until_us if known else {},
        saved_us=_saved_us(path, lines),
    )
    return [
        (one, one.ts_us, prefix + one.path) if one else None
        for one in agent_trace.claims(ranges, now)
    ]


def project_of(path: Path, known: Known | None) -> Path | None:
    """Return the nearest folder with Agent Trace records above a file, not above its repository."""
    real = Path(git_lines.resolved(path))
    with contextlib.suppress(OSError, ValueError):
        for folder in real.parents:
            if (folder / agent_trace.FOLDER).is_dir():
                return folder
            if known is not None and folder == Path(known.place.root):
                return None
    return None


def gathered(witnesses: Sequence[_Witness | None], first: int) -> list[Evidence]:
    """Return what is recorded of lines, as few stretches as there can be.

    Args:
        witnesses: By line.
        first: The number of the first of them.
    """
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


def _evidence(witness: _Witness, start: int, end: int) -> Evidence:
    record, ts_us, path = witness
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


def _saved_us(path: Path, lines: Sequence[str]) -> int | None:
    """Return when a file was written, None where it does not hold these lines."""
    with contextlib.suppress(OSError, ValueError):
        stamp = path.stat().st_mtime_ns // 1_000
        text = read_text(path)
        if text is not None and lines_of(text) == list(lines[:-1] if not lines[-1] else lines):
            return stamp
    return None
