"""Writes datasets that are shared: rows in one piece, and the indexes other programs search with.

The words index and the vector index are those that the reference makes; this program has its own.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funes_ls.indexer import dataset as lance
from funes_ls.indexer.dataset_import import lancedb
from funes_ls.indexer.errors import BackendError

if TYPE_CHECKING:
    import pyarrow as pa

#: Below so many rows a vector index cannot be trained, and a search of all is as quick.
VECTOR_INDEX_FROM = 256
_SUB_VECTOR = 16
_LONG = timedelta(days=36_500)


class SharedDataset:
    """A dataset that is a working copy of a shared one, or is to be shared."""

    def __init__(self, base: Path) -> None:
        """Open the dataset of a memory directory."""
        self._path = path = lance.dataset_path(base)
        self._table = lancedb().connect(path.parent).open_table(path.stem)

    @property
    def version(self) -> int:
        """Return its version."""
        return int(self._table.version)

    @property
    def schema(self) -> "pa.Schema":
        """Return its columns."""
        return self._table.schema

    def count(self) -> int:
        """Return how many rows there are, as the newest version says."""
        return int(self._table.count_rows())

    def add(self, batches: "Iterable[pa.RecordBatch]") -> None:
        """Add rows of these columns in one new version."""
        import pyarrow as pa

        with self._writing():
            self._table.add(pa.RecordBatchReader.from_batches(self.schema, iter(batches)))

    def delete_sessions(self, session_ids: Iterable[str]) -> None:
        """Take out the rows of sessions."""
        with self._writing():
            for name in session_ids:
                quoted = name.replace("'", "''")
                self._table.delete(f"session_id = '{quoted}'")

    def rewrite(self) -> None:
        """Write every row anew, so that no file but old ones holds what was taken out."""
        import pyarrow as pa

        names = self.schema.names
        with self._writing():
            whole = self._table.search().select(names).to_batches(batch_size=2048)
            self._table.add(pa.RecordBatchReader.from_batches(self.schema, whole), mode="overwrite")

    def unindexed(self) -> int:
        """Return how many rows the indexes do not cover; all of them where one is missing."""
        stats = [self._table.index_stats(name) for name in self._names().values()]
        if len(stats) < self._wanted():
            return self.count()
        return max((int(one.num_unindexed_rows) for one in stats if one is not None), default=0)

    def index(self) -> None:
        """Make the indexes that are missing, and have the others cover every row."""
        with self._writing():
            self._index()

    def _index(self) -> None:
        there = self._names()
        made = lancedb().index
        if "text" not in there:
            self._table.create_index("text", config=made.FTS())
        if "vector" not in there and self._wanted() > 1:
            config = made.IvfPq(
                distance_type="l2", num_sub_vectors=self._dim() // _SUB_VECTOR, num_bits=8,
                max_iterations=50,
            )  # fmt: skip
            self._table.create_index("vector", config=config)
        if there:
            self._table.optimize(cleanup_older_than=_LONG)

    def keep_newest(self) -> None:
        """Remove every version but the newest, and files that no version names."""
        import warnings

        with self._writing(), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            self._table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn what goes wrong with the disk into words; those of the library may quote rows."""
        try:
            yield
        except (OSError, RuntimeError) as exc:
            raise BackendError(
                f"The working copy at {self._path} could not be written ({type(exc).__name__}).",
                hint="Free some disk space or make the directory writable.",
                kind="disk",
            ) from exc

    def _dim(self) -> int:
        return int(getattr(self.schema.field("vector").type, "list_size", 0))

    def _wanted(self) -> int:
        """Return how many indexes there are to be: of words, and of many vectors."""
        has_vectors = self._dim() and self._dim() % _SUB_VECTOR == 0
        return 2 if has_vectors and self.count() >= VECTOR_INDEX_FROM else 1

    def _names(self) -> dict[str, Any]:
        return {
            column: index.name for index in self._table.list_indices() for column in index.columns
        }
