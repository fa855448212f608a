"""A memory in an object store: its files are mirrored here, its rows are written by Lance there.

Files of a dataset never change, so a version that was fetched stays as it is: a directory of links,
and a newer one fetches only what is new. Buckets know no commits of many files. Lance has its own:
the last file it writes, the manifest, is made only if no other writer made it first. So a change is
done anew over there, from the working copy it was prepared in.
"""

import hashlib
import os
import re
import shutil
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from funes_ls.hub import store_access
from funes_ls.hub.remote import DATASET, SESSIONS, Change, Head, HeadMoved, Progress
from funes_ls.hub.spec import MemorySpec
from funes_ls.hub.store_access import Access, FileGone, RaceLost
from funes_ls.indexer import dataset as lance
from funes_ls.indexer.dataset_import import lancedb
from funes_ls.indexer.errors import BackendError, MemoryStateError
from funes_ls.indexer.home import make_private

if TYPE_CHECKING:
    import pyarrow as pa

Answer = TypeVar("Answer")
_MANIFEST = re.compile(r"_versions/(\d{1,20})\.manifest")
#: Manifests count down from here so that the newest is listed first; in old datasets they count up.
_TOP = 2**64 - 1
#: Folders of a dataset that a reader needs; the others are notes of its writers.
_NEEDED = ("data/", "_indices/", "_deletions/")
_PIECE_BYTES = 4 << 20
_PAGE_ROWS = 2048
#: Older versions stay so long: another process may be reading them.
_KEPT_S = 3600.0
_KEPT = 2


class _Listed(Struct, frozen=True):
    """A file as a store lists it."""

    size: int
    mtime_ns: int


