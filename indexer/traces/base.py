"""What every trace reader offers: units under a root, and a streaming reading of one unit."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from funes_ls.indexer.model import Problem, SessionMeta, Turn


class Unit(Struct, frozen=True, kw_only=True):
    """One session's trace on disk.

    Attributes:
        key: Stable id of the source: the path as found under the root, as `path_text` has it;
            for a database or a Parquet file `<path>#<session id>`.
        harness: Facet stored in rows, "" when the rows of a Parquet file tell it themselves.
        path: Real file to read, links resolved.
        size: Bytes; for Hermes the number of messages.
        mtime_ns: Modification time; for Hermes the highest message id.
        subagent: Whether the path says that a sub-agent wrote it.
        row: Row of the session in a Parquet file, -1 elsewhere.
        container: File that holds the session among others, as found; "" when `key` is the file.
        shown: Path as it may be kept and shown, where the real one holds a secret; "" mostly.
        is_fetched: It is a copy of what lies elsewhere, where `key` and `shown` say.
    """

    key: str
    harness: str
    path: Path
    size: int
    mtime_ns: int
    inode: int
    subagent: bool = False
    row: int = -1
    container: str = ""
    shown: str = ""
    is_fetched: bool = False


class Reading(Protocol):
    """One pass over a unit; iterate it once, then ask it what was read."""

    def __iter__(self) -> Iterator[Turn | Problem]:
        """Yield turns in file order, and a problem for each part that cannot be read."""
        ...

    @property
    def session(self) -> SessionMeta:
        """What the trace says of its session; whole after iteration."""
        ...

    @property
    def resume(self) -> bytes:
        """State to pass to the next read of the same session, b"" when nothing can be resumed.

        It is MessagePack: what of it is a secret is taken out before it is kept.
        """
        ...

    @property
    def offset(self) -> int:
        """Bytes read up to the end of the last record taken."""
        ...

    @property
    def restarted(self) -> bool:
        """Whether the given resume state did not fit: the turns are those of the whole trace."""
        ...

    @property
    def late_names(self) -> bool:
        """Whether a tool name was learnt after an answer that needs it had been given.

        Read the unit again without resume state for the compat rows.
        """
        ...

    @property
    def failed(self) -> bool:
        """Whether the trace could not be read to its end; nothing must be recorded then."""
        ...

    @property
    def skipped(self) -> dict[str, int]:
        """How many records of each unknown type were passed over, by type."""
        ...


class TraceSource(Protocol):
    """The reader of one harness."""

    @property
    def harness(self) -> str:
        """Facet stored in rows, "" for a reader of several."""
        ...

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """Return the places the harness keeps sessions in, existing or not."""
        ...

    def units(self, root: Path) -> Iterator[Unit | Problem]:
        """Yield the sessions under a root: newest first, sub-agents last, each real file once."""
        ...

    def units_at(self, root: Path, path: Path) -> list[Unit]:
        """Return those of a root's units that a path below it has to do with.

        The path is a trace, a folder, or a file that changes with one; it may be gone, or be the
        real path of what is linked into the root.
        """
        ...

    def read(self, unit: Unit, *, resume: bytes | None = None) -> Reading:
        """Return a reading of a unit; with resume state, of what was added since."""
        ...
