"""The dataset of a memory: `chunks.lance`, 17 columns, one row per chunk with its vector.

The columns, their order and types and the model stamp are those of memories that other programs
share, so nothing of ours is kept in it. See docs/design.md, "Rows".
"""

import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from msgspec import Struct

from funes_ls.indexer.dataset_import import lancedb
from funes_ls.indexer.errors import BackendError, MemoryStateError
from funes_ls.indexer.model import Chunk
from funes_ls.indexer.times import parse_ts

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_log = logging.getLogger(__name__)
Read = TypeVar("Read")
TABLE = "chunks"
STAMP_KEY = b"embedding_model"
_INTEGERS = frozenset({"seq", "block_idx", "split_idx"})
COLUMNS = (
    "id", "text", "session_id", "workdir", "turn_uuid", "parent_uuid", "seq", "ts", "role",
    "block_type", "tool_name", "source_path", "block_idx", "split_idx", "vector", "harness", "repo",
)  # fmt: skip
ROW_COLUMNS = tuple(name for name in COLUMNS if name != "vector")
#: Columns that memories made before they existed do not have; read as "".
_LATER = ("harness", "repo")
_NULLABLE = frozenset({"parent_uuid", "tool_name"})
_MANY = 1000
#: Rows read at a time to be written anew.
_PAGE_ROWS = 2048
#: What an open table may keep of indexes, and of versions: each one that is written is kept until
#: there is no more room, and by itself lancedb gives them 7 GB.
_INDEX_CACHE_BYTES, _METADATA_CACHE_BYTES = 16 << 20, 4 << 20
#: Rows from which an index beats a scan of the ids.
_INDEXED_FROM = 50_000


class DatasetState(Struct, frozen=True, kw_only=True):
    """What is at a memory's place, asked of the disk.

    Attributes:
        kind: `ok`, `missing` (no dataset), `damaged`, or `foreign` (not a memory's columns).
        stamp: Model the vectors are of; "" for a memory made before stamps.
        dim: Width of the vectors, 0 unless `ok`.
    """

    kind: Literal["ok", "missing", "damaged", "foreign"]
    stamp: str = ""
    dim: int = 0
    rows: int = 0
    version: int = 0
    reason: str = ""


def dataset_path(base: Path) -> Path:
    """Return where the dataset of a memory directory is; a dataset's own path is taken as such."""
    return base if base.suffix == ".lance" else base / f"{TABLE}.lance"


def is_there(base: Path) -> bool:
    """Return whether there is a dataset, sound or not.

    A directory that holds neither a version nor rows is one that is being made just now, or whose
    making was cut short: there is nothing in it to lose.
    """
    path = dataset_path(base)
    return any(path.glob("_versions/*.manifest")) or any(path.glob("data/*"))


def state(base: Path) -> DatasetState:
    """Return what is at a memory's place."""
    return _looked_at(base)[0]


def _looked_at(base: Path, at: int | None = None) -> tuple[DatasetState, Any]:
    """Return what is at a memory's place, and the open table when it can be used."""
    if not is_there(base):
        return DatasetState(kind="missing"), None
    try:
        table = _open_table(dataset_path(base))
        if at is not None and table.version != at:
            table.checkout(at)
        schema = table.schema
        rows, version = table.count_rows(), table.version
    except Exception as exc:  # lancedb raises plain ValueError, RuntimeError, OSError and its own
        return DatasetState(kind="damaged", reason=_first_line(exc)), None
    missing = [name for name in COLUMNS if name not in schema.names and name not in _LATER]
    if missing:
        return DatasetState(kind="foreign", reason=f"no column {', '.join(missing)}"), None
    wrong = _wrong_types(schema)
    if wrong:
        return DatasetState(kind="foreign", reason=f"the type of {', '.join(wrong)}"), None
    found = DatasetState(
        kind="ok",
        stamp=_stamp_of(schema),
        dim=getattr(schema.field("vector").type, "list_size", 0),
        rows=rows,
        version=version,
    )
    return found, table


