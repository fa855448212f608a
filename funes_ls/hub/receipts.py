"""What this machine has published, and to where: a folder for each memory under `pushed/`.

It tells `status` and `forget` what a memory elsewhere holds without asking it. When the memory
still stands where the last push left it, the next one needs nothing else of it: not a byte of what
is there comes down again.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from funes_ls.hub.spec import MemorySpec
from funes_ls.indexer.errors import BackendError, MemoryStateError
from funes_ls.indexer.home import make_private

_FOLDER = "pushed"
_RECEIPT, _IDS, _COPY = "receipt.json", "ids", "head"
_ID_BYTES = 8


class Receipt(Struct, kw_only=True):
    """What a memory elsewhere held after this machine last published to it.

    Attributes:
        memory: As it is named.
        revision: Where it stood then.
        pushed_at: UTC seconds.
        rows: Of all machines, of `all_sessions` sessions.
        unindexed: Rows its own indexes do not cover.
        sessions: Sessions of this machine that it holds, and their rows there.
        waiting: Rows of sessions that may go, and had no vector yet.
        pending: Sessions that are still to be decided on.
        withheld: In how many blocks each rule found something.
        ids_digest: Of the ids of its rows.
        card: Its card then; None where it has one that is not ours to change.
        private: Whether others could not read it then; None where that was not told.
    """

    memory: str
    revision: str
    pushed_at: float = 0.0
    rows: int = 0
    all_sessions: int = 0
    unindexed: int = 0
    sessions: dict[str, int] = {}
    waiting: int = 0
    pending: int = 0
    withheld: dict[str, int] = {}
    ids_digest: str = ""
    card: str | None = None
    private: bool | None = None


def receipt_dir(home: Path, spec: MemorySpec) -> Path:
    """Return the folder of a memory's receipt."""
    return home / _FOLDER / spec.key


def read_receipt(home: Path, spec: MemorySpec) -> Receipt | None:
    """Return the receipt of a memory, None where nothing was published there."""
    return _read(receipt_dir(home, spec) / _RECEIPT)


def receipts(home: Path) -> list[Receipt]:
    """Return every receipt there is, by the memory's name."""
    try:
        found = [_read(path / _RECEIPT) for path in (home / _FOLDER).iterdir()]
    except OSError:
        return []
    return sorted((one for one in found if one is not None), key=lambda one: one.memory)


def holding(home: Path, session_ids: Sequence[str]) -> tuple[str, ...]:
    """Return the memories elsewhere that hold one of these sessions, any when none is named."""
    wanted = set(session_ids)
    return tuple(
        one.memory
        for one in receipts(home)
        if one.sessions and (not wanted or not wanted.isdisjoint(one.sessions))
    )


def drop_copies(home: Path, session_ids: Sequence[str]) -> None:
    """Remove titles and folders that are kept to publish faster; of every session, or of some.

    That they were published is still known.
    """
    wanted = set(session_ids)
    for one in receipts(home):
        if not wanted or not wanted.isdisjoint(one.sessions):
            key = hashlib.sha256(one.memory.encode("utf-8", "surrogateescape")).hexdigest()[:16]
            shutil.rmtree(home / _FOLDER / key / _COPY, ignore_errors=True)


def _read(path: Path) -> Receipt | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Receipt)
    except (OSError, ValueError):  # a receipt nobody can read is none
        return None


@contextmanager
def publishing(home: Path, spec: MemorySpec, *, wait_s: float) -> Iterator[None]:
    """Let one process of this machine at a time publish to a memory.

    Raises:
        MemoryStateError: kind `locked`: another one does.
        BackendError: kind `disk`.
    """
    from filelock import FileLock, Timeout

    folder = receipt_dir(home, spec)
    try:
        make_private(folder)
        lock = FileLock(folder / "lock", timeout=wait_s)
        lock.acquire()
    except Timeout as exc:
        raise MemoryStateError(
            f"Another process of yours is publishing to {spec.text}.",
            hint="Wait for it to finish.",
            kind="locked",
        ) from exc
    except OSError as exc:
        raise _disk(folder, exc) from exc
    try:
        yield
    finally:
        lock.release()


def known_ids(home: Path, spec: MemorySpec, receipt: Receipt) -> frozenset[str] | None:
    """Return the ids of the rows a memory held, None where they are not known to be right."""
    try:
        raw = (receipt_dir(home, spec) / _IDS).read_bytes()
    except OSError:
        return None
    if hashlib.sha256(raw).hexdigest() != receipt.ids_digest:
        return None
    return frozenset(raw[at : at + _ID_BYTES].hex() for at in range(0, len(raw), _ID_BYTES))


def head_copy(home: Path, spec: MemorySpec) -> Path:
    """Return where the small files of the last head are: enough to append to it."""
    return receipt_dir(home, spec) / _COPY


def save(
    home: Path, spec: MemorySpec, receipt: Receipt, *, ids: frozenset[str], copy: Path
) -> None:
    """Keep what a memory holds now.

    Args:
        home: Of this machine's memory.
        spec: The memory.
        receipt: What to keep; gets the digest of the ids.
        ids: Of every row there.
        copy: A memory directory; what is needed to append to it is kept.

    Raises:
        BackendError: kind `disk`.
    """
    folder = receipt_dir(home, spec)
    raw = b"".join(sorted(bytes.fromhex(one) for one in ids))
    receipt.ids_digest = hashlib.sha256(raw).hexdigest()
    part = folder / f"{_COPY}.{os.getpid()}"
    try:
        make_private(folder)
        # The receipt goes first: whatever is cut short leaves none, and the next push asks.
        (folder / _RECEIPT).unlink(missing_ok=True)
        shutil.rmtree(part, ignore_errors=True)
        copy_small(copy, part)
        shutil.rmtree(folder / _COPY, ignore_errors=True)
        part.rename(folder / _COPY)
        _write(folder / _IDS, raw)
        _write(folder / _RECEIPT, msgspec.json.encode(receipt))
    except OSError as exc:
        raise _disk(folder, exc) from exc


def copy_small(source: Path, target: Path) -> None:
    """Copy a memory directory without rows and indexes: what Lance needs to append to it."""
    shutil.copytree(source, target, ignore=_no_rows, symlinks=False)


def _no_rows(folder: str, names: list[str]) -> set[str]:
    if Path(folder).suffix == ".lance":
        return {"data", "_indices"} & set(names)
    return {name for name in names if name not in ("chunks.lance", "sessions.parquet")
            and not _is_inside(folder)}  # fmt: skip


def _is_inside(folder: str) -> bool:
    return any(part.endswith(".lance") for part in Path(folder).parts)


def _write(path: Path, data: bytes) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(path)


def _disk(path: Path, exc: OSError) -> BackendError:
    return BackendError(
        f"Cannot write at {path} ({exc.strerror or exc}).",
        hint="Free some disk space or make it writable.",
        kind="disk",
    )
