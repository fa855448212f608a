"""opencode: the sessions in `~/.local/share/opencode/opencode.db`, parts of messages as JSON.

Where there is no database yet, an older version has left all of it in files; see `opencode_files`.

Source: tables as written by version 1.18.33, sub-agents included.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from funes_ls.indexer.home import expanded
from funes_ls.indexer.model import Block, Problem, SessionMeta, path_text
from funes_ls.indexer.traces import jsonvalue, opencode_files, texts
from funes_ls.indexer.traces.base import Unit
from funes_ls.indexer.traces.document import (
    DocumentReading,
    Sheet,
    UnreadableError,
    table,
    tool_result,
    tool_use,
)
from funes_ls.indexer.traces.jsonl import Draft
from funes_ls.indexer.traces.sqlitedb import DatabaseView, database_of
from funes_ls.indexer.traces.walk import Found, find_files, found_at, in_order, refuse_odd

HARNESS = "opencode"
DB_NAME = "opencode.db"
_COLUMNS_OF = "SELECT name FROM pragma_table_info(:key)"
#: How titles begin that opencode gives until it knows better.
_NO_TITLES = ("New session", "Child session")
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
            yield from opencode_files.units(root / opencode_files.FOLDER)
            return
        for item in find_files(file, (file.name,)):
            if isinstance(item, Problem):
                yield item
            else:
                yield from self.sessions(item)

    def units_at(self, root: Path, path: Path) -> list[Unit]:
        """Return the sessions of the database that a path has to do with."""
        file = root if root.is_file() else root / DB_NAME
        if not file.exists():
            return opencode_files.units_at(root / opencode_files.FOLDER, path)
        if path != root and os.path.realpath(database_of(path, DB_NAME)) != os.path.realpath(file):
            return []
        found = [
            one for place in found_at(file, file, (file.name,)) for one in self.sessions(place)
        ]
        return [unit for unit in found if isinstance(unit, Unit)]

    def read(self, unit: Unit, *, resume: bytes | None = None) -> DocumentReading:
        """Return a reading of a session; parts change while a model answers, so of all of it."""
        session_id = unit.key[len(unit.container) + 1 :]
        meta = SessionMeta(session_id=session_id, harness=HARNESS)
        sheet = Sheet(meta=meta, workdir=HARNESS)

        def load(path: Path) -> Any:
            if path.suffix == opencode_files.SUFFIX:
                return opencode_files.Files(path, session_id)
            return _Rows(self._view(path), session_id)

        return DocumentReading(unit, sheet, _drafts, resume=resume, load=load)

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


def _columns(view: DatabaseView, name: str) -> set[str]:
    return {row[0] for row in view.all(_COLUMNS_OF, name)}


class _Rows:
    """What a database says of one session; one message is in memory at a time."""

    def __init__(self, view: DatabaseView, session_id: str) -> None:
        self._view = view
        self._session_id = session_id

    def about(self) -> dict[str, Any]:
        have = {row[0] for row in self._all(_COLUMNS_OF, "session")}
        columns = {"directory": "directory", "title": "title", "parent_id": "parentID"}
        wanted = ", ".join(name if name in have else "NULL" for name in columns)
        rows = self._all(f"SELECT {wanted} FROM session WHERE id = :key", self._session_id)
        return dict(zip(columns.values(), rows[0], strict=True)) if rows else {}

    def messages(self) -> Iterator[tuple[str, Any]]:
        rows = self._all(
            "SELECT id, data FROM message WHERE session_id = :key ORDER BY id", self._session_id
        )
        return ((str(message_id), jsonvalue.parse_column(data)) for message_id, data in rows)

    def parts(self, message_id: str) -> Iterator[Any]:
        rows = self._all("SELECT data FROM part WHERE message_id = :key ORDER BY id", message_id)
        return (jsonvalue.parse_column(data) for (data,) in rows)

    def _all(self, sql: str, key: str) -> list[tuple[Any, ...]]:
        try:
            return self._view.all(sql, key)
        except sqlite3.Error as exc:
            raise UnreadableError(_why(exc)) from exc


def _drafts(held: Any, unit: Unit, sheet: Sheet) -> Iterator[Draft]:
    """Yield the turns of a session, in the order of their ids, which grow with time."""
    about = held.about()
    sheet.live_in(about.get("directory"))
    title, parent = about.get("title"), about.get("parentID")
    if isinstance(title, str) and not title.startswith(_NO_TITLES):
        sheet.entitle(title)
    if isinstance(parent, str) and parent:
        sheet.meta.parent_id, sheet.meta.link = parent, "subagent"
    for message_id, info in held.messages():
        role = texts.string(table(info).get("role"))
        blocks: list[Block] = []
        if role is None:
            sheet.bad += 1
        else:
            sheet.live_in(table(table(info).get("path")).get("cwd"))
            for part in held.parts(message_id):
                if isinstance(part, dict):
                    blocks += _blocks(part, role, sheet)
                else:
                    sheet.bad += 1
        yield Draft(
            role=role or "",
            blocks=blocks,
            uuid=message_id,
            parent=texts.string(table(info).get("parentID")),
            ts=texts.time_text(table(table(info).get("time")).get("created")),
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
