"""A working copy of a memory elsewhere: what is done to it becomes one commit.

Rows and indexes never change once they are written, so those that are there are linked, or left
out where they are not needed; only what is small is copied. What was fetched is never written to.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from funes_ls.hub.receipts import copy_small
from funes_ls.hub.remote import DATASET, SESSIONS
from funes_ls.hub.spec import MemorySpec
from funes_ls.indexer.errors import BackendError
from funes_ls.indexer.home import make_private

_TOP = 2**64 - 1
_NEVER_CHANGED = ("data", "_indices", "_deletions")


class WorkingCopy:
    """A memory directory of ours, and what it was when it was made."""

    def __init__(self, base: Path, *, before: frozenset[str] = frozenset()) -> None:
        """Begin with what is in a directory; `before` names files that are not here."""
        self.base = base
        self._before = {**dict.fromkeys(before, ""), **_files(base)}

    @property
    def dataset(self) -> Path:
        """Return where the dataset is."""
        return self.base / DATASET

    @property
    def sessions(self) -> Path:
        """Return where the facts of sessions are."""
        return self.base / SESSIONS

    def added(self, spec: MemorySpec) -> dict[str, Path | bytes]:
        """Return what is new or other, by its path on the other side."""
        return {
            spec.inside(name): self.base / name
            for name, mark in sorted(_files(self.base).items())
            if self._before.get(name) != mark
        }

    def deleted(self, spec: MemorySpec) -> tuple[str, ...]:
        """Return what has gone, by its path on the other side."""
        gone = self._before.keys() - _files(self.base).keys()
        return tuple(spec.inside(name) for name in sorted(gone))


@contextmanager
def new_copy(home: Path, spec: MemorySpec) -> Iterator[Path]:
    """Give a directory for a working copy, gone afterwards; what a kill left is removed first.

    Raises:
        BackendError: kind `disk`.
    """
    run = home / "run"
    prefix = f"push-{spec.key}-"
    try:
        make_private(run)
        for left in run.glob(f"{prefix}*"):  # whoever publishes here holds the lock
            shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=run))
    except OSError as exc:
        raise BackendError(
            f"Cannot write at {run} ({exc.strerror or exc}).",
            hint="Free some disk space or make it writable.",
            kind="disk",
        ) from exc
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def to_append(source: Path, folder: Path, *, version: int | None) -> WorkingCopy:
    """Return a copy that rows can be appended to; what is there stays out of it.

    Args:
        source: A memory directory of which the small files are there.
        folder: Where the copy goes.
        version: Of the dataset over there; what others wrote into the source later is left out.
    """
    base = folder / "copy"
    shutil.rmtree(base, ignore_errors=True)
    copy_small(source, base)
    _drop_later(base, version)
    return WorkingCopy(base)


def to_rewrite(source: Path, folder: Path, *, version: int | None) -> WorkingCopy:
    """Return a whole copy, for indexes and for what is taken out; see `to_append`."""
    base = folder / "copy"
    shutil.rmtree(base, ignore_errors=True)
    for path in sorted((source / DATASET).rglob("*")):
        if path.is_file():
            _brought(path, base / path.relative_to(source))
    if (source / SESSIONS).is_file():
        base.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / SESSIONS, base / SESSIONS)
    _drop_later(base, version)
    return WorkingCopy(base)


def _drop_later(base: Path, version: int | None) -> None:
    """Remove versions that are newer than the one over there: a snapshot can be written to."""
    if version is None:
        return
    versions = base / DATASET / "_versions"
    later = [path for path in versions.glob("*.manifest") if _version(path) > version]
    for path in later:
        path.unlink()
    if later:
        (versions / "latest_version_hint.json").unlink(missing_ok=True)


def _version(manifest: Path) -> int:
    """Return the version a manifest is of; names count down from the top, in old datasets up."""
    number = int(manifest.stem) if manifest.stem.isdigit() else 0
    return _TOP - number if number > _TOP // 2 else number


def empty(folder: Path) -> WorkingCopy:
    """Return a copy of nothing."""
    base = folder / "copy"
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    return WorkingCopy(base)


def _brought(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    real = source.resolve()  # in the Hub's cache it is a link
    if target.parent.name in _NEVER_CHANGED or "_indices" in target.parts:
        try:
            os.link(real, target)
            return
        except OSError:  # another disk, or one that knows no links
            pass
    shutil.copyfile(real, target)


def _files(base: Path) -> dict[str, str]:
    """Return every file by its path, with what tells its content from others."""
    return {
        path.relative_to(base).as_posix(): _mark(path) for path in base.rglob("*") if path.is_file()
    }


def _mark(path: Path) -> str:
    if path.parent.name in _NEVER_CHANGED or "_indices" in path.parts:
        return str(path.stat().st_size)
    return hashlib.sha256(path.read_bytes()).hexdigest()
