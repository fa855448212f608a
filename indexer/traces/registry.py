"""The readers there are, and which of them reads a path."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.model import Problem
from funes_ls.indexer.traces import (
    claude,
    cline,
    codex,
    copilot,
    gemini,
    hermes,
    lines,
    opencode,
    parquet,
    pi,
    qwen,
    texts,
    vscode_copilot,
)
from funes_ls.indexer.traces.base import Reading, TraceSource, Unit
from funes_ls.indexer.traces.document import BROKEN, load_json
from funes_ls.indexer.traces.sqlitedb import database_of
from funes_ls.indexer.traces.walk import Found, find_files, found_at, in_order, refuse_odd

_NAMED: dict[str, TraceSource] = {
    "claude": claude.ClaudeSource(),
    "codex": codex.CodexSource(),
    "pi": pi.PiSource(),
    "hermes": hermes.HermesSource(),
    "gemini": gemini.GeminiSource(),
    "qwen": qwen.QwenSource(),
    "opencode": opencode.OpencodeSource(),
    "copilot": copilot.CopilotSource(),
    "cline": cline.ClineSource(),
    "vscode": vscode_copilot.VscodeCopilotSource(),
}
_PARQUET = parquet.ParquetSource()
_SQLITE_MAGIC = b"SQLite format 3\0"
#: How many lines may be looked at to tell whose a file is.
_SNIFFED_LINES = 50
_UNIT_OF = {
    "claude": claude.unit_of,
    "codex": codex.unit_of,
    "pi": pi.unit_of,
    "gemini": gemini.unit_of,
    "qwen": qwen.unit_of,
    "copilot": copilot.unit_of,
    "vscode": vscode_copilot.unit_of,
}
_TAILS: tuple[tuple[tuple[str, ...], str], ...] = (
    ((".claude", "projects"), "claude"),
    ((".codex", "sessions"), "codex"),
    ((".codex", "archived_sessions"), "codex"),
    ((".pi", "agent", "sessions"), "pi"),
    ((".omp", "agent", "sessions"), "pi"),
    ((".hermes",), "hermes"),
    ((".gemini", "tmp"), "gemini"),
    ((".qwen", "projects"), "qwen"),
    ((".local", "share", "opencode"), "opencode"),
    ((".copilot", "session-state"), "copilot"),
    (("tasks",), "cline"),
    (("chatSessions",), "vscode"),
    (("emptyWindowChatSessions",), "vscode"),
)
_CODEX_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context"})


class AnySource:
    """Reads a tree of whatever traces: each file is given to the reader it looks to be for."""

    harness = ""

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """Return nothing: there is no known place for it."""
        return []

    def units(self, root: Path) -> Iterator[Unit | Problem]:
        """Yield sessions in files, newest first, then those of databases and of Parquet files.

        Raises:
            TraceError: the root is neither a folder nor a regular file.
        """
        refuse_odd(root)
        units: list[Unit] = []
        others: list[Found] = []
        for item in find_files(root, (*codex.SUFFIXES, hermes.DB_NAME, *parquet.SUFFIXES)):
            if isinstance(item, Problem):
                yield item
            elif item.path.name.endswith(codex.SUFFIXES):
                if item.path.name not in codex.SIDECARS:
                    units.append(_UNIT_OF[sniff(item.real)](item))
            else:
                others.append(item)
        keys = {unit.key for unit in units}
        yield from (unit for unit in in_order(units) if not _is_packed_copy(unit, keys))
        for item in others:
            if item.path.name.endswith(parquet.SUFFIXES):
                yield from _PARQUET.sessions(item, fatal=False)
            elif item.path.name == hermes.DB_NAME:
                yield from _hermes().sessions(item)

    def units_at(self, root: Path, path: Path) -> list[Unit]:
        """Return the sessions under a root that a path below it holds, whatever reads them."""
        wanted = (*codex.SUFFIXES, hermes.DB_NAME, *parquet.SUFFIXES)
        units: list[Unit] = []
        for item in found_at(root, database_of(path, hermes.DB_NAME), wanted):
            if item.path.name.endswith(parquet.SUFFIXES) or item.path.name == hermes.DB_NAME:
                source: TraceSource = _PARQUET if item.path.name != hermes.DB_NAME else _hermes()
                units += source.units_at(item.path, item.path)
            elif item.path.name.endswith(codex.SUFFIXES) and item.path.name not in codex.SIDECARS:
                units.append(_UNIT_OF[sniff(item.real)](item))
        return [unit for unit in units if not _has_plain_copy(unit)]

    def read(self, unit: Unit, *, resume: bytes | None = None) -> Reading:
        """Return a reading by the unit's own reader."""
        return reader_of(unit).read(unit, resume=resume)


_ANY = AnySource()


def sources() -> list[TraceSource]:
    """Return every reader whose harness has known places, in the order they are indexed."""
    return list(_NAMED.values())


def source_for(harness: str) -> TraceSource:
    """Return the reader of a harness, by its name on the command line or in rows.

    Raises:
        UsageError: there is no such harness.
    """
    source = _NAMED.get(harness.removesuffix("_code"))
    if source is not None:
        return source
    if harness == "parquet":
        return _PARQUET
    raise UsageError(
        f"Unknown harness {harness!r}; known are {', '.join(_NAMED)}.", kind="unknown_harness"
    )


