"""Reads Agent Trace records: which lines of a file came from which conversation.

Source: the Agent Trace specification 0.1.0 (cursor/agent-trace). It leaves open where records are
kept; its reference implementation and others append them to `.agent-trace/traces.jsonl`. Flat
records, one range each, are read too.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from funes_ls.content_hashes import HashedText
from funes_ls.git_lines import Origin
from funes_ls.indexer.facts_lines import is_weak, line_key
from funes_ls.indexer.times import parse_ts

FOLDER = ".agent-trace"
#: Files, when each was written (ns) and how long it is.
Stamps = tuple[tuple[Path, int, int], ...]
#: Of a longer file the end is read: records are appended.
_MOST_BYTES = 32 << 20
#: A record made so long after a commit or a write was made on account of it.
_AT_ONCE_US = 2_000_000
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class Range(Struct, frozen=True, kw_only=True):
    """Lines that a record says somebody wrote.

    Attributes:
        start: From 1, as is `end`, which is included.
        content_hash: `<algorithm>:<digits>`, or "".
        who: `ai`, `human`, `mixed` or `unknown`.
        session_ids: What may name the session, the surest first.
        revision: The commit the record speaks of, "" for none.
        ts_us: When it was made.
    """

    path: str
    start: int
    end: int
    content_hash: str
    who: str
    tool: str
    model: str
    session_ids: tuple[str, ...]
    tool_use_id: str
    url: str
    revision: str
    ts_us: int | None


class Now(Struct, frozen=True, kw_only=True):
    """What a document is now, and what git knows of it.

    Attributes:
        origins: By line of the document, from 0, with paths from the project's folder; None where
            a line is not committed so.
        until_us: By commit, see `funes_ls.git_lines.Blame`.
        saved_us: When the file was written, None where the document is not what it holds.
    """

    lines: Sequence[str]
    origins: Sequence[Origin | None]
    until_us: dict[str, int]
    saved_us: int | None


def stamps_of(root: Path) -> Stamps:
    """Return the files of records of a project and the state each is in."""
    folder = root / FOLDER
    try:
        if not folder.is_dir():
            return ()
        files = sorted(one for one in folder.iterdir() if one.suffix in (".jsonl", ".json"))
        found = [(one, one.stat()) for one in files if one.is_file()]
    except (OSError, ValueError):
        return ()
    return tuple((one, stat.st_mtime_ns, stat.st_size) for one, stat in found)


def ranges_of(stamps: Stamps, folder: Path, names: Iterable[str]) -> list[Range]:
    """Return what the records of a project say of one of its files, in their order.

    Args:
        stamps: See `stamps_of`.
        folder: The project's.
        names: The file has and had, from there, with "/".
    """
    known = [name for one in names for name in (one, (folder / one).as_posix())]
    return [one for stamp in stamps for name in known for one in _records(*stamp).get(name, ())]


@lru_cache(maxsize=32)
def _records(file: Path, mtime_ns: int, size: int) -> dict[str, list[Range]]:
    """Read a file of records; the other arguments say which state of it."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(size - _MOST_BYTES, 0))
            data = stream.read(_MOST_BYTES)
    except OSError:
        return {}
    by_path: dict[str, list[Range]] = {}
    for record in _parsed(data, is_lines=file.suffix == ".jsonl"):
        for one in ranges_in(record):
            by_path.setdefault(one.path, []).append(one)
    return by_path


def _parsed(data: bytes, *, is_lines: bool) -> Iterator[Any]:
    for part in data.split(b"\n") if is_lines else [data]:
        try:
            value = json.loads(part) if part.strip() else None
        except (ValueError, RecursionError):
            continue
        yield from value if isinstance(value, list) else [value]


def ranges_in(record: Any) -> Iterator[Range]:
    """Give what one record says; nothing of what is no record."""
    if not isinstance(record, dict):
        return
    if isinstance(record.get("file_path"), str):
        yield from _ranges(record, record["file_path"], {}, [record])
    for file in _dicts(record.get("files")):
        path = _str(file.get("path")) or _str(file.get("relative_path"))
        for talk in _dicts(file.get("conversations")):
            yield from _ranges(record, path, talk, _dicts(talk.get("ranges")))


