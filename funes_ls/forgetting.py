"""`funes forget`: which sessions are meant, what would go, and their end."""

from collections.abc import Generator, Sequence

from funes_ls.hub.receipts import drop_copies, holding
from funes_ls.indexer.blocks import blocks_of_rows
from funes_ls.indexer.catalog import Session, now_us
from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.forget import Forgotten, forget_steps, with_subagents
from funes_ls.indexer.lexical import searchable_text
from funes_ls.indexer.memory import Memory, MemoryView
from funes_ls.indexer.progress import Cancelled, IndexEvent, Progress, ignore_progress, never
from funes_ls.indexer.purge import is_due, purge_steps
from funes_ls.indexer.repos import repo_of
from funes_ls.indexer.settings import Settings
from funes_ls.memories import Memories
from funes_ls.protocol_secrets import ForgetAnswer, ForgetParams, ForgetSession
from funes_ls.writing import Writer, in_this_process, rewriting, stop_if

#: Sessions that are named one by one.
_NAMED = 10
#: So much of an id says which session is meant, where there is no way back.
_LEAST = 6
_TRACES_STAY = "The traces themselves stay where they are, and are not read again."
_FINISHED = "What an earlier run that was cut off had left of sessions on the disk is gone now."
_NOT_PURE = (
    "Another process is still reading the memory as it was; what is left of them on the disk is "
    "removed by the next command that writes to it."
)


def forget(
    params: ForgetParams,
    memories: Memories,
    *,
    write: Writer | None = None,
    cancelled: Cancelled = never,
    progress: Progress = ignore_progress,
) -> ForgetAnswer:
    """Take sessions out of the local memory for good, or only say what would go.

    Args:
        params: Which sessions.
        memories: Where they are looked up.
        write: Makes the change; by default the memory is opened for it.
        cancelled: Asked between steps.
        progress: Told how it goes on.

    Raises:
        UsageError: nothing says which, or there is no such session, or its id fits several.
        MemoryStateError: there is no memory, or another process is writing.
        FunesError: kind `cancelled`.
    """
    if not any(text.strip() for text in (params.session, params.project, params.match,
                                         params.before)):  # fmt: skip
        raise UsageError(
            "Nothing says which sessions to forget.",
            hint="Name one, or pass `--project`, `--match` or `--before`.",
        )
    settings = memories.settings
    write = write or in_this_process(settings)
    with memories.reading("local") as memory, memory.snapshot() as view:
        is_cut_off = is_due(view) and not params.dry_run
        was_forgotten = _was_forgotten(params.session.strip(), view)
        try:
            chosen = _chosen(params, view, cancelled=cancelled, progress=progress)
        except UsageError:
            if not was_forgotten:
                raise
            chosen = []
        going = with_subagents(chosen, view.catalog)
        chunks = sum(one.chunks for one in going)
    ids = [one.session_id for one in going]
    forgotten = Forgotten(sessions=len(ids), chunks=chunks, pure=False)
    is_real = bool(ids) and not params.dry_run

    def change(memory: Memory, stopped: Cancelled) -> Generator[float, None, Forgotten]:
        told = rewriting(progress, stopped)
        if ids:
            return (yield from forget_steps(memory, settings.home, ids, told=told))
        pure = yield from purge_steps(memory, settings.home, told=told)
        return Forgotten(sessions=0, chunks=0, pure=pure)

    if is_real:
        drop_copies(settings.home, ids)  # first: a run that is killed does not know them again
    if is_real or is_cut_off:
        forgotten = write(change)
    newest = sorted(going, key=_ended, reverse=True)[:_NAMED]
    return ForgetAnswer(
        total=len(ids),
        subagents=len(ids) - len(chosen),
        chunks=forgotten.chunks,
        sessions=tuple(_named(one) for one in newest),
        forgotten=is_real,
        pure=forgotten.pure,
        published=held_elsewhere(ids, memories.settings) if ids else (),
        note=_note(is_real, forgotten)
        if ids
        else _note_of_none(was_forgotten, is_cut_off, forgotten),
    )


