"""Reads a JSONL trace as a stream, whole or from where the last reading stopped."""

from collections.abc import Iterator
from typing import Any, BinaryIO, Literal, Protocol

from msgspec import Struct

from funes_ls.indexer.model import Block, Problem, SessionMeta, Turn
from funes_ls.indexer.traces import lines, texts
from funes_ls.indexer.traces.base import Unit
from funes_ls.indexer.traces.own import own_answer, own_call
from funes_ls.indexer.traces.state import (
    State,
    decode_state,
    encode_state,
    prefix_digest,
    remembered,
)

#: Bad lines named one by one; a file of something else altogether has no end of them.
MAX_BAD_LINES = 100
#: Lines that both passes need are kept from the first, up to so many bytes, and read only once.
_KEPT_BYTES = 4 << 20

#: What a dialect makes of a record: a compat turn, one that compat loses, or one of a bare trace.
Kind = Literal["compat", "extra", "bare"]


class Draft(Struct, kw_only=True):
    """A turn as a dialect sees it, before ids, names and `seq` are settled.

    Attributes:
        uuid: Native id, "" when the record has none.
        ext_blocks: Blocks to store instead, see `Turn.ext_blocks`.
        server: MCP server of the call where it is recorded apart from the tool's name.
    """

    role: str
    blocks: list[Block]
    kind: Kind = "compat"
    uuid: str = ""
    parent: str | None = None
    ts: str = ""
    server: str = ""


class Dialect(Protocol):
    """How one harness writes records."""

    harness: str

    def fresh(self, unit: Unit) -> State:
        """Return the state of a reading that has not begun."""
        ...

    def wanted(self, raw: bytes | bytearray, state: State) -> bool:
        """Tell whether `scan` needs a line; a cheap test on its bytes."""
        ...

    def scanned(self, state: State) -> bool:
        """Tell whether no further line is needed by `scan`."""
        ...

    def scan(self, record: dict[str, Any], state: State) -> None:
        """Learn what earlier turns depend on: the session id, the work directory, tool names."""
        ...

    def draft(
        self, record: dict[str, Any], state: State, raw: bytes | bytearray | None
    ) -> Draft | None:
        """Return the turn in a record; `raw` is its line when compat takes it."""
        ...

    def uuid(self, draft: Draft, state: State, fallback: str) -> tuple[str, str | None]:
        """Return the id of a turn, and its compat id where that differs."""
        ...


def learn_name(state: State, call_id: Any, name: Any) -> None:
    """Remember the name of a call; the last one wins."""
    if isinstance(call_id, str) and isinstance(name, str):
        state.names[call_id] = name


