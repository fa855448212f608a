"""What opencode wrote before it had a database: a file for each session, message and part.

They lie in `storage/session/<project>/<session>.json`, `storage/message/<session>/<message>.json`
and `storage/part/<message>/<part>.json`.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from funes_ls.indexer.model import Problem, path_text
from funes_ls.indexer.traces import texts
from funes_ls.indexer.traces.base import Unit
from funes_ls.indexer.traces.document import BROKEN, glance_json, load_json, table
from funes_ls.indexer.traces.walk import Found, find_files, in_order

FOLDER = "storage"
SUFFIX = ".json"
_HARNESS = "opencode"


class Files:
    """What the files say of one session; one message is in memory at a time."""

    def __init__(self, path: Path, session_id: str) -> None:
        """Read beside the file of a session."""
        self._path = path
        self._session_id = session_id
        self._storage = path.parents[2]

    def about(self) -> dict[str, Any]:
        """Return what is said of the session as a whole."""
        return table(load_json(self._path))

    def messages(self) -> Iterator[tuple[str, Any]]:
        """Yield the messages' ids, which grow with time, and what is said of each."""
        for path in _listed(self._storage / "message" / self._session_id):
            yield path.stem, _value(path)

    def parts(self, message_id: str) -> Iterator[Any]:
        """Yield the parts of a message; None for one that cannot be read."""
        return map(_value, _listed(self._storage / "part" / message_id))


def units(storage: Path) -> Iterator[Unit | Problem]:
    """Yield the sessions, newest first, sub-agents last."""
    sessions = storage / "session"
    if not sessions.is_dir():
        return
    found: list[Unit] = []
    for item in find_files(sessions, (SUFFIX,)):
        if isinstance(item, Problem):
            yield item
        else:
            found.append(_unit(item))
    yield from in_order(found)


def units_at(storage: Path, path: Path) -> list[Unit]:
    """Return the sessions that a path has to do with; all where it does not tell."""
    found = [unit for unit in units(storage) if isinstance(unit, Unit)]
    names = path.relative_to(storage).parts if path.is_relative_to(storage) else ()
    if len(names) > 1 and names[0] == "message":
        return [unit for unit in found if unit.path.stem == names[1]]
    if len(names) > 2 and names[0] == "session":
        return [unit for unit in found if unit.path.stem == path.stem]
    return found


def _unit(found: Found) -> Unit:
    """Return a session as a unit that changes with each of its files."""
    unit = found.unit(_HARNESS, subagent=_is_child(found.path))
    storage = found.real.parents[2]
    stats = [found.stat]
    for message in _listed(storage / "message" / found.path.stem):
        for path in (message, *_listed(storage / "part" / message.stem)):
            try:
                stats.append(path.stat())
            except OSError:
                continue  # it has gone meanwhile
    name = path_text(found.path)
    return msgspec.structs.replace(
        unit,
        key=f"{name}#{found.path.stem}",
        container=name,
        size=sum(one.st_size for one in stats),
        mtime_ns=max(one.st_mtime_ns for one in stats),
    )


def _is_child(path: Path) -> bool:
    return texts.string(table(glance_json(path)).get("parentID")) is not None


def _listed(folder: Path) -> list[Path]:
    """Return the files of a folder by name, none where it is not there."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(SUFFIX))
    except OSError:
        return []
    return [folder / name for name in names]


def _value(path: Path) -> Any:
    try:
        return load_json(path)
    except BROKEN:
        return None
