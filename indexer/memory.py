"""One memory: its dataset, its catalog and its words index, opened and mended."""

import hashlib
import logging
from pathlib import Path

from funes_ls.indexer import dataset as lance
from funes_ls.indexer import memory_repair as repair
from funes_ls.indexer.calls.rebuild import rebuild_steps
from funes_ls.indexer.catalog import Catalog, open_catalog
from funes_ls.indexer.catalog_salvage import open_or_salvage
from funes_ls.indexer.dataset import Dataset
from funes_ls.indexer.errors import BackendError, MemoryStateError
from funes_ls.indexer.facts import has_facts
from funes_ls.indexer.facts_tables import missing
from funes_ls.indexer.home import make_private
from funes_ls.indexer.lexical import LexicalIndex
from funes_ls.indexer.lock import writer_lock
from funes_ls.indexer.memory_pinned import Outcome, is_taken_in, open_pinned, take_in, tamed
from funes_ls.indexer.memory_pinned import Pinned as Pinned
from funes_ls.indexer.memory_read import MemoryState as MemoryState
from funes_ls.indexer.memory_read import MemoryView as MemoryView
from funes_ls.indexer.memory_read import Row as Row
from funes_ls.indexer.memory_repair import Progress
from funes_ls.indexer.memory_tokens import TokenStore
from funes_ls.indexer.memory_write import Memory as Memory

_log = logging.getLogger(__name__)
CATALOG = "catalog.db"
#: How long a reader waits for a writer that is mending what the reader cannot do without.
_PATIENCE_S = 600.0


def open_memory(
    base: Path,
    *,
    derived: Path,
    writable: bool = False,
    progress: Progress | None = None,
    patience_s: float = _PATIENCE_S,
) -> Memory:
    """Return the memory at a place.

    Args:
        base: A home's `memory` directory, a directory that holds `chunks.lance`, or a `.lance`
            directory itself.
        derived: `<home>/derived`: where indexes over memories that are not this home's go.
        writable: The caller holds the home's writer lock and will add rows.
        progress: Told what is being rebuilt (`words`, `sessions`), rows done and rows in all.
        patience_s: How long a reader waits for a writer to mend what it cannot do without.

    Raises:
        MemoryStateError: kind `missing`, `damaged`, `foreign`, `newer_format` or `locked`.
        BackendError: kind `disk`.
    """
    home = derived.parent
    own = base.resolve() == (home / "memory").resolve()
    if writable and not own:
        raise MemoryStateError(
            f"The memory at {base} is not this home's; it is only read.",
            hint="Set FUNES_HOME to the home it belongs to.",
            kind="read_only",
        )
    if writable:
        return _open_for_writing(base, base, own=True, progress=progress)
    if not lance.is_there(base) and not (base / CATALOG).exists():
        raise MemoryStateError(
            f"No memory at {base} yet.", hint="Run `funes index`.", kind="missing"
        )
    if own or (base / CATALOG).exists():
        lock_at, place = (home if own else base.parent), base
    else:
        lock_at = place = derived_place(derived, lance.dataset_path(base))
    return _open_for_reading(
        base, place, lock_at=lock_at, own=own, progress=progress, patience_s=patience_s
    )


def open_snapshot(
    pinned: Pinned, *, progress: Progress | None = None, patience_s: float = _PATIENCE_S
) -> Memory:
    """Return a memory that lies elsewhere, as one snapshot of it has it; it is only read.

    Raises:
        MemoryStateError: kind `missing`, `damaged`, `foreign`, `newer_format` or `locked`.
        BackendError: kind `disk`.
    """
    return _open_for_reading(
        pinned.base,
        pinned.place,
        lock_at=pinned.place,
        own=False,
        progress=progress,
        patience_s=patience_s,
        pinned=pinned,
    )


def take_in_snapshot(pinned: Pinned, *, patience_s: float = _PATIENCE_S) -> bool:
    """Bring what is derived from a memory elsewhere to a newer snapshot of it.

    Returns whether a memory that is open may go on with `Memory.move_to`; else it is opened anew.

    Raises:
        MemoryStateError: see `open_snapshot`.
    """
    with writer_lock(pinned.place, wait_s=patience_s):
        memory, outcome = _opened_for_writing(
            pinned.base, pinned.place, own=False, progress=None, pinned=pinned
        )
        memory.close()
    return outcome == "extended"


def open_for_words(base: Path) -> Memory | None:
    """Return a home's memory for answers by words, a second before `open_memory` can.

    Nothing that reads vectors is imported for it; `Memory.attach_dataset` adds them. None where
    something is to be mended first: `open_memory` sees to it.
    """
    try:
        memory, trouble = _as_it_is(base, base, attached=False)
    except (MemoryStateError, BackendError):
        return None
    if memory is not None and trouble:
        memory.close()
        return None
    return memory


def _open_for_writing(
    base: Path,
    place: Path,
    *,
    own: bool,
    progress: Progress | None,
    pinned: Pinned | None = None,
) -> Memory:
    return _opened_for_writing(base, place, own=own, progress=progress, pinned=pinned)[0]


