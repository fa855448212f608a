"""The sessions that may be published to a memory, and what of them would leave."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from funes_ls.hub.decisions import LEAST_CHARS, Decisions
from funes_ls.hub.folding import folded
from funes_ls.indexer.blocks import StoredBlock, blocks_of_rows
from funes_ls.indexer.catalog import Session
from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.memory import MemoryView
from funes_ls.indexer.names import is_scaffolding

State = Literal["include", "exclude", "pending"]
_REPO = re.compile(r"[^/\s]+/[^/\s]+")


class Candidate(Struct, frozen=True, kw_only=True):
    """A session to decide on; what its sub-agents left goes and stays with it."""

    session_id: str
    title: str
    harness: str
    repo: str
    ended_us: int | None
    chunks: int
    state: State


class Candidates(Struct, frozen=True, kw_only=True):
    """Sessions to decide on, newest first.

    Attributes:
        other: Sessions of other repositories.
        unresolvable: Sessions of no repository that is known.
    """

    sessions: tuple[Candidate, ...]
    other: int = 0
    unresolvable: int = 0

    def count(self, state: State) -> int:
        """Return how many are decided so."""
        return sum(1 for one in self.sessions if one.state == state)


def candidates(view: MemoryView, decisions: Decisions) -> Candidates:
    """Return the sessions of a memory's project, all of them where it has none."""
    found, other, unresolvable = [], 0, 0
    for one in view.catalog.sessions():
        if one.subagent and one.parent_id:
            continue
        if decisions.project and decisions.project not in one.repo.split():
            other += bool(one.repo)
            unresolvable += not one.repo
            continue
        found.append(_candidate(one, decisions))
    return Candidates(sessions=tuple(found), other=other, unresolvable=unresolvable)


def _candidate(one: Session, decisions: Decisions) -> Candidate:
    return Candidate(
        session_id=one.session_id,
        title=one.title,
        harness=one.harness,
        repo=one.repo,
        ended_us=one.ended_us or one.started_us,
        chunks=one.chunks,
        state=decisions.state_of(one),
    )


def check_project(project: str, view: MemoryView, decisions: Decisions, memory: str) -> None:
    """Pass the name of a repository that a memory is to be of.

    Raises:
        UsageError: it is no `owner/name`, or the memory is of another one already.
    """
    if not _REPO.fullmatch(project):
        near = _suggestions(project, view)
        hint = f"Did you mean {' or '.join(near)}?" if near else "Name it as <owner>/<name>."
        raise UsageError(
            f"{project!r} is no repository's full name.", hint=hint, kind="bad_project"
        )
    if decisions.project and decisions.project != project:
        raise UsageError(
            f"{memory} is of {decisions.project} already.",
            hint="Take that line out of its decisions first, or publish to another memory.",
            kind="other_project",
        )


def _suggestions(name: str, view: MemoryView) -> list[str]:
    """Return repositories of local sessions that may be meant, the most used ones first."""
    counts = Counter(repo for one in view.catalog.sessions() for repo in one.repo.split())
    wanted = name.lower()
    exact = [repo for repo, _ in counts.most_common() if repo.lower().endswith(f"/{wanted}")]
    names = {repo.partition("/")[2].lower(): repo for repo in counts}
    near = [names[one] for one in difflib.get_close_matches(wanted, names, n=3)]
    return list(dict.fromkeys(exact + near))[:3]


def chosen(given: str, found: Sequence[Candidate], memory: str) -> Candidate:
    """Return the candidate that an id, or the start of one, names.

    Raises:
        UsageError: there is none, or more than one.
    """
    near = [one for one in found if one.session_id == given] or [
        one for one in found if one.session_id.startswith(given) and len(given) >= LEAST_CHARS
    ]
    if len(near) == 1:
        return near[0]
    if near:
        raise UsageError(
            f"{given!r} is the start of {len(near):,} sessions.", hint="Give more of its id."
        )
    raise UsageError(
        f"There is no session {given!r} that may go to {memory}.",
        hint=f"`funes curate {memory}` in a pipe lists them.",
        kind="no_such_session",
    )


def prompts_of(view: MemoryView, session_id: str) -> list[str]:
    """Return what the user wrote in a session, without what a harness wrote in the user's name."""
    return [
        block.text
        for block in blocks_of(view, session_id)
        if block.rows[0].role == "user"
        and block.rows[0].block_type == "text"
        and not is_scaffolding(block.text)
    ]


def blocks_of(view: MemoryView, session_id: str) -> list[StoredBlock]:
    """Return every block of a session as it would leave."""
    return list(blocks_of_rows([folded(row) for row in view.session_rows(session_id)]))


def block_of(chunk_id: str, view: MemoryView) -> StoredBlock:
    """Return the block that a chunk is of, whichever of its chunks that is.

    Raises:
        UsageError: there is no such chunk, so that nothing would be kept back.
    """
    ids = ((one, name) for batch in _ids(view) for one, name in batch)
    session = next((name for one, name in ids if one == chunk_id), None)
    if session is not None:
        for block in blocks_of(view, session):
            if any(row.id == chunk_id for row in block.rows):
                return block
    raise UsageError(
        f"There is no block {chunk_id!r} in the local memory.",
        hint="`funes push MEMORY --dry-run --texts` lists blocks with their ids.",
        kind="no_such_block",
    )


def _ids(view: MemoryView) -> Iterator[Iterable[tuple[str, str]]]:
    """Yield the id and the session of every chunk, those without a vector too."""
    yield view.catalog.select("SELECT id, session_id FROM pending")
    if view.dataset is not None:
        for batch in view.dataset.scan(["id", "session_id"]):
            yield zip(*(batch.column(at).to_pylist() for at in (0, 1)), strict=True)


def matches(needle: str, texts: Iterable[str]) -> bool:
    """Tell whether texts hold every word of a needle, its letters in order in one word at least."""
    words = needle.casefold().split()
    whole = " ".join(texts).casefold()
    return all(word in whole or _in_order(word, whole) for word in words)


def _in_order(word: str, text: str) -> bool:
    """Tell whether a word of a text has these letters in this order, the first one first."""
    return any(
        part[:1] == word[:1] and _is_subsequence(word, part) for part in text.split() if part
    )


def _is_subsequence(word: str, text: str) -> bool:
    letters = iter(text)
    return all(char in letters for char in word)
