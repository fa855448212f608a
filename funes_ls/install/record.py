"""What an `add` has changed, written down so that `remove` can turn it back byte for byte."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from funes_ls.install import delta, files

NAME = "undo.json"
_VERSION = 1


class Changed(NamedTuple):
    """A file that was changed.

    Attributes:
        before: Hash of what it was, "" for a file that was not there; None is not known.
        after: Hash of what it became.
        splices: What makes the former of the latter.
    """

    before: str | None
    after: str
    splices: list[delta.Splice]


class Record(NamedTuple):
    """All that an `add` has changed outside our folder.

    Attributes:
        files: By path.
        folders: Folders that were not there before, outermost first.
        created: Containers in files that were not there before; see `Wanted`.
    """

    files: Mapping[str, Changed] = {}
    folders: tuple[str, ...] = ()
    created: frozenset[str] = frozenset()

    def original(self, path: Path, now: bytes | None) -> tuple[bool, bytes | None]:
        """Return whether it is known what a file was, and what: only if nobody changed it since."""
        changed = self.files.get(str(path))
        if changed is None or changed.before is None or changed.after != delta.digest(now):
            return False, None
        if changed.before == "":
            return True, None
        before = delta.reversed_by(now or b"", changed.splices)
        return delta.digest(before) == changed.before, before


def load(folder: Path) -> Record:
    """Return what was written down in a folder; nothing when that cannot be read."""
    try:
        told: Any = json.loads((folder / NAME).read_text(encoding="utf-8"))
        if told["version"] != _VERSION:
            return Record()
        return Record(
            files={
                str(path): Changed(
                    before=one["before"],
                    after=str(one["after"]),
                    splices=delta.splices_of(one["splices"]),
                )
                for path, one in told["files"].items()
            },
            folders=tuple(map(str, told["folders"])),
            created=frozenset(map(str, told["created"])),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Record()


def save(folder: Path, record: Record) -> None:
    """Write it down, for this user alone.

    Raises:
        ConfigError: it cannot be written.
    """
    told = {
        "version": _VERSION,
        "files": {path: one._asdict() for path, one in record.files.items()},
        "folders": list(record.folders),
        "created": sorted(record.created),
    }
    files.write(folder / NAME, json.dumps(told).encode("ascii"))


class Before(NamedTuple):
    """How things were before a change; `files` has None for what was not there."""

    files: Mapping[Path, bytes | None]
    known: Mapping[Path, bool]
    missing: tuple[Path, ...]


def look(paths: Iterable[Path], trees: Iterable[Path], record: Record) -> Before:
    """Return how files are, or were before the earlier `add` that nobody has changed since.

    Raises:
        ConfigError: one cannot be read.
    """
    found: dict[Path, bytes | None] = {}
    known: dict[Path, bool] = {}
    missing: dict[Path, None] = {}
    for path in paths:
        now = files.read(path)
        is_known, original = record.original(path, now)
        found[path] = original if is_known else now
        known[path] = is_known or str(path) not in record.files
    for path in (*found, *trees):
        for folder in reversed(path.parents):
            if not folder.exists():
                missing[folder] = None
    return Before(found, known, tuple(missing))


def after(before: Before, paths: Iterable[Path], earlier: Record, created: set[str]) -> Record:
    """Return what has changed since `before`."""
    changed: dict[str, Changed] = {}
    for path in paths:
        now = files.read(path)
        was = before.files.get(path)
        if now == was and before.known.get(path, True):
            continue
        is_known = before.known.get(path, True)
        changed[str(path)] = Changed(
            before=delta.digest(was) if is_known else None,
            after=delta.digest(now),
            splices=delta.reverse(was or b"", now or b"") if is_known and was is not None else [],
        )
    folders = [*earlier.folders, *(str(folder) for folder in before.missing if folder.exists())]
    return Record(
        files=changed,
        folders=tuple(dict.fromkeys(folders)),
        created=frozenset(created) | earlier.created,
    )


def drop_empty_folders(record: Record) -> None:
    """Take folders away that an `add` has made and that nobody has used since."""
    for folder in reversed(record.folders):
        with suppress(OSError):
            Path(folder).rmdir()