def create(base: Path, *, stamp: str, dim: int) -> "Dataset":
    """Return a new empty dataset.

    Raises:
        BackendError: kind `disk`: it cannot be written there.
    """
    path = dataset_path(base)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lancedb().connect(path.parent).create_table(
            path.stem, schema=row_schema(stamp=stamp, dim=dim)
        )
    except Exception as exc:  # see `state`
        raise _disk(path, exc) from exc
    return open_dataset(base)


def open_dataset(
    base: Path, *, stamp: str = "", dim: int = 0, version: int | None = None
) -> "Dataset":
    """Return the dataset of a memory.

    Args:
        base: A memory directory or a `.lance` directory.
        stamp: Model it must be of, when given; an unstamped one passes.
        dim: Width it must have, when given.
        version: Which one to read, None for the newest.

    Raises:
        MemoryStateError: kind `missing`, `damaged`, `foreign`, `wrong_model` or `wrong_width`.
    """
    path = dataset_path(base)
    found, table = _looked_at(base, version)
    if found.kind == "missing":
        raise MemoryStateError(
            f"No memory at {base} yet.", hint="Run `funes index`.", kind="missing"
        )
    if found.kind != "ok":
        raise MemoryStateError(
            f"The dataset at {path} cannot be read ({found.reason}).",
            hint="Move it aside and run `funes index`, or restore it from a copy.",
            kind=found.kind,
        )
    dataset = Dataset(table, path, stamp=found.stamp, dim=found.dim)
    check_model(dataset, stamp=stamp, dim=dim)
    return dataset


def check_model(dataset: "Dataset", *, stamp: str = "", dim: int = 0) -> None:
    """Pass a dataset of this model, or one without a stamp but of this width.

    Raises:
        MemoryStateError: kind `wrong_model` or `wrong_width`.
    """
    if stamp and dataset.stamp and dataset.stamp != stamp:
        raise MemoryStateError(
            f"The memory at {dataset.path.parent} was embedded with {dataset.stamp}, not {stamp}.",
            hint="Set `model` back to auto, or index into another FUNES_HOME.",
            kind="wrong_model",
        )
    if dim and dataset.dim != dim:
        raise MemoryStateError(
            f"The memory at {dataset.path.parent} holds vectors of width {dataset.dim}, "
            f"the model gives {dim}.",
            hint="Run `funes model list` and use the model it was embedded with.",
            kind="wrong_width",
        )