class StoreRemote:
    """See `Remote`; several threads may use one."""

    def __init__(self, spec: MemorySpec, env: Mapping[str, str], *, cache_dir: Path) -> None:
        """Ask nothing yet."""
        self._spec = spec
        self._env = env
        self._mirror = cache_dir / spec.key
        self._way: Access | None = None

    @property
    def spec(self) -> MemorySpec:
        """Return which memory it is."""
        return self._spec

    def head(self) -> Head:
        """Return where it stands now: one listing of its versions."""
        found = self._listed(f"{DATASET}/_versions")
        newest = _newest(found)
        if newest is None:
            self._check_bucket()
            return Head(revision="", is_empty=True)
        version, name = newest
        return Head(revision=_revision(version, found[name]), version=version)

    def fetched(self, head: Head, *, progress: Progress | None = None) -> Path:
        """Return a directory with the files of a version; see `Remote`."""
        there = self.kept(head)
        if there is not None:
            return there
        if head.is_empty or head.version is None:
            raise MemoryStateError(
                f"There is no memory at {self._spec.text} yet.",
                hint=f"`funes push {self._spec.text}` publishes the local one there.",
                kind="empty",
            )
        target = self._mirror / head.revision
        part = self._mirror / f".{uuid.uuid4().hex}.part"
        try:
            make_private(part)
            self._fetch(head, part, progress)
            with suppress(OSError):  # another process has just made the same
                part.rename(target)
        except OSError as exc:
            raise _disk(part, exc) from exc
        finally:
            shutil.rmtree(part, ignore_errors=True)
        self._drop_old(target)
        return target

    def kept(self, head: Head) -> Path | None:
        """Return what was fetched of a version if it is still here; asks no network."""
        path = self._mirror / head.revision
        return path if head.revision and (path / DATASET).is_dir() else None

    def read(self, name: str, *, head: Head) -> bytes | None:
        """Return a small file by its path in the bucket, as it is now; None for none."""
        try:
            return self._asked(lambda way: _bytes_of(way, f"{self._spec.bucket}/{name}"))
        except HeadMoved:
            return None

    def create(self, *, private: bool) -> Head:
        """Return the head: a bucket needs nothing made before the first rows come.

        Who can read it is the bucket's own matter, so `private` is only a wish.
        """
        return self.head()

    def commit(self, change: Change, *, parent: Head) -> Head:
        """Do a change over there, by Lance's own protocol, and return the new head.

        Rows that others added meanwhile stay. Other files than the dataset's go first, so that who
        sees the rows sees what is said of their sessions.
        """
        now = self.head()
        if now.revision != parent.revision:
            raise HeadMoved
        inside = self._spec.inside(f"{DATASET}/")
        rows = {n.removeprefix(inside): p for n, p in change.add.items() if n.startswith(inside)}
        for name, content in change.add.items():
            if not name.startswith(inside):
                self._put(name, content)
        copies = [p for p in rows.values() if isinstance(p, Path)]
        if copies:
            copy = _base_of(copies[0])
            gone = any(name.startswith(f"{inside}data/") for name in change.delete)
            added = {path.name for name, path in rows.items() if isinstance(path, Path)}
            self._written(copy, parent, added=added, gone=gone)
        for name in change.delete:
            if not name.startswith(inside):
                self._remove(name)
        return self.head()

    def squash(self, message: str) -> bool:
        """Remove every version but the newest, and the files that only older ones name."""

        def drop(way: Access) -> None:
            with warnings.catch_warnings():
                # Who is adding rows at this moment does it again.
                warnings.simplefilter("ignore", UserWarning)
                self._table(way).optimize(cleanup_older_than=timedelta(0))

        self._asked(drop, writing=True)
        return True

    # Reading

    def _fetch(self, head: Head, part: Path, progress: Progress | None) -> None:
        listed = self._listed(DATASET)
        manifest = [name for name in listed if _version_of(name) == head.version]
        if not manifest or _revision(head.version or 0, listed[manifest[0]]) != head.revision:
            raise HeadMoved
        wanted = [name for name in listed if name.startswith(_NEEDED)] + manifest
        sizes = {f"{DATASET}/{name}": listed[name].size for name in wanted}
        sessions = self._listed("", recursive=False).get(SESSIONS)
        if sessions is not None:
            sizes[SESSIONS] = sessions.size
        older = self._newest_kept()
        missing = {
            name: size
            for name, size in sizes.items()
            if not (older and name.startswith(f"{DATASET}/") and _linked(older, part, name, size))
        }
        done, total = 0, sum(missing.values())
        for name, size in missing.items():
            for count in self._downloaded(name, part / name, size):
                done += count
                if progress is not None:
                    progress(done, total)

    def _downloaded(self, name: str, target: Path, size: int) -> Iterator[int]:
        """Bring a file and yield how many bytes each piece has; less than it should is an error."""
        target.parent.mkdir(parents=True, exist_ok=True)
        source = f"{self._spec.bucket}/{self._spec.inside(name)}"
        stream = self._asked(lambda way: way.files.open_input_stream(source))
        came = 0
        with stream, target.open("wb") as file:
            while piece := self._asked(lambda _way: stream.read(_PIECE_BYTES)):
                file.write(piece)
                came += len(piece)
                yield len(piece)
        if came != size:
            raise BackendError(
                f"Only {came:,} of {size:,} bytes of a file of {self._spec.text} came.",
                hint="Run the command again.",
                kind="hub",
            )

    def _listed(self, folder: str, *, recursive: bool = True) -> dict[str, _Listed]:
        """Return the files of a folder of the memory, by their names in it."""
        inside = self._spec.inside(folder) if folder else self._spec.prefix
        place = f"{self._spec.bucket}/{inside}".rstrip("/")

        def ask(way: Access) -> dict[str, _Listed]:
            from pyarrow import fs

            chosen = fs.FileSelector(place, recursive=recursive, allow_not_found=True)
            return {
                one.path.removeprefix(f"{place}/"): _Listed(one.size, one.mtime_ns or 0)
                for one in way.files.get_file_info(chosen)
                if one.is_file
            }

        return self._asked(ask)

    def _check_bucket(self) -> None:
        from pyarrow import fs

        found = self._asked(lambda way: way.files.get_file_info(self._spec.bucket))
        if found.type == fs.FileType.NotFound:
            raise store_access.no_bucket(self._spec)

    def _newest_kept(self) -> Path | None:
        kept = [path for path in self._mirror.glob("*-*") if (path / DATASET).is_dir()]
        return max(kept, key=lambda path: path.stat().st_mtime, default=None)

    def _drop_old(self, newest: Path) -> None:
        """Remove what was fetched of versions that nobody reads any more."""
        with suppress(OSError):
            os.utime(newest)
        kept = sorted(self._mirror.glob("*"), key=lambda path: path.lstat().st_mtime, reverse=True)
        for path in kept[_KEPT:]:
            if time.time() - path.stat().st_mtime > _KEPT_S:
                shutil.rmtree(path, ignore_errors=True)

    # Writing

    def _put(self, name: str, content: Path | bytes) -> None:
        data = content if isinstance(content, bytes) else content.read_bytes()

        def put(way: Access) -> None:
            with way.files.open_output_stream(f"{self._spec.bucket}/{name}") as stream:
                stream.write(data)

        self._asked(put, writing=True)

    def _remove(self, name: str) -> None:
        path = f"{self._spec.bucket}/{name}"
        self._asked(lambda way: way.files.delete_file(path), writing=True)

    def _written(self, copy: Path, parent: Head, *, added: set[str], gone: bool) -> None:
        """Do over there what was done in a working copy."""
        local = lancedb().connect(copy.parent).open_table(copy.stem)
        whole = gone or any(path.name not in added for path in (copy / "data").glob("*"))
        if parent.is_empty:
            self._asked(lambda way: self._made(way, local), writing=True)
        elif whole:
            self._asked(lambda way: self._replaced(way, local, parent), writing=True)
        else:
            self._asked(lambda way: self._appended(way, local, parent), writing=True)
        if any(copy.glob("_indices/*")):
            self._asked(lambda way: _index_as(local, self._table(way)), writing=True)

    def _made(self, way: Access, local: Any) -> None:
        base = f"{way.scheme}://{self._spec.bucket}/{self._spec.prefix}".rstrip("/")
        there = lancedb().connect(base, storage_options=way.options)
        there.create_table(lance.TABLE, data=_reader(local), schema=local.schema)

    def _appended(self, way: Access, local: Any, parent: Head) -> None:
        total = local.count_rows()
        local.checkout(parent.version)
        before = local.count_rows()
        local.checkout_latest()
        fresh = list(range(before, total))
        if fresh:
            table = self._table(way)
            # Other rows than the new ones may be missing in the copy.
            table.add(local.take_offsets(fresh).select(local.schema.names).to_arrow())

    def _replaced(self, way: Access, local: Any, parent: Head) -> None:
        """Write all rows of a copy in the place of those that are there, if any of them differ."""
        table = self._table(way)
        ids = set(_ids(local))
        there = set(_ids(table))
        if table.version != parent.version:
            raise HeadMoved
        if ids == there:
            return
        table.add(_reader(local), mode="overwrite")
        expected = (parent.version or 0) + 1
        if table.version > expected:  # others added rows just before: they go back in
            written = table.version
            between: set[str] = set()
            for version in range(expected, written):
                table.checkout(version)
                missing = [id_ for id_ in _ids(table) if id_ not in ids | there | between]
                rows = _by_ids(table, missing)
                between.update(missing)
                table.checkout_latest()
                if missing:
                    table.add(rows)

    def _table(self, way: Access) -> Any:
        base = f"{way.scheme}://{self._spec.bucket}/{self._spec.prefix}".rstrip("/")
        return lancedb().connect(base, storage_options=way.options).open_table(lance.TABLE)

    def _asked(self, ask: Callable[[Access], Answer], *, writing: bool = False) -> Answer:
        """Return what the store says; its errors become ours."""
        if self._way is None:
            self._way = store_access.access(self._spec, self._env)
        try:
            return ask(self._way)
        except HeadMoved:
            raise
        except (
            Exception
        ) as exc:  # pyarrow raises OSError, lancedb RuntimeError, ValueError and more
            meant = store_access.explained(exc, self._spec, writing=writing)
            if isinstance(meant, RaceLost | FileGone):
                raise HeadMoved from exc
            raise meant from exc