def held_elsewhere(session_ids: Sequence[str], settings: Settings) -> tuple[str, ...]:
    """Return the memories elsewhere that sessions were published to; without any, all of them."""
    return holding(settings.home, session_ids)


def _was_forgotten(session: str, view: MemoryView) -> bool:
    gone = view.catalog.tombstones()
    return session in gone or (
        len(session) >= _LEAST and any(name.startswith(session) for name in gone)
    )


def _note_of_none(was_forgotten: bool, is_cut_off: bool, forgotten: Forgotten) -> str:
    """Return what is said where nothing goes: a run that was cut off may have taken it out."""
    notes = ["It was forgotten before."] if was_forgotten else []
    if is_cut_off:
        notes.append(_FINISHED if forgotten.pure else _NOT_PURE)
    return " ".join(notes)


def _note(is_real: bool, forgotten: Forgotten) -> str:
    if not forgotten.sessions:
        return ""
    return f"{_TRACES_STAY} {_NOT_PURE}" if is_real and not forgotten.pure else _TRACES_STAY


def _named(session: Session) -> ForgetSession:
    return ForgetSession(
        session_id=session.session_id,
        title=session.title,
        harness=session.harness,
        ended_us=session.ended_us,
        chunks=session.chunks,
        subagent=session.subagent,
    )


def _ended(session: Session) -> int:
    return session.ended_us or session.started_us or 0


def _chosen(
    params: ForgetParams, view: MemoryView, *, cancelled: Cancelled, progress: Progress
) -> list[Session]:
    from funes_ls.retrieval.answers import RecallFilter
    from funes_ls.retrieval.filters import find_session, matching_sessions

    session = params.session.strip()
    named = find_session(session, view.catalog) if session else None
    if session and named is None:
        raise UsageError(f"There is no session {session!r}.", hint="`funes sessions` lists them.")
    if named and session not in (named.session_id, named.inner_id) and len(session) < _LEAST:
        raise UsageError(
            f"{session!r} is too little of an id to forget a session by.",
            hint=f"Give at least {_LEAST} characters of it; `funes sessions` lists them.",
        )
    wanted = RecallFilter(
        session=session,
        project=params.project,
        project_repos=tuple(repo_of(params.project).split()) if params.project else (),
    )
    found = matching_sessions(wanted, view.catalog)
    if params.before.strip():
        found = _before(found, params.before)
    if params.match.strip():
        found = _holding(params.match, found, view, cancelled=cancelled, progress=progress)
    return found


def _before(sessions: Sequence[Session], before: str) -> list[Session]:
    from funes_ls.retrieval.timespec import moment_of

    limit_us = moment_of(before, "--before", now_us=now_us())
    ends = ((one, one.ended_us or one.started_us) for one in sessions)
    return [one for one, ended_us in ends if ended_us is not None and ended_us < limit_us]


def _holding(
    text: str,
    sessions: Sequence[Session],
    view: MemoryView,
    *,
    cancelled: Cancelled,
    progress: Progress,
) -> list[Session]:
    found = []
    for done, session in enumerate(sessions):
        stop_if(cancelled)
        progress(IndexEvent(phase="search", done=done, total=len(sessions)))
        if _holds(text, session, view):
            found.append(session)
    return found


def _holds(text: str, session: Session, view: MemoryView) -> bool:
    """Tell whether a block of a session holds a text as it was said, or within JSON."""
    needle, plain = text.casefold(), searchable_text(text, "text").casefold()
    if needle in session.title.casefold():
        return True
    for block in blocks_of_rows(view.session_rows(session.session_id)):
        if needle in block.text.casefold():
            return True
        if plain in searchable_text(block.text, block.rows[0].block_type).casefold():
            return True
    return False
