"""What a memory elsewhere holds: by its receipt if nothing has changed since, or by its files."""

import string
from pathlib import Path

from msgspec import Struct

from funes_ls.hub import receipts
from funes_ls.hub.reading import readable
from funes_ls.hub.reindex import unindexed_of
from funes_ls.hub.remote import SESSIONS, Head, Progress, Remote
from funes_ls.hub.session_facts import Facts, read_facts
from funes_ls.indexer import dataset as lance
from funes_ls.indexer.dataset import Dataset
from funes_ls.indexer.errors import MemoryStateError

_HEX = frozenset(string.hexdigits.lower())
_ID_CHARS = 16


class Known(Struct, frozen=True, kw_only=True):
    """A memory elsewhere at one of its heads.

    Attributes:
        ids: Of its rows; those that can be no chunk of ours are left out.
        rows: How many there are.
        source: A directory to append to, in which rows may be missing; None for an empty memory.
        facts: Of its sessions.
        unindexed: Rows its indexes do not cover.
        card: Its card where that is known and has our marks.
        sessions: How many sessions there are.
    """

    head: Head
    ids: frozenset[str] = frozenset()
    rows: int = 0
    source: Path | None = None
    facts: Facts
    stamp: str = ""
    dim: int = 0
    unindexed: int = 0
    card: str | None = None
    sessions: int = 0


def known_at(remote: Remote, head: Head, home: Path, *, progress: Progress | None = None) -> Known:
    """Return what a memory holds at a head; asks the network only where no receipt tells it."""
    if head.is_empty:
        return Known(head=head, facts=Facts())
    known = _by_receipt(remote, head, home)
    if known is not None:
        return known
    source = remote.fetched(head, progress=progress)
    return readable(remote.spec, lambda: _by_files(head, source))


def _by_receipt(remote: Remote, head: Head, home: Path) -> Known | None:
    receipt = receipts.read_receipt(home, remote.spec)
    # A commit's id says what it holds; a bucket's version may be that of another dataset by now.
    if receipt is None or receipt.revision != head.revision or remote.spec.kind != "hub":
        return None
    ids = receipts.known_ids(home, remote.spec, receipt)
    source = receipts.head_copy(home, remote.spec)
    found = lance.state(source)
    if ids is None or found.kind != "ok" or found.rows != receipt.rows:
        return None
    return Known(
        head=head,
        ids=ids,
        rows=found.rows,
        source=source,
        facts=read_facts(source / SESSIONS),
        stamp=found.stamp,
        dim=found.dim,
        unindexed=receipt.unindexed,
        card=receipt.card,
        sessions=receipt.all_sessions,
    )


def _by_files(head: Head, source: Path) -> Known:
    dataset = lance.open_dataset(source).at(head.version)
    ids: set[str] = set()
    sessions: set[str] = set()
    for batch in dataset.scan(["id", "session_id"], batch_rows=65_536):
        ids.update(one for one in batch.column("id").to_pylist() if is_chunk_id(one))
        sessions.update(batch.column("session_id").unique().to_pylist())
    return Known(
        head=head,
        ids=frozenset(ids),
        rows=dataset.count(),
        source=source,
        facts=read_facts(source / SESSIONS),
        stamp=dataset.stamp,
        dim=dataset.dim,
        unindexed=unindexed_of(source),
        sessions=len(sessions),
    )


def is_chunk_id(value: object) -> bool:
    """Tell whether a row's id is one that a chunk can have."""
    return isinstance(value, str) and len(value) == _ID_CHARS and _HEX.issuperset(value)


def same_model(known: Known, local: Dataset, memory: str) -> None:
    """Pass a memory whose vectors are of the local memory's model.

    Raises:
        MemoryStateError: kind `wrong_model` or `wrong_width`.
    """
    if known.source is None:
        return
    if known.stamp and local.stamp and known.stamp != local.stamp:
        raise MemoryStateError(
            f"{memory} holds vectors of {known.stamp}, the local memory of {local.stamp}.",
            hint="They do not mix: publish to another memory, or index with its model "
            "(`funes model list`).",
            kind="wrong_model",
        )
    if known.dim != local.dim:
        raise MemoryStateError(
            f"{memory} holds vectors of width {known.dim}, the local memory of {local.dim}.",
            hint="They do not mix: publish to another memory.",
            kind="wrong_width",
        )
