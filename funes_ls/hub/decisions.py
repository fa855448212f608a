"""What was decided of a memory elsewhere on this machine: a file of lines that a person may edit.

    project acme/api
    include 0ccf1a04-… 134
    exclude 77aa01c2-…
    withhold 088ee3e13e4321bc

`project` limits the memory to one repository's sessions, of which only included ones go. Without
it every session goes that is not excluded. `withhold` keeps back one block, by its first chunk.
Comments, blank lines and the order of lines stay as they are; the last line of a session counts.
"""

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from funes_ls.hub.spec import MemorySpec
from funes_ls.indexer.catalog import Session
from funes_ls.indexer.errors import BackendError
from funes_ls.indexer.home import make_private

Verdict = Literal["include", "exclude"]
_WORDS = ("project", "include", "exclude", "withhold")
#: The start of an id stands for it from so many characters on.
LEAST_CHARS = 4
#: A name with blanks or signs that would be misread stands in quotes, as in JSON.
_NAME = r'"(?:[^"\\]|\\.)*"|[^\s"]\S*'
_CHUNK_ID = re.compile(r"[0-9a-f]{16}")
_PLAIN = re.compile(r"[A-Za-z0-9_.:@/+-]+")
_LINE = re.compile(rf"\s*({'|'.join(_WORDS)})\s+({_NAME})(?:\s+(\d+))?\s*(?:#.*)?")
_HEAD = """# What may be published to {memory} from this machine. One decision a line:
#   project OWNER/NAME        only sessions of this repository, and of them only included ones
#   include SESSION [CHUNKS]  goes; once it has more chunks it is to be looked at again
#   exclude SESSION           stays here, its sub-agents with it
#   withhold CHUNK            the block that begins with this chunk stays here
# Without `project` everything goes that is not excluded.
"""


class Decisions(Struct, kw_only=True):
    """The decisions of one memory.

    Attributes:
        project: Repository it is of; "" when it takes every session.
        included: Session -> its chunks when it was looked at, None for any number.
        excluded: Sessions that stay.
        withheld: First chunks of blocks that stay.
    """

    project: str = ""
    included: dict[str, int | None] = {}
    excluded: set[str] = set()
    withheld: set[str] = set()
    lines: list[str] = []

    def decide(self, session_id: str, verdict: Verdict | None, *, chunks: int = 0) -> None:
        """Note a decision of a session; None takes back what was decided."""
        self._drop(("include", "exclude"), session_id)
        self.included.pop(session_id, None)
        self.excluded.discard(session_id)
        if verdict == "include":
            self.included[session_id] = chunks
            self.lines.append(f"include {_quoted(session_id)} {chunks}")
        elif verdict == "exclude":
            self.excluded.add(session_id)
            self.lines.append(f"exclude {_quoted(session_id)}")

    def withhold(self, block: str, *, back: bool) -> None:
        """Keep a block back, or let it go again."""
        self._drop(("withhold",), block)
        self.withheld.discard(block)
        if back:
            self.withheld.add(block)
            self.lines.append(f"withhold {_quoted(block)}")

    def name_project(self, project: str) -> None:
        """Limit the memory to a repository's sessions; "" takes every session again."""
        self._drop(("project",), self.project)
        self.project = project
        if project:
            at = next((n for n, line in enumerate(self.lines) if not line.startswith("#")),
                      len(self.lines))  # fmt: skip
            self.lines.insert(at, f"project {_quoted(project)}")

    def state_of(self, session: Session) -> Literal["include", "exclude", "pending"]:
        """Return what is decided of a session by itself; see `choice`."""
        if self.is_excluded(session.session_id):
            return "exclude"
        if session.session_id in self.included:
            upto = self.included[session.session_id]
            return "include" if upto is None or session.chunks <= upto else "pending"
        return "pending" if self.project else "include"

    def is_excluded(self, session_id: str) -> bool:
        """Return whether a session stays, also where a person wrote only the start of its id."""
        if session_id in self.excluded or session_id in self.included:
            return session_id in self.excluded
        return any(
            session_id.startswith(start) for start in self.excluded if len(start) >= LEAST_CHARS
        )

    def _drop(self, words: Sequence[str], name: str) -> None:
        def is_it(line: str) -> bool:
            found = _LINE.fullmatch(line)
            return found is not None and found[1] in words and _plain(found[2]) == name

        self.lines = [line for line in self.lines if not is_it(line)]