class JsonlReading:
    """A reading of one JSONL trace, see `Reading`."""

    def __init__(self, unit: Unit, dialect: Dialect, *, resume: bytes | None = None) -> None:
        """Make a reading of a unit whose records are in a dialect."""
        self._unit = unit
        self._dialect = dialect
        self._state = dialect.fresh(unit)
        self._given = decode_state(resume, dialect.harness)
        self.restarted = bool(resume) and self._given is None
        self.late_names = False
        self.failed = False
        self._bad_lines = 0
        self._gave_turn = False
        self._untold: list[int] = []  # bad lines before the first turn, and the one just read
        self._kept: dict[int, tuple[bytes | bytearray, lines.Content | None]] = {}
        self._kept_bytes = 0

    @property
    def session(self) -> SessionMeta:
        """Return what the trace says of its session."""
        return self._state.meta

    @property
    def skipped(self) -> dict[str, int]:
        """Return how many records of unknown types were passed over."""
        return self._state.skipped

    @property
    def offset(self) -> int:
        """Return the bytes read up to the end of the last record taken."""
        return self._state.offset

    @property
    def resume(self) -> bytes:
        """Return the state for the next reading, b"" when the trace could not be read."""
        return encode_state(remembered(self._state)) if self._state.digest else b""

    def __iter__(self) -> Iterator[Turn | Problem]:
        """Yield the turns and problems of the trace."""
        try:
            with lines.open_trace(self._unit.path) as file:
                limit = self._limit(file)
                self._begin(file, limit)
            with lines.open_trace(self._unit.path) as file:
                yield from self._turns(file, limit)
                self._seal(file)
            yield from self._unnamed_bad_lines()
            if lines.ends_early(self._unit.path):
                # Not recorded as read, so that rows of it when it was whole are not taken back.
                self.failed = True
                self._state.digest = ""
                yield self._problem("unreadable", "The file ends early; the rest is missing.", 0)
        except lines.READ_ERRORS as exc:
            self.failed = True
            self._state.digest = ""
            yield from self._unnamed_bad_lines()
            yield self._problem("unreadable", _why(exc), 0)

    def _limit(self, file: BinaryIO) -> int | None:
        """Return where to stop, so that a growing trace is seen at one length by both passes."""
        if self._unit.path.suffix == ".zst":
            return None
        end = file.seek(0, 2)
        file.seek(0)
        return end

    def _begin(self, file: BinaryIO, limit: int | None) -> None:
        """Take the given state if it still fits, and learn what the turns depend on."""
        given = self._given
        if given is not None:
            if self._fits(file, given, limit) and self._scan_tail(file, given, limit):
                self._state = given
                return
            self.restarted = True
            file.seek(0) if limit is not None else None
        with lines.open_trace(self._unit.path) as again:
            self._scan(again, self._state, limit)

    def _fits(self, file: BinaryIO, given: State, limit: int | None) -> bool:
        if limit is not None and limit < given.offset:
            return False
        return prefix_digest(file, given.offset) == given.digest

    def _scan_tail(self, file: BinaryIO, given: State, limit: int | None) -> bool:
        """Scan what was added; False when it changes turns that were given before."""
        if given.open_tail and not _close_tail(file, given, limit):
            return False
        before = (given.session_id, given.workdir, given.bare)
        names = dict(given.names)
        self._scan(file, given, limit)
        if before != (given.session_id, given.workdir, given.bare):
            return False
        self.late_names = _late(names, given)
        return True

    def _scan(self, file: BinaryIO, state: State, limit: int | None) -> None:
        dialect = self._dialect
        for line in lines.read_lines(file, state.offset, limit=limit):
            if dialect.scanned(state):
                return
            if line.too_long or not dialect.wanted(line.raw, state):
                continue
            content = self._keep(line)
            record = content.records[0] if content is not None and content.compat else None
            if isinstance(record, dict):
                dialect.scan(record, state)

    def _keep(self, line: lines.Line) -> lines.Content | None:
        """Return what a line holds and have it at hand for the second pass."""
        content = lines.content(line.raw)
        self._kept_bytes += len(line.raw)
        if self._kept_bytes <= _KEPT_BYTES:
            self._kept[line.end] = line.raw, content
        return content

    def _content_of(self, line: lines.Line) -> lines.Content | None:
        """Return what a line holds, from the first pass where it has read this very line."""
        raw, content = self._kept.pop(line.end, (b"", None))
        return content if raw == line.raw else lines.content(line.raw)

    def _turns(self, file: BinaryIO, limit: int | None) -> Iterator[Turn | Problem]:
        state = self._state
        state.digest = ""
        if not _skip_to(file, state.offset):
            return
        for line in lines.read_lines(file, state.offset, limit=limit):
            if line.too_long:
                yield from self._too_long(line)
                continue
            content = self._content_of(line)
            if not line.whole and (content is None or not content.records or content.lost):
                return
            state.lines += 1
            state.offset = line.end
            state.open_tail = not line.whole
            if content is not None:
                yield from self._content(line, content)
                state.records += 1

    def _too_long(self, line: lines.Line) -> Iterator[Problem]:
        if line.whole:
            self._state.lines += 1
            self._state.records += 1
            self._state.offset = line.end
            yield self._problem("too_long", "A line is too long to read.", self._state.lines)

    def _seal(self, file: BinaryIO) -> None:
        """Hash what was read, through the same handle: the file may be replaced at any time."""
        if file.seekable():
            file.seek(0)
            digest = prefix_digest(file, self._state.offset)
        else:
            with lines.open_trace(self._unit.path) as again:
                digest = prefix_digest(again, self._state.offset)
        self._state.digest = digest or ""

    def _content(self, line: lines.Line, content: lines.Content) -> Iterator[Turn | Problem]:
        state = self._state
        if content.lost:
            self._bad_lines += 1
            if self._bad_lines <= MAX_BAD_LINES:
                self._untold.append(state.lines)
            if self._gave_turn:
                yield from self._told_bad_lines()
        for part, record in enumerate(content.records):
            if not isinstance(record, dict):
                continue
            draft = self._dialect.draft(record, state, line.raw if content.compat else None)
            if draft is None or not draft.blocks:
                continue
            if not content.compat and draft.kind == "compat":
                draft.kind = "extra"
            if not self._gave_turn:
                self._gave_turn = True
                yield from self._told_bad_lines()
            yield self._turn(draft, f"{state.records}.{part}" if part else str(state.records))

    def _turn(self, draft: Draft, record: str) -> Turn:
        state = self._state
        if draft.kind == "compat":
            seq, state.seq = state.seq, state.seq + 1
        elif draft.kind == "bare":
            seq, state.extra_seq = state.extra_seq, state.extra_seq + 1
        else:
            seq = max(state.seq, state.extra_seq, 1) - 1
        fallback = f"{state.session_id}-x{record}"
        if draft.kind == "extra":
            uuid, compat_uuid = draft.uuid or fallback, None
        else:
            uuid, compat_uuid = self._dialect.uuid(draft, state, f"{state.session_id}-{seq}")
        blocks = self._named(draft)
        return Turn(
            session_id=state.session_id,
            turn_uuid=uuid,
            parent_uuid=draft.parent,
            seq=seq,
            ts=draft.ts or state.base_ts,
            role=draft.role,
            blocks=tuple(blocks),
            workdir=state.workdir,
            source_path=self._unit.key,
            harness=state.harness,
            record=state.records,
            extra=draft.kind != "compat",
            ext_blocks=texts.without_nul(blocks),
            compat_uuid=compat_uuid,
        )

    def _named(self, draft: Draft) -> list[Block]:
        """Return the blocks with tool names filled in and funes's own answers marked."""
        state = self._state
        named: list[Block] = []
        for block in draft.blocks:
            call_id, name, own = block.tool_use_id, block.tool_name, False
            if block.block_type == "tool_use":
                asked = own_call(name, block.text, server=draft.server)
                own = asked == "whole"
                if asked and call_id is not None:
                    state.own.add(call_id)
            elif block.block_type == "tool_result":
                own = call_id in state.own or own_answer(name, block.text)
                if name is None and call_id is not None:
                    name = state.names.get(call_id)
                    if name is None:
                        state.nameless.add(call_id)
            if own or name is not block.tool_name:
                block = Block(
                    block_type=block.block_type,
                    text=block.text,
                    tool_name=name,
                    tool_use_id=call_id,
                    own=own,
                )
            named.append(block)
        return named

    def _told_bad_lines(self) -> Iterator[Problem]:
        for line in self._untold:
            yield self._problem("bad_line", "A line cannot be read.", line)
        self._untold = []

    def _unnamed_bad_lines(self) -> Iterator[Problem]:
        """Yield one problem for all bad lines if there was nothing else, else for unnamed ones."""
        if len(self._untold) > 1:
            message = f"{self._bad_lines} lines cannot be read, this one first."
            yield self._problem("bad_line", message, self._untold[0], count=self._bad_lines)
            return
        yield from self._told_bad_lines()
        more = self._bad_lines - MAX_BAD_LINES
        if more > 0:
            message = f"{more} more lines cannot be read."
            yield self._problem("bad_line", message, self._state.lines, count=more)

    def _problem(self, kind: str, message: str, line: int, *, count: int = 1) -> Problem:
        return Problem(path=self._unit.key, kind=kind, message=message, line=line, count=count)


def _close_tail(file: BinaryIO, given: State, limit: int | None) -> bool:
    """Step over the line feed that was missing; False when the record went on instead."""
    for line in lines.read_lines(file, given.offset, limit=limit):
        if line.too_long or line.raw.strip():
            return False
        given.offset = line.end
        given.open_tail = not line.whole
        return True
    return True


def _late(before: dict[str, str], state: State) -> bool:
    """Tell whether a tail gave a name to an answer that was given without it, or another one."""
    if state.nameless and any(call_id in state.names for call_id in state.nameless):
        return True
    return any(state.names.get(call_id, name) != name for call_id, name in before.items())


def _skip_to(file: BinaryIO, offset: int) -> bool:
    if file.seekable():
        file.seek(offset)
        return True
    return prefix_digest(file, offset) is not None


def _why(exc: BaseException) -> str:
    if isinstance(exc, OSError) and exc.strerror:
        return f"{exc.strerror}."
    return "It is damaged."
