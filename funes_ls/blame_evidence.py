"""Lets a blame heed what git and the records of other tools know of the same lines."""

import atexit
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from funes_ls.git_evidence import GitEvidence
from funes_ls.git_views import Evidence

if TYPE_CHECKING:
    from funes_ls.git_evidence import Findings
    from funes_ls.indexer.catalog import Catalog
    from funes_ls.indexer.facts import StoredEvent
    from funes_ls.retrieval.blame import Claim

#: Larger documents are asked about only as far as an answer is about them.
_WHOLE = 6_000
_DEEPEST = 16
#: What a call that wrote a file may have been.
_WRITES = ("write", "edit", "append", "sed")


@cache
def _git() -> GitEvidence:
    """Return the one witness of this process, which remembers."""
    found = GitEvidence()
    atexit.register(found.close)
    return found


def known_of(path: str, lines: Sequence[str], first: int, last: int) -> "Findings":
    """Return what is known of a document's lines, within a third of a second.

    Args:
        path: Of its file.
        lines: All of them.
        first: The first that is asked about, from 0.
        last: The one after the last.
    """
    git, file = _git(), Path(path)
    if not file.is_absolute():
        return git.look(file, ())
    if len(lines) <= _WHOLE:
        return git.look(file, lines)
    found = git.look(file, lines, first + 1, last)
    return structs.replace(found, times=(*[None] * first, *found.times))


def heed(
    claims: "list[Claim | None]",
    found: "Findings",
    names: Callable[[str], Iterable[str]],
    writers: Callable[[], "Sequence[StoredEvent]"],
) -> None:
    """Change a document's claims to what is recorded of its lines, where that is more.

    A record that names a person ends a claim. One that names a session confirms the claim of that
    session and ends that of any other; where nothing claimed a line, the last call by which that
    session wrote the file is named, as *similar*: the session is known, the call is not.

    Args:
        claims: By line.
        found: What is recorded.
        names: Gives the ids by which others may know a session: its own and its ancestors'.
        writers: Gives what was done to the file, oldest first.
    """
    for one in found.evidence:
        lines = range(one.start - 1, min(one.end, len(claims)))
        if one.who == "human":
            for line in lines:
                claims[line] = None
        elif one.who == "ai":
            _heed_session(claims, lines, one, names, writers)


def _heed_session(
    claims: "list[Claim | None]",
    lines: range,
    one: Evidence,
    names: Callable[[str], Iterable[str]],
    writers: Callable[[], "Sequence[StoredEvent]"],
) -> None:
    @cache
    def is_named(session_id: str) -> bool:
        return any(one.is_of(name) for name in names(session_id))

    @cache
    def guess() -> "Claim | None":
        from funes_ls.retrieval.blame import Claim

        for event in reversed(writers()):
            is_in_time = one.ts_us is None or event.ts_us is None or event.ts_us <= one.ts_us
            if event.kind in _WRITES and is_in_time and is_named(event.session_id):
                return Claim(event=event, word="similar", evidence=one.kind)
        return None

    for line in lines:
        claim = claims[line]
        if claim is not None and is_named(claim.event.session_id):
            claims[line] = structs.replace(claim, evidence=one.kind)
        elif claim is None or one.session_ids or one.keys:
            claims[line] = guess()


def names_in(catalog: "Catalog") -> Callable[[str], tuple[str, ...]]:
    """Return what tells, of a session's id, the ids by which others may know it."""

    @cache
    def names(session_id: str) -> tuple[str, ...]:
        found: dict[str, None] = {}
        here = session_id
        for _ in range(_DEEPEST):
            if not here or here in found:
                break
            found[here] = None
            session = catalog.session(here)
            if session is not None and session.inner_id:
                found[session.inner_id] = None
            here = session.parent_id if session else ""
        return tuple(found)

    return names


class Untimed:
    """The sessions of a memory that have no times of their own, only those of their file."""

    def __init__(self, catalog: "Catalog") -> None:
        """Take the catalog that knows."""
        self._catalog = catalog
        self._known: dict[str, bool] = {}

    def __contains__(self, session_id: object) -> bool:
        """Return whether a session is one of them."""
        id_ = str(session_id)
        if id_ not in self._known:
            session = self._catalog.session(id_)
            self._known[id_] = session is not None and session.time_source == "file"
        return self._known[id_]

    def __bool__(self) -> bool:
        """There may always be some."""
        return True
