"""`funes scan`: looks for secrets in a memory, in traces or in any files, and changes nothing."""

import io
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from funes_ls import parsing
from funes_ls.gate.check import Block, GateReport, check
from funes_ls.gate.rows import DETAILS, blocks_to_check
from funes_ls.hub.spec import parse_spec
from funes_ls.indexer.blocks import blocks_of_rows
from funes_ls.indexer.chunk import parted, render_elided
from funes_ls.indexer.dataset import is_there
from funes_ls.indexer.errors import FunesError, ScannerError, UsageError
from funes_ls.indexer.home import expanded
from funes_ls.indexer.memory import CATALOG, MemoryView
from funes_ls.indexer.model import Problem, Turn, path_text
from funes_ls.indexer.progress import Cancelled, IndexEvent, Progress, ignore_progress, never
from funes_ls.indexer.redaction.base import LocalRedaction
from funes_ls.indexer.settings import Settings
from funes_ls.memories import OpenEachTime, memory_path

_SESSION_FIELDS = ("cwd", "workdir", "repo", "branch", "title", "source_path")
_TRACES = (".jsonl", ".parquet", ".db", ".sqlite")
#: Files are read in pieces of so many characters that overlap by so many.
_PIECE, _OVERLAP = 256 * 1024, 8 * 1024
FIRST, SECOND = "kingfisher", "betterleaks"
_HIDDEN = "(a name that holds a secret)"
#: Line of a text, from 1, 0 when unknown -> the rules that found something there.
ByLine = dict[int, list[str]]


class Place(Struct, frozen=True, kw_only=True):
    """Where a string stands: in a session's turn, or in a file's line.

    Attributes:
        field: What of the turn or session it is: `text`, `workdir`, `title`, …
        line: From 1, 0 when unknown.
    """

    session_id: str = ""
    turn_uuid: str = ""
    path: str = ""
    line: int = 0
    field: str = "text"


class Finding(Struct, frozen=True, kw_only=True):
    """A place that holds secrets, with the rules that say so by scanner; never the secrets."""

    place: Place
    rules: dict[str, list[str]]


class ScanAnswer(Struct, kw_only=True):
    """What a scan found.

    Attributes:
        target: What was scanned, as it was named.
        kind: `memory` or `files`.
        scanners: Those that looked.
        blocks: Strings scanned.
        size_bytes: Of them.
        counts: In how many places each rule found something.
        found: The places.
        unread: Files and traces of which something could not be read.
        note: What a person should know or do.
    """

    target: str
    kind: str
    scanners: list[str] = []
    blocks: int = 0
    size_bytes: int = 0
    counts: dict[str, int] = {}
    found: list[Finding] = []
    unread: int = 0
    note: str = ""


class _Scan:
    """One scan: what the first scanner has found, and where the strings stand."""

    def __init__(self, settings: Settings, progress: Progress) -> None:
        self.places: dict[str, Place] = {}
        self.first: dict[str, ByLine] = {}
        self.unread = 0
        self._progress = progress
        self._redaction: LocalRedaction | None = LocalRedaction(settings.rules_dir)
        progress(IndexEvent(phase="rules"))
        try:
            self._redaction.load()
        except ScannerError as exc:
            if exc.kind != "scanner_missing":
                raise ScannerError(
                    "Nothing can be called clean: the scanner that redacts does not work.",
                    hint="Install funes-ls anew.",
                    kind=exc.kind,
                ) from exc
            self._redaction = None  # the second one, which is proven, decides alone

    @property
    def scanners(self) -> list[str]:
        return [FIRST, SECOND] if self._redaction is not None else [SECOND]

    def block(self, key: str, text: str, place: Place) -> Block:
        """Return a string as a block for the gate, after the first scanner has seen it."""
        text = text.replace("\0", " ").encode("utf-8", "replace").decode()
        self.places[key] = place
        if self._redaction is not None and text:
            shown = parted(text)
            found = self._redaction.text(shown)
            if found.text != shown:
                self.first[key] = _by_line(shown, self._redaction) if "|from " in key else {}
                if not self.first[key]:
                    self.first[key] = {0: sorted(found.counts)}
        return Block(key, text)

    def done(self, done: int, total: int = 0) -> None:
        self._progress(IndexEvent(phase="scrub", done=done, total=total))


def scan(
    target: str,
    settings: Settings,
    *,
    progress: Progress = ignore_progress,
    cancelled: Cancelled = never,
) -> ScanAnswer:
    """Return what a memory, a trace, a file or a folder holds of secrets.

    Raises:
        UsageError: there is no such thing.
        MemoryStateError: the memory cannot be read.
        GateError: nobody can say what is clean.
        ScannerError: so can the first scanner not.
    """
    path = _files_at(target, settings)
    if path is not None:
        run = _Scan(settings, progress)
        return _answer(target, "files", run, check(_of_files(path, run), cancelled=cancelled))
    with OpenEachTime(settings).reading(target) as memory, memory.snapshot() as view:
        run = _Scan(settings, progress)
        report = check(_of_memory(view, run), cancelled=cancelled)
    return _answer(target or "local", "memory", run, report)


