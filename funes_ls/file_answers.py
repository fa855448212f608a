"""Says which sessions have to do with a file: `funes/related`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from funes_ls.asked_file import asked_file
from funes_ls.indexer.errors import UsageError
from funes_ls.memories import Memories, Origin
from funes_ls.protocol import FilePassage, Range, RelatedAnswer, RelatedParams, RelatedSession
from funes_ls.source_text import read_text
from funes_ls.uris import path_of

if TYPE_CHECKING:
    from funes_ls.indexer.catalog import Session
    from funes_ls.indexer.memory import MemoryView
    from funes_ls.retrieval.related import Related
    from funes_ls.retrieval.related_talk import Names

_MOST_CHARS = 2_000
#: What is shown of a turn.
_SAID_FIRST = ("text", "thinking", "tool_use", "tool_result")


def related(params: RelatedParams, memories: Memories) -> RelatedAnswer:
    """Return the sessions that have to do with a file, strongest relation first.

    Raises:
        UsageError: no file is named.
        MemoryStateError: see `Memories.reading`.
    """
    from funes_ls.retrieval.related import by_facts

    path = file_of(params.text_document.uri if params.text_document else "", params.path)
    name = params.memory or memories.settings.memory
    asked = asked_file(path)
    origin = Origin(waits=False)  # an editor may ask at every move of the cursor
    with memories.reading(name, origin=origin) as memory, memory.snapshot() as now:
        name = origin.name
        found = by_facts(now, asked)
        if not params.facts_only:
            from funes_ls.retrieval.related_talk import by_talk

            known = {one.session_id for one in found}
            talk = by_talk(now, asked, _names(path, params))
            found += [one for one in talk if one.session_id not in known]
        shown = found[: max(params.limit, 0)]
        passages = {} if params.facts_only else _passages(now, shown, name)
        sessions = {one.session_id: now.catalog.session(one.session_id) for one in shown}
        return RelatedAnswer(
            path=path,
            memory=name,
            generation=now.generation,
            total=len(found),
            last_us=max((one.last_us for one in found if one.last_us is not None), default=None),
            sessions=tuple(
                _session(one, session, passages.get(one.session_id), name)
                for one in shown
                if (session := sessions[one.session_id]) is not None
            ),
            note=origin.note,
        )


def file_of(uri: str, path: str) -> str:
    """Return the file that a request names, by its URI or by a path.

    Raises:
        UsageError: neither names a file.
    """
    found = path or path_of(uri)
    if not found:
        raise UsageError(
            "No file is named.", hint="Give `path`, or `textDocument` with a file: URI."
        )
    return found


def _names(path: str, params: RelatedParams) -> "Names":
    from funes_ls.retrieval.related_talk import names_of

    return names_of(path.replace("\\", "/"), _text(path), lines=_lines(params.range))


def _lines(wanted: Range | None) -> tuple[int, int] | None:
    """Return the first and the last line of which a range holds a part."""
    if wanted is None:
        return None
    first, last = wanted.start.line, wanted.end.line
    return first, last - (1 if wanted.end.character == 0 and last > first else 0)


def _text(path: str) -> str:
    """Return what a file holds, "" where it is not here or no text."""
    file = Path(path)
    try:
        return (read_text(file) or "") if file.is_absolute() else ""
    except (OSError, ValueError):
        return ""


def _passages(
    memory: "MemoryView", shown: "Sequence[Related]", memory_name: str
) -> dict[str, FilePassage]:
    """Return, by session, the passage of the turn that says most about the file."""
    from funes_ls.retrieval.answers import get_command
    from funes_ls.retrieval.turn_texts import turn_texts

    turns = {one.session_id: one.turn_uuid for one in shown if one.turn_uuid}
    texts = {one.session_id: one.text for one in shown if one.text}
    wanted = [one for one in turns.items() if one[0] not in texts]
    found = turn_texts(memory, wanted, kinds=_SAID_FIRST)
    texts |= {session_id: text for (session_id, _), text in found.items()}
    return {
        session_id: FilePassage(
            text=text[:_MOST_CHARS],
            turn_uuid=turns[session_id],
            get=get_command(session_id, turns[session_id], memory_name=memory_name),
        )
        for session_id, text in texts.items()
        if text
    }


def _session(
    one: "Related", session: "Session", passage: FilePassage | None, memory_name: str
) -> RelatedSession:
    from funes_ls.retrieval.answers import get_command

    return RelatedSession(
        session_id=session.session_id,
        harness=session.harness,
        title=session.title,
        cwd=session.cwd,
        branch=session.branch,
        started_us=session.started_us,
        ended_us=session.ended_us,
        turns=session.turns,
        relation=one.relation,
        edits=one.edits,
        reads=one.reads,
        mentions=one.mentions,
        last_us=one.last_us if one.last_us is not None else session.ended_us,
        get=get_command(session.session_id, "", memory_name=memory_name),
        passage=passage,
    )
