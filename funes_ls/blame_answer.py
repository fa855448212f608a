"""Says who wrote the lines of a file, and why: `funes/blame`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from funes_ls.asked_file import asked_file
from funes_ls.file_answers import file_of
from funes_ls.indexer.catalog import now_us
from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.times import format_us
from funes_ls.memories import Memories, Origin
from funes_ls.protocol import BlameAnswer, BlameLines, BlameParams, BlameTurn
from funes_ls.source_text import read_text

if TYPE_CHECKING:
    from funes_ls.indexer.memory import MemoryView
    from funes_ls.retrieval.file_blame import Stretch
    from funes_ls.retrieval.file_history import Histories

_SLOW_GIT = "Git did not answer in time; ask again for what it knows."

_kept: "Histories | None" = None


def blame(params: BlameParams, memories: Memories) -> BlameAnswer:
    """Return which turns wrote the lines of a file.

    Raises:
        UsageError: no file is named, it cannot be read as text, or a time is none.
        MemoryStateError: see `Memories.reading`.
    """
    from funes_ls.blame_evidence import Untimed, heed, known_of, names_in
    from funes_ls.indexer.facts import Facts
    from funes_ls.retrieval.blame import Document
    from funes_ls.retrieval.file_blame import blame_file, stretches
    from funes_ls.retrieval.timespec import time_range

    path = file_of(params.text_document.uri if params.text_document else "", params.path)
    text = params.text if params.text is not None else _read(path)
    until_us = time_range("", params.as_of, now_us=now_us())[1] if params.as_of else None
    name = params.memory or memories.settings.memory
    document = Document(text)
    first, last = _wanted(params, len(document.lines))
    known = known_of(path, document.lines if until_us is None else (), first, last)
    document.not_after = known.times
    origin = Origin(waits=False)  # an editor may ask at every move of the cursor
    with memories.reading(name, origin=origin) as memory, memory.snapshot() as now:
        name = origin.name
        document.untimed = Untimed(now.catalog)
        paths = blame_file(
            now,
            _histories(),
            document,
            asked_file(path),
            key=str(memory.base),
            until_us=until_us,
        )
        ids = [one.path_id for one in paths]
        facts = Facts(now.catalog)
        heed(document.claims, known, names_in(now.catalog), lambda: facts.events_of(ids))
        found = stretches(document, first=first, last=last)
        return BlameAnswer(
            path=path,
            memory=name,
            generation=now.generation,
            lines=tuple(_lines(one) for one in found),
            turns=tuple(_turns(found, now, name)),
            note=" ".join(filter(None, (origin.note, "" if known.is_complete else _SLOW_GIT))),
        )


def _histories() -> "Histories":
    """Return the replays this process keeps."""
    global _kept  # one for all requests, made with the first
    if _kept is None:
        from funes_ls.retrieval.file_history import Histories

        _kept = Histories()
    return _kept


def _read(path: str) -> str:
    try:
        text = read_text(Path(path))
    except FileNotFoundError as exc:
        raise UsageError(f"{path} is not there.", kind="no_file") from exc
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise UsageError(f"{path} cannot be read ({reason}).", kind="no_file") from exc
    if text is None:
        raise UsageError(f"{path} is not a text file, or too long.", kind="not_text")
    return text


def _wanted(params: BlameParams, count: int) -> tuple[int, int]:
    """Return the lines asked about: those that the range holds a part of."""
    if params.range is None:
        return 0, count
    start, end = params.range.start, params.range.end
    last = end.line + (1 if end.character > 0 or end.line == start.line else 0)
    return max(start.line, 0), min(max(last, start.line + 1), count)


def _lines(found: "Stretch") -> BlameLines:
    event, word = found.claim.event, found.claim.word
    return BlameLines(
        start=found.start + 1,
        end=found.end,
        confidence=word,
        session_id=event.session_id,
        turn_uuid=event.turn_uuid,
        seq=event.seq,
        ts=format_us(event.ts_us),
        harness=event.harness,
        ask_turn_uuid=event.ask_turn_uuid,
        reason_turn_uuid=event.reason_turn_uuid,
        from_path=event.path if word == "moved" else "",
        evidence=found.claim.evidence,
    )


def _turns(found: Sequence["Stretch"], memory: "MemoryView", memory_name: str) -> list[BlameTurn]:
    from funes_ls.retrieval.answers import get_command
    from funes_ls.retrieval.file_blame import whys

    events = {(e.session_id, e.turn_uuid): e for e in (one.claim.event for one in found)}
    sessions = {id_: memory.catalog.session(id_) for id_ in {id_ for id_, _ in events}}
    turns = []
    for event, why in zip(events.values(), whys(memory, list(events.values())), strict=True):
        session = sessions[event.session_id]

        def get(turn: str, session_id: str = event.session_id) -> str:
            return get_command(session_id, turn, memory_name=memory_name) if turn else ""

        turns.append(
            BlameTurn(
                session_id=event.session_id,
                turn_uuid=event.turn_uuid,
                seq=event.seq,
                ts=format_us(event.ts_us),
                harness=event.harness,
                title=session.title if session else "",
                cwd=session.cwd if session else event.cwd,
                branch=session.branch if session else "",
                ask=why.ask,
                ask_get=get(event.ask_turn_uuid),
                reason=why.reason,
                reason_get=get(event.reason_turn_uuid),
                get=get(event.turn_uuid),
            )
        )
    return turns