def _files_at(target: str, settings: Settings) -> Path | None:
    """Return the path of files to scan, None where a memory is named."""
    if target in ("", "local"):
        return None
    if _is_elsewhere(target, settings):
        return None
    path = memory_path(settings, target)
    if is_there(path) or (path / CATALOG).is_file():
        return None
    return expanded(target)


def _is_elsewhere(target: str, settings: Settings) -> bool:
    path = expanded(target)
    return not (path.is_file() or path.is_dir()) and parse_spec(target, settings).is_remote


def _of_memory(view: MemoryView, run: _Scan) -> Iterator[Block]:
    names = [
        row[0]
        for row in view.catalog.select(
            "SELECT session_id FROM sessions UNION SELECT session_id FROM pending "
            "UNION SELECT session_id FROM embedded ORDER BY session_id"
        )
    ]
    seen: set[str] = set()
    for number, name in enumerate(names):
        run.done(number, len(names))
        rows = view.session_rows(name)
        turns = {row.id: row.turn_uuid for row in rows}
        for block in blocks_to_check(blocks_of_rows(rows)):
            field = block.key.partition(":")[0] if ":" in block.key else "text"
            if field != "text" and block.key in seen:
                continue
            if field != "text":
                seen.add(block.key)
            place = Place(session_id=name, turn_uuid=turns.get(block.key, ""), field=field)
            yield run.block(block.key, block.text, place)
        session = view.catalog.session(name)
        for field in _SESSION_FIELDS if session else ():
            if value := getattr(session, field, ""):
                place = Place(session_id=name, field=field)
                yield run.block(f"session:{number}:{field}", value, place)
    run.done(len(names), len(names))


def _of_files(root: Path, run: _Scan) -> Iterator[Block]:
    files = [root] if root.is_file() else _below(root)
    for number, path in enumerate(files):
        run.done(number)
        shown = path_text(path)
        yield run.block(f"name:{shown}", shown, Place(path=shown, field="name"))
        try:
            if path.suffix.lower() in _TRACES:
                yield from _of_trace(path, run)
            else:
                yield from _of_text(path, run)
        except OSError:
            run.unread += 1