def _ranges(
    record: dict[str, Any], path: str, talk: dict[str, Any], ranges: Iterable[dict[str, Any]]
) -> Iterator[Range]:
    tool = record.get("tool")
    vcs = _dict(record.get("vcs"))
    for one in ranges:
        start, end = one.get("start_line"), one.get("end_line")
        if not (path and isinstance(start, int) and isinstance(end, int) and 1 <= start <= end):
            continue
        by = _dict(one.get("contributor")) or _dict(talk.get("contributor"))
        yield Range(
            path=_plain(path),
            start=start,
            end=end,
            content_hash=_str(one.get("content_hash")),
            who=_str(by.get("type")) or ("unknown" if talk else "ai"),
            tool=_str(_dict(tool).get("name")),
            model=_str(by.get("model_id")),
            session_ids=_session_ids(record, talk),
            tool_use_id=_str(record.get("tool_use_id"))
            or _str(_dict(record.get("metadata")).get("tool_use_id")),
            url=_str(talk.get("url")),
            revision=_str(vcs.get("revision")) if vcs.get("type") == "git" else "",
            ts_us=parse_ts(_str(record.get("timestamp"))),
        )


def _plain(path: str) -> str:
    parts = path.replace("\\", "/")
    return parts.removeprefix("./")


def _session_ids(record: dict[str, Any], talk: dict[str, Any]) -> tuple[str, ...]:
    about = _dict(record.get("metadata"))
    urls = [_str(talk.get("url"))]
    urls += [
        _str(one.get("url")) for one in _dicts(talk.get("related")) if one.get("type") == "session"
    ]
    names = [
        *(_str(record.get(name)) for name in ("session_id", "conversation_id")),
        *(_str(about.get(name)) for name in ("session_id", "conversation_id")),
        *(_named(url) for url in urls),
    ]
    return tuple(dict.fromkeys(name for name in names if name))


def _named(url: str) -> str:
    """Return what a conversation's address ends in, which is its session's id or file."""
    last = re.split(r"[/\\]", url.partition("?")[0].rstrip("/\\"))[-1].removesuffix(".jsonl")
    found = _UUID.findall(last)
    return found[-1] if found else last


def claims(ranges: Sequence[Range], now: Now) -> list[Range | None]:
    """Return by line of a document the newest record that still holds for it.

    A record speaks of a text that may have changed since, so it must be confirmed. Its hash does
    that, wherever the lines are now. A record without one that was made for a commit holds for
    the lines that commit left; one made as the file was written, for that file while nothing has
    touched it since. All others claim nothing.
    """
    found: list[Range | None] = [None] * len(now.lines)
    text = HashedText(now.lines)
    newest = max((one.ts_us or 0 for one in ranges), default=0)
    strays: list[Range] = []
    for one in sorted(ranges, key=_age):
        if one.content_hash:
            if text.is_at(one.content_hash, one.start - 1, one.end - one.start + 1):
                _take(found, range(one.start - 1, one.end), one, now)
            else:
                strays.append(one)
        elif _is_made_for_commit(one, now):
            _take(found, _left_by_commit(one, now), one, now)
        elif one.ts_us == newest and _is_as_saved(one, now):
            _take(found, range(one.start - 1, one.end), one, now)
    for one in strays:
        count = one.end - one.start + 1
        place = text.place_of(one.content_hash, count)
        if place is not None:
            _take(found, range(place, place + count), one, now)
    return found


def _age(one: Range) -> int:
    return -(one.ts_us or 0)


def _take(found: list[Range | None], lines: Sequence[int], one: Range, now: Now) -> None:
    """Note a record for lines that no newer one has, if they say something."""
    if all(is_weak(line_key(now.lines[n])) for n in lines):
        return
    for n in lines:
        other = found[n]
        if other is None or _age(one) < _age(other):
            found[n] = one


def _left_by_commit(one: Range, now: Now) -> list[int]:
    lines = range(one.start, one.end + 1)
    return [
        n
        for n, origin in enumerate(now.origins)
        if origin
        and (origin.commit, origin.path) == (one.revision, one.path)
        and origin.line in lines
    ]


def _is_made_for_commit(one: Range, now: Now) -> bool:
    """Return whether a record was made with its commit, not while working on top of it."""
    until = now.until_us.get(one.revision) if one.revision else None
    return until is not None and one.ts_us is not None and one.ts_us <= until + _AT_ONCE_US


def _is_as_saved(one: Range, now: Now) -> bool:
    """Return whether a record was made with the state the file is in.

    Records whose place was not known name the first lines; only a whole file is taken for one.
    """
    if now.saved_us is None or one.ts_us is None or abs(one.ts_us - now.saved_us) > _AT_ONCE_US:
        return False
    lines = len(now.lines) - (not now.lines[-1])
    is_sure_place = one.start > 1 or one.end >= lines
    return is_sure_place and one.end <= len(now.lines)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""
