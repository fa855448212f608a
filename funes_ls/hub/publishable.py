"""Which rows of the local memory may leave: chosen, new elsewhere, and passed by the gate."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from funes_ls.gate.check import Block, GateReport, check, digest
from funes_ls.gate.rows import allowed_rows, blocks_to_check
from funes_ls.hub.decisions import Choice
from funes_ls.hub.folding import folded, folded_path
from funes_ls.hub.session_facts import TEXTS, SessionFact, fact_of
from funes_ls.indexer.blocks import StoredBlock, blocks_of_rows
from funes_ls.indexer.catalog import Session
from funes_ls.indexer.dataset import ROW_COLUMNS
from funes_ls.indexer.memory import MemoryView, Row
from funes_ls.indexer.model import Chunk

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows that are read with their vectors at a time.
_PAGE_ROWS = 2048
_SCAN_ROWS = 65_536
_NULLABLE = ("parent_uuid", "tool_name")
_INTEGERS = ("seq", "block_idx", "split_idx")

Told = Callable[[int, int], None]
Cancelled = Callable[[], bool]


class BlockShare(Struct, frozen=True, kw_only=True):
    """A block that would leave.

    Attributes:
        id: Of its first chunk.
        passages: Chunks of it that the other side lacks.
        size_bytes: Of their texts.
        text: Whole, as it stands there afterwards; only where it was asked for.
    """

    id: str
    turn_uuid: str
    block_type: str
    tool_name: str | None
    passages: int
    size_bytes: int
    text: str | None = None


class SessionShare(Struct, kw_only=True):
    """A session of which something would leave."""

    session_id: str
    title: str = ""
    harness: str = ""
    repo: str = ""
    workdir: str = ""
    blocks: int = 0
    passages: int = 0
    size_bytes: int = 0
    shares: list[BlockShare] = []


class Offer(Struct, kw_only=True):
    """What may leave.

    Attributes:
        rows: Id -> digest of every string of the row as it would leave.
        offsets: Id -> place of the row in the dataset.
        sessions: By session, in the order they were looked at.
        facts: What is told of these sessions.
        withheld: In how many blocks each rule found something.
        withheld_blocks: How many of the blocks stay because of them, `withheld_rows` of rows.
        own: Blocks the user keeps back.
        naming_home: Blocks that leave with the name of the user's home in what was said.
    """

    rows: dict[str, bytes] = {}
    offsets: dict[str, int] = {}
    sessions: dict[str, SessionShare] = {}
    facts: dict[str, SessionFact] = {}
    withheld: dict[str, int] = {}
    withheld_blocks: int = 0
    withheld_rows: int = 0
    own: int = 0
    naming_home: int = 0

    @property
    def size_bytes(self) -> int:
        """Return how many bytes of text would leave."""
        return sum(one.size_bytes for one in self.sessions.values())


class Fresh(Struct, kw_only=True):
    """Rows that the other side lacks.

    Attributes:
        by_session: Session -> ids.
        offsets: Id -> place in the dataset.
        known: Ids the other side has.
        shared: How many of our rows are among them.
    """

    by_session: dict[str, set[str]] = {}
    offsets: dict[str, int] = {}
    known: frozenset[str] = frozenset()
    shared: int = 0


class _Said:
    """What a session's blocks say: those that leave or are there, and those that stay.

    A title is a piece of a prompt, or tells of all of them. Where blocks are kept back it goes only
    if it stands in one that is not.
    """

    def __init__(self) -> None:
        self._there: list[str] = []
        self._waiting: list[str] = []
        self._is_some_kept = False

    def note(self, block: StoredBlock, *, goes: bool) -> None:
        if goes:
            self._there.append(block.text)
        else:
            self._is_some_kept = True

    def note_waiting(self, block: StoredBlock) -> None:
        self._waiting.append(block.text)

    def lets(self, title: str) -> bool:
        if _stands_in(title, self._there):
            return True
        return not self._is_some_kept and not _stands_in(title, self._waiting)


def _stands_in(title: str, texts: Iterable[str]) -> bool:
    return any(title in " ".join(text.split()) for text in texts)


def fresh_rows(view: MemoryView, known: frozenset[str], going: set[str]) -> Fresh:
    """Return rows with a vector that are not known on the other side, of sessions that may go."""
    found = Fresh(known=known)
    if view.dataset is None:
        return found
    at = 0
    for batch in view.dataset.scan(["id", "session_id"], batch_rows=_SCAN_ROWS):
        ids, names = batch.column("id").to_pylist(), batch.column("session_id").to_pylist()
        for row_id, name in zip(ids, names, strict=True):
            if row_id in known:
                found.shared += 1
            elif name in going:
                found.by_session.setdefault(name, set()).add(row_id)
                found.offsets[row_id] = at
            at += 1
    return found


def offered(
    view: MemoryView,
    fresh: Fresh,
    *,
    withheld: set[str],
    told: Told = lambda _done, _total: None,
    cancelled: Cancelled = lambda: False,
    texts: bool = False,
) -> Offer:
    """Ask the gate of every string that would leave, and return what may.

    Args:
        view: Of the local memory.
        fresh: Rows the other side lacks.
        withheld: Blocks, by first chunk, that the user keeps back.
        told: How many rows have been looked at, of how many.
        cancelled: Asked now and then.
        texts: Whether each block's text is wanted, for a person to read.

    Raises:
        GateError: nobody can say what is clean.
        FunesError: kind `cancelled`.
    """
    sessions = {one.session_id: one for one in view.catalog.sessions()
                if one.session_id in fresh.by_session}  # fmt: skip
    facts = {name: _fact(one) for name, one in sessions.items()}
    total = len(fresh.offsets)
    report = check(
        _strings(view, fresh, facts, withheld, lambda done: told(done, total)),
        cancelled=cancelled,
    )
    made = Offer()
    for name in fresh.by_session:
        said = _Said()
        share = _shared(view, name, fresh, report, made, withheld, said, texts=texts)
        if not share.passages:
            continue
        if fact := facts.get(name):
            fact = _passed(fact, report)
            made.facts[name] = fact = fact if said.lets(fact.title) else replace(fact, title="")
            share.title, share.harness, share.repo = fact.title, fact.harness, fact.repo
            share.workdir = fact.workdir
        made.sessions[name] = share
    made.offsets = {one: fresh.offsets[one] for one in made.rows}
    return made


def leaving_rows(
    view: MemoryView, offer: Offer, *, schema: "pa.Schema", known: frozenset[str]
) -> "Iterator[pa.RecordBatch]":
    """Yield rows as they leave, with their vectors: exactly those that the gate has passed.

    A row whose strings are not to the letter those that were passed stays.

    Args:
        view: The one that was offered of.
        offer: What may leave.
        schema: Columns of the other side.
        known: Rows the other side has by now.
    """
    dataset = view.dataset
    wanted = sorted((at, one) for one, at in offer.offsets.items() if one not in known)
    if dataset is None:
        return
    for start in range(0, len(wanted), _PAGE_ROWS):
        page = wanted[start : start + _PAGE_ROWS]
        columns = [*ROW_COLUMNS, "vector"]
        batch = _leaving(dataset.take([at for at, _ in page], columns), offer, schema)
        if len(batch):
            yield batch


def noted(rows: "Iterable[pa.RecordBatch]", ids: set[str]) -> "Iterator[pa.RecordBatch]":
    """Yield rows as they come, and note their ids."""
    for batch in rows:
        ids.update(batch.column("id").to_pylist())
        yield batch


def row_digest(row: Chunk) -> bytes:
    """Return what tells a row's strings from any others."""
    values = [getattr(row, name) for name in ROW_COLUMNS]
    return hashlib.sha256(msgspec.msgpack.encode(values)).digest()