class Choice(Struct, kw_only=True):
    """Which sessions of the local memory may go to a memory elsewhere, and why others may not.

    Attributes:
        going: Sessions that may.
        pending: Sessions of the project that are still to be looked at.
        excluded: Sessions that were decided against.
        other: Sessions of other repositories, or of none that is known.
    """

    going: set[str] = set()
    pending: set[str] = set()
    excluded: set[str] = set()
    other: set[str] = set()


def choice(decisions: Decisions, sessions: Iterable[Session]) -> Choice:
    """Return which sessions may go; a sub-agent's goes and stays with that which started it."""
    every = list(sessions)
    by_name = {name: one for one in every for name in (one.inner_id, one.session_id) if name}
    made = Choice()
    for one in every:
        root = _root(one, by_name)
        if decisions.project and decisions.project not in root.repo.split():
            made.other.add(one.session_id)
            continue
        state = decisions.state_of(root) if root is not one else decisions.state_of(one)
        if decisions.is_excluded(one.session_id):
            state = "exclude"
        target = {"include": made.going, "exclude": made.excluded, "pending": made.pending}[state]
        target.add(one.session_id)
    return made


def _root(session: Session, by_name: dict[str, Session]) -> Session:
    """Return the session that started a sub-agent, through any number of others."""
    seen = {session.session_id}
    while session.subagent and session.parent_id:
        parent = by_name.get(session.parent_id)
        if parent is None or parent.session_id in seen:
            break
        seen.add(parent.session_id)
        session = parent
    return session


def decisions_path(home: Path, spec: MemorySpec) -> Path:
    """Return the file of a memory's decisions; named so that a person finds it."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", spec.text.partition("://")[2] or spec.text).strip("-.")
    return home / "curation" / f"{name[:80]}-{spec.key[:8]}.txt"


def read_decisions(home: Path, spec: MemorySpec) -> Decisions:
    """Return what is decided of a memory, nothing where there is no file.

    Raises:
        BackendError: kind `disk` or `bad_decisions`: the file is there and cannot be read, so
            that nobody knows what is to stay.
    """
    path = decisions_path(home, spec)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return Decisions()
    except (OSError, ValueError) as exc:
        raise BackendError(
            f"What was decided of {spec.text} cannot be read at {path}.",
            hint="Mend the file; until then nothing is published there.",
            kind="disk",
        ) from exc
    return _parsed(text, path)


def _parsed(text: str, path: Path) -> Decisions:
    found = Decisions(lines=text.splitlines())
    for number, line in enumerate(found.lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        parts = _LINE.fullmatch(line)
        if parts is None:
            raise _no_decision(number, path)
        word, name, count = parts[1], _plain(parts[2]), parts[3]
        if word == "project":
            found.project = name
        elif word == "withhold":
            if not _CHUNK_ID.fullmatch(name):
                raise _no_decision(number, path)
            found.withheld.add(name)
        elif word == "include":
            found.excluded.discard(name)
            found.included[name] = int(count) if count else None
        else:
            found.included.pop(name, None)
            found.excluded.add(name)
    return found


def _no_decision(number: int, path: Path) -> BackendError:
    return BackendError(
        f"Line {number} of {path} is no decision.",
        hint=f"A line is one of: {', '.join(_WORDS)}, followed by a name; or a comment.",
        kind="bad_decisions",
    )


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name)


def _plain(name: str) -> str:
    """Return a name without the quotes it may stand in."""
    try:
        return str(json.loads(name)) if name.startswith('"') else name
    except ValueError:
        return name


def write_decisions(home: Path, spec: MemorySpec, decisions: Decisions) -> Path:
    """Write what was decided, in one step; return the file."""
    path = decisions_path(home, spec)
    lines = decisions.lines or []
    if not path.exists() and not any(line.startswith("#") for line in lines):
        lines = [*_HEAD.format(memory=spec.text).splitlines(), *lines]
        decisions.lines = lines
    try:
        make_private(path.parent)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as exc:
        raise BackendError(
            f"What was decided cannot be written at {path} ({exc.strerror or exc}).",
            hint="Make the folder writable and decide again.",
            kind="disk",
        ) from exc
    return path
