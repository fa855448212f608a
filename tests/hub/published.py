"""Memories as the reference program publishes them, and what it asks of one it is to read.

Written from the description of the format, with none of the product's own code: what both sides
took from one place would prove nothing.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.index import FTS, IvfPq

INTEGERS = ("seq", "block_idx", "split_idx")
# fmt: off
ORDER = (
    "id", "text", "session_id", "workdir", "turn_uuid", "parent_uuid", "seq", "ts", "role",
    "block_type", "tool_name", "source_path", "block_idx", "split_idx", "vector", "harness", "repo",
)
# fmt: on
#: What memories made before these columns existed do not have.
LATER = ("harness", "repo")
MAY_BE_NULL = ("parent_uuid", "tool_name")
REFERENCE_STAMP = "BAAI/bge-small-en-v1.5"
WIDTH = 384
#: Below so many rows the reference makes no index of the vectors.
INDEXED_FROM = 256

Encode = Callable[[Sequence[str]], Any]


def chunk_id(session: str, turn: str, block: int = 0, split: int = 0) -> str:
    """Return the id a chunk has in every memory."""
    name = f"{session}:{turn}:{block}:{split}"
    return hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:16]


def row(session: str, seq: int, text: str, **more: Any) -> dict[str, Any]:
    """Return a row as the reference stores one; its turn is `<session>-<seq>`."""
    made: dict[str, Any] = {
        "text": text,
        "session_id": session,
        "workdir": "-work-demo",
        "turn_uuid": f"{session}-{seq}",
        "parent_uuid": f"{session}-{seq - 1}" if seq else None,
        "seq": seq,
        "ts": f"2026-03-02T10:{seq // 60 % 60:02d}:{seq % 60:02d}.000Z",
        "role": "assistant" if seq % 2 else "user",
        "block_type": "text",
        "tool_name": None,
        "source_path": f"/srv/demo/{session}.jsonl",
        "block_idx": 0,
        "split_idx": 0,
        "harness": "claude_code",
        "repo": "acme/demo",
        **more,
    }
    id_ = chunk_id(session, made["turn_uuid"], made["block_idx"], made["split_idx"])
    return {"id": id_, **made}


def talk(session: str, count: int, *, about: str = "kettles") -> list[dict[str, Any]]:
    """Return rows of one session: words, a call and its answer, again and again."""
    rows = []
    for seq in range(count):
        words = f"Note {seq} of {session} on {about}: turn the valve {seq * 7} degrees."
        kind = ("text", "text", "tool_use", "tool_result")[seq % 4]
        more: dict[str, Any] = {"block_type": kind}
        if kind == "tool_use":
            words = f'[tool_use Bash] {{"command":"make {about} STEP={seq}"}}'
        if kind == "tool_result":
            words = f"[tool_result Bash] made {about}, step {seq}"
        if kind != "text":
            more["tool_name"] = "Bash"
        if kind == "tool_result":
            more["role"] = "user"
        rows.append(row(session, seq, words, **more))
    return rows


def schema(*, stamp: str = REFERENCE_STAMP, without: Sequence[str] = ()) -> pa.Schema:
    """Return the columns, in order, each nullable; an empty stamp is a memory before stamps."""
    fields = []
    for name in ORDER:
        kind = pa.int64() if name in INTEGERS else pa.utf8()
        if name == "vector":
            kind = pa.list_(pa.field("item", pa.float32(), nullable=True), WIDTH)
        if name not in without:
            fields.append(pa.field(name, kind, nullable=True))
    return pa.schema(fields, metadata={"embedding_model": stamp} if stamp else None)


def publish(
    base: Path,
    rows: Sequence[dict[str, Any]],
    encode: Encode,
    *,
    stamp: str = REFERENCE_STAMP,
    without: Sequence[str] = (),
    indexed: bool = True,
) -> Path:
    """Write `<base>/chunks.lance` as the reference does and return the base.

    Args:
        base: Folder of the memory.
        rows: From `row` or `talk`.
        encode: Gives (n, 384) float32 of texts.
        stamp: Model the vectors are said to be of.
        without: Columns an older memory lacks.
        indexed: Make the indexes it makes: words, and vectors where there are enough.
    """
    columns = schema(stamp=stamp, without=without)
    base.mkdir(parents=True, exist_ok=True)
    data = as_table(rows, encode, columns)
    table = lancedb.connect(base).create_table("chunks", data=data, schema=columns)
    if indexed:
        table.create_index("text", config=FTS())
        if len(rows) >= INDEXED_FROM:
            pq = IvfPq(distance_type="l2", num_partitions=4, num_sub_vectors=WIDTH // 16)
            table.create_index("vector", config=pq)
    return base


def extend(base: Path, rows: Sequence[dict[str, Any]], encode: Encode) -> None:
    """Append rows as a later push of the reference does; the indexes stay as they are."""
    table = lancedb.connect(base).open_table("chunks")
    table.add(as_table(rows, encode, table.schema))


def as_table(rows: Sequence[dict[str, Any]], encode: Encode, columns: pa.Schema) -> pa.Table:
    """Return rows with their vectors."""
    given = [{name: one.get(name) for name in columns.names} for one in rows]
    vectors = np.asarray(encode([one["text"] for one in rows]), np.float32)
    for one, vector in zip(given, vectors, strict=True):
        one["vector"] = vector.tolist()
    return pa.Table.from_pylist(given, schema=columns)


def faults(base: Path, *, stamp: str) -> list[str]:
    """Return why the reference could not use what lies at a place as it uses its own."""
    table = lancedb.connect(base).open_table("chunks")
    found = table.schema
    wanted = schema(stamp=stamp)
    told = []
    if tuple(found.names) != ORDER:
        told.append(f"columns {found.names}")
    for name in set(found.names) & set(wanted.names):
        if not found.field(name).equals(wanted.field(name)):
            told.append(f"{name} is {found.field(name)}")
    if found.metadata != wanted.metadata:
        told.append(f"metadata {found.metadata}")
    return told or _wrong_rows(table.to_arrow())


def _wrong_rows(rows: pa.Table) -> list[str]:
    told = [
        f"{name} is null somewhere"
        for name in rows.schema.names
        if name not in MAY_BE_NULL and rows.column(name).null_count
    ]
    ids = rows.column("id").to_pylist()
    if len(set(ids)) != len(ids):
        told.append("ids repeat")
    if told:
        return told
    for one in rows.drop_columns(["vector"]).to_pylist():
        names = (one["session_id"], one["turn_uuid"], one["block_idx"], one["split_idx"])
        if one["id"] != chunk_id(*names):
            told.append(f"{one['id']} is not the id of {names}")
        if not one["text"].strip() or len(one["text"]) > 1200:
            told.append(f"text of {one['id']} has {len(one['text'])} characters")
    return told


def rows_of(base: Path) -> list[dict[str, Any]]:
    """Return every row of a published memory, without vectors, in stored order."""
    table = lancedb.connect(base).open_table("chunks").to_arrow()
    rows: list[dict[str, Any]] = table.drop_columns(["vector"]).to_pylist()
    return rows