class Dataset:
    """An open dataset; reads see what other processes wrote after `refresh`."""

    def __init__(self, table: Any, path: Path, *, stamp: str, dim: int) -> None:
        """Wrap an open Lance table; use `open_dataset` or `create`."""
        self._table = table
        self._names = frozenset(table.schema.names)
        self.path = path
        self.stamp = stamp
        self.dim = dim

    @property
    def version(self) -> int:
        """Return the version the reads are of; it grows with every change."""
        return int(self._table.version)

    def count(self) -> int:
        """Return how many rows there are."""
        return self._read(lambda table: int(table.count_rows()))

    def refresh(self) -> None:
        """Read the newest version from now on."""
        self._table.checkout_latest()

    def at(self, version: int | None) -> "Dataset":
        """Return the dataset as it was at a version, whatever is written later; None: as it is."""
        table = _open_table(self.path)
        try:
            table.checkout(table.version if version is None else version)
        except Exception:  # see `state`; another program dropped old versions
            _log.info("version %s of %s is gone", version, self.path)
        return Dataset(table, self.path, stamp=self.stamp, dim=self.dim)

    def append(
        self, chunks: Sequence[Chunk], vectors: "np.ndarray[Any, np.dtype[np.float32]]"
    ) -> None:
        """Add rows with their vectors, in one new version or not at all.

        Args:
            chunks: Rows whose ids are not in the dataset.
            vectors: (len(chunks), dim) float32.

        Raises:
            BackendError: kind `disk`: it could not be written; nothing was added.
        """
        if not chunks:
            return
        table = self._arrow(chunks, vectors)
        try:
            self._table.add(table)
        except Exception as exc:  # see `state`
            raise _disk(self.path, exc) from exc

    def delete_ids(self, ids: Sequence[str]) -> None:
        """Take rows out by id."""
        for start in range(0, len(ids), _MANY):
            self._delete(f"id IN ({_quoted(ids[start : start + _MANY])})")

    def delete_session(self, session_id: str) -> None:
        """Take out every row of a session."""
        self._delete(f"session_id = {_quoted([session_id])}")

    def rows(self, ids: Sequence[str]) -> list[Chunk]:
        """Return rows by id, in the order asked; unknown ids are left out."""
        found: dict[str, Chunk] = {}
        for start in range(0, len(ids), _MANY):
            part = ids[start : start + _MANY]
            for chunk in self._select(f"id IN ({_quoted(part)})"):
                found.setdefault(chunk.id, chunk)
        return [found[id_] for id_ in dict.fromkeys(ids) if id_ in found]

    def session_rows(self, session_id: str) -> list[Chunk]:
        """Return a session's rows in reading order."""
        return sorted(self._select(f"session_id = {_quoted([session_id])}"), key=reading_order)

    def existing(self, ids: Sequence[str]) -> set[str]:
        """Return which of the ids are in the dataset."""
        known: set[str] = set()
        for start in range(0, len(ids), _MANY):
            part = ids[start : start + _MANY]
            known.update(self._query(f"id IN ({_quoted(part)})", ["id"])["id"].to_pylist())
        return known

    def session_ids_of_rows(self, session_id: str) -> set[str]:
        """Return the ids of a session's rows."""
        found = self._query(f"session_id = {_quoted([session_id])}", ["id"])
        return set(found["id"].to_pylist())

    def scan(self, columns: Sequence[str], *, batch_rows: int = 8192) -> "Iterator[pa.RecordBatch]":
        """Give every row, some columns of it, in batches and the order they were added."""
        wanted = [name for name in columns if name in self._names]
        yield from self._read(
            lambda table: table.search().select(wanted).to_batches(batch_size=batch_rows)
        )

    def scan_rows(self, *, batch_rows: int = 4096) -> Iterator[list[Chunk]]:
        """Give every row without its vector, in batches."""
        for batch in self.scan(ROW_COLUMNS, batch_rows=batch_rows):
            yield _chunks(batch)

    def scan_whole(
        self, *, batch_rows: int
    ) -> "Iterator[tuple[list[Chunk], np.ndarray[Any, np.dtype[np.float32]]]]":
        """Give every row with its vector, in batches: (rows, dim) float32."""
        import numpy as np

        for batch in self.scan((*ROW_COLUMNS, "vector"), batch_rows=batch_rows):
            column = batch.column("vector")
            vectors = column.flatten().to_numpy(zero_copy_only=False).astype(np.float32)
            rows = _chunks(batch.select([n for n in batch.schema.names if n != "vector"]))
            yield rows, vectors.reshape(len(rows), self.dim)

    def take(self, offsets: Sequence[int], columns: Sequence[str]) -> "pa.Table":
        """Return rows by their place in the dataset, some columns of them, in no fixed order."""
        wanted = [name for name in columns if name in self._names]
        return self._read(lambda table: table.take_offsets(list(offsets)).select(wanted).to_arrow())

    def nearest(
        self,
        vector: "np.ndarray[Any, np.dtype[np.float32]]",
        k: int,
        *,
        where: str = "",
        refine: int = 10,
    ) -> list[tuple[str, float]]:
        """Return ids and cosines of the rows nearest to a vector, best first.

        Args:
            vector: (dim,) float32, L2-normalised.
            k: How many.
            where: SQL condition on the columns, applied before the cut.
            refine: Candidates re-ranked exactly, as a multiple of k, where an index is used.
        """

        def ask(table: Any) -> "pa.Table":
            query = table.search(vector, vector_column_name="vector").metric("cosine")
            if where:
                query = query.where(where, prefilter=True)
            return query.refine_factor(refine).limit(k).select(["id", "_distance"]).to_arrow()

        table = self._read(ask)
        pairs = zip(table["id"].to_pylist(), table["_distance"].to_pylist(), strict=True)
        return [(id_, 1.0 - distance) for id_, distance in pairs]

    def index_vectors(self) -> None:
        """Index the vectors there are; those that come later are searched one by one beside it."""
        config = lancedb().index.HnswSq(distance_type="cosine")
        try:
            self._table.create_index("vector", config=config)
        except Exception as exc:  # see `state`
            raise _disk(self.path, exc) from exc

    def optimize(self, *, keep_s: float = 3600.0) -> None:
        """Merge small fragments, index the ids of many rows, drop old versions."""
        try:
            self._index_ids()
            self._table.optimize(cleanup_older_than=timedelta(seconds=max(keep_s, 1.0)))
        except Exception as exc:  # see `state`
            raise _disk(self.path, exc) from exc

    def rewrite(self, *, told: Callable[[int], None]) -> Counter[str]:
        """Write every row anew and remove all other files: nothing of a row that left is kept.

        Returns how many rows each session has. Readers of older versions go on with the new one;
        a kill leaves the old version whole.

        Args:
            told: Told how many rows have been read, now and then; what it raises ends the rewriting
                and leaves everything as it was.

        Raises:
            BackendError: kind `disk`: it could not be written.
        """
        import pyarrow as pa

        refused: list[BaseException] = []
        sessions: Counter[str] = Counter()

        def batches() -> "Iterator[pa.RecordBatch]":
            done = 0
            for batch in self._pages():
                done += len(batch)
                sessions.update(batch.column("session_id").to_pylist())
                try:
                    told(done)
                except BaseException as exc:  # it comes back as another one from native code
                    refused.append(exc)
                    raise
                yield batch

        try:
            rows = pa.RecordBatchReader.from_batches(self._table.schema, batches())
            self._table.add(rows, mode="overwrite")
            self._index_ids()
            self.keep_newest()
        except Exception as exc:  # see `state`
            raise refused[0] if refused else _disk(self.path, exc) from exc
        return sessions

    def _pages(self) -> "Iterator[pa.RecordBatch]":
        """Give every row whole and in order, a page at a time.

        A scan reads hundreds of megabytes ahead of who takes slowly.
        """
        names = list(self._table.schema.names)
        for start in range(0, self.count(), _PAGE_ROWS):
            page = self._table.search().select(names).offset(start).limit(_PAGE_ROWS)
            yield from page.to_arrow().to_batches()

    def keep_newest(self) -> None:
        """Remove every version but the newest, and files that no version names."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that readers lose the older versions
            self._table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)

    def is_left_behind(self) -> bool:
        """Return whether its version was removed since; then reads are of the newest from now."""
        newest = _open_table(self.path)
        if newest.version == self.version:
            return False
        _log.info("version %d of %s is gone", self.version, self.path)
        self._table = newest
        return True

    def _read(self, ask: Callable[[Any], Read]) -> Read:
        """Return what the table says; where another program removed its version, the newest."""
        try:
            return ask(self._table)
        except Exception:  # see `state`
            if not self.is_left_behind():
                raise
            return ask(self._table)

    def _index_ids(self) -> None:
        """Index what rows are looked up by, once scanning for it takes longer than a moment."""
        there = {column for index in self._table.list_indices() for column in index.columns}
        if self.count() >= _INDEXED_FROM:
            for column in sorted({"id", "session_id"} - there):
                self._table.create_index(column, config=lancedb().index.BTree())

    def _arrow(
        self, chunks: Sequence[Chunk], vectors: "np.ndarray[Any, np.dtype[np.float32]]"
    ) -> "pa.Table":
        import numpy as np
        import pyarrow as pa

        if vectors.shape != (len(chunks), self.dim):
            raise ValueError(f"vectors {vectors.shape}, expected ({len(chunks)}, {self.dim})")
        flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1))
        schema = self._table.schema
        arrays: list[Any] = []
        for field in schema:
            if field.name == "vector":
                arrays.append(pa.FixedSizeListArray.from_arrays(flat, self.dim).cast(field.type))
            else:
                values = [getattr(chunk, field.name) for chunk in chunks]
                arrays.append(pa.array(values, type=field.type))
        return pa.Table.from_arrays(arrays, schema=schema)

    def _delete(self, where: str) -> None:
        try:
            self._table.delete(where)
        except Exception as exc:  # see `state`
            raise _disk(self.path, exc) from exc

    def _select(self, where: str) -> list[Chunk]:
        table = self._query(where, [name for name in ROW_COLUMNS if name in self._names])
        return [chunk for batch in table.to_batches() for chunk in _chunks(batch)]

    def _query(self, where: str, columns: list[str]) -> "pa.Table":
        return self._read(lambda table: table.search().where(where).select(columns).to_arrow())


def row_schema(*, stamp: str, dim: int) -> "pa.Schema":
    """Return the 17 columns, with the stamp as the only metadata."""
    import pyarrow as pa

    def kind(name: str) -> Any:
        if name == "vector":
            return pa.list_(pa.field("item", pa.float32()), dim)
        return pa.int64() if name in _INTEGERS else pa.utf8()

    fields = [pa.field(name, kind(name)) for name in COLUMNS]
    return pa.schema(fields, metadata={STAMP_KEY: stamp.encode()} if stamp else None)


def reading_order(chunk: Chunk) -> tuple[int, int, int]:
    """Return what a session's rows are sorted by."""
    return (chunk.seq, chunk.block_idx, chunk.split_idx)