def units_of(
    path: Path, places: Iterable[tuple[TraceSource, Path]]
) -> list[tuple[TraceSource, Unit]]:
    """Return the units that a changed path has to do with, as walks of the places list them.

    Args:
        path: A trace, a folder of some, or a file that changes with one, such as a `-wal`; where
            it was found or where it really is. It may be gone.
        places: Readers and the roots they are for.
    """
    found: list[tuple[TraceSource, Unit]] = []
    for source, root in places:
        if is_below(path, root):
            found += [(source, unit) for unit in source.units_at(root, path)]
    return found


def is_below(path: Path, root: Path) -> bool:
    """Tell whether a path may be of a root: below it by name, or really, or linked into it."""
    if path.is_relative_to(root):
        return True
    real = Path(os.path.realpath(path))
    return real.is_relative_to(os.path.realpath(root))


def live_files(source: TraceSource, root: Path) -> list[Path] | None:
    """Return the few files of a root that tell of every change, None where the tree must."""
    if root.is_file():
        return [root]
    if isinstance(source, opencode.OpencodeSource):
        return opencode.live_files(root)
    return hermes.live_files(root) if isinstance(source, hermes.HermesSource) else None


def is_trace_name(name: str) -> bool:
    """Tell whether a file may be a trace, or one that changes with a trace, by its name."""
    known = (*codex.SUFFIXES, *parquet.SUFFIXES, ".json")
    return name.endswith(known) or name.startswith((hermes.DB_NAME, opencode.DB_NAME))


def reader_of(unit: Unit) -> TraceSource:
    """Return the reader that a unit is for."""
    return _PARQUET if unit.row >= 0 else source_for(unit.harness)


def detect(path: Path) -> TraceSource:
    """Return the reader of a file or a tree: by a known place, else by what the files hold.

    Raises:
        TraceError: the path is neither a folder nor a regular file.
    """
    refuse_odd(path)
    if path.is_dir():
        parts = path.absolute().parts
        for tail, name in _TAILS:
            if parts[-len(tail) :] == tail and (
                len(tail) > 1 or name != "cline" or _has_tasks(path)
            ):
                return _NAMED[name]
        return _NAMED["hermes"] if (path / hermes.DB_NAME).is_file() else _ANY
    if path.name.lower().endswith(".parquet"):
        return _PARQUET
    if path.name == opencode.DB_NAME:
        return _NAMED["opencode"]
    if path.name.endswith(".json"):
        return _NAMED[_document_of(path)]
    if path.name == hermes.DB_NAME or _is_sqlite(path):
        return _NAMED["hermes"]
    return _NAMED[sniff(path)]


def sniff(path: Path) -> str:
    """Return the `--harness` name of the reader that a JSONL file looks to be for."""
    try:
        with lines.open_trace(path) as file:
            for number, line in enumerate(lines.read_lines(file, 0)):
                found = None if line.too_long else lines.content(line.raw)
                for record in found.records if found is not None else ():
                    name = _told_by(record)
                    if name:
                        return name
                if number >= _SNIFFED_LINES:
                    break
    except lines.READ_ERRORS:
        pass
    return "codex" if path.name.startswith("rollout-") else "claude"


def _told_by(record: Any) -> str:
    """Return whose a record is, "" when it does not tell."""
    if not isinstance(record, dict):
        return ""
    kind = texts.kind_of(record)
    if isinstance(record.get("data"), dict) and "." in kind:
        return "copilot"
    if "projectHash" in record:
        return "gemini"
    if isinstance(record.get("kind"), int) and "v" in record:
        return "vscode"
    message = record.get("message")
    if kind in qwen.TYPES and isinstance(message, dict) and "parts" in message:
        return "qwen"
    if kind == "session":
        return "pi"
    if isinstance(record.get("payload"), dict) and kind in _CODEX_TYPES:
        return "codex"
    if codex.is_bare_header(record) or "record_type" in record:
        return "codex"
    if kind in ("user", "assistant") or "sessionId" in record:
        return "claude"
    return ""


def _document_of(path: Path) -> str:
    """Return the `--harness` name of the reader that a JSON document looks to be for."""
    if path.name == cline.HISTORY:
        return "cline"
    try:
        document = load_json(path)
    except BROKEN:
        document = None
    if isinstance(document, list):
        return "cline"
    return "vscode" if isinstance(document, dict) and "requests" in document else "gemini"


def _has_tasks(folder: Path) -> bool:
    return next(folder.glob(f"*/{cline.HISTORY}"), None) is not None


def _is_packed_copy(unit: Unit, keys: set[str]) -> bool:
    return unit.key.endswith(".zst") and unit.key.removesuffix(".zst") in keys


def _has_plain_copy(unit: Unit) -> bool:
    plain = unit.path.with_name(unit.path.name.removesuffix(".zst"))
    return plain != unit.path and plain.is_file()


def _is_sqlite(path: Path) -> bool:
    try:
        with lines.open_regular(path) as file:
            return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    except OSError:
        return False


def _hermes() -> hermes.HermesSource:
    source = _NAMED["hermes"]
    assert isinstance(source, hermes.HermesSource)
    return source
