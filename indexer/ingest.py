"""Reads one session's trace into the memory's queue, where words find it at once.

Ids are the reference's, always. What its rules lose or let collide is kept under ids of its own:
a record that repeats a turn id with other text becomes a turn `<session>-x<record>`, and a second
file that claims the session id of another living file becomes a session `<id>@<hash of its key>`.
"""

import hashlib
import itertools
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from funes_ls.indexer import excluded
from funes_ls.indexer.calls.session import SessionFacts
from funes_ls.indexer.catalog import Session, Source
from funes_ls.indexer.chunk import chunk_id, chunks_of
from funes_ls.indexer.clean import Clean, CleanReading, as_stored, hidden_key
from funes_ls.indexer.exclude import BY_MARKER, KEEP_ALL, Exclusion, HiddenFiles, is_private
from funes_ls.indexer.excluded import Excluded
from funes_ls.indexer.facts_touched import touched_paths
from funes_ls.indexer.forget import is_forgotten
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.model import Chunk, Problem, SessionMeta, Turn, path_text
from funes_ls.indexer.readahead import ReadAhead
from funes_ls.indexer.redaction import record
from funes_ls.indexer.redaction.base import Counts, Redaction
from funes_ls.indexer.repos import repo_of
from funes_ls.indexer.times import parse_ts
from funes_ls.indexer.traces.base import TraceSource, Unit

_BATCH_ROWS = 2_000

#: Work cut into short steps, and what it comes to in the end.
Given = TypeVar("Given")
Steps = Generator[None, None, Given]


class Ingested(Struct, frozen=True, kw_only=True):
    """What reading one trace changed.

    Attributes:
        new: Chunks that were not stored before.
        removed: Stored chunks that a rewritten trace no longer has.
        total: Chunks given by this read, stored before or not.
        failed: The trace could not be read to its end; it is read again next time.
        redacted: How often each rule found a secret in what was read now.
        excluded: Why the session is kept out, "" when it is not.
    """

    session_id: str = ""
    new: int = 0
    removed: int = 0
    total: int = 0
    problems: tuple[Problem, ...] = ()
    failed: bool = False
    redacted: Counts = {}
    excluded: str = ""


class _State(Struct, kw_only=True):
    """What the next read of a source must know; kept in its catalog row.

    Attributes:
        reader: The trace reader's own state.
        last_us: Time of the last turn that had one, for turns that have none.
        chunks: Rows of the session that are stored.
        redacted: How often each rule found a secret in it.
        hidden: Calls whose answers are kept out.
    """

    reader: bytes = b""
    last_us: int | None = None
    started_us: int | None = None
    ended_us: int | None = None
    turns: int = 0
    chunks: int = 0
    redacted: dict[str, int] = {}
    hidden: list[str] = []


def is_current(unit: Unit, known: Source | None) -> bool:
    """Return whether a trace has not changed since it was last read."""
    return known is not None and (known.size, known.mtime_ns, known.inode) == (
        unit.size,
        unit.mtime_ns,
        unit.inode,
    )


def resume_state(unit: Unit, memory: Memory) -> bytes | None:
    """Return from where a trace's reader goes on, None when it begins anew."""
    state = _decoded(memory.catalog.source(unit.key))
    return state.reader if state else None


def ingest(
    unit: Unit,
    source: TraceSource,
    memory: Memory,
    *,
    thinking: bool = True,
    ahead: ReadAhead | None = None,
    redaction: Redaction | None = None,
    exclusion: Exclusion = KEEP_ALL,
) -> Ingested:
    """Read what is new of a trace and queue it; may be killed at any point and run again.

    Args:
        unit: The trace.
        source: Its reader.
        memory: Where it goes.
        thinking: Whether thinking blocks are stored.
        ahead: Who may have read it already, from its `resume_state`, with the same redaction.
        redaction: Takes secrets out of what is read; None stores them.
        exclusion: What is kept out; a session that is stored already is taken out.

    Raises:
        ScannerError: nobody can tell what is a secret; nothing more was stored.
    """
    steps = ingest_steps(
        unit,
        source,
        memory,
        thinking=thinking,
        ahead=ahead,
        redaction=redaction,
        exclusion=exclusion,
    )
    return at_once(steps)


