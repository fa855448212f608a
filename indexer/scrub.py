"""Takes secrets out of what is stored already: scanned block by block, repaired in place.

Blocks are rebuilt from their chunks, so that what was cut in two is found. A block without secrets
keeps its rows and their vectors; of one with some the chunks that changed are queued again under
their ids. Traces are not touched.
"""

import base64
import binascii
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from funes_ls.indexer import facts_tables, purge
from funes_ls.indexer.blocks import StoredBlock, blocks_of_rows
from funes_ls.indexer.calls.rebuild import rebuild_steps
from funes_ls.indexer.catalog import Catalog, Session, Source
from funes_ls.indexer.chunk import chunk_id, join_pieces, parted, split
from funes_ls.indexer.clean import hidden_key
from funes_ls.indexer.errors import TraceError
from funes_ls.indexer.memory import Memory, MemoryView
from funes_ls.indexer.model import Chunk, Problem
from funes_ls.indexer.redaction import record
from funes_ls.indexer.redaction.judge import MARK
from funes_ls.indexer.traces.texts import munge, title_of

#: Fields of rows and of sessions that may hold a secret.
_ROW_FIELDS = ("workdir", "tool_name", "source_path", "repo")
_SESSION_FIELDS = ("cwd", "workdir", "repo", "branch", "title", "source_path")
_CHUNK_FIELDS = Chunk.__struct_fields__
#: Texts that a session's rows share are asked about once, so many of them.
_MOST_KNOWN = 10_000


class _Redacted(Protocol):
    @property
    def text(self) -> str: ...

    @property
    def counts(self) -> dict[str, int]: ...


class Scanner(Protocol):
    """What finds secrets; see `funes_ls.indexer.redaction.base.Redaction`."""

    @property
    def stamp(self) -> str:
        """Which scanner with which rules this is."""
        ...

    def text(self, text: str) -> _Redacted:
        """Return a text without its secrets; the same text when there are none."""
        ...


class ScrubReport(Struct, kw_only=True):
    """What a scrub did, or would do; filled as it goes.

    Attributes:
        sessions, blocks: What was scanned.
        redacted: Blocks that held secrets.
        dropped: Blocks taken out, since they could not be cleaned.
        details: Titles, branches, folders, paths, problems, lines of logs that held some.
        requeued: Chunks that wait for a vector anew.
        counts: How often each rule found something.
        pure: Whether no byte of what was taken out is left.
    """

    sessions: int = 0
    blocks: int = 0
    redacted: int = 0
    dropped: int = 0
    details: int = 0
    requeued: int = 0
    counts: dict[str, int] = {}
    pure: bool = False

    @property
    def found(self) -> bool:
        """Return whether there was anything to take out."""
        return bool(self.redacted or self.dropped or self.details)

    def note(self, counts: dict[str, int]) -> None:
        """Add what rules found."""
        self.counts = dict(Counter(self.counts) + Counter(counts))


class _Change(Struct, frozen=True, kw_only=True):
    """What becomes of a session.

    Attributes:
        session: Its record, None when it is as it was, or there is none.
        gone: Ids of rows that leave.
        rows: Rows that come in their place.
        files: The files it touched, None when they are as they were.
    """

    session: Session | None
    gone: list[str]
    rows: list[Chunk]
    files: list[str] | None

    @property
    def is_empty(self) -> bool:
        return self.session is None and self.files is None and not self.gone


class _Cleaner:
    """Cleans texts and counts what was found; short texts are asked about once."""

    def __init__(self, scanner: Scanner, report: ScrubReport) -> None:
        self._scanner = scanner
        self.report = report
        self._known: dict[str, str] = {}

    def block(self, text: str) -> str | None:
        """Return the text of a block without secrets, None when it cannot be cleaned."""
        try:
            shown = parted(text)
            found = self._scanner.text(shown)
            if found.text == shown:
                return text
            self.report.note(found.counts)
            clean = found.text if shown == text else found.text.replace("\n", " ", 1)
            # What is stored is cut and put together again: that must be clean, too.
            again = parted(join_pieces(list(split(clean))))
            return clean if self._scanner.text(again).text == again else None
        except TraceError:
            return None  # nobody can tell what is in it

    def detail(self, text: str) -> str:
        """Return a short text without secrets."""
        if not text:
            return text
        if text not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[text] = clean = self._cleaned(text)
            self.report.details += clean != text
        return self._known[text]

    def _cleaned(self, text: str) -> str:
        try:
            found = self._scanner.text(text)
        except TraceError:
            return MARK
        if found.text != text:
            self.report.note(found.counts)
        return found.text


def look_steps(
    view: MemoryView, home: Path, scanner: Scanner, report: ScrubReport
) -> Iterator[int]:
    """Scan a memory and logs, changing nothing; yield the number of sessions after each one."""
    cleaner = _Cleaner(scanner, report)
    names = _session_ids(view.catalog)
    for name in names:
        if cleaner.detail(name) == name:
            report.requeued += len(_change_of(name, view, cleaner).rows)
        else:
            report.sessions += 1
            report.dropped += sum(1 for _ in blocks_of_rows(view.session_rows(name)))
        yield len(names)
    for source in view.catalog.sources():
        _clean_source(source, cleaner)
    for problem in view.catalog.problems():
        _clean_problem(problem, cleaner)
    logs = purge.clean_logs(home, lambda text: _clean_text(text, scanner), is_dry=True)
    report.details += logs