def _below(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(names):
            path = Path(folder) / name
            if path.is_file() and not path.is_symlink():
                yield path


def _of_trace(path: Path, run: _Scan) -> Iterator[Block]:
    """Yield what a reader makes of a trace; of what it cannot read, the lines."""
    turns = problems = 0
    try:
        for item in _items(path):
            if isinstance(item, Problem):
                problems += 1
                continue
            yield from _of_turn(item, f"{path_text(path)}|{turns}", run)
            turns += 1
    except (FunesError, ValueError):
        problems += 1
    run.unread += bool(problems and turns)
    if not turns or problems:
        yield from _of_lines(path, run) if path.suffix.lower() == ".jsonl" else _of_text(path, run)


def _items(path: Path) -> Iterator[Turn | Problem]:
    for parsed in parsing.parse(path):
        if isinstance(parsed, Problem):
            yield parsed
        else:
            yield from parsing.items_of(parsed)


def _of_turn(turn: Turn, key: str, run: _Scan) -> Iterator[Block]:
    place = Place(session_id=turn.session_id, turn_uuid=turn.turn_uuid, path=turn.source_path)
    for number, block in enumerate((*turn.blocks, *(turn.ext_blocks or ()))):
        yield run.block(f"{key}|{number}", render_elided(block), place)
    for field in DETAILS:
        value = getattr(turn, field, None)
        if field not in ("ts", "role", "harness", "source_path") and isinstance(value, str):
            held = Place(session_id=turn.session_id, path=turn.source_path, field=field)
            yield run.block(f"{key}|{field}", value, held)


def _of_lines(path: Path, run: _Scan) -> Iterator[Block]:
    """Yield the lines of JSON as what they say; other lines as they are."""
    shown = path_text(path)
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            try:
                text = "\n".join(_strings(json.loads(line)))
            except (ValueError, RecursionError):
                text = line
            yield run.block(f"{shown}|line {number}", text, Place(path=shown, line=number))


def _strings(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _strings(inner, str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, name)
    elif isinstance(value, str):
        yield f"{name}: {value}" if name else value
    elif name:
        yield name


def _of_text(path: Path, run: _Scan) -> Iterator[Block]:
    shown = path_text(path)
    with path.open("rb") as raw:
        head = raw.read(2)
        raw.seek(0)
        wide = head in (b"\xff\xfe", b"\xfe\xff")
        file = io.TextIOWrapper(
            raw, encoding="utf-16" if wide else "utf-8", errors="replace", newline=""
        )
        kept, line = "", 1
        while piece := file.read(_PIECE):
            text = kept + piece
            place = Place(path=shown, line=line)
            yield run.block(f"{shown}|from {line}:{len(run.places)}", text, place)
            kept = text[-_OVERLAP:]
            line += text.count("\n", 0, len(text) - len(kept))


def _answer(target: str, kind: str, run: _Scan, report: GateReport) -> ScanAnswer:
    keys = [key for key in run.places if key in run.first or key in report.withheld]
    found = _merged(one for key in keys for one in _findings(key, run, report))
    counts: dict[str, int] = {}
    for one in found:
        for rule in {rule for rules in one.rules.values() for rule in rules}:
            counts[rule] = counts.get(rule, 0) + 1
    return ScanAnswer(
        target=target,
        kind=kind,
        scanners=run.scanners,
        blocks=report.scanned,
        size_bytes=report.size_bytes,
        counts=dict(sorted(counts.items(), key=lambda one: (-one[1], one[0]))),
        found=found,
        unread=run.unread,
        note=_note(kind, target, found=bool(found)),
    )


def _findings(key: str, run: _Scan, report: GateReport) -> Iterator[Finding]:
    """Yield what was found in a string, one for each line of a file."""
    place = run.places[key]
    is_lined = "|from " in key  # a text of lines, of which the first one is known
    second: ByLine = {}
    lines = report.lines.get(key, [])
    for number, rule in enumerate(report.withheld.get(key, [])):
        line = lines[number] if number < len(lines) else 0
        second.setdefault(line if is_lined else 0, []).append(rule)
    found = {FIRST: run.first.get(key, {}), SECOND: second}
    name = f"name:{place.path}"
    hidden = name in report.withheld or name in run.first
    is_id = place.field == "session_id"
    for line in sorted({line for by_line in found.values() for line in by_line}):
        yield Finding(
            place=Place(
                session_id=_HIDDEN if is_id else place.session_id,
                turn_uuid=place.turn_uuid,
                path=_HIDDEN if hidden or place.field == "source_path" else place.path,
                line=place.line + line - 1 if is_lined and line else place.line,
                field=place.field,
            ),
            rules={scanner: by_line[line] for scanner, by_line in found.items() if line in by_line},
        )


def _by_line(text: str, redaction: LocalRedaction) -> ByLine:
    """Return which rules find something in which line of a text; see `ByLine`."""
    lines = text.split("\n")
    found: ByLine = {}
    for number, line in enumerate(lines):
        done = redaction.text(line)
        if done.text != line:
            found[number + 1] = sorted(done.counts)
            lines[number] = done.text
    # What is left is found over several lines, or by those around it.
    shown = "\n".join(lines)
    rest = redaction.text(shown)
    if rest.text != shown:
        pairs = zip(lines, rest.text.split("\n"), strict=False)
        first = next((at for at, (line, clean) in enumerate(pairs, 1) if line != clean), 1)
        found[first] = sorted({*found.get(first, []), *rest.counts})
    return found


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings, those of one place as one: pieces of a file overlap."""
    places: dict[Place, dict[str, list[str]]] = {}
    for one in findings:
        rules = places.setdefault(one.place, {})
        for scanner, names in one.rules.items():
            rules[scanner] = sorted({*rules.get(scanner, []), *names})
    return [Finding(place=place, rules=rules) for place, rules in places.items()]


def _note(kind: str, target: str, *, found: bool) -> str:
    if not found:
        return ""
    if kind == "memory" and target in ("", "local"):
        return "Run `funes scrub` to take them out, and change those secrets where they are used."
    if kind == "memory":
        return (
            "Change those secrets where they are used; what was copied from there has them, too. "
            "`funes unpublish` takes sessions back from a memory that you may write to."
        )
    return "Change those secrets where they are used, and take them out of the files."


def existing(target: str, settings: Settings) -> str:
    """Return what is to be scanned; a path that is there wins over a memory elsewhere.

    Raises:
        UsageError: it is neither a memory's name nor a path.
    """
    path = expanded(target)
    if target in ("", "local") or path.is_file() or path.is_dir():
        return target
    try:
        is_elsewhere = parse_spec(target, settings).is_remote
    except UsageError:
        is_elsewhere = False
    if not is_elsewhere:
        raise UsageError(
            f"Nothing to scan at {target}.",
            hint="Name a file, a folder, or a memory: `funes scan`, `funes scan traces/`.",
            kind="no_such_path",
        )
    return target