def ingest_steps(
    unit: Unit,
    source: TraceSource,
    memory: Memory,
    *,
    thinking: bool = True,
    ahead: ReadAhead | None = None,
    redaction: Redaction | None = None,
    exclusion: Exclusion = KEEP_ALL,
) -> Steps[Ingested]:
    """Do what `ingest` does turn by turn, for who has other things to look after meanwhile.

    Between two steps nothing is half written; closed early, the trace counts as not read.
    """
    if (gone := _gone(unit, memory, exclusion)) is not None:
        return gone
    state = _decoded(memory.catalog.source(unit.key))
    resume = state.reader if state else None
    how = _How(thinking=thinking, redaction=redaction, exclusion=exclusion)
    reading: Clean
    if ahead is not None:
        reading = ahead.read(unit, source, resume=resume)
    else:
        reading = CleanReading(source.read(unit, resume=resume), unit, redaction)
    done = yield from _SessionWriter(unit, memory, reading, state=state, how=how).steps()
    if reading.late_names and not done.excluded:
        # Rows already given would have had another label: give them all again, names known.
        unit = as_stored(unit, memory.catalog)
        reading = CleanReading(source.read(unit, resume=None), unit, redaction)
        done = yield from _SessionWriter(unit, memory, reading, state=None, how=how).steps()
    return done


def _gone(unit: Unit, memory: Memory, exclusion: Exclusion) -> Ingested | None:
    """Take out a session that is stored and is to be kept out by now; None when it is not."""
    known = memory.catalog.source(unit.key)
    if known is None:
        return None
    session = memory.catalog.session(known.session_id)
    if session is None:
        return _still_private(unit, memory, known)
    reason = exclusion.reason(cwd=session.cwd, unit=unit)
    if not reason:
        return None
    why = Excluded(reason=reason, session_id=session.session_id, cwd=session.cwd)
    record.add_counts(memory.catalog, {}, record.taken_out(known))
    removed = excluded.keep_out(memory, _seen(unit, session.session_id, path=known.path), why)
    return Ingested(session_id=session.session_id, removed=removed, excluded=reason)


def _still_private(unit: Unit, memory: Memory, known: Source) -> Ingested | None:
    """Keep a session out that says so itself and has only grown since; None when it may not."""
    why = excluded.known(memory.catalog, unit.key)
    if why is None or why.reason != BY_MARKER:
        return None
    if known.inode != unit.inode or unit.size < known.size or unit.container:
        return None
    memory.catalog.put_source(_seen(unit, known.session_id, path=known.path))
    return Ingested(session_id=known.session_id, excluded=BY_MARKER)


def _seen(
    unit: Unit, session_id: str, *, path: str, key: str = "", resume: bytes | None = None
) -> Source:
    """Return that a trace was read; see `_SessionWriter._place` for key and path."""
    return Source(
        key=key or unit.key,
        harness=unit.harness,
        path=path,
        session_id=session_id,
        size=unit.size,
        mtime_ns=unit.mtime_ns,
        inode=unit.inode,
        resume=resume,
    )