def scrub_steps(
    memory: Memory, home: Path, scanner: Scanner, report: ScrubReport, *, told: purge.Told
) -> Generator[float, None, ScrubReport]:
    """Take what a scanner finds out of a home's memory, then see to its bytes.

    Nothing else may be written before the last step. Ended early, what was cleaned stays clean,
    and bytes are due.

    Args:
        memory: Open for writing.
        home: Whose memory it is.
        scanner: What finds secrets.
        report: Filled as it goes.
        told: See `purge.Told`; also told of `scrub`, sessions done and in all.

    Raises:
        ScannerError: nobody can tell what is clean.
        BackendError: kind `disk`.
    """
    stamp = scanner.stamp
    cleaner = _Cleaner(scanner, report)
    names = _session_ids(memory.catalog)
    counted: dict[str, int] = {}
    for done, name in enumerate(names):
        told("scrub", done, len(names))
        yield from _scrub_session(name, memory, cleaner)
        counted = _count(memory.catalog, report, counted)
    for _ in rebuild_steps(memory):  # of what has changed, now or before a kill
        yield 0.0
    _scrub_rest(memory.catalog, cleaner)
    report.details += purge.clean_logs(home, lambda text: _clean_text(text, scanner))
    _count(memory.catalog, report, counted)
    if report.found:
        memory.catalog.bump_generation()
    if not purge.is_pure(memory):
        report.pure = yield from purge.purge_steps(memory, home, told=told)
    else:
        report.pure = True
    if memory.catalog.get(record.STAMP_KEY) != stamp and names:
        memory.catalog.put(record.STAMP_KEY, stamp)
    return report


def _count(catalog: Catalog, report: ScrubReport, before: dict[str, int]) -> dict[str, int]:
    """Note what was found since the last time, and return all that is noted."""
    if report.counts != before:
        record.add_counts(catalog, report.counts, before)
    return report.counts


def _session_ids(catalog: Catalog) -> list[str]:
    """Return every session that has rows or a record."""
    found = catalog.select(
        "SELECT session_id FROM sessions UNION SELECT session_id FROM pending "
        "UNION SELECT session_id FROM embedded ORDER BY session_id"
    )
    return [row[0] for row in found]


def _scrub_session(name: str, memory: Memory, cleaner: _Cleaner) -> Generator[float, None, None]:
    if cleaner.detail(name) != name:
        _take_out(name, memory, cleaner.report)
        yield 0.0
        return
    change = _change_of(name, memory, cleaner)
    yield 0.0
    if change.is_empty:
        return
    purge.expect(memory)
    catalog = memory.catalog
    known = catalog.session(name)
    with catalog.transaction():
        facts_tables.outdate(catalog, name)
        if change.session is not None:
            catalog.put_session(change.session)
        if change.files is not None:
            catalog.change("DELETE FROM session_files WHERE session_id = ?", (name,))
            catalog.put_files(name, change.files)
    if change.gone:
        memory.replace(
            change.gone,
            change.rows,
            started_us=known.ended_us if known else None,
            subagent=known.subagent if known else False,
        )
        cleaner.report.requeued += len(change.rows)


def _take_out(name: str, memory: Memory, report: ScrubReport) -> None:
    """Take a session out whose id holds a secret: its trace is read again, under a clean one."""
    catalog = memory.catalog
    rows = memory.session_rows(name)
    report.sessions += 1
    report.dropped += sum(1 for _ in blocks_of_rows(rows))
    purge.expect(memory)
    if rows:
        memory.remove([row.id for row in rows])
    with catalog.transaction():
        for source in catalog.session_sources(name):
            catalog.forget_source(source.key)
        facts_tables.forget(catalog, name)
        catalog.forget_session(name)


def _change_of(name: str, view: MemoryView, cleaner: _Cleaner) -> _Change:
    """Return what becomes of a session once it is clean."""
    report = cleaner.report
    report.sessions += 1
    session = view.catalog.session(name)
    rows = view.session_rows(name)
    clean = _clean_session(session, cleaner) if session else None
    folders = {session.workdir: clean.workdir} if session and clean else {}
    gone: list[str] = []
    fresh: list[Chunk] = []
    for block in blocks_of_rows(rows):
        report.blocks += 1
        kept = _clean_block(block, cleaner, folders)
        after = {row.id: row for row in kept}
        changed = [row for row in block.rows if after.get(row.id) != _chunk(row)]
        known = {row.id: _chunk(row) for row in block.rows}
        gone += [row.id for row in changed]
        fresh += [row for row in kept if known.get(row.id) != row]
        if session and clean and changed and session.title == title_of(block.text):
            # Cut off within a secret, a title is none for the scanner.
            clean = replace(clean, title=title_of(join_pieces([row.text for row in kept])))
    if clean is not None and gone:
        clean = replace(clean, chunks=len(rows) - len(gone) + len(fresh))
    files = view.catalog.files(name)
    clean_files = [cleaner.detail(path) for path in files]
    return _Change(
        session=clean if clean != session else None,
        gone=gone,
        rows=fresh,
        files=clean_files if clean_files != files else None,
    )


