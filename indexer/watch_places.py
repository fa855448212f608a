"""What is to be watched: folders, single files, and which of them a disk tells no changes of."""

import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from funes_ls.indexer.traces import TraceSource
from funes_ls.indexer.traces.registry import is_trace_name, live_files

#: File systems whose changes may be made elsewhere, of which the kernel here tells nothing.
_REMOTE = frozenset(
    {"9p", "afs", "ceph", "cifs", "davfs", "drvfs", "fakeowner", "fuse.grpcfuse", "fuse.rclone"}
    | {"fuse.s3fs", "fuse.sshfs", "fuse.vmhgfs-fuse", "glusterfs", "lustre", "ncpfs", "nfs"}
    | {"nfs4", "osxfs", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs"}
)
_MOUNTS = Path("/proc/self/mounts")
#: Links to single files that are watched by themselves.
_MOST_LINKS = 500


class Targets(Struct, frozen=True, kw_only=True):
    """What to watch.

    Attributes:
        folders: Trees that the system tells changes of, and files that are linked into them.
        remote: Trees it does not.
        files: Single files to look at again and again.
        roots: How many roots all this is.
        marks: Tells one state of the roots from another: a folder made anew is another one.
    """

    folders: tuple[Path, ...] = ()
    remote: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    roots: int = 0
    marks: frozenset[tuple[str, int, int]] = frozenset()


def targets_of(places: Sequence[tuple[TraceSource, Path]], mounts: dict[str, str]) -> Targets:
    """Return what to watch of some roots; those that are gone are left out."""
    folders: list[Path] = []
    remote: list[Path] = []
    files: list[Path] = []
    marks: set[tuple[str, int, int]] = set()
    for source, root in places:
        try:
            info = root.stat()
        except OSError:
            continue
        marks.add((str(root), info.st_dev, info.st_ino))
        single = live_files(source, root)
        if single is not None:
            files += single
        elif is_remote(root, mounts):
            remote.append(root)
        else:
            folders.append(root)
    return Targets(
        folders=tuple(dict.fromkeys(folders)),
        remote=tuple(dict.fromkeys(remote)),
        files=tuple(dict.fromkeys(files)),
        roots=len(marks),
        marks=frozenset(marks),
    )


def linked_files(folders: Sequence[Path]) -> list[Path]:
    """Return the links to trace files below some folders: their own changes happen elsewhere."""
    links = (
        path
        for path, is_link in _files(folders)
        if is_link and is_trace_name(path.name) and _look(path)
    )
    return list(itertools.islice(links, _MOST_LINKS))


def _files(folders: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield what is no folder below some folders, and whether it is a link.

    Links are followed, and each folder is looked at once.
    """
    seen: set[tuple[int, int]] = set()
    waiting = list(folders)
    while waiting:
        folder = waiting.pop()
        try:
            info = folder.stat()
            if (info.st_dev, info.st_ino) in seen:
                continue
            seen.add((info.st_dev, info.st_ino))
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir():
                        waiting.append(folder / entry.name)
                    else:
                        yield folder / entry.name, entry.is_symlink()
        except OSError:
            continue


def mounted() -> dict[str, str]:
    """Return the type of the file system at each mount point, nothing where that is not told."""
    found: dict[str, str] = {}
    try:
        lines = _MOUNTS.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return found
    for line in lines:
        parts = line.split(" ")
        if len(parts) >= 3:
            point = parts[1].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
            found[point] = parts[2]
    return found


def is_remote(path: Path, mounts: dict[str, str]) -> bool:
    """Return whether changes of a folder may be made where this system does not see them."""
    if str(path).startswith("\\\\"):
        return True
    real = Path(os.path.realpath(path))
    for folder in (real, *real.parents):
        kind = mounts.get(str(folder))
        if kind is not None:
            return kind in _REMOTE
    return False


Look = tuple[int, int, int]


class Poller:
    """Finds changed traces by looking at all of them again."""

    def __init__(self) -> None:
        """Begin without having looked."""
        self._trees: dict[Path, dict[Path, Look]] = {}
        self._files: dict[Path, Look | None] = {}

    def look_at_files(self, files: Sequence[Path]) -> list[Path]:
        """Return which single files changed, came or went since the last look."""
        before = self._files
        self._files = {file: _look(file) for file in files}
        return [
            file
            for file, look in self._files.items()
            if (before[file] != look if file in before else look is not None)
        ]

    def look_at_tree(self, tree: Path) -> list[Path]:
        """Return which traces of a tree changed, came or went; nothing at the first look."""
        now = dict(_traces(tree))
        before = self._trees.get(tree)
        self._trees[tree] = now
        if before is None:
            return []
        changed = [path for path, look in now.items() if before.get(path) != look]
        return changed + [path for path in before if path not in now]

    def keep(self, trees: Sequence[Path]) -> None:
        """Forget what is known of other trees."""
        self._trees = {tree: known for tree, known in self._trees.items() if tree in trees}


def _traces(tree: Path) -> Iterator[tuple[Path, Look]]:
    for path, _ in _files([tree]):
        if is_trace_name(path.name) and (look := _look(path)):
            yield path, look


def _look(file: Path) -> Look | None:
    try:
        info = file.stat()
    except OSError:
        return None
    return (info.st_size, info.st_mtime_ns, info.st_ino) if stat.S_ISREG(info.st_mode) else None
