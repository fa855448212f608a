"""opencode: the sessions in `~/.local/share/opencode/opencode.db`, parts of messages as JSON."""

import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from funes_ls.indexer.home import expanded
from funes_ls.indexer.model import Block, Problem, SessionMeta, Turn, path_text
from funes_ls.indexer.traces import jsonvalue, texts
from funes_ls.indexer.traces.base import Unit
from funes_ls.indexer.traces.document import (
    Marker,
    Sheet,
    first_title,
    nothing_known,
    table,
    tool_result,
    tool_use,
)
from funes_ls.indexer.traces.sqlitedb import DatabaseView
from funes_ls.indexer.traces.walk import Found, find_files, found_at, in_order, refuse_odd

HARNESS = "opencode"
DB_NAME = "opencode.db"
_RESUME = b"opencode 1"
_FAILURES = (sqlite3.Error, OSError)
_SILENT = frozenset({"step-start", "step-finish", "snapshot", "patch", "file", "agent", "retry"})
_NEEDED = {
    "session": {"id"},
    "message": {"id", "session_id", "data"},
    "part": {"id", "message_id", "session_id", "data"},
}


class OpencodeSource:
    """The reader of opencode's database."""

    harness = HARNESS

    def __init__(self) -> None:
        """Make a reader that knows no database yet."""
        self._views: dict[Path, DatabaseView] = {}

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """Return the folder of the database, the same on every system."""
        named = env.get("XDG_DATA_HOME", "").strip()
        base = expanded(named) if named else home / ".local" / "share"
        return [base / "opencode"]

    def units(self, root: Path) -> Iterator[Unit | Problem]:
        """Yield the sessions of the database of a root, newest first, sub-agents last."""
        refuse_odd(root)
        file = root if root.is_file() else root / DB_NAME
        if not file.exists():
            if (root / "storage" / "message").is_dir():
                message = "Its sessions are in files of an old opencode; start a newer one once."
                yield Problem(path=path_text(root), kind="old_format", message=message)
            return
        for item in find_files(file, (file.name,)):
            if isinstance(item, Problem):
                yield item
            else:
                yield from self.sessions(item)

    def units_at(self, root: Path, path: Path) -> list[Unit]:
        """Return the sessions of the database that a path has to do with."""
        file = root if root.is_file() else root / DB_NAME
        if path != root and os.path.realpath(database_of(path)) != os.path.realpath(file):
            return []
        found = [
            one for place in found_at(file, file, (file.name,)) for one in self.sessions(place)
        ]
        return [unit for unit in found if isinstance(unit, Unit)]

    def read(self, unit: Unit, *, resume: bytes | None = None) -> "OpencodeReading":
        """Return a reading of a session."""
        return OpencodeReading(unit, self._view(unit.path), resume=resume)

    def _view(self, path: Path) -> DatabaseView:
        return self._views.setdefault(path, DatabaseView(path))

    def sessions(self, found: Found) -> Iterator[Unit | Problem]:
        """Yield the sessions of one database, newest first, sub-agents last."""
        view, name = self._view(found.real), path_text(found.path)
        try:
            have = {each: _columns(view, each) for each in _NEEDED}
            lacking = [each for each, columns in _NEEDED.items() if not columns <= have[each]]
            if lacking:
                message = f"It has no table {lacking[0]!r} as known; opencode may have changed it."
                yield Problem(path=name, kind="unknown_format", message=message)
                return
            parent = "s.parent_id" if "parent_id" in have["session"] else "NULL"
            touched = "time_updated" if "time_updated" in have["part"] else "rowid"
            listed = view.all(
                f"SELECT p.session_id, COUNT(*), MAX(p.{touched}), MAX({parent}), "
                "COALESCE(SUM(LENGTH(p.data)), 0) FROM part p "
                "LEFT JOIN session s ON s.id = p.session_id "
                "WHERE p.session_id IS NOT NULL GROUP BY p.session_id"
            )
        except _FAILURES as exc:
            yield Problem(path=name, kind="bad_source", message=_why(exc))
            return
        yield from in_order(
            [
                Unit(
                    key=f"{name}#{session_id}",
                    harness=HARNESS,
                    path=found.real,
                    size=count + size,
                    mtime_ns=last if isinstance(last, int) else 0,
                    inode=found.stat.st_ino,
                    subagent=bool(parent_id),
                    container=name,
                )
                for session_id, count, last, parent_id, size in listed
            ]
        )


def live_files(root: Path) -> list[Path]:
    """Return the files that tell of every change of a database."""
    return [root / (DB_NAME + suffix) for suffix in ("", "-wal")]


def database_of(path: Path) -> Path:
    """Return the database that a file beside it belongs to, any other path as it is."""
    for suffix in ("-wal", "-shm", "-journal"):
        if path.name == DB_NAME + suffix:
            return path.with_name(DB_NAME)
    return path


def _columns(view: DatabaseView, name: str) -> set[str]:
    return {row[0] for row in view.all("SELECT name FROM pragma_table_info(:key)", name)}