def at_once(steps: Steps[Given]) -> Given:
    """Take every step and return what they come to."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            given: Given = end.value
            return given


def _decoded(known: Source | None) -> _State | None:
    if known is None or not known.resume:
        return None
    try:
        return msgspec.json.decode(known.resume, type=_State)
    except msgspec.DecodeError:
        return None


class _How(Struct, frozen=True, kw_only=True):
    """How a trace is read."""

    thinking: bool
    redaction: Redaction | None
    exclusion: Exclusion


class _SessionWriter:
    """Queues the turns of one reading in bounded batches and keeps the session's record."""

    def __init__(
        self,
        unit: Unit,
        memory: Memory,
        reading: Clean,
        *,
        state: _State | None,
        how: _How,
    ) -> None:
        self._unit = unit
        self._memory = memory
        self._reading = reading
        self._old = state
        self._thinking = how.thinking
        self._redaction = how.redaction
        self._exclusion = how.exclusion
        self._excluded = ""
        self._hidden: HiddenFiles | None = None
        self._state = _State()
        self._session_id = ""
        self._repo = ""
        self._check_ids = self._is_rewrite = self._is_forgotten = False
        self._seen_ids: set[str] = set()
        self._seen_turns: set[str] = set()
        self._batch: list[tuple[Turn, list[Chunk], int | None]] = []
        self._batch_rows = 0
        self._files: dict[str, None] = {}
        self._facts: SessionFacts | None = None
        self._workdir = ""
        self._new = self._total = self._removed = 0
        self._problems: list[Problem] = []

    def steps(self) -> Steps[Ingested]:
        items = iter(self._reading)
        first = list(itertools.islice(items, 1))  # only now is `restarted` known
        self._state = self._begun()
        for item in itertools.chain(first, items):
            if isinstance(item, Problem):
                self._problems.append(item)
            else:
                self._add(item)
            if self._excluded:
                self._keep_out()
                break
            yield
        if not self._excluded:
            self._finish()
        return Ingested(
            session_id=self._session_id,
            new=self._new,
            removed=self._removed,
            total=self._total,
            problems=tuple(self._problems),
            failed=self._failed,
            redacted={} if self._excluded else self._reading.counts,
            excluded=self._excluded,
        )

    @property
    def _failed(self) -> bool:
        return self._reading.failed

    # The session

    def _begun(self) -> _State:
        whole = self._old is None or self._reading.restarted
        return _State() if whole or self._old is None else self._old

    @property
    def _is_tail(self) -> bool:
        return self._state is self._old

    def _open_session(self, turn: Turn) -> None:
        """Settle, at the first turn, under which id the session is stored and what is there."""
        self._session_id = self._claimed(turn.session_id)
        self._workdir = turn.workdir
        meta = self._reading.session
        catalog = self._memory.catalog
        self._is_forgotten = is_forgotten(catalog, self._session_id, turn, meta)
        at = replace(meta, cwd=self._reading.cwd)
        self._excluded = excluded.reason_of(self._exclusion, catalog, at, self._unit)
        if self._excluded or self._is_forgotten:
            return
        files = self._exclusion.files_of(at.cwd)
        self._hidden = HiddenFiles(files, at.cwd, self._state.hidden)
        self._repo = self._clean(repo_of(at.cwd, meta.remotes))
        known = self._memory.catalog.session(self._session_id) is not None
        # Rows without a session record are what a killed run left; the trace may differ by now.
        left_over = not known and self._memory.catalog.has_pending(self._session_id)
        self._check_ids = known or left_over or self._session_id != turn.session_id
        self._is_rewrite = left_over or (known and not self._is_tail and self._same_source())
        self._facts = SessionFacts.begun(catalog, self._session_id, meta.cwd, is_tail=self._is_tail)

    def _clean(self, text: str) -> str:
        return self._redaction.text(text).text if self._redaction and text else text

    def _claimed(self, session_id: str) -> str:
        """Return the id to store under: the trace's own unless another living trace has it."""
        others = [
            other
            for other in self._memory.catalog.session_sources(session_id)
            if other.key != self._unit.key and _is_alive(other, self._unit)
        ]
        if not others:
            return session_id
        mark = hashlib.sha256(self._unit.key.encode("utf-8", "surrogateescape")).hexdigest()[:6]
        return f"{session_id}@{mark}"

    # Turns to rows

    def _add(self, turn: Turn) -> None:
        if not self._session_id:
            self._open_session(turn)
        if self._is_forgotten:
            return
        if not self._excluded and is_private(turn):
            self._excluded = BY_MARKER
        if self._excluded:
            return
        if self._hidden is not None:
            turn = self._hidden.without(turn)
        for block in turn.blocks:
            if block.block_type == "tool_use" and not block.own:
                self._files.update(dict.fromkeys(touched_paths(block)))
        when = self._time_of(turn)
        rows = list(chunks_of(turn, session_id=self._session_id, repo=self._repo, ts_us=when))
        if not self._thinking:
            # Thinking that an earlier run stored is left out of this one, not taken back.
            self._seen_ids.update(row.id for row in rows if row.block_type == "thinking")
            rows = [row for row in rows if row.block_type != "thinking"]
        if rows:
            self._state.turns += 1
            self._total += len(rows)
            self._batch.append((turn, rows, when))
            self._batch_rows += len(rows)
        if self._batch_rows >= _BATCH_ROWS:
            self._flush()

    def _time_of(self, turn: Turn) -> int | None:
        """Return a turn's time; one without takes the last one's, or else the file's."""
        us, state = parse_ts(turn.ts), self._state
        if us is None:
            return state.last_us if state.last_us is not None else self._file_time()
        state.last_us = us
        state.started_us = us if state.started_us is None else min(us, state.started_us)
        state.ended_us = us if state.ended_us is None else max(us, state.ended_us)
        return us

    def _file_time(self) -> int | None:
        """Return when the trace file was last written; databases and tables have no such time."""
        unit = self._unit
        return None if unit.container or unit.is_fetched else unit.mtime_ns // 1000

    # Rows to the queue

    def _flush(self) -> None:
        """Queue the batch: what is stored already stays, what would collide gets its own ids."""
        stored = self._stored_texts()
        fresh: list[Chunk] = []
        for turn, rows, when in self._batch:
            repeated = turn.turn_uuid in self._seen_turns
            self._seen_turns.add(turn.turn_uuid)
            settled = self._settled(turn, rows, stored, repeated=repeated)
            for row in settled:
                stored[row.id] = row.text
                fresh.append(row)
            if self._facts is not None:
                uuid = settled[-1].turn_uuid if settled else turn.turn_uuid
                self._facts.add(turn, turn_uuid=uuid, ts_us=when, thinking=self._thinking)
        if fresh:
            stamp = self._redaction.stamp if self._redaction else record.OFF
            record.note_stamp(self._memory.catalog, stamp)
            self._new += self._memory.queue(
                fresh, started_us=self._state.ended_us, subagent=self._unit.subagent
            )
        if self._facts is not None:
            self._facts.flush()
        self._batch, self._batch_rows = [], 0

    def _stored_texts(self) -> dict[str, str]:
        """Return the texts stored under the batch's ids, asking only where some may be."""
        turns = [turn.turn_uuid for turn, *_ in self._batch]
        repeats = len(set(turns)) < len(turns) or not self._seen_turns.isdisjoint(turns)
        if not (repeats or self._check_ids):
            return {}
        ids = [row.id for _, rows, _ in self._batch for row in rows]
        return {row.id: row.text for row in self._memory.rows(ids)}

    def _settled(
        self, turn: Turn, rows: list[Chunk], stored: dict[str, str], *, repeated: bool
    ) -> list[Chunk]:
        changed = [row.id for row in rows if stored.get(row.id, row.text) != row.text]
        if changed and self._is_rewrite and not repeated:
            self._remove(changed)
            for id_ in changed:
                del stored[id_]
            changed = []
        fresh = [row for row in rows if row.id not in stored]
        if changed:
            again = list(self._renamed(turn, rows))
            rows = rows + again
            known = {row.id for row in self._memory.rows([row.id for row in again])} | set(stored)
            apart = self._session_id != turn.session_id
            fresh = [*([] if apart else fresh), *(row for row in again if row.id not in known)]
        if self._is_rewrite:
            self._seen_ids.update(row.id for row in rows)
        return fresh

    def _renamed(self, turn: Turn, rows: list[Chunk]) -> Iterator[Chunk]:
        """Yield the rows of a turn under ids of its own."""
        apart = self._session_id != turn.session_id
        uuid = turn.turn_uuid if apart else f"{turn.session_id}-x{turn.record}"
        for row in rows:
            id_ = chunk_id(self._session_id, uuid, row.block_idx, row.split_idx)
            yield replace(row, id=id_, turn_uuid=uuid)

    def _remove(self, ids: list[str]) -> None:
        if ids:
            self._memory.remove(ids)
            self._removed += len(ids)

    def _finish(self) -> None:
        # Outside the transaction below: words are added as rows are queued, and cannot be undone.
        self._flush()
        if self._is_rewrite and not self._failed:
            self._take_back()
        self._state.chunks = self._session_chunks()
        catalog = self._memory.catalog
        source, counted = self._source_record(), self._redacted_before()
        with catalog.transaction():
            if self._session_id and self._state.chunks:
                catalog.put_session(self._kept_session() or self._session_record())
                catalog.put_files(self._session_id, self._files)
                if self._facts is not None and not self._failed:
                    self._facts.finish()
            if not self._failed:
                catalog.put_source(source)
                excluded.unnote(catalog, source.key)
                record.add_counts(catalog, self._state.redacted, counted)
            (catalog.add_problems if self._is_tail else self._put_problems)(self._problems)

    def _take_back(self) -> None:
        """Remove stored rows that the trace, read to its end, no longer has."""
        stored = self._memory.session_rows(self._session_id)
        self._remove([row.id for row in stored if row.id not in self._seen_ids])

    def _session_chunks(self) -> int:
        """Return how many rows of the session are stored, counted where that is not known."""
        if not self._session_id or self._is_forgotten:
            return self._state.chunks
        is_known = bool(self._state.chunks) or not self._check_ids
        if is_known and self._new == self._total and not self._is_rewrite:
            return self._state.chunks + self._new
        return len(self._memory.session_rows(self._session_id))

    def _put_problems(self, problems: list[Problem]) -> None:
        key, path = self._place()
        self._memory.catalog.put_problems(key if key == self._unit.key else path, problems)

    def _same_source(self) -> bool:
        """Return whether the stored rows came from this very trace, so that it may retract them."""
        known = self._memory.catalog.source(self._unit.key)
        return known is not None and known.session_id == self._session_id

    def _redacted_before(self) -> Counts:
        """Return what was counted of the trace when it was last read."""
        return record.taken_out(self._memory.catalog.source(self._unit.key))

    def _source_record(self) -> Source:
        state = self._state
        state.reader = self._reading.resume
        state.redacted = dict(Counter(state.redacted) + Counter(self._reading.counts))
        state.hidden = self._hidden.calls if self._hidden else state.hidden
        # It holds the title and the names of calls.
        resume = None if self._is_forgotten else msgspec.json.encode(state)
        session_id = self._session_id or self._old_session_id() or ""
        key, path = self._place()
        return _seen(self._unit, session_id, path=path, key=key, resume=resume)

    def _place(self) -> tuple[str, str]:
        """Return under which key and path the trace is noted: its own, unless they hold a secret.

        Then its key says nothing, and nobody looks whether it is still there.
        """
        unit, path = self._unit, self._reading.path
        own = path_text(unit.path)
        if unit.is_fetched and self._clean(unit.key) == unit.key:
            return unit.key, unit.shown
        if path == own and (unit.key == own or self._clean(unit.key) == unit.key):
            return unit.key, str(unit.path)
        return hidden_key(unit.key), path

    def _keep_out(self) -> None:
        """Take out what is stored of a session that is kept out, and note that it is."""
        meta = self._reading.session
        why = Excluded(
            reason=self._excluded,
            session_id=self._session_id,
            cwd=meta.cwd,
            parent=meta.parent_id if meta.link == "subagent" else "",
        )
        catalog, less = self._memory.catalog, self._redacted_before()
        key, path = self._place()
        with catalog.transaction():
            record.add_counts(catalog, {}, less)
            self._put_problems([])
        source = _seen(self._unit, self._session_id, path=path, key=key)
        self._removed = excluded.keep_out(self._memory, source, why)
        self._new = self._total = 0

    def _kept_session(self) -> Session | None:
        """Return what a session's own trace has said of it; None for what a copy may say anew."""
        known = self._memory.catalog.session(self._session_id) if self._unit.is_fetched else None
        is_own = known is not None and known.source_key != self._unit.key
        return replace(known, chunks=self._state.chunks) if known and is_own else None

    def _old_session_id(self) -> str | None:
        known = self._memory.catalog.source(self._unit.key)
        return known.session_id if known else None

    def _session_record(self) -> Session:
        meta: SessionMeta = self._reading.session
        state = self._state
        known = state.started_us is not None
        return Session(
            session_id=self._session_id,
            harness=meta.harness or self._unit.harness,
            cwd=meta.cwd,
            workdir=self._workdir,
            repo=self._repo,
            branch=meta.branch,
            title=meta.title,
            started_us=state.started_us if known else self._file_time(),
            ended_us=state.ended_us if known else self._file_time(),
            time_source="recorded" if known else "file" if self._file_time() else "",
            parent_id=meta.parent_id,
            link=meta.link,
            inner_id=meta.inner_id,
            source_path=self._reading.path,
            source_key=self._place()[0],
            subagent=self._unit.subagent or meta.link == "subagent",
            turns=state.turns,
            chunks=state.chunks,
        )


def _is_alive(other: Source, unit: Unit) -> bool:
    """Return whether another trace still stands beside this one (not moved, not the same file)."""
    if unit.is_fetched or other.path == str(unit.path):  # a copy, also of what is here
        return bool(unit.container) and not unit.is_fetched
    path = Path(other.path)
    try:
        return path.exists() and not path.samefile(unit.path)
    except OSError:
        return False