def _clean_session(session: Session, cleaner: _Cleaner) -> Session:
    values = {name: cleaner.detail(getattr(session, name)) for name in _SESSION_FIELDS}
    if values["cwd"] != session.cwd and session.workdir == munge(session.cwd):
        values["workdir"] = munge(values["cwd"]) or ""
    if cleaner.detail(session.source_key) != session.source_key:
        values["source_key"] = hidden_key(session.source_key)
    return replace(session, **values)


def _clean_block(block: StoredBlock, cleaner: _Cleaner, folders: dict[str, str]) -> list[Chunk]:
    """Return the rows of a block without secrets; those that are as they were are the same."""
    text = cleaner.block(block.text)
    if text is None:
        cleaner.report.dropped += 1
        return []
    rows = [_clean_row(row, cleaner, folders) for row in block.rows]
    if text == block.text:
        return rows
    cleaner.report.redacted += 1
    return [
        replace(rows[n], text=piece)
        if n < len(rows)
        else replace(rows[0], id=_further_id(rows[0], n), split_idx=n, text=piece)
        for n, piece in enumerate(split(text))
    ]


def _clean_row(row: Chunk, cleaner: _Cleaner, folders: dict[str, str]) -> Chunk:
    values: dict[str, Any] = {}
    for name in _ROW_FIELDS:
        value = getattr(row, name)
        clean = cleaner.detail(value) if value else value
        clean = folders.get(value, clean) if name == "workdir" else clean
        if clean != value:
            values[name] = clean
    return replace(_chunk(row), **values)


def _chunk(row: Chunk) -> Chunk:
    """Return a row as it is stored, whatever else is known of it."""
    return Chunk(**{name: getattr(row, name) for name in _CHUNK_FIELDS})


def _further_id(first: Chunk, split_idx: int) -> str:
    """Return the id of a piece that a block did not have before: its text has become longer."""
    plain = first.session_id.partition("@")[0]
    for session_id in (first.session_id, plain):
        made = chunk_id(session_id, first.turn_uuid, first.block_idx, first.split_idx)
        if made == first.id:
            return chunk_id(session_id, first.turn_uuid, first.block_idx, split_idx)
    return chunk_id(first.session_id, first.turn_uuid, first.block_idx, split_idx)


def _scrub_rest(catalog: Catalog, cleaner: _Cleaner) -> None:
    """Clean what is said of traces: how far they were read, and what could not be."""
    for source in catalog.sources():
        clean = _clean_source(source, cleaner)
        if clean != source:
            with catalog.transaction():
                if clean.resume is None:  # what is read anew is counted anew
                    record.add_counts(catalog, {}, record.taken_out(source))
                catalog.forget_source(source.key)
                catalog.put_source(clean)
    problems = catalog.problems()
    told = [_clean_problem(problem, cleaner) for problem in problems]
    if told != problems:
        with catalog.transaction():
            catalog.change("DELETE FROM problems")
            catalog.add_problems(told)


def _clean_problem(problem: Problem, cleaner: _Cleaner) -> Problem:
    path, message = cleaner.detail(problem.path), cleaner.detail(problem.message)
    return replace(problem, path=path, message=message)


def _clean_source(source: Source, cleaner: _Cleaner) -> Source:
    """Return what is known of a trace without secrets: where it is, and how far it was read."""
    # One without a state is read whole the next time: its rows are known by their ids.
    resume = None if _is_dirty(source, cleaner) else source.resume
    path = cleaner.detail(source.path)
    if path == source.path and cleaner.detail(source.key) == source.key:
        return source if resume == source.resume else replace(source, resume=resume)
    return replace(source, key=hidden_key(source.key), path=path, resume=None)


def _is_dirty(source: Source, cleaner: _Cleaner) -> bool:
    """Tell whether the reader's state holds secrets: a title, the names of calls."""
    texts = _texts_of(source.resume) if source.resume else ""
    return cleaner.detail(texts) != texts


def _texts_of(resume: bytes) -> str:
    """Return the texts within a reader's state, a line each."""
    try:
        state = msgspec.json.decode(resume)
        inner = base64.b64decode(state.get("reader") or "")
    except (msgspec.MsgspecError, binascii.Error, AttributeError, TypeError):
        return resume.decode("utf-8", "replace")
    for decode in (msgspec.msgpack.decode, msgspec.json.decode):
        try:
            return "\n".join(_strings(decode(inner)))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
    return inner.decode("utf-8", "replace")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _strings(name)
            yield from _strings(one)
    elif isinstance(value, Sequence) and not isinstance(value, bytes):
        for one in value:
            yield from _strings(one)


def _clean_text(text: str, scanner: Scanner) -> str:
    """Return lines of a log without secrets, byte for byte the same when they hold none."""
    shown = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        clean = scanner.text(shown).text
    except TraceError:
        return f"{MARK}\n"
    return text if clean == shown else clean
