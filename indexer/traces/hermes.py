"""Hermes: the sessions in `~/.hermes/state.db`, schemas 11 to 30, also while it is running."""

import math
import os
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from funes_ls.indexer.home import expanded
from funes_ls.indexer.model import Block, Problem, SessionMeta, Turn, path_text
from funes_ls.indexer.traces import jsonvalue, texts
from funes_ls.indexer.traces.base import Unit
from funes_ls.indexer.traces.own import own_answer, own_call
from funes_ls.indexer.traces.sqlitedb import DatabaseView, database_of
from funes_ls.indexer.traces.state import encode_state
from funes_ls.indexer.traces.walk import (
    Found,
    find_files,
    found_at,
    in_order,
    refuse_odd,
)

HARNESS = "hermes"
DB_NAME = "state.db"
_FALLBACK_WORKDIR = "hermes"
_JSON_CONTENT = "\0json:"
_MESSAGE_COLUMNS = (
    "role",
    "content",
    "tool_call_id",
    "tool_calls",
    "tool_name",
    "timestamp",
    "reasoning",
    "reasoning_content",
)
_SESSION_COLUMNS = ("cwd", "git_branch", "title", "parent_session_id", "source")
_FAILURES = (sqlite3.Error, OSError)


class HermesState(Struct, kw_only=True):
    """Where a reading of a Hermes session stands.

    Attributes:
        last_id: Highest message id read.
        signature: Number and sizes of the messages up to it.
        own: Ids of calls that ask funes.
    """

    meta: SessionMeta
    workdir: str
    version: int = 1
    last_id: int = 0
    signature: list[int] = []
    seq: int = 0
    records: int = 0
    own: set[str] = set()
    titled: bool = False


class HermesSource:
    """The reader of Hermes's databases."""

    harness = HARNESS

    def __init__(self) -> None:
        """Make a reader that knows no database yet."""
        self._views: dict[Path, DatabaseView] = {}

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """Return the folder of Hermes; profiles keep their databases below it."""
        named = env.get("HERMES_HOME", "").strip()
        return [expanded(named) if named else home / ".hermes"]

    def units(self, root: Path) -> Iterator[Unit | Problem]:
        """Yield the sessions of every database under a root, newest first in each.

        Raises:
            TraceError: the root is neither a folder nor a regular file.
        """
        refuse_odd(root)
        for place in _places(root):
            for item in find_files(place, (DB_NAME,)):
                if isinstance(item, Problem):
                    yield item
                elif item.path == root or item.path.name == DB_NAME:
                    yield from self.sessions(item)

    def units_at(self, root: Path, path: Path) -> list[Unit]:
        """Return the sessions of the databases under a root that a path below it has to do with."""
        path = database_of(path, DB_NAME)
        units: list[Unit] = []
        if path == root and path.is_file():  # a database under any name
            places = [Found(root, Path(os.path.realpath(root)), root.stat())]
        elif path.name == DB_NAME or path.is_dir():
            places = [item for item in found_at(root, path, (DB_NAME,)) if _is_place(root, item)]
        else:
            places = []
        for found in places:
            units += [unit for unit in self.sessions(found) if isinstance(unit, Unit)]
        return units

    def read(self, unit: Unit, *, resume: bytes | None = None) -> "HermesReading":
        """Return a reading of a session."""
        return HermesReading(unit, self._view(unit.path), resume=resume)

    def _view(self, path: Path) -> DatabaseView:
        return self._views.setdefault(path, DatabaseView(path))

    def sessions(self, found: Found) -> Iterator[Unit | Problem]:
        """Yield the sessions of one database, newest first, delegated ones last."""
        try:
            listed = self._view(found.real).all(
                "SELECT session_id, COUNT(*), MAX(id) FROM messages "
                "WHERE session_id IS NOT NULL GROUP BY session_id"
            )
            children = _children(self._view(found.real))
        except _FAILURES as exc:
            yield Problem(path=path_text(found.path), kind="bad_source", message=_why(exc))
            return
        units = [
            Unit(
                key=f"{path_text(found.path)}#{session_id}",
                harness=HARNESS,
                path=found.real,
                size=count,
                mtime_ns=last_id,
                inode=found.stat.st_ino,
                subagent=str(session_id) in children,
                container=path_text(found.path),
            )
            for session_id, count, last_id in listed
        ]
        yield from in_order(units)


def _places(root: Path) -> list[Path]:
    """Return where databases are below a root: a home of Hermes also holds much that is none."""
    if not (root / DB_NAME).is_file():
        return [root]
    profiles = sorted(root.glob(f"profiles/*/{DB_NAME}"))
    return [root / DB_NAME, *profiles]


def _is_place(root: Path, found: Found) -> bool:
    """Tell whether `_places` leads to a database."""
    if found.path.name != DB_NAME:
        return False
    parts = found.path.relative_to(root).parts
    if not (root / DB_NAME).is_file():
        return True
    return len(parts) == 1 or (len(parts) == 3 and parts[0] == "profiles")