class OpencodeReading:
    """A reading of one session, see `Reading`; parts change while a model answers, so all of it."""

    late_names = False

    def __init__(self, unit: Unit, view: DatabaseView, *, resume: bytes | None = None) -> None:
        """Make a reading of a unit through a view of its database."""
        self._unit, self._view = unit, view
        self._session_id = unit.key[len(unit.container) + 1 :]
        meta = SessionMeta(session_id=self._session_id, harness=HARNESS)
        self._sheet = Sheet(meta=meta, workdir=HARNESS)
        self._marker = Marker()
        self.restarted = resume is not None
        self.failed = False
        self.offset = 0

    @property
    def session(self) -> SessionMeta:
        """Return what the database says of the session."""
        return self._sheet.meta

    @property
    def skipped(self) -> dict[str, int]:
        """Return how many parts of unknown types were passed over."""
        return self._sheet.skipped

    @property
    def resume(self) -> bytes:
        """Return the state for the next reading: only that there was one."""
        return b"" if self.failed else _RESUME

    def __iter__(self) -> Iterator[Turn | Problem]:
        """Yield the turns in the order of their messages, one message in memory at a time."""
        sheet = self._sheet
        try:
            self._describe()
            seq = 0
            for record, (message_id, data) in enumerate(self._messages()):
                turn = self._turn(message_id, data, seq, record)
                if turn is not None:
                    yield turn
                    seq += 1
            self.offset = self._unit.size
        except _FAILURES as exc:
            self.failed = True
            yield Problem(path=self._unit.key, kind="unreadable", message=_why(exc))
            return
        if sheet.bad:
            message = f"{sheet.bad} of its records cannot be read."
            yield Problem(path=self._unit.key, kind="bad_line", message=message, count=sheet.bad)
        if not seq and sheet.skipped:
            message = nothing_known(sheet.skipped)
            yield Problem(path=self._unit.key, kind="unknown_format", message=message)

    def _describe(self) -> None:
        have = _columns(self._view, "session")
        names = ("directory", "title", "parent_id")
        columns = ", ".join(name if name in have else "NULL" for name in names)
        rows = self._view.all(f"SELECT {columns} FROM session WHERE id = :key", self._session_id)
        for directory, title, parent in rows:
            self._sheet.live_in(directory)
            if isinstance(title, str) and not title.startswith(("New session", "Child session")):
                self._sheet.entitle(title)
            if isinstance(parent, str) and parent:
                self._sheet.meta.parent_id, self._sheet.meta.link = parent, "subagent"

    def _messages(self) -> list[tuple[str, Any]]:
        """Return the messages' ids, which grow with time, and what is said of each."""
        rows = self._view.all(
            "SELECT id, data FROM message WHERE session_id = :key ORDER BY id", self._session_id
        )
        return [(str(message_id), data) for message_id, data in rows]

    def _turn(self, message_id: str, data: Any, seq: int, record: int) -> Turn | None:
        sheet, info = self._sheet, jsonvalue.parse_column(data)
        role = texts.string(table(info).get("role"))
        if role is None:
            sheet.bad += 1
            return None
        sheet.live_in(table(table(info).get("path")).get("cwd"))
        rows = self._view.all(
            "SELECT data FROM part WHERE message_id = :key ORDER BY id", message_id
        )
        blocks: list[Block] = []
        for (part,) in rows:
            value = jsonvalue.parse_column(part)
            if isinstance(value, dict):
                blocks += [self._marker.marked(one) for one in _blocks(value, role, sheet)]
            else:
                sheet.bad += 1
        if not blocks:
            return None
        if role == "user" and not sheet.meta.title:
            sheet.meta.title = first_title(blocks)
        return Turn(
            session_id=self._session_id,
            turn_uuid=message_id,
            parent_uuid=texts.string(table(info).get("parentID")),
            seq=seq,
            ts=texts.time_text(table(table(info).get("time")).get("created")),
            role=role,
            blocks=tuple(blocks),
            workdir=sheet.workdir,
            source_path=self._unit.container,
            harness=HARNESS,
            record=record,
            ext_blocks=texts.without_nul(blocks),
        )


def _blocks(part: dict[str, Any], role: str, sheet: Sheet) -> list[Block]:
    kind = texts.kind_of(part)
    if kind == "text":
        hidden = role == "user" and part.get("synthetic") is True  # a file's text, a reminder
        return [] if hidden or part.get("ignored") is True else texts.text_block(part.get("text"))
    if kind == "reasoning":
        return texts.text_block(part.get("text"), "thinking")
    if kind == "tool":
        state, call_id = table(part.get("state")), part.get("callID")
        if state.get("status") in ("pending", "running"):
            return []
        answer = state.get("output") if "output" in state else state.get("error")
        made = tool_use(part.get("tool"), state.get("input"), call_id)
        return [made, *tool_result(answer, call_id, part.get("tool"))]
    if kind not in _SILENT:
        sheet.skip(kind or "part without type")
    return []


def _why(exc: BaseException) -> str:
    if isinstance(exc, OSError):
        return f"{exc.strerror or 'It cannot be read'}."
    return f"The database cannot be read ({exc})."
