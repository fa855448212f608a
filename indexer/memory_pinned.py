"""Takes in snapshots of a memory that lies elsewhere: what is derived from one serves the next.

Rows that a newer snapshot adds behind those of the one before are all that is read and indexed;
where anything else changed, everything is derived anew. The rows are somebody else's: they are
made harmless before anything is kept of them.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from funes_ls.indexer import dataset as lance
from funes_ls.indexer import facts_tables
from funes_ls.indexer import memory_repair as repair
from funes_ls.indexer.catalog import Catalog, Session
from funes_ls.indexer.dataset import Dataset
from funes_ls.indexer.errors import MemoryStateError
from funes_ls.indexer.lexical import LexicalIndex
from funes_ls.indexer.model import Chunk

_log = logging.getLogger(__name__)
Outcome = Literal["same", "extended", "anew"]

#: A chunk has 1,200 characters; what is far longer was not made by any program of this kind.
_MOST_TEXT, _MOST_NAME = 20_000, 1_000
_MOST_NUMBER = 2**53
_NAMES = ("id", "session_id", "workdir", "turn_uuid", "parent_uuid", "ts", "role", "block_type",
          "tool_name", "source_path", "harness", "repo")  # fmt: skip
_NUMBERS = ("seq", "block_idx", "split_idx")
#: What may be told of a session beside its rows.
_TOLD = ("harness", "cwd", "workdir", "repo", "branch", "title", "started_us", "ended_us",
         "time_source", "parent_id", "link", "inner_id", "subagent")  # fmt: skip
_REVISION, _ROWS, _DIGEST = "pinned_revision", "pinned_rows", "pinned_digest"

Told = Mapping[str, Mapping[str, Any]]
#: Notes in a catalog, as a part of one change, what was done.
Note = Callable[[], None]


def nothing_told() -> Told:
    """Return what is told of sessions where nothing is."""
    return {}


class Pinned(Struct, frozen=True, kw_only=True):
    """A snapshot of a memory that lies elsewhere.

    Attributes:
        base: Directory that holds its dataset; never written to.
        place: Where what is derived from it is kept, the same for every snapshot of the memory.
        revision: Which snapshot it is.
        version: Of its dataset; None for the newest there is. Others may have written behind it.
        told: Returns what is said of its sessions, by session id and field of `Session`.
    """

    base: Path
    place: Path
    revision: str
    version: int | None = None
    told: Callable[[], Told] = nothing_told


def open_pinned(pinned: Pinned) -> Dataset:
    """Return the dataset of a snapshot.

    Raises:
        MemoryStateError: kind `missing`, `damaged` or `foreign`.
    """
    try:
        return lance.open_dataset(pinned.base, version=pinned.version)
    except MemoryStateError as exc:
        if exc.kind != "damaged":
            raise
        raise MemoryStateError(
            exc.message, hint="Remove that folder; it is fetched again.", kind="damaged"
        ) from exc


def is_taken_in(catalog: Catalog, pinned: Pinned) -> bool:
    """Return whether a snapshot is the one that was taken in last."""
    return bool(catalog.get(_REVISION, "") == pinned.revision)


def take_in(
    catalog: Catalog,
    dataset: Dataset,
    pinned: Pinned,
    *,
    progress: repair.Progress | None = None,
) -> Outcome:
    """Bring catalog and words to a snapshot, for who holds the lock of its place.

    Returns `extended` when rows were only added behind those of the snapshot before, which what is
    open may then be too, and `anew` when words are still to be indexed and nothing open fits.
    """
    if is_taken_in(catalog, pinned):
        return "same"
    rows, digest, total = _fingerprint(dataset, int(catalog.get(_ROWS, -1)))
    grown = rows is not None and rows == catalog.get(_DIGEST)
    note = _extended(catalog, dataset, pinned) if grown else None
    outcome: Outcome = "extended" if note is not None else "anew"
    note = note or _anew(catalog, dataset, pinned, progress)
    with catalog.transaction():
        note()
        catalog.put("lance_version", dataset.version)
        if outcome == "anew":
            catalog.put("rows_left_at", dataset.version)
        catalog.put(_REVISION, pinned.revision)
        catalog.put(_ROWS, total)
        catalog.put(_DIGEST, digest)
        catalog.bump_generation()
    return outcome


def _fingerprint(dataset: Dataset, known: int) -> tuple[str | None, str, int]:
    """Return what stands for the first rows, None for fewer than those; for all rows; the count."""
    running, count = hashlib.blake2b(digest_size=20), 0
    at_known = running.hexdigest() if known == 0 else None
    for batch in dataset.scan(("id", "text")):
        ids, texts = batch.column("id").to_pylist(), batch.column("text").to_pylist()
        for id_, text in zip(ids, texts, strict=True):
            running.update(f"{id_}\0{text}\0".encode("utf-8", "replace"))
            count += 1
            if count == known:
                at_known = running.hexdigest()
    return at_known, running.hexdigest(), count


def _extended(catalog: Catalog, dataset: Dataset, pinned: Pinned) -> Note | None:
    """Index the rows behind those that are known; None where the words index is not there.

    It may be done twice: what is returned notes it, in one change with all else.
    """
    first = int(catalog.get(_ROWS, 0))
    index_id = str(catalog.get("lexical_id") or "-")
    try:
        lexical = LexicalIndex.open(pinned.place / repair.LEXICAL / index_id)
    except MemoryStateError:
        return None
    fresh: Counter[str] = Counter()
    try:
        for rows in tamed_rows(dataset, first=first):
            lexical.add(rows, replace=True)
            fresh.update(row.session_id for row in rows)
        lexical.commit()
    finally:
        lexical.close()
    told = pinned.told()
    grown = {name: [tamed(row) for row in dataset.session_rows(name)] for name in fresh}

    def note() -> None:
        catalog.add_embedded(fresh)
        for name, rows in grown.items():
            facts_tables.outdate(catalog, name)
            if rows:
                catalog.put_session(with_told(repair.session_of_rows(rows), told))
        for session in catalog.sessions():
            better = with_told(session, told)
            if session.session_id not in fresh and better != session:
                catalog.put_session(better)
        _log.info("%d rows were added to %s", fresh.total(), pinned.place.name)

    return note


def _anew(
    catalog: Catalog, dataset: Dataset, pinned: Pinned, progress: repair.Progress | None
) -> Note:
    """Look through every row, and return what notes it; the words are to be indexed after that."""
    found, _ = repair.gathered(tamed_rows(dataset), dataset.count(), progress)
    told = pinned.told()

    def note() -> None:
        for session in catalog.sessions():
            facts_tables.outdate(catalog, session.session_id)
            if session.session_id not in found:
                facts_tables.forget(catalog, session.session_id)
                catalog.forget_session(session.session_id)
        catalog.count_embedded(Counter({name: one.chunks for name, one in found.items()}))
        for one in found.values():
            catalog.put_session(with_told(one, told))
        catalog.put("lexical_id", "")
        _log.info("%s is taken in: %d sessions", pinned.place.name, len(found))

    return note


def with_told(session: Session, told: Told) -> Session:
    """Return a session with what is told of it beside its rows, made harmless."""
    said = told.get(session.session_id)
    if not said:
        return session
    now = asdict(session)
    better = {
        name: _named(value) if isinstance(value, str) else value
        for name, value in said.items()
        if name in _TOLD and value and isinstance(value, type(now[name]) if now[name] else object)
    }
    times = {name: better.get(name) for name in ("started_us", "ended_us")}
    for name, value in times.items():
        if value is not None and (not isinstance(value, int) or abs(value) > _MOST_NUMBER):
            del better[name]
    return replace(session, **better)


def tamed_rows(dataset: Dataset, *, first: int = 0) -> Iterator[list[Chunk]]:
    """Give the rows from one on, in batches, made harmless.

    Raises:
        MemoryStateError: kind `damaged`: files of it are missing, or not what they should be.
    """
    passed = 0
    with told_if_damaged():
        for rows in dataset.scan_rows():
            start = max(0, first - passed)
            passed += len(rows)
            if start < len(rows):
                yield [tamed(row) for row in rows[start:]]


@contextmanager
def told_if_damaged() -> Iterator[None]:
    """Tell what lancedb and Arrow raise over files of others in words of ours.

    Raises:
        MemoryStateError: kind `damaged`.
    """
    try:
        yield
    except (OSError, ValueError, RuntimeError) as exc:
        raise MemoryStateError(
            "The dataset cannot be read: it is incomplete or damaged.",
            hint="Whoever publishes it can push it anew.",
            kind="damaged",
        ) from exc


def tamed(row: Chunk) -> Chunk:
    """Return a row of somebody else's whose names are one short line and whose text is no flood."""
    changed: dict[str, Any] = {}
    for name in _NAMES:
        value = getattr(row, name)
        if value and (len(value) > _MOST_NAME or not value.isprintable()):
            changed[name] = _named(value)
    if len(row.text) > _MOST_TEXT:
        changed["text"] = f"{row.text[:_MOST_TEXT]}…"
    for name in _NUMBERS:
        if not 0 <= getattr(row, name) <= _MOST_NUMBER:
            changed[name] = 0
    return replace(row, **changed) if changed else row


def _named(value: str) -> str:
    short = value[:_MOST_NAME]
    if short.isprintable():
        return short
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in short)