def _opened_for_writing(
    base: Path, place: Path, *, own: bool, progress: Progress | None, pinned: Pinned | None
) -> tuple[Memory, Outcome]:
    """Return the memory in order, and what came of the snapshot."""
    notes: list[str] = []
    outcome: Outcome = "same"
    try:
        make_private(place)
    except OSError as exc:
        raise _unwritable(place, exc) from exc
    dataset = _dataset(base, pinned)
    catalog = open_or_salvage(place / CATALOG, notes)
    try:
        repair.finish_moves(catalog, dataset)
        if pinned is not None and dataset is not None:
            outcome = take_in(catalog, dataset, pinned, progress=progress)
        elif dataset is not None and repair.adopt(catalog, dataset, own=own, progress=progress):
            _log.info("took in %d rows of %s", dataset.count(), base)
        tame = repair.as_it_is if place == base else tamed
        lexical = repair.words(catalog, dataset, place, progress, tame=tame)
        repair.finish_removals(catalog, dataset if own else None, lexical, TokenStore(base))
    except BaseException:
        catalog.close()
        raise
    memory = Memory(base, catalog=catalog, lexical=lexical, dataset=dataset, writable=True)
    memory.notes += notes
    if place != base:  # nobody writes there at leisure, as an engine does in its own home
        _make_facts(memory, progress)
    return memory, outcome


def _make_facts(memory: Memory, progress: Progress | None) -> None:
    total = memory.catalog.session_count()
    for done, _ in enumerate(rebuild_steps(memory)):
        if progress:
            progress("facts", min(done, total), total)


def _open_for_reading(
    base: Path,
    place: Path,
    *,
    lock_at: Path,
    own: bool,
    progress: Progress | None,
    patience_s: float,
    pinned: Pinned | None = None,
) -> Memory:
    """Open what is there; where something is wrong, mend it first if nobody else writes."""
    memory, trouble = _as_it_is(base, place, pinned=pinned)
    if memory is not None and not trouble:
        return memory
    notes: list[str] = []
    try:
        # Another writer that has the lock mends all this as it opens: what can be read is read
        # as it is, what cannot is waited for.
        with writer_lock(lock_at, wait_s=0.0 if memory is not None else patience_s):
            mended = _open_for_writing(base, place, own=own, progress=progress, pinned=pinned)
            notes += mended.notes
            mended.close()
    except (MemoryStateError, BackendError) as exc:
        impatient = exc.kind == "locked" and memory is None and patience_s < _PATIENCE_S
        if exc.kind not in ("locked", "disk") or impatient:
            raise
        _log.info("%s is not mended now: %s", place, exc.message)
    else:
        if memory is not None:
            memory.close()
        memory, _ = _as_it_is(base, place, pinned=pinned)
    memory = memory or _in_memory(base, place, progress, pinned)
    memory.notes += notes
    return memory


def _as_it_is(
    base: Path, place: Path, *, attached: bool = True, pinned: Pinned | None = None
) -> tuple[Memory | None, bool]:
    """Return the memory unless it cannot be read, and whether it needs mending."""
    dataset = _dataset(base, pinned) if attached else None
    try:
        catalog = open_catalog(place / CATALOG, writable=False)
    except MemoryStateError as exc:
        gone = exc.kind == "missing" and attached and dataset is None
        if exc.kind in ("newer_format", "locked") or gone:
            raise
        return None, True
    try:
        lexical = LexicalIndex.open(place / repair.LEXICAL / str(catalog.get("lexical_id") or "-"))
        trouble = _needs_mending(catalog, dataset) or (place != base and _lacks_facts(catalog))
        trouble = trouble or (pinned is not None and not is_taken_in(catalog, pinned))
    except MemoryStateError:
        catalog.close()
        return None, True
    memory = Memory(
        base, catalog=catalog, lexical=lexical, dataset=dataset, writable=False, attached=attached
    )
    return memory, trouble


def _needs_mending(catalog: Catalog, dataset: Dataset | None) -> bool:
    version = catalog.get("lance_version", 0)
    return (
        (dataset is not None and version is not None and version != dataset.version)
        or int(catalog.get("lexical_upto", 0)) < catalog.last_number()
        or catalog.is_half_done()
    )


def _lacks_facts(catalog: Catalog) -> bool:
    return not has_facts(catalog) or bool(missing(catalog, 1))


def _in_memory(base: Path, place: Path, progress: Progress | None, pinned: Pinned | None) -> Memory:
    """Return the memory with a words index that is gone at the end; for read-only disks."""
    dataset = _dataset(base, pinned)
    try:
        catalog = open_catalog(place / CATALOG, writable=False)
    except MemoryStateError:
        catalog = open_catalog(None)
        if dataset is not None:
            repair.adopt(catalog, dataset, own=False, progress=progress)
    lexical = LexicalIndex.create(None, index_id="memory")
    repair.fill(lexical, catalog, dataset, progress, tame=tamed)
    lexical.close()
    memory = Memory(base, catalog=catalog, lexical=lexical, dataset=dataset, writable=False)
    memory.notes.append(
        "The words index could not be kept on disk, so it was built for this call only."
    )
    return memory


def _dataset(base: Path, pinned: Pinned | None = None) -> Dataset | None:
    if pinned is not None:
        return open_pinned(pinned)
    return lance.open_dataset(base) if lance.is_there(base) else None


def _unwritable(place: Path, exc: OSError) -> BackendError:
    return BackendError(
        f"Cannot write under {place} ({exc.strerror or exc}).",
        hint="Make it writable, or set FUNES_HOME to a directory that is.",
        kind="disk",
    )


def derived_place(derived: Path, path: Path) -> Path:
    """Return where, under `<home>/derived`, the indexes over a dataset without its own are."""
    name = str(path.resolve()).encode("utf-8", "surrogateescape")
    return derived / hashlib.sha256(name).hexdigest()[:16]
