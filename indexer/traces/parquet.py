"""Agent traces in Parquet: one row a session, its messages as a list of JSON strings."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from funes_ls.indexer.errors import TraceError
from funes_ls.indexer.model import Block, Problem, SessionMeta, Turn, path_text
from funes_ls.indexer.traces import jsonvalue, texts
from funes_ls.indexer.traces.base import Unit
from funes_ls.indexer.traces.hermes import tool_calls
from funes_ls.indexer.traces.own import own_answer, own_call
from funes_ls.indexer.traces.state import encode_state
from funes_ls.indexer.traces.walk import Found, find_files, found_at, refuse_odd

SUFFIXES = (".parquet", ".PARQUET", ".Parquet")
#: Small, for one session's messages can be big.
_BATCH_ROWS = 8
_OPTIONAL = ("sent_at", "harness", "file_path", "metadata")


class ParquetState(Struct, kw_only=True):
    """What the messages read were; a row whose messages only grew is read on from there."""

    version: int = 1
    messages: int = 0
    digest: str = ""
    seq: int = 0
    parent: str | None = None
    names: dict[str, str] = {}
    own: set[str] = set()
    title: str = ""


class ParquetSource:
    """The reader of Parquet trace files; it keeps its place in one file between reads."""

    harness = ""

    def __init__(self) -> None:
        """Make a reader that has no file open."""
        self._cursor: _Cursor | None = None

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """Return nothing: Parquet traces have no known place."""
        return []

    def units(self, root: Path) -> Iterator[Unit | Problem]:
        """Yield the sessions of every Parquet file under a root, newest file first, in row order.

        Raises:
            TraceError: the root is itself a file, and it holds no agent traces, or it is neither
                a folder nor a regular file.
        """
        refuse_odd(root)
        files: list[Found] = []
        for item in find_files(root, SUFFIXES):
            if isinstance(item, Problem):
                yield item
            else:
                files.append(item)
        for file in sorted(files, key=lambda file: (-file.stat.st_mtime_ns, str(file.path))):
            yield from self.sessions(file, fatal=file.path == root)

    def units_at(self, root: Path, path: Path) -> list[Unit]:
        """Return the sessions of the Parquet files under a root that a path below it holds."""
        files = found_at(root, path, SUFFIXES)
        listed = [item for file in files for item in self.sessions(file, fatal=False)]
        return [item for item in listed if isinstance(item, Unit)]

    def sessions(self, file: Found, *, fatal: bool) -> Iterator[Unit | Problem]:
        """Yield the sessions of one file in row order.

        Raises:
            TraceError: `fatal` is set, and the file holds no agent traces.
        """
        try:
            yield from _sessions(file)
        except TraceError as exc:
            if fatal:
                raise
            yield Problem(path=path_text(file.path), kind=exc.kind, message=exc.message)

    def read(self, unit: Unit, *, resume: bytes | None = None) -> "ParquetReading":
        """Return a reading of a session; rows read in order are read from disk once."""
        return ParquetReading(unit, self, resume=resume)

    def row(self, unit: Unit) -> dict[str, Any] | None:
        """Return the row of a unit, None when the file no longer has it.

        Raises:
            TraceError: the file cannot be read.
        """
        cursor = self._cursor
        if cursor is None or not cursor.reaches(unit):
            cursor = self._cursor = _Cursor(unit)
        return cursor.row(unit.row)


class _Cursor:
    """A pass over the rows of one file."""

    def __init__(self, unit: Unit) -> None:
        self._identity = (unit.path, unit.size, unit.mtime_ns, unit.inode)
        self._rows = _rows(unit.path)
        self._next = 0
        self._held: dict[str, Any] | None = None

    def reaches(self, unit: Unit) -> bool:
        identity = (unit.path, unit.size, unit.mtime_ns, unit.inode)
        return identity == self._identity and unit.row >= self._next - 1

    def row(self, number: int) -> dict[str, Any] | None:
        while self._next <= number:
            self._held = next(self._rows, None)
            self._next += 1
            if self._held is None:
                return None
        return self._held


def _open(path: Path) -> Any:
    import pyarrow as pa  # heavy; only Parquet traces need it
    import pyarrow.parquet as pq

    refuse_odd(path)
    try:
        # pyarrow takes names that are not UTF-8 only here, and only as bytes.
        odd = path_text(path) != str(path)
        file = pq.ParquetFile(pa.OSFile(os.fsencode(path)) if odd else path, memory_map=False)
        schema = file.schema_arrow
    except (OSError, pa.ArrowException) as exc:
        raise _bad(path, "It cannot be read as Parquet.") from exc
    for name in ("session_id", "messages"):
        if schema.get_field_index(name) < 0:
            raise _bad(path, f"It has no column `{name}`, so it holds no agent traces.")
    if not _is_text(schema.field("session_id").type):
        raise _bad(path, "Its column `session_id` holds no text.")
    messages = schema.field("messages").type
    is_list = pa.types.is_list(messages) or pa.types.is_large_list(messages)
    if not is_list or not _is_text(messages.value_type):
        raise _bad(path, "Its column `messages` is no list of text.")
    return file


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    kind = getattr(kind, "storage_type", kind)  # of an extension such as arrow.json
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in tests)


def _bad(path: Path, why: str) -> TraceError:
    return TraceError(f"{path_text(path)}: {why}", kind="bad_source")


def _batches(path: Path, columns: list[str], rows: int) -> Iterator[Any]:
    import pyarrow as pa

    file = _open(path)
    have = [name for name in columns if name in file.schema_arrow.names]
    try:
        with file:
            yield from file.iter_batches(batch_size=rows, columns=have, use_threads=False)
    except (OSError, pa.ArrowException) as exc:
        raise _bad(path, "It is damaged.") from exc


def _sessions(found: Found) -> Iterator[Unit]:
    seen: set[str] = set()
    row = 0
    for batch in _batches(found.real, ["session_id"], 4096):
        for session_id in batch.column("session_id").to_pylist():
            if session_id is not None:
                key = f"{path_text(found.path)}#{session_id}"
                key = f"{key}#{row}" if session_id in seen else key
                seen.add(session_id)
                unit = found.unit("")
                yield msgspec.structs.replace(unit, key=key, row=row, container=unit.key)
            row += 1


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for batch in _batches(path, ["session_id", "messages", *_OPTIONAL], _BATCH_ROWS):
        texts_only = [
            name
            for name in batch.schema.names
            if name == "messages" or _is_text(batch.schema.field(name).type)
        ]
        for at in range(batch.num_rows):
            yield {name: batch.column(name)[at].as_py() for name in texts_only}


class ParquetReading:
    """A reading of one row, see `Reading`; `offset` is the number of messages read."""

    late_names = False

    def __init__(self, unit: Unit, source: ParquetSource, *, resume: bytes | None) -> None:
        """Make a reading of a unit through the reader that keeps its file open."""
        self._unit = unit
        self._source = source
        self._given = resume
        self._state = ParquetState()
        self.session = SessionMeta(session_id="", harness=unit.harness)
        self.restarted = False
        self.failed = False
        self.skipped: dict[str, int] = {}

    @property
    def offset(self) -> int:
        """Return the number of messages read."""
        return self._state.messages

    @property
    def resume(self) -> bytes:
        """Return the state for the next reading, b"" when the file could not be read."""
        return b"" if self.failed else encode_state(self._state)

    def __iter__(self) -> Iterator[Turn | Problem]:
        """Yield the turns of the row."""
        try:
            row = self._source.row(self._unit)
        except TraceError as exc:
            self.failed = True
            yield Problem(path=self._unit.key, kind="unreadable", message=exc.message)
            return
        if row is None or row["session_id"] is None or row["messages"] is None:
            return
        self._describe(row)
        messages: list[str | None] = row["messages"]
        self._begin(messages)
        start = self._state.messages
        for number, message in enumerate(messages[start:], start):
            turn = self._turn(row, number, message)
            if turn is not None:
                yield turn
        self._state.messages = len(messages)
        self._state.digest = _digest(messages)
        self.session.title = self._state.title

    def _describe(self, row: dict[str, Any]) -> None:
        meta = self.session
        meta.session_id = row["session_id"]
        meta.harness = row.get("harness") or ""
        described = jsonvalue.parse_column(row.get("metadata"))
        if isinstance(described, dict):
            meta.cwd = texts.string(described.get("cwd")) or ""

    def _begin(self, messages: list[str | None]) -> None:
        if not self._given:
            return
        try:
            given = msgspec.msgpack.decode(self._given, type=ParquetState)
        except msgspec.MsgspecError:
            given = None
        if given is None or given.digest != _digest(messages[: given.messages]):
            self.restarted = True
        else:
            self._state = given

    def _turn(self, row: dict[str, Any], number: int, text: str | None) -> Turn | None:
        message = jsonvalue.parse_column(text)
        if not isinstance(message, dict):
            return None
        state = self._state
        blocks = self._marked(_blocks(message), message)
        if not blocks:
            return None
        role = texts.string(message.get("role")) or ""
        if role == "user" and not state.title:
            state.title = next(filter(None, (texts.title_of(b.text) for b in blocks)), "")
        stored = self._stored(role, blocks, message)
        session_id, source_path = row["session_id"], row.get("file_path")
        seq, state.seq = state.seq, state.seq + 1
        uuid, parent = f"{session_id}-{seq}", state.parent
        state.parent = uuid
        return Turn(
            session_id=session_id,
            turn_uuid=uuid,
            parent_uuid=parent,
            seq=seq,
            ts=row.get("sent_at") or "",
            role=role,
            blocks=tuple(blocks),
            workdir=texts.munge(self.session.cwd) or Path(self._unit.container).stem,
            source_path=self._unit.container if source_path is None else source_path,
            harness=self.session.harness,
            record=number,
            ext_blocks=texts.without_nul(stored) or (tuple(stored) if stored != blocks else None),
        )

    def _marked(self, blocks: list[Block], message: dict[str, Any]) -> list[Block]:
        """Return the blocks with calls that ask funes marked, and remember all calls by id."""
        state = self._state
        calls = message.get("tool_calls")
        ids = [
            texts.string(call.get("id")) if isinstance(call, dict) else None
            for call in (calls if isinstance(calls, list) else ())
        ]
        marked: list[Block] = []
        call_ids = iter(ids)
        for block in blocks:
            if block.block_type == "tool_use":
                call_id = next(call_ids, None)
                asked = own_call(block.tool_name, block.text)
                if call_id and block.tool_name:
                    state.names[call_id] = block.tool_name
                if call_id and asked:
                    state.own.add(call_id)
                if asked == "whole":
                    block = msgspec.structs.replace(block, own=True)
            marked.append(block)
        return marked

    def _stored(self, role: str, blocks: list[Block], message: dict[str, Any]) -> list[Block]:
        """Return the blocks to store: what a tool said is a tool result, not prose."""
        if role != "tool":
            return blocks
        call_id = texts.string(message.get("tool_call_id"))
        name = texts.string(message.get("name")) or self._state.names.get(call_id or "")
        asked = call_id in self._state.own
        return [
            Block(
                block_type="tool_result",
                text=block.text,
                tool_name=name,
                tool_use_id=call_id,
                own=asked or own_answer(name, block.text),
            )
            if block.block_type == "text"
            else block
            for block in blocks
        ]


def _blocks(message: dict[str, Any]) -> list[Block]:
    return [
        *texts.text_block(message.get("reasoning_content"), "thinking"),
        *texts.text_block(message.get("content")),
        *tool_calls(message.get("tool_calls"), keep_ids=False),
    ]


def _digest(messages: list[str | None]) -> str:
    digest = hashlib.sha1(usedforsecurity=False)
    for message in messages:
        data = b"" if message is None else message.encode("utf-8", "replace")
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()
