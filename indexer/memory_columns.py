"""The columns that rows are chosen by, as arrays: of Arrow, without a look at every single row."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from funes_ls.indexer.model import Chunk
from funes_ls.indexer.times import parse_ts

#: Columns of few values that rows are chosen by.
CODED = ("session_id", "block_type", "tool_name", "harness")
#: How nearly every time is written; what is written in other ways is read one by one.
_USUAL = r"^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3}|\.[0-9]{6})?Z$"

Coded = tuple[NDArray[np.int32], list[str]]


class Columns(Struct, frozen=True, kw_only=True):
    """What some rows are chosen by.

    Attributes:
        seq: (n,) places in the session.
        times: (n,) UTC µs, NaN for rows without a time of their own.
        coded: Of each of the `CODED` columns (n,) numbers of values, and the values.
    """

    ids: Sequence[str]
    seq: NDArray[np.int64]
    times: NDArray[np.float64]
    coded: Mapping[str, Coded]


def of_rows(rows: Sequence[Chunk]) -> Columns:
    """Return the columns of rows."""
    return Columns(
        ids=[row.id for row in rows],
        seq=np.array([row.seq or 0 for row in rows], dtype=np.int64),
        times=_parsed([row.ts for row in rows]),
        coded={name: _coded([getattr(row, name) for row in rows]) for name in CODED},
    )


def of_arrow(table: Any) -> Columns:
    """Return the columns of an Arrow table or batch; of a column it lacks every value is ""."""
    rows, names = table.num_rows, table.schema.names
    empty = np.zeros(rows, dtype=np.int32), [""]
    return Columns(
        ids=table.column("id").to_pylist(),
        seq=_filled(table.column("seq")),
        times=_times(table.column("ts")),
        coded={name: _coded_of(table.column(name)) if name in names else empty for name in CODED},
    )


def _coded(values: Sequence[str | None]) -> Coded:
    known: dict[str, int] = {}
    codes = [known.setdefault(value or "", len(known)) for value in values]
    return np.array(codes, dtype=np.int32), list(known)


def _coded_of(column: Any) -> Coded:
    import pyarrow.compute as pc

    encoded = _joined(pc.fill_null(column, "")).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    return codes, encoded.dictionary.to_pylist()


def _filled(column: Any) -> NDArray[np.int64]:
    import pyarrow.compute as pc

    numbers = _joined(pc.fill_null(column, 0)).to_numpy(zero_copy_only=False)
    return np.asarray(numbers, dtype=np.int64)


def _times(column: Any) -> NDArray[np.float64]:
    """Return UTC µs as `parse_ts` tells them, NaN for none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = _joined(column)
    usual = not texts.null_count and pc.all(pc.match_substring_regex(texts, _USUAL)).as_py()
    if not usual:
        return _parsed(texts.to_pylist())
    try:
        moments = texts.cast(pa.timestamp("us", tz="UTC"))
    except pa.ArrowInvalid:  # a day that no month has
        return _parsed(texts.to_pylist())
    return np.asarray(moments.cast(pa.int64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _parsed(texts: Sequence[str | None]) -> NDArray[np.float64]:
    times = (parse_ts(text or "") for text in texts)
    return np.array([np.nan if us is None else us for us in times], dtype=np.float64)


def _joined(column: Any) -> Any:
    """Return a column in one piece; a table has it in several."""
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column
