"""What the catalog knows of redaction: with which rules rows were read, and what was taken out."""

from collections import Counter
from collections.abc import Callable

import msgspec
from msgspec import Struct

from funes_ls.indexer.catalog import Catalog, Source
from funes_ls.indexer.errors import TraceError
from funes_ls.indexer.redaction.base import Counts, Redaction, current_stamp
from funes_ls.indexer.redaction.judge import MARK

#: Stamp of the oldest rules that a stored row was read with.
STAMP_KEY = "redaction"
#: Counts by rule, as JSON.
COUNTS_KEY = "redactions"
#: The stamp where rows were stored as they are: because the settings said so; because nobody
#: knew of secrets yet, or nobody knows any more.
OFF, UNKNOWN = "off", ""


def stored_stamp(catalog: Catalog) -> str | None:
    """Return with which rules the oldest rows were read, None while there are no rows."""
    kept = catalog.get(STAMP_KEY)
    if kept is not None:
        return str(kept)
    return UNKNOWN if catalog.session_count() or catalog.pending_count() else None


def note_stamp(catalog: Catalog, stamp: str) -> None:
    """Note that rows are about to be stored that were read with some rules, or with none."""
    kept = stored_stamp(catalog)
    if kept is None or (stamp == OFF and kept not in (OFF, UNKNOWN)):
        catalog.put(STAMP_KEY, stamp)
    elif catalog.get(STAMP_KEY) is None:
        catalog.put(STAMP_KEY, kept)


def is_scrub_due(catalog: Catalog, current: str) -> bool:
    """Return whether stored rows were read with other rules than today's, or with none."""
    return stored_stamp(catalog) not in (None, current)


def wants_scrub(catalog: Catalog) -> bool:
    """Return `is_scrub_due` for the scanner of this program; False where it has none."""
    return bool(current := current_stamp()) and is_scrub_due(catalog, current)


def cleaner(catalog: Catalog, redaction: Redaction | None) -> Callable[[str], str] | None:
    """Return what takes secrets out of stored rows; None where they are clean, or may have some."""
    if redaction is None or not is_scrub_due(catalog, redaction.stamp):
        return None

    def clean(text: str) -> str:
        try:
            return redaction.text(text).text
        except TraceError:
            return MARK  # nobody can tell what is in it

    return clean


class _Read(Struct):
    redacted: dict[str, int] = {}


def taken_out(source: Source | None) -> Counts:
    """Return what was counted of a trace when it was read, by what is kept of that reading."""
    if source is None or not source.resume:
        return {}
    try:
        return msgspec.json.decode(source.resume, type=_Read).redacted
    except msgspec.MsgspecError:
        return {}


def counts(catalog: Catalog) -> dict[str, int]:
    """Return how often each rule found something in what is stored."""
    kept = catalog.get(COUNTS_KEY)
    try:
        return msgspec.json.decode(kept, type=dict[str, int]) if kept else {}
    except (msgspec.MsgspecError, TypeError):
        return {}


def add_counts(catalog: Catalog, more: Counts, less: Counts) -> None:
    """Note what was taken out of a trace, in place of what an earlier reading of it took out."""
    if not (more or less):
        return
    total = Counter(counts(catalog))
    total.update(more)
    total.subtract(less)
    known = {rule: total[rule] for rule in sorted(total) if total[rule] > 0}
    catalog.put(COUNTS_KEY, msgspec.json.encode(known).decode())