def _newest(listed: Mapping[str, _Listed]) -> tuple[int, str] | None:
    found = [(version, name) for name in listed if (version := _version_of(f"_versions/{name}"))]
    return max(found, default=None)


def _version_of(name: str) -> int | None:
    found = _MANIFEST.fullmatch(name)
    if found is None:
        return None
    number = int(found[1])
    return _TOP - number if number > _TOP // 2 else number


def _revision(version: int, manifest: _Listed) -> str:
    """Return what tells a version from that of another dataset made later at the same place."""
    mark = hashlib.sha256(f"{manifest.size} {manifest.mtime_ns}".encode()).hexdigest()[:8]
    return f"{version}-{mark}"


def _linked(older: Path, part: Path, name: str, size: int) -> bool:
    """Take a file from what was fetched before; False when it is not there."""
    source, target = older / name, part / name
    try:
        if source.stat().st_size != size or "/_versions/" in name:
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.hardlink_to(source)
        except OSError:  # a file system without links
            shutil.copyfile(source, target)
    except OSError:
        return False
    return True


def _base_of(path: Path) -> Path:
    """Return the dataset that a file is of."""
    return next(parent for parent in path.parents if parent.name == DATASET)


def _bytes_of(way: Access, path: str) -> bytes:
    with way.files.open_input_stream(path) as stream:
        return bytes(stream.read())


def _reader(table: Any) -> "pa.RecordBatchReader":
    """Give every row in order, a page at a time: a scan reads far ahead of who takes slowly."""
    import pyarrow as pa

    names = list(table.schema.names)

    def pages() -> "Iterator[pa.RecordBatch]":
        for start in range(0, table.count_rows(), _PAGE_ROWS):
            page = table.search().select(names).offset(start).limit(_PAGE_ROWS)
            yield from page.to_arrow().to_batches()

    return pa.RecordBatchReader.from_batches(table.schema, pages())


def _ids(table: Any) -> list[str]:
    found: list[str] = table.search().select(["id"]).to_arrow()["id"].to_pylist()
    return found


def _by_ids(table: Any, ids: list[str]) -> "pa.Table":
    quoted = ", ".join("'" + id_.replace("'", "''") + "'" for id_ in ids) or "''"
    return table.search().where(f"id IN ({quoted})").select(table.schema.names).to_arrow()


def _index_as(local: Any, there: Any) -> None:
    """Have the indexes that a working copy has, covering every row."""
    made = lancedb().index
    have = {column for index in there.list_indices() for column in index.columns}
    wanted = {column for index in local.list_indices() for column in index.columns}
    if "text" in wanted - have:
        there.create_index("text", config=made.FTS())
    if "vector" in wanted - have:
        width = there.schema.field("vector").type.list_size
        config = made.IvfPq(distance_type="l2", num_sub_vectors=width // 16, num_bits=8)
        there.create_index("vector", config=config)
    if have:
        there.optimize(cleanup_older_than=timedelta(days=36_500))


def _disk(path: Path, exc: OSError) -> BackendError:
    return BackendError(
        f"Cannot write at {path.parent} ({exc.strerror or exc}).",
        hint="Free some disk space or make it writable.",
        kind="disk",
    )