def _chunks(batch: "pa.RecordBatch") -> list[Chunk]:
    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
    names = list(columns)
    return [
        _chunk(dict(zip(names, row, strict=True))) for row in zip(*columns.values(), strict=True)
    ]


def _chunk(values: dict[str, Any]) -> Chunk:
    for name, value in values.items():
        if value is None and name not in _NULLABLE:
            values[name] = 0 if name in _INTEGERS else ""
    values.setdefault("harness", "")
    return Chunk(**values, ts_us=parse_ts(values["ts"]))


def _open_table(path: Path) -> Any:
    lance = lancedb()
    session = lance.Session(
        index_cache_size_bytes=_INDEX_CACHE_BYTES, metadata_cache_size_bytes=_METADATA_CACHE_BYTES
    )
    return lance.connect(path.parent, session=session).open_table(path.stem)


def _wrong_types(schema: Any) -> list[str]:
    """Return columns that do not hold what they should."""
    import pyarrow.types as is_

    def fits(name: str) -> bool:
        kind = schema.field(name).type
        if name == "vector":
            return bool(is_.is_fixed_size_list(kind) and is_.is_floating(kind.value_type))
        if name in _INTEGERS:
            return bool(is_.is_integer(kind))
        return bool(is_.is_string(kind) or is_.is_large_string(kind))

    return [name for name in COLUMNS if name in schema.names and not fits(name)]


def _stamp_of(schema: Any) -> str:
    return bytes((schema.metadata or {}).get(STAMP_KEY, b"")).decode("utf-8", "replace")


def _quoted(values: Iterable[str]) -> str:
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


def _first_line(exc: BaseException) -> str:
    return (str(exc).strip().splitlines() or [type(exc).__name__])[0][:200]


def _disk(path: Path, exc: BaseException) -> BackendError:
    return BackendError(
        f"The dataset at {path} could not be written ({_first_line(exc)}).",
        hint="Free some disk space or make the directory writable, then run `funes index`.",
        kind="disk",
    )
