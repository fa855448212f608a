"""Answers who wrote the lines of a file, from all a memory knows of it."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from funes_ls.indexer.facts import FactPath, Facts, StoredEvent
from funes_ls.indexer.memory import MemoryView
from funes_ls.retrieval.blame import Claim, Document, blame
from funes_ls.retrieval.blame_moved import blame_moved
from funes_ls.retrieval.file_history import Histories
from funes_ls.retrieval.same_file import Asked, is_near, places_of, same_file, with_places
from funes_ls.retrieval.turn_texts import turn_texts

#: What was said is shown up to this length.
_MOST_CHARS = 2_000


class Stretch(Struct, frozen=True, kw_only=True):
    """Lines `start` up to `end` (from 0, end exclusive) that one turn wrote."""

    start: int
    end: int
    claim: Claim


def blame_file(
    memory: MemoryView,
    histories: Histories,
    document: Document,
    asked: Asked,
    *,
    key: str,
    until_us: int | None = None,
) -> tuple[FactPath, ...]:
    """Fill a document's claims from a memory's facts.

    Args:
        memory: One moment of it.
        histories: Where replays are kept.
        document: The text that is asked about.
        asked: The file.
        key: Names the memory, for keeping apart what is kept.
        until_us: When the text was like this; None is now.

    Returns:
        The paths by which facts know the file.
    """
    facts = Facts(memory.catalog)
    asked = with_places(asked, places_of(memory.catalog))
    found = same_file(facts, memory.catalog, asked)
    if found.own:
        blame(document, histories.of(facts, found.own, memory=key, until_us=until_us))
    if found.copies and document.left():
        copies = [histories.of(facts, [one], memory=key, until_us=until_us) for one in found.copies]
        blame_moved(document, copies, word="exact")
    if document.left():
        others = histories.others(facts, document, but=found.all, memory=key, until_us=until_us)
        suffix = PurePosixPath(asked.path).suffix
        near = [history for path, history in others if is_near(asked, path)]
        blame_moved(document, near, suffix=suffix)
        if not found.all and document.left():
            # Nothing is known of this file: it may have come here from another project.
            far = [history for path, history in others if not is_near(asked, path)]
            blame_moved(document, far, suffix=suffix, whole=True)
    return found.all


def stretches(document: Document, *, first: int = 0, last: int | None = None) -> list[Stretch]:
    """Return the claims of a document's lines, neighbours of one turn together.

    Args:
        document: With its claims filled.
        first: The first line wanted, from 0.
        last: The line after the last one wanted.
    """
    found: list[Stretch] = []
    for line, claim in enumerate(document.claims[first:last], start=first):
        if claim is None:
            continue
        before = found[-1] if found else None
        if before and before.end == line and _same(before.claim, claim):
            found[-1] = Stretch(start=before.start, end=line + 1, claim=before.claim)
        else:
            found.append(Stretch(start=line, end=line + 1, claim=claim))
    return found


def _same(one: Claim, other: Claim) -> bool:
    a, b = one.event, other.event
    return (a.session_id, a.turn_uuid, a.path, one.word, one.evidence) == (
        b.session_id,
        b.turn_uuid,
        b.path,
        other.word,
        other.evidence,
    )


class Why(Struct, frozen=True, kw_only=True):
    """What was said before a turn wrote: the user's words and the agent's, "" where unknown."""

    ask: str
    reason: str


def whys(memory: MemoryView, events: Sequence[StoredEvent]) -> list[Why]:
    """Return, for each event, what the user had asked and what the agent said last before it."""
    asked = [(event.session_id, event.ask_turn_uuid) for event in events]
    given = [(event.session_id, event.reason_turn_uuid) for event in events]
    asks = turn_texts(memory, asked, kinds=("text",))
    reasons = turn_texts(memory, given, kinds=("text", "thinking"), last=True)
    return [
        Why(ask=asks[ask][:_MOST_CHARS], reason=reasons[reason][:_MOST_CHARS])
        for ask, reason in zip(asked, given, strict=True)
    ]
