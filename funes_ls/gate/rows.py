"""Every string of rows that would leave, as blocks for the gate, and which rows it then allows."""

import re
from collections.abc import Iterable, Iterator, Sequence

from funes_ls.gate.check import Block, GateReport, digest
from funes_ls.indexer.blocks import StoredBlock
from funes_ls.indexer.model import Chunk
from funes_ls.indexer.names import BLOCK_TYPES, HARNESSES

#: Columns of text beside a block's own; each value is a block by itself.
DETAILS = (
    "session_id",
    "workdir",
    "turn_uuid",
    "parent_uuid",
    "ts",
    "role",
    "block_type",
    "tool_name",
    "source_path",
    "harness",
    "repo",
)
#: Columns with folders that harnesses name after a path, with a dash for the `_` of a token; it has
#: one to three of them.
_MUNGED = ("workdir", "source_path")
_RUNS = (2, 3, 4)
#: Values that need no scanner: ids as they are made, times, the product's own words.
_PLAIN = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\dT[\d:.]{5,15}(?:Z|[+-]\d\d:?\d\d)?|user|assistant"
)
_WORDS = {*BLOCK_TYPES, *HARNESSES, ""}
_CHUNK_ID = re.compile(r"[0-9a-f]{16}")


def blocks_to_check(stored: Iterable[StoredBlock]) -> Iterator[Block]:
    """Yield the texts of stored blocks, and every other string of their rows once."""
    seen: set[str] = set()
    for block in stored:
        yield Block(block.key, block.text)
        for detail in _details(block.rows):
            if detail.key not in seen:
                seen.add(detail.key)
                yield detail


def allowed_rows(block: StoredBlock, report: GateReport) -> tuple[Chunk, ...]:
    """Return the rows of a block that may leave: all, when every string of them passed, or none."""
    whole = report.allows(block.key, block.text)
    if not whole or not all(row.text in block.text for row in block.rows):
        return ()
    if not all(_CHUNK_ID.fullmatch(row.id) for row in block.rows):
        return ()
    passed = all(report.allows(detail.key, detail.text) for detail in _details(block.rows))
    return block.rows if passed else ()


def _details(rows: Sequence[Chunk]) -> Iterator[Block]:
    seen: set[tuple[str, str]] = set()
    for row in rows:
        for field in DETAILS:
            value = getattr(row, field)
            if value is None or value in _WORDS or (field, value) in seen:
                continue
            seen.add((field, value))
            if not _PLAIN.fullmatch(value):
                yield Block(f"{field}:{digest(value)[:16]}", _unhidden(field, value))


def _unhidden(field: str, value: str) -> str:
    """Return a value and, where a folder is named after a path, what may have stood in that."""
    if field not in _MUNGED:
        return value
    parts = value.split("-")
    runs = (parts[at : at + n] for n in _RUNS for at in range(len(parts) - n + 1))
    return "\n".join([value, *map("_".join, runs)])