def live_files(root: Path) -> list[Path]:
    """Return the files below a home of Hermes that change when a session does, existing or not.

    Only these are worth watching: a home also holds the program itself and all that it needs.
    """
    folders = [root, *sorted(root.glob("profiles/*"))]
    return [folder / (DB_NAME + suffix) for folder in folders for suffix in ("", "-wal")]


def _columns(view: DatabaseView, table: str) -> set[str]:
    return {row[0] for row in view.all("SELECT name FROM pragma_table_info(:key)", table)}


def _children(view: DatabaseView) -> set[str]:
    """Return the sessions that a running session delegated work to."""
    have = _columns(view, "sessions")
    if not {"id", "parent_session_id"} <= have:
        return set()
    reason = "p.end_reason" if "end_reason" in have else "NULL"
    source = "s.source" if "source" in have else "NULL"
    rows = view.all(
        f"SELECT s.id, {source}, {reason} FROM sessions s "
        "LEFT JOIN sessions p ON p.id = s.parent_session_id "
        "WHERE s.parent_session_id IS NOT NULL AND s.parent_session_id <> ''"
    )
    return {str(row[0]) for row in rows if _link(row[1], row[2]) == "subagent"}


def _link(source: Any, parent_end_reason: Any) -> str:
    reason = str(parent_end_reason or "").lower()
    if "compress" in reason:
        return "continuation"
    if "branch" in reason or "fork" in reason:
        return "fork"
    return "subagent"


class HermesReading:
    """A reading of one session, see `Reading`; `offset` is the highest message id read."""

    late_names = False

    def __init__(self, unit: Unit, view: DatabaseView, *, resume: bytes | None = None) -> None:
        """Make a reading of a unit through a view of its database."""
        self._unit = unit
        self._view = view
        self._source_path = unit.container
        self._session_id = unit.key[len(unit.container) + 1 :]
        meta = SessionMeta(session_id=self._session_id, harness=HARNESS)
        self._state = HermesState(meta=meta, workdir=_FALLBACK_WORKDIR)
        self._given = resume
        self.restarted = False
        self.failed = self._whole = False
        self.skipped: dict[str, int] = {}

    @property
    def session(self) -> SessionMeta:
        """Return what the database says of the session."""
        return self._state.meta

    @property
    def offset(self) -> int:
        """Return the highest message id read."""
        return self._state.last_id

    @property
    def resume(self) -> bytes:
        """Return the state for the next reading, b"" when the database could not be read."""
        return encode_state(self._state) if self._whole else b""

    def __iter__(self) -> Iterator[Turn | Problem]:
        """Yield the turns in the order of message ids."""
        try:
            have = _columns(self._view, "messages")
            self._begin()
            state = self._state
            columns = ", ".join(name if name in have else "NULL" for name in _MESSAGE_COLUMNS)
            sql = (
                f"SELECT id, {columns} FROM messages "
                "WHERE session_id = :key AND id > :after ORDER BY id"
            )
            for row in self._view.rows(sql, self._session_id, state.last_id):
                turn = self._turn(row[0], dict(zip(_MESSAGE_COLUMNS, row[1:], strict=True)))
                state.last_id, state.records = row[0], state.records + 1
                if turn is not None:
                    yield turn
            state.signature = self._signature(state.last_id)
            self._whole = True
        except _FAILURES as exc:
            self.failed = True
            yield Problem(path=self._unit.key, kind="unreadable", message=_why(exc))

    def _begin(self) -> None:
        """Describe the session and take the given state if it still fits."""
        state = self._state
        self._describe(state)
        if not self._given:
            return
        try:
            given = msgspec.msgpack.decode(self._given, type=HermesState)
        except msgspec.MsgspecError:
            given = None
        if (
            given is None
            or given.version != state.version
            or given.workdir != state.workdir
            or given.signature != self._signature(given.last_id)
        ):
            self.restarted = True
            return
        title = state.meta.title or given.meta.title
        given.meta, given.titled = state.meta, state.titled or given.titled
        given.meta.title = title
        self._state = given

    def _describe(self, state: HermesState) -> None:
        have = _columns(self._view, "sessions")
        if "id" not in have:
            return
        columns = ", ".join(f"s.{n}" if n in have else "NULL" for n in _SESSION_COLUMNS)
        reason = "p.end_reason" if {"parent_session_id", "end_reason"} <= have else "NULL"
        joined = "LEFT JOIN sessions p ON p.id = s.parent_session_id " if "p." in reason else ""
        rows = self._view.all(
            f"SELECT {columns}, {reason} FROM sessions s {joined}WHERE s.id = :key",
            self._session_id,
        )
        if not rows:
            return
        cwd, branch, title, parent, source, end_reason = rows[0]
        meta = state.meta
        state.workdir = texts.munge(cwd) or _FALLBACK_WORKDIR
        meta.cwd, meta.branch = texts.string(cwd) or "", texts.string(branch) or ""
        if isinstance(title, str) and title.strip():
            meta.title, state.titled = " ".join(title.split())[:200], True
        if parent:
            meta.parent_id, meta.link = str(parent), _link(source, end_reason)

    def _signature(self, last_id: int) -> list[int]:
        have = _columns(self._view, "messages")
        sizes = [name for name in ("content", "tool_calls", "reasoning_content") if name in have]
        sums = "".join(f", COALESCE(SUM(LENGTH({name})), 0)" for name in sizes)
        rows = self._view.all(
            f"SELECT COUNT(*), COALESCE(SUM(id), 0){sums} FROM messages "
            "WHERE session_id = :key AND id <= :after",
            self._session_id,
            last_id,
        )
        return [int(value) for value in rows[0]]

    def _turn(self, message_id: int, row: dict[str, Any]) -> Turn | None:
        state = self._state
        role = texts.string(row["role"]) or ""
        blocks = [self._marked(block) for block in _blocks(role, row)]
        if not blocks:
            return None
        stored = [_decoded(block) for block in blocks]
        if role == "user" and not state.titled:
            state.meta.title = _title(stored)
            state.titled = bool(state.meta.title)
        seq, state.seq = state.seq, state.seq + 1
        return Turn(
            session_id=self._session_id,
            turn_uuid=str(message_id),
            parent_uuid=None,
            seq=seq,
            ts=rfc3339(row["timestamp"]),
            role=role,
            blocks=tuple(blocks),
            workdir=state.workdir,
            source_path=self._source_path,
            harness=HARNESS,
            record=state.records,
            ext_blocks=texts.without_nul(stored) or (tuple(stored) if stored != blocks else None),
        )

    def _marked(self, block: Block) -> Block:
        """Return a block, marked when it is a call that asks funes or its answer."""
        own = self._state.own
        if block.block_type == "tool_use":
            asked = own_call(block.tool_name, block.text)
            if asked and block.tool_use_id:
                own.add(block.tool_use_id)
            is_own = asked == "whole"
        else:
            is_own = block.block_type == "tool_result" and (
                block.tool_use_id in own or own_answer(block.tool_name, block.text)
            )
        return msgspec.structs.replace(block, own=True) if is_own else block


