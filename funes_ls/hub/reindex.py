"""Has the indexes of a memory elsewhere cover all its rows, as a commit of its own."""

from pathlib import Path

from msgspec import Struct

from funes_ls.hub import push_copy, receipts
from funes_ls.hub.push_copy import WorkingCopy
from funes_ls.hub.remote import Change, Head, HeadMoved, Remote
from funes_ls.indexer.dataset_shared import SharedDataset

#: Rows without an index from which a commit of its own is worth its bytes.
REINDEX_FROM = 500
_MOST_TRIES = 10


class Reindexed(Struct, frozen=True, kw_only=True):
    """A commit that only indexes."""

    head: Head
    uploaded_bytes: int


def unindexed_of(base: Path) -> int:
    """Return how many rows of a whole memory directory its indexes do not cover."""
    return SharedDataset(base).unindexed()


def unindexed_rows(copy: WorkingCopy) -> int:
    """Return the same of a working copy that is whole."""
    return unindexed_of(copy.base)


def reindexed(remote: Remote, home: Path) -> Reindexed | None:
    """Index all rows over there; None where others were faster each time.

    It is only for speed over there: who was faster has more to index, and does.
    """
    spec = remote.spec
    with push_copy.new_copy(home, spec) as folder:
        for _ in range(_MOST_TRIES):
            head = remote.head()
            try:
                source = remote.fetched(head)
            except HeadMoved:
                continue
            copy = push_copy.to_rewrite(source, folder, version=head.version)
            dataset = SharedDataset(copy.base)
            dataset.index()
            if spec.kind == "hub":  # who reads it reads one commit; of a bucket, the files there
                dataset.keep_newest()
            add = copy.added(spec)
            change = Change(add=add, delete=copy.deleted(spec), message="Index all chunks")
            try:
                after = remote.commit(change, parent=head)
            except HeadMoved:
                continue
            _note(home, remote, before=head, after=after, copy=copy)
            size = sum(path.stat().st_size for path in add.values() if isinstance(path, Path))
            return Reindexed(head=after, uploaded_bytes=size)
    return None


def _note(home: Path, remote: Remote, *, before: Head, after: Head, copy: WorkingCopy) -> None:
    """Bring the receipt up to the new head where it was of the one before."""
    receipt = receipts.read_receipt(home, remote.spec)
    if receipt is None or receipt.revision != before.revision:
        return
    ids = receipts.known_ids(home, remote.spec, receipt)
    if ids is None:
        return
    receipt.revision, receipt.unindexed = after.revision, unindexed_rows(copy)
    receipts.save(home, remote.spec, receipt, ids=ids, copy=copy.base)
