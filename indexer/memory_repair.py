"""Finishes what a killed process left half done, and rebuilds what is derived.

Everything here needs the writer lock. Rows are the truth: a words index or a catalog that does not
fit is made again from them, whether or not the transcripts they came from still exist.
"""

import logging
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from funes_ls.indexer import facts_tables
from funes_ls.indexer.catalog import Catalog, Session
from funes_ls.indexer.dataset import Dataset
from funes_ls.indexer.errors import MemoryStateError
from funes_ls.indexer.lexical import LexicalIndex
from funes_ls.indexer.memory_tokens import TokenStore
from funes_ls.indexer.model import Chunk
from funes_ls.indexer.names import is_scaffolding
from funes_ls.indexer.times import parse_ts

_log = logging.getLogger(__name__)
LEXICAL = "lexical"
_BATCH = 2000
_TITLE_CHARS = 200

Progress = Callable[[str, int, int], None]
Tame = Callable[[Chunk], Chunk]


def as_it_is(row: Chunk) -> Chunk:
    """Return a row of this home, which needs no taming."""
    return row


def note_deletion(catalog: Catalog, dataset: Dataset) -> None:
    """Note that rows have left the dataset with its present version."""
    with catalog.transaction():
        catalog.put("lance_version", dataset.version)
        catalog.put("rows_left_at", dataset.version)
        catalog.bump_generation()


def finish_moves(catalog: Catalog, dataset: Dataset | None) -> None:
    """Settle rows whose append was begun: in the dataset they leave the queue, else they wait."""
    moving = catalog.moving()
    if not moving:
        return
    there = dataset.existing([row.id for row in moving]) if dataset else set()
    with catalog.transaction():
        catalog.finish_moving([row for row in moving if row.id in there])
        catalog.mark_queued([row.id for row in moving if row.id not in there])
        if dataset:
            catalog.put("lance_version", dataset.version)
    _log.info("%d rows were half moved; %d had arrived", len(moving), len(there))


def finish_removals(
    catalog: Catalog,
    dataset: Dataset | None,
    lexical: LexicalIndex,
    tokens: TokenStore | None = None,
) -> None:
    """Take out of dataset, tokens and words what was noted to leave; rows queued since stay."""
    ids = catalog.removals()
    if not ids:
        return
    if tokens is not None:
        tokens.delete(ids)
    if dataset and (there := dataset.existing(ids)):
        dataset.delete_ids(sorted(there))
        note_deletion(catalog, dataset)
    lexical.delete_ids(ids)
    lexical.add(catalog.pending_rows(ids))
    lexical.commit()
    with catalog.transaction():
        catalog.clear_removals()
        catalog.bump_generation()


def adopt(
    catalog: Catalog, dataset: Dataset, *, own: bool, progress: Progress | None = None
) -> bool:
    """Take in a dataset that the catalog does not know as it is; return whether there was cause.

    Sessions are made out from the rows, rows that stand twice are queued again and struck off,
    and the words index is to be rebuilt.
    """
    known = catalog.get("lance_version", 0)
    # None: this program was merging fragments, which changes versions but no rows.
    if known is None or known == dataset.version:
        catalog.put("lance_version", dataset.version)
        return False
    twice = _read_sessions(catalog, dataset, progress)
    with catalog.transaction():
        if own and twice:
            catalog.add_pending(dataset.rows(sorted(twice)))
            catalog.add_removals(twice)
        catalog.put("lexical_id", "")
        note_deletion(catalog, dataset)  # what another program did is not known
    return True


def words(
    catalog: Catalog,
    dataset: Dataset | None,
    place: Path,
    progress: Progress | None = None,
    *,
    tame: Tame = as_it_is,
) -> LexicalIndex:
    """Return the words index with every row in it, rebuilt when it does not fit the catalog."""
    index_id = str(catalog.get("lexical_id", ""))
    try:
        if not index_id:
            raise MemoryStateError("There is no words index yet.", kind="missing")
        lexical = LexicalIndex.open(place / LEXICAL / index_id)
    except MemoryStateError as exc:
        _log.info("the words index is built anew: %s", exc.message)
        return _rebuilt(catalog, dataset, place, progress, tame)
    catch_up(lexical, catalog)
    return lexical


def catch_up(lexical: LexicalIndex, catalog: Catalog) -> None:
    """Add the queued rows that came after the index was last committed."""
    last = int(catalog.get("lexical_upto", 0))
    while True:
        rows, last = catalog.pending_after(last, _BATCH)
        if not rows:
            return
        lexical.add(rows, replace=True)
        lexical.commit()
        with catalog.transaction():
            catalog.put("lexical_upto", last)
            catalog.bump_generation()


