"""Reads a dataset's rows a second before lancedb has been imported, by its compiled part alone.

The compiled part loads in milliseconds; the package around it takes a second or two. Where it is
not as expected (another version), there is nothing to read early, and callers wait for lancedb.
"""

import asyncio
import importlib.util
import logging
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from funes_ls.indexer.dataset import STAMP_KEY, TABLE, Dataset, dataset_path

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)
_PACKAGE = "lancedb"
_lock = threading.Lock()


def open_early(base: Path) -> "EarlyDataset | None":
    """Return the dataset of a memory for looking rows up, None where that cannot be had yet."""
    path = dataset_path(base)
    if path.stem != TABLE or not path.is_dir():
        return None
    try:
        return EarlyDataset(_native(), path)
    except Exception as exc:  # whatever is different in another version
        _log.info("rows cannot be read early (%s)", type(exc).__name__)
        return None


def _native() -> Any:
    """Return the compiled part of lancedb, without the package around it."""
    with _lock:
        if f"{_PACKAGE}._lancedb" in sys.modules:
            return sys.modules[f"{_PACKAGE}._lancedb"]
        spec = importlib.util.find_spec(_PACKAGE)
        if spec is None or spec.submodule_search_locations is None or _PACKAGE in sys.modules:
            raise ImportError(_PACKAGE)
        package = ModuleType(_PACKAGE)
        package.__path__ = list(spec.submodule_search_locations)
        package.__spec__ = spec
        sys.modules[_PACKAGE] = package
        try:
            return importlib.import_module(f"{_PACKAGE}._lancedb")
        finally:
            del sys.modules[_PACKAGE]


class EarlyDataset(Dataset):
    """Looks rows up by id or session; knows nothing of vectors and does not write."""

    def __init__(self, native: Any, path: Path) -> None:
        """Open the dataset at a path."""
        self._loop = asyncio.new_event_loop()
        weakref.finalize(self, self._loop.close)
        self._one_at_a_time = threading.Lock()
        self.table = self._await(lambda: self._open(native, path))
        schema = self._await(self.table.schema)
        stamp = (schema.metadata or {}).get(STAMP_KEY, b"").decode()
        self._version = int(self._await(self.table.version))
        super().__init__(
            _Names(schema), path, stamp=stamp, dim=schema.field("vector").type.list_size
        )

    @staticmethod
    async def _open(native: Any, path: Path) -> Any:
        connection = await native.connect(str(path.parent))
        return await connection.open_table(path.stem)

    @property
    def version(self) -> int:
        """Return the version the reads are of."""
        return self._version

    def count(self) -> int:
        """Return how many rows there are."""
        return int(self._await(self.table.count_rows))

    def refresh(self) -> None:
        """Read the newest version from now on."""
        self._await(self.table.checkout_latest)
        self._version = int(self._await(self.table.version))

    def _query(self, where: str, columns: Sequence[str]) -> "pa.Table":
        import pyarrow as pa

        async def read() -> "pa.Table":
            query = self.table.query()
            query.where(where)
            query.select_columns(list(columns))
            stream = await query.execute()
            batches = [batch async for batch in stream]
            return pa.Table.from_batches(batches, schema=stream.schema)

        return self._await(read)

    def _await(self, work: Callable[[], Awaitable[Any]]) -> Any:
        # The compiled part gives futures of a running loop, which one thread at a time may run.
        async def wait() -> Any:
            return await work()

        with self._one_at_a_time:
            return self._loop.run_until_complete(wait())


class _Names:
    """What `Dataset` asks of a table when it begins."""

    def __init__(self, schema: "pa.Schema") -> None:
        self.schema = schema
