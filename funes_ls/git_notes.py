"""Reads the notes git-ai leaves at commits: which lines of each file an agent's session wrote.

Source: Git AI Standard v3.0.0 (authorship logs under `refs/notes/ai`), and notes of git-ai 1.3 to
1.7, which also attest sessions (`s_…`, with the call after `::`) and known humans (`h_…`).
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct

from funes_ls.git_lines import Place
from funes_ls.indexer.git import ask_git

_SCHEMA = "authorship/3."
#: Notes may hold whole transcripts; one larger than this is passed over.
_LARGEST_BYTES = 8 << 20
#: Commits are named by their notes' paths, cut into folders up to this often.
_FANOUT = 3

Who = Literal["ai", "human"]


class Author(Struct, frozen=True, kw_only=True):
    """Who a note says wrote lines.

    Attributes:
        key: As the note names the author; see `keys_of`.
        tool: The agent, as git-ai calls it; "" for a human, or where the note does not say.
        session_id: As the agent names it; "" where the note does not say.
        prompt: What the user asked first, where the note has it.
    """

    key: str
    who: Who
    tool: str = ""
    session_id: str = ""
    model: str = ""
    prompt: str = ""


class Note(Struct, frozen=True, kw_only=True):
    """A note: by file, authors with the ranges of lines they wrote, the last one right."""

    files: dict[str, tuple[tuple[Author, tuple[tuple[int, int], ...]], ...]]

    def author(self, path: str, line: int) -> Author | None:
        """Return who wrote a line of a file as it was at the note's commit."""
        for author, ranges in reversed(self.files.get(path, ())):
            for start, end in ranges:
                if start <= line <= end:
                    return author
        return None


def keys_of(tool: str, session_id: str) -> tuple[str, ...]:
    """Return the keys that notes may give a session: of 16, 7 and (with `s_`) 14 digits."""
    digest = hashlib.sha256(f"{tool}:{session_id}".encode()).hexdigest()
    return digest[:16], digest[:7], f"s_{digest[:14]}"


def notes_of(place: Place, commits: Iterable[str], deadline: float) -> dict[str, Note] | None:
    """Return the notes that commits have, None where there was no time to read them.

    Args:
        place: Any of the repository.
        commits: Their full names.
        deadline: On `time.monotonic()`'s clock.
    """
    names = [(one, name) for one in commits for name in _paths(one)]
    query = "".join(f"{place.notes}:{name}\n" for _, name in names).encode()
    out = ask_git("cat-file", "--batch-check", cwd=place.root, deadline=deadline, stdin=query)
    if out is None:
        return None
    found: dict[str, str] = {}
    for (commit, _), line in zip(names, out.decode("utf-8", "replace").splitlines(), strict=False):
        fields = line.split()
        if len(fields) == 3 and fields[1] == "blob" and int(fields[2]) <= _LARGEST_BYTES:
            found.setdefault(commit, fields[0])
    return _read(place, found, deadline)


def _paths(commit: str) -> Iterable[str]:
    for cuts in range(_FANOUT + 1):
        folders = [commit[2 * n : 2 * n + 2] for n in range(cuts)]
        yield "/".join([*folders, commit[2 * cuts :]])


def _read(place: Place, blobs: dict[str, str], deadline: float) -> dict[str, Note] | None:
    if not blobs:
        return {}
    query = "".join(f"{sha}\n" for sha in blobs.values()).encode()
    out = ask_git("cat-file", "--batch", cwd=place.root, deadline=deadline, stdin=query)
    if out is None:
        return None
    notes: dict[str, Note] = {}
    at = 0
    for commit in blobs:
        end = out.index(b"\n", at)
        size = int(out[at:end].split()[2])
        note = parse_note(out[end + 1 : end + 1 + size])
        if note is not None:
            notes[commit] = note
        at = end + size + 2
    return notes


def parse_note(data: bytes) -> Note | None:
    """Return what a note says, None for one that is damaged or of another format."""
    lines = data.decode("utf-8", "replace").splitlines()
    if "---" not in lines:
        return None
    cut = lines.index("---")
    try:
        about = json.loads("\n".join(lines[cut + 1 :]))
    except (ValueError, RecursionError):
        return None
    if not isinstance(about, dict) or not str(about.get("schema_version")).startswith(_SCHEMA):
        return None
    return Note(files=_files(lines[:cut], about))


def _files(
    lines: Sequence[str], about: dict[str, Any]
) -> dict[str, tuple[tuple[Author, tuple[tuple[int, int], ...]], ...]]:
    files: dict[str, list[tuple[Author, tuple[tuple[int, int], ...]]]] = {}
    entries: list[tuple[Author, tuple[tuple[int, int], ...]]] = []
    for line in lines:
        if line and not line[0].isspace():
            name = line[1:-1] if len(line) > 1 and line[0] == line[-1] == '"' else line
            entries = files.setdefault(name, [])
            continue
        key, _, ranges = line.strip().partition(" ")
        author = _author(key, about)
        if author is not None:
            entries.append((author, _ranges(ranges)))
    return {name: tuple(found) for name, found in files.items()}


def _author(key: str, about: dict[str, Any]) -> Author | None:
    """Return whom a key names; a session that is not described is still known by its key."""
    key = key.partition("::")[0]
    if key.startswith("h_"):
        return Author(key=key, who="human")
    records = _dict(about.get("sessions" if key.startswith("s_") else "prompts"))
    record = _dict(records.get(key))
    agent = _dict(record.get("agent_id"))
    tool = _str(agent.get("tool"))
    if not key or tool == "human":
        return Author(key=key, who="human") if key else None
    return Author(
        key=key,
        who="ai",
        tool=tool,
        session_id=_str(agent.get("id")),
        model=_str(agent.get("model")),
        prompt=_first_ask(record.get("messages")),
    )


def _first_ask(messages: Any) -> str:
    for message in messages if isinstance(messages, list) else ():
        if _dict(message).get("type") == "user":
            return _str(message.get("text"))
    return ""


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    found = []
    for part in text.split(","):
        start, dash, end = part.strip().partition("-")
        if _is_number(start) and (_is_number(end) if dash else not end):
            found.append((int(start), int(end or start)))
    return tuple(found)


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) < 10


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""