def fill(
    lexical: LexicalIndex,
    catalog: Catalog,
    dataset: Dataset | None,
    progress: Progress | None = None,
    *,
    tame: Tame = as_it_is,
) -> None:
    """Add every row there is to an empty index, others' made harmless, and commit."""
    total = (dataset.count() if dataset else 0) + catalog.pending_count()
    done = 0
    for rows in every_row(catalog, dataset):
        done += lexical.add(map(tame, rows))
        if progress:
            progress("words", done, total)
    lexical.commit()


def _rebuilt(
    catalog: Catalog,
    dataset: Dataset | None,
    place: Path,
    progress: Progress | None,
    tame: Tame,
) -> LexicalIndex:
    # A new directory each time: processes that read the old one keep it until they close.
    index_id = uuid.uuid4().hex[:12]
    folder = place / LEXICAL
    lexical = LexicalIndex.create(folder / index_id, index_id=index_id)
    last = catalog.last_number()
    fill(lexical, catalog, dataset, progress, tame=tame)
    with catalog.transaction():
        catalog.put("lexical_id", index_id)
        catalog.put("lexical_upto", last)
        catalog.bump_generation()
    for old in folder.iterdir():
        if old.name != index_id:
            shutil.rmtree(old, ignore_errors=True)
    return lexical


def every_row(catalog: Catalog, dataset: Dataset | None) -> Iterator[list[Chunk]]:
    """Yield rows in batches, each id once, those of the queue before those of the dataset."""
    seen: set[int] = set()

    def fresh(rows: Iterable[Chunk]) -> list[Chunk]:
        chosen = [row for row in rows if hash(row.id) not in seen]
        seen.update(hash(row.id) for row in chosen)
        return list({row.id: row for row in chosen}.values())

    last = 0
    while True:
        rows, last = catalog.pending_after(last, _BATCH)
        if not rows:
            break
        yield fresh(rows)
    for batch in dataset.scan_rows() if dataset else ():
        yield fresh(batch)


class _Seen:
    """What the rows of one session say of it, gathered row by row."""

    def __init__(self, row: Chunk) -> None:
        self.first = row
        self.turns: set[str] = set()
        self.chunks = 0
        self.times: list[int] = []
        self.title = ""
        self.title_at: tuple[int, int, int] | None = None

    def take(self, row: Chunk) -> None:
        self.chunks += 1
        self.turns.add(row.turn_uuid)
        us = parse_ts(row.ts)
        if us is not None:
            self.times = [min([us, *self.times]), max([us, *self.times])]
        at = (row.seq, row.block_idx, row.split_idx)
        if (self.title_at is None or at < self.title_at) and _is_prompt(row):
            self.title, self.title_at = " ".join(row.text.split())[:_TITLE_CHARS], at

    def session(self) -> Session:
        return Session(
            session_id=self.first.session_id,
            harness=self.first.harness,
            workdir=self.first.workdir,
            repo=self.first.repo,
            title=self.title,
            started_us=self.times[0] if self.times else None,
            ended_us=self.times[-1] if self.times else None,
            time_source="recorded" if self.times else "",
            source_path=self.first.source_path,
            subagent=Path(self.first.source_path).stem.startswith("agent-"),
            turns=len(self.turns),
            chunks=self.chunks,
        )


def _is_prompt(row: Chunk) -> bool:
    return row.role == "user" and row.block_type == "text" and not is_scaffolding(row.text)


def gathered(
    batches: Iterable[Sequence[Chunk]], total: int, progress: Progress | None = None
) -> tuple[dict[str, Session], set[str]]:
    """Return the sessions that rows are of, by id, and the ids that more than one row has."""
    seen: dict[str, _Seen] = {}
    ids: set[str] = set()
    twice: set[str] = set()
    done = 0
    for batch in batches:
        for row in batch:
            (twice if row.id in ids else ids).add(row.id)
            seen.setdefault(row.session_id, _Seen(row)).take(row)
        done += len(batch)
        if progress:
            progress("sessions", done, total)
    return {name: one.session() for name, one in seen.items()}, twice


def session_of_rows(rows: Sequence[Chunk]) -> Session:
    """Return what the rows of one session say of it."""
    found, _ = gathered([rows], len(rows))
    return found[rows[0].session_id]


def _read_sessions(catalog: Catalog, dataset: Dataset, progress: Progress | None) -> set[str]:
    """Note the dataset's sessions that the catalog lacks; return ids that more than one row has."""
    found, twice = gathered(dataset.scan_rows(), dataset.count(), progress)
    with catalog.transaction():
        for name, one in found.items():
            if catalog.embedded_count(name) != one.chunks:
                facts_tables.outdate(catalog, name)
        catalog.count_embedded(Counter({name: one.chunks for name, one in found.items()}))
        for name, one in found.items():
            if catalog.session(name) is None:
                catalog.put_session(one)
    return twice