def _blocks(role: str, row: dict[str, Any]) -> list[Block]:
    content = row["content"]
    if role == "user":
        return texts.text_block(content)
    if role == "assistant":
        thinking = row["reasoning_content"]
        if thinking is None:
            thinking = row["reasoning"]
        blocks = texts.text_block(thinking, "thinking") + texts.text_block(content)
        return blocks + tool_calls(jsonvalue.parse_column(row["tool_calls"]), keep_ids=True)
    if role != "tool" or not isinstance(content, str) or texts.is_blank(content):
        return []
    return [
        Block(
            block_type="tool_result",
            text=content,
            tool_name=texts.string(row["tool_name"]),
            tool_use_id=texts.string(row["tool_call_id"]),
        )
    ]


def tool_calls(calls: Any, *, keep_ids: bool) -> list[Block]:
    """Return the blocks of a list of calls in OpenAI's form."""
    blocks: list[Block] = []
    for call in calls if isinstance(calls, list) else ():
        call = call if isinstance(call, dict) else {}
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        given = function.get("arguments", {})
        blocks.append(
            Block(
                block_type="tool_use",
                text=given if isinstance(given, str) else jsonvalue.dumps(given),
                tool_name=texts.string(function.get("name")),
                tool_use_id=texts.string(call.get("id")) if keep_ids else None,
            )
        )
    return blocks


def _decoded(block: Block) -> Block:
    """Return a block with the text parts of content that Hermes stored as JSON."""
    if not block.text.startswith(_JSON_CONTENT):
        return block
    try:
        content, _ = jsonvalue.parse_with_care(block.text[len(_JSON_CONTENT) :])
    except ValueError:
        return block
    text = texts.flat_text(content)
    if isinstance(content, dict):
        text = texts.flat_text([content])
    return msgspec.structs.replace(block, text=text)


def _title(blocks: list[Block]) -> str:
    titles = (texts.title_of(block.text) for block in blocks if block.block_type == "text")
    return next((title for title in titles if title), "")


def rfc3339(seconds: Any) -> str:
    """Return epoch seconds as `2026-12-01T15:47:31.301034212+00:00`, "" for what is no time.

    The fraction is cut off at nanoseconds and has 0, 3, 6 or 9 digits.
    """
    if isinstance(seconds, str):
        return seconds
    if not isinstance(seconds, (int, float)) or not math.isfinite(seconds):
        return ""
    fraction, whole = math.modf(float(seconds))
    nanos = int(abs(fraction) * 1e9)
    try:
        moment = datetime.fromtimestamp(int(whole), UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{_fraction(nanos)}+00:00"


def _fraction(nanos: int) -> str:
    if nanos == 0:
        return ""
    digits = f"{nanos:09d}"
    if digits.endswith("000000"):
        return f".{digits[:3]}"
    return f".{digits[:6]}" if digits.endswith("000") else f".{digits}"


def _why(exc: BaseException) -> str:
    if isinstance(exc, OSError):
        return f"{exc.strerror or 'It cannot be read'}."
    return f"The database cannot be read ({exc})."
