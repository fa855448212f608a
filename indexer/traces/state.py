"""What a reading of a JSONL trace must remember to go on later, and whether it still fits."""

import hashlib
from itertools import islice
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct, field

from funes_ls.indexer.model import SessionMeta

VERSION = 1
#: Up to here the hash covers all that was read.
WHOLE_HASH_BYTES = 16 << 20
#: Beyond that it covers this much at either end, and the length.
END_HASH_BYTES = 1 << 20
#: Calls whose names the next reading still knows, the latest ones.
MAX_NAMES = 20_000
_STEP = 1 << 20


class State(Struct, kw_only=True):
    """Where a reading stands.

    Attributes:
        offset: Bytes read up to the end of the last record taken.
        digest: Hash of those bytes, see `prefix_digest`.
        open_tail: Whether the last record taken was not yet followed by a line feed.
        lines: Lines read.
        records: Lines read that were not blank.
        seq: Number of compat turns so far.
        extra_seq: Number of turns of a bare Codex trace so far.
        session_id: Id the turns carry.
        declared: Whether the trace itself named that id.
        workdir: Facet the turns carry.
        workdir_known: Whether the trace recorded it.
        names: Tool call id to tool name.
        nameless: Ids of answers that were given without a name.
        own: Ids of calls that ask funes.
        title_rank: How good the title is that was found, 0 for none.
        bare: Whether it is a Codex trace without envelopes.
        base_ts: Time of records that carry none.
        noted: Whether what the trace's header says is in `meta`.
        skipped: Records of unknown types passed over, by type.
    """

    harness: str
    session_id: str
    workdir: str
    meta: SessionMeta
    version: int = VERSION
    offset: int = 0
    digest: str = ""
    open_tail: bool = False
    lines: int = 0
    records: int = 0
    seq: int = 0
    extra_seq: int = 0
    declared: bool = False
    workdir_known: bool = False
    names: dict[str, str] = field(default_factory=dict)
    nameless: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    title_rank: int = 0
    bare: bool = False
    base_ts: str = ""
    noted: bool = False
    skipped: dict[str, int] = field(default_factory=dict)


def remembered(state: State) -> State:
    """Return the state with no more calls than the next reading should have to know."""
    excess = len(state.names) - MAX_NAMES
    if excess <= 0:
        return state
    latest = dict(islice(state.names.items(), excess, None))
    return msgspec.structs.replace(state, names=latest)


def encode_state(state: Any) -> bytes:
    """Return a state as bytes for the catalog."""
    return msgspec.msgpack.encode(state)


def decode_state(data: bytes | None, harness: str) -> State | None:
    """Return a stored state, None when it is absent, foreign or of another version."""
    if not data:
        return None
    try:
        state = msgspec.msgpack.decode(data, type=State)
    except msgspec.MsgspecError:
        return None
    return state if state.version == VERSION and state.harness == harness else None


def prefix_digest(file: BinaryIO, length: int) -> str | None:
    """Return the hash of the first `length` bytes of a file at its start; leaves it behind them.

    Up to 16 MiB every byte counts; beyond that the first and the last MiB and the length do, so
    an edit in the middle of a big trace that keeps its length goes unnoticed. None when the file
    is shorter.
    """
    digest = hashlib.sha1(b"%d\n" % length, usedforsecurity=False)
    spans = [(0, length)]
    if length > WHOLE_HASH_BYTES:
        spans = [(0, END_HASH_BYTES), (length - END_HASH_BYTES, length)]
    position = 0
    for start, end in spans:
        if not _skip(file, start - position):
            return None
        position = start
        while position < end:
            data = file.read(min(_STEP, end - position))
            if not data:
                return None
            digest.update(data)
            position += len(data)
    return digest.hexdigest()


def _skip(file: BinaryIO, count: int) -> bool:
    if file.seekable():
        file.seek(count, 1)
        return True
    while count > 0:
        data = file.read(min(_STEP, count))
        if not data:
            return False
        count -= len(data)
    return True
