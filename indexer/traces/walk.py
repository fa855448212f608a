"""Finds trace files under a root: every real file once, links followed, nothing odd opened."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from funes_ls.indexer.errors import TraceError
from funes_ls.indexer.model import Problem, path_text
from funes_ls.indexer.traces.base import Unit

_MAX_DEPTH = 64
_NOT_A_FILE = "It is not a regular file."


class Found(Struct, frozen=True):
    """A regular file: where it was found, where it really is, and its `stat`."""

    path: Path
    real: Path
    stat: os.stat_result

    def unit(self, harness: str, *, subagent: bool = False) -> Unit:
        """Return the file as a unit of a harness."""
        return Unit(
            key=path_text(self.path),
            harness=harness,
            path=self.real,
            size=self.stat.st_size,
            mtime_ns=self.stat.st_mtime_ns,
            inode=self.stat.st_ino,
            subagent=subagent,
        )


class _Walk:
    """What one walk has seen so far."""

    def __init__(self, root: Path, suffixes: tuple[str, ...]) -> None:
        self.suffixes = suffixes
        self.root = Path(os.path.realpath(root))
        self.dirs: set[tuple[int, int]] = set()
        self.files: set[Path] = set()
        self.links: list[Path] = []


def refuse_odd(path: Path) -> None:
    """Refuse a pipe, a device or a socket: opening one may never come back.

    Raises:
        TraceError: the path is neither a folder nor a regular file.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # told where it is read
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise TraceError(f"{path_text(path)}: {_NOT_A_FILE}", kind="not_a_file")


def find_files(root: Path, suffixes: tuple[str, ...]) -> Iterator[Found | Problem]:
    """Yield the regular files below a root (or the root itself) whose names end in a suffix.

    Places that are really below the root come before links to them, so a file is found under its
    own name where it has one. A dangling link, and anything with such a name that is no file, is
    one problem. A link to a folder that holds the root is not followed.
    """
    walk = _Walk(root, suffixes)
    if not root.is_dir():
        yield from _file(root, walk)
        return
    yield from _folder(root, walk, 0)
    while walk.links:
        link = walk.links.pop(0)
        yield from _link(link, walk)


def _folder(folder: Path, walk: _Walk, depth: int) -> Iterator[Found | Problem]:
    try:
        info = folder.stat()
        if (info.st_dev, info.st_ino) in walk.dirs:
            return
        walk.dirs.add((info.st_dev, info.st_ino))
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as exc:
        yield Problem(path=path_text(folder), kind="unreadable", message=_why(exc))
        return
    for entry in entries:
        path = folder / entry.name
        if entry.is_symlink():
            walk.links.append(path)
        elif entry.is_dir(follow_symlinks=False) and not _named(entry.name, walk):
            if depth < _MAX_DEPTH:
                yield from _folder(path, walk, depth + 1)
        elif _named(entry.name, walk):
            yield from _file(path, walk)


def _link(link: Path, walk: _Walk) -> Iterator[Found | Problem]:
    try:
        is_folder = stat.S_ISDIR(link.stat().st_mode)
    except OSError as exc:
        yield Problem(path=path_text(link), kind="dangling_link", message=_why(exc))
        return
    if not is_folder:
        if _named(link.name, walk):
            yield from _file(link, walk)
        return
    real = Path(os.path.realpath(link))
    if not walk.root.is_relative_to(real):
        yield from _folder(link, walk, 0)


def _file(path: Path, walk: _Walk) -> Iterator[Found | Problem]:
    try:
        info = path.stat()
    except OSError as exc:
        yield Problem(path=path_text(path), kind="unreadable", message=_why(exc))
        return
    if not stat.S_ISREG(info.st_mode):
        yield Problem(path=path_text(path), kind="not_a_file", message=_NOT_A_FILE)
        return
    real = Path(os.path.realpath(path))
    if real not in walk.files:
        walk.files.add(real)
        yield Found(path, real, info)


def _named(name: str, walk: _Walk) -> bool:
    return name.endswith(walk.suffixes)


def _why(exc: OSError) -> str:
    return f"{exc.strerror or 'It cannot be read'}."


def file_units(
    root: Path, suffixes: tuple[str, ...], unit_of: Callable[[Found], Unit]
) -> Iterator[Unit | Problem]:
    """Yield the problems of a walk, then its files as units: newest first, sub-agents last.

    Raises:
        TraceError: the root is neither a folder nor a regular file.
    """
    refuse_odd(root)
    units: list[Unit] = []
    for item in find_files(root, suffixes):
        if isinstance(item, Problem):
            yield item
        else:
            units.append(unit_of(item))
    yield from in_order(units)


def in_order(units: list[Unit]) -> list[Unit]:
    """Return units newest first with sub-agents last, equal times by key."""
    return sorted(units, key=lambda unit: (unit.subagent, -unit.mtime_ns, unit.key))


def found_at(root: Path, path: Path, suffixes: tuple[str, ...]) -> Iterator[Found]:
    """Yield what `find_files` finds under a root of a path: a file, or all that a folder holds.

    The path may be the real one of a file that is linked into the root, or lead through a link. A
    place that is really below the root is looked at alone; for any other the root is walked.
    """
    real_root, real = Path(os.path.realpath(root)), Path(os.path.realpath(path))
    if path == root or real == real_root:
        yield from _files_only(find_files(root, suffixes))
    elif real.is_relative_to(real_root) and real_root.is_dir():
        own = root / real.relative_to(real_root)
        if not _is_below_a_named(own, root, suffixes):
            yield from _files_only(_really_below(own, suffixes))
    else:
        for item in _files_only(find_files(root, suffixes)):
            if item.real.is_relative_to(real):
                yield item


def _really_below(path: Path, suffixes: tuple[str, ...]) -> Iterator[Found | Problem]:
    walk = _Walk(path, suffixes)
    if path.is_dir():
        yield from _folder(path, walk, 0)
    elif _named(path.name, walk):
        yield from _file(path, walk)


def _is_below_a_named(path: Path, root: Path, suffixes: tuple[str, ...]) -> bool:
    """Tell whether a folder on the way has the name of a trace: a walk does not enter it."""
    folders = path.relative_to(root).parts[:-1]
    return any(name.endswith(suffixes) for name in folders)


def _files_only(items: Iterator[Found | Problem]) -> Iterator[Found]:
    return (item for item in items if isinstance(item, Found))


def units_at(
    root: Path, path: Path, suffixes: tuple[str, ...], unit_of: Callable[[Found], Unit]
) -> list[Unit]:
    """Return the units that `file_units` lists of a path below a root."""
    return in_order([unit_of(item) for item in found_at(root, path, suffixes)])