def _leaving(table: "pa.Table", offer: Offer, schema: "pa.Schema") -> "pa.RecordBatch":
    import pyarrow as pa

    rows = [_chunk(values) for values in table.drop_columns(["vector"]).to_pylist()]
    kept = [at for at, row in enumerate(rows) if offer.rows.get(row.id) == row_digest(row)]
    vectors = table["vector"].take(pa.array(kept, type=pa.int64())).combine_chunks()
    arrays: list[Any] = []
    for field in schema:
        if field.name == "vector":
            arrays.append(vectors.cast(field.type))
        else:
            values = [getattr(rows[at], field.name, None) for at in kept]
            arrays.append(pa.array(values, type=field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _chunk(values: dict[str, Any]) -> Chunk:
    for name in ROW_COLUMNS:
        if values.get(name) is None and name not in _NULLABLE:
            values[name] = 0 if name in _INTEGERS else ""
    return folded(Chunk(**values))


def _strings(
    view: MemoryView,
    fresh: Fresh,
    facts: Mapping[str, SessionFact],
    withheld: set[str],
    told: Callable[[int], None],
) -> Iterator[Block]:
    done = 0
    for name, ids in fresh.by_session.items():
        yield from blocks_to_check(
            block
            for block in _blocks(view, name)
            if block.key not in withheld and any(row.id in ids for row in block.rows)
        )
        if name in facts:
            yield from _fact_blocks(facts[name])
        done += len(ids)
        told(done)


def _blocks(view: MemoryView, session_id: str) -> Iterator[StoredBlock]:
    """Yield the whole blocks of a session as they would leave."""
    rows: Iterable[Row] = view.session_rows(session_id)
    yield from blocks_of_rows([folded(row) for row in rows])


def _shared(
    view: MemoryView,
    session_id: str,
    fresh: Fresh,
    report: GateReport,
    made: Offer,
    withheld: set[str],
    said: _Said,
    *,
    texts: bool,
) -> SessionShare:
    share = SessionShare(session_id=session_id)
    ids = fresh.by_session[session_id]
    for block in _blocks(view, session_id):
        new = [row for row in block.rows if row.id in ids]
        if block.key in withheld:
            said.note(block, goes=False)
            made.own += bool(new)
            continue
        if not new:
            if all(row.id in fresh.known for row in block.rows):
                said.note(block, goes=True)
            else:  # for its vectors
                said.note_waiting(block)
            continue
        allowed = {row.id for row in allowed_rows(block, report)}
        going = [row for row in new if row.id in allowed]
        said.note(block, goes=bool(going))
        if not going:
            _count_withheld(block, report, made, len(new))
            continue
        made.rows.update((row.id, row_digest(row)) for row in going)
        size = sum(len(row.text.encode()) for row in going)
        made.naming_home += _names_home(block.text)
        share.blocks += 1
        share.passages += len(going)
        share.size_bytes += size
        first = block.rows[0]
        share.shares.append(
            BlockShare(
                id=block.key,
                turn_uuid=first.turn_uuid,
                block_type=first.block_type,
                tool_name=first.tool_name,
                passages=len(going),
                size_bytes=size,
                text=block.text if texts else None,
            )
        )
    return share


def _names_home(text: str) -> bool:
    """Tell whether a text holds the path of the user's home, where that says who it is."""
    home = Path.home()
    return len(home.parts) > 2 and str(home) in text


def _count_withheld(block: StoredBlock, report: GateReport, made: Offer, rows: int) -> None:
    made.withheld_blocks += 1
    made.withheld_rows += rows
    rules = {rule for one in blocks_to_check([block]) for rule in report.withheld.get(one.key, ())}
    for rule in rules or {"not-rebuilt"}:
        made.withheld[rule] = made.withheld.get(rule, 0) + 1


def _fact(session: Session) -> SessionFact:
    paths = Chunk(
        id="", text="", session_id="", workdir=session.workdir, turn_uuid="", parent_uuid=None,
        seq=0, ts="", role="", block_type="", tool_name=None,
        source_path=session.source_path, block_idx=0, split_idx=0, harness="",
    )  # fmt: skip
    made = fact_of(session, cwd=folded_path(session.cwd), workdir=folded(paths).workdir)
    return replace(made, started_us=session.started_us)


def _fact_key(fact: SessionFact, field: str) -> str:
    return f"fact:{digest(fact.session_id)[:16]}:{field}"


def _fact_blocks(fact: SessionFact) -> Iterator[Block]:
    for field in TEXTS:
        if value := getattr(fact, field):
            yield Block(_fact_key(fact, field), value)


def _passed(fact: SessionFact, report: GateReport) -> SessionFact:
    """Return what is told of a session without the texts that did not pass."""
    dirty = {
        field: ""
        for field in TEXTS
        if (value := getattr(fact, field)) and not report.allows(_fact_key(fact, field), value)
    }
    if "cwd" in dirty:  # it is named after it
        dirty["workdir"] = ""
    return replace(fact, **dirty)


def waiting_rows(view: MemoryView, chosen: Choice) -> int:
    """Return how many rows of sessions that may go have no vector yet."""
    counts = view.catalog.select("SELECT session_id, count(*) FROM pending GROUP BY session_id")
    return sum(int(count) for name, count in counts if name in chosen.going)
