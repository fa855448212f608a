"""What is known of memories elsewhere: what this machine has of them, and what they have of it."""

import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from funes_ls.hub.binding import bindings
from funes_ls.hub.decisions import choice, read_decisions
from funes_ls.hub.reading import RemoteMemory, Snapshot
from funes_ls.hub.receipts import read_receipt, receipts
from funes_ls.hub.remote import Head
from funes_ls.hub.spec import MemorySpec, parse_spec
from funes_ls.indexer.catalog import Session, open_catalog
from funes_ls.indexer.errors import BackendError, FunesError, MemoryStateError, UsageError
from funes_ls.indexer.memory import CATALOG
from funes_ls.indexer.settings import Settings
from funes_ls.protocol import MemoryInfo

#: A list of memories waits so long for those elsewhere; all are asked at once.
_LOOK_S = 2.5


class RemoteState(Struct, frozen=True, kw_only=True):
    """What a memory elsewhere and this machine have of one another; asks neither of them.

    Attributes:
        project: Repository whose sessions alone go there, "" for every session.
        coverage: `current`, `pending` or `unknown`: whether it holds what may go there.
        to_push: Sessions that may go and are not there whole.
        may_go: Sessions that may go.
        pending_review: Sessions of the project that are still to be decided on.
        pushed_us: When this machine last published there, UTC µs.
        unindexed: Rows its own indexes do not cover, as far as the last push saw.
        withheld: In how many blocks each rule found a secret at the last push: they stayed here.
    """

    kind: str
    project: str = ""
    coverage: str = "unknown"
    to_push: int = 0
    may_go: int = 0
    pending_review: int = 0
    pushed_us: int | None = None
    unindexed: int = 0
    withheld: dict[str, int] = {}


def remote_state(
    spec: MemorySpec, home: Path, local: Iterable[Session] | None
) -> tuple[RemoteState, str]:
    """Return what the last push and the local sessions tell of a memory; and what is wrong there.

    Args:
        spec: The memory elsewhere.
        home: Of this machine's memory.
        local: Its sessions, None when there is none.
    """
    receipt = read_receipt(home, spec)
    pushed = int(receipt.pushed_at * 1e6) if receipt is not None else None
    state = RemoteState(
        kind=spec.kind,
        pushed_us=pushed,
        unindexed=receipt.unindexed if receipt is not None else 0,
        withheld=dict(receipt.withheld) if receipt is not None else {},
    )
    try:
        decisions = read_decisions(home, spec)
    except FunesError as exc:
        return state, str(exc)
    known = {one.session_id: one.chunks for one in local or ()}
    chosen = choice(decisions, local or ())
    there = receipt.sessions if receipt is not None else {}
    missing = [name for name in chosen.going if there.get(name, 0) < known[name]]
    coverage = "unknown" if receipt is None else "pending" if missing else "current"
    return msgspec.structs.replace(
        state,
        project=decisions.project,
        coverage=coverage,
        to_push=len(missing) if receipt is not None else 0,
        may_go=len(chosen.going),
        pending_review=len(chosen.pending),
    ), ""


def known_names(settings: Settings) -> tuple[str, ...]:
    """Return every memory this home has to do with, the local one first."""
    home = settings.home
    found = ["local", settings.memory or "local", *sorted(set(bindings(home).values()))]
    found += [one.memory for one in receipts(home)]
    found += sorted(one.text for one in _snapshots(home))
    named = []
    for text in found:
        try:
            named.append(parse_spec(text, settings).text)
        except UsageError:
            named.append(text)
    return tuple(dict.fromkeys(named))


def _snapshots(home: Path) -> list[Snapshot]:
    found = []
    for path in (home / "derived").glob("*/snapshot.json"):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=Snapshot))
        except (OSError, msgspec.MsgspecError):
            continue
    return found


def remote_infos(
    specs: Iterable[MemorySpec], settings: Settings, env: Mapping[str, str] = os.environ
) -> list[MemoryInfo]:
    """Return how memories elsewhere are, all asked at once; nothing of them is fetched."""
    asked = [(spec, _Head(spec, settings, env)) for spec in specs]
    return [_info(spec, head, settings) for spec, head in asked]


class _Head:
    """Where a memory stands, asked on a thread of its own."""

    def __init__(self, spec: MemorySpec, settings: Settings, env: Mapping[str, str]) -> None:
        self._heads: list[Head] = []
        self._errors: list[FunesError] = []
        self.memory: RemoteMemory | None = None
        try:
            self.memory = RemoteMemory(spec, env, settings.home)
        except FunesError as exc:
            self._errors.append(exc)
        self._thread = threading.Thread(target=self._look, name="head", daemon=True)
        self._thread.start()

    def _look(self) -> None:
        try:
            if self.memory is not None:
                self._heads.append(self.memory.remote.head())
        except FunesError as exc:
            self._errors.append(exc)

    def state(self) -> str:
        """Return `ready`, `empty`, or why it cannot be read."""
        self._thread.join(_LOOK_S)
        if self._errors:
            return self._errors[0].kind
        if not self._heads:
            return "offline"
        return "empty" if self._heads[0].is_empty else "ready"


def _info(spec: MemorySpec, head: _Head, settings: Settings) -> MemoryInfo:
    state = head.state()
    sessions, chunks = _counts(settings.home / "derived" / spec.key / CATALOG)
    return MemoryInfo(
        name=spec.text,
        path=spec.text,
        state=state,
        model="",
        sessions=sessions,
        chunks=chunks,
        current=spec.text == _current(settings),
    )


def _current(settings: Settings) -> str:
    try:
        return parse_spec(settings.memory, settings).text
    except UsageError:
        return ""


def _counts(path: Path) -> tuple[int, int]:
    """Return sessions and chunks of what was fetched last."""
    try:
        catalog = open_catalog(path, writable=False)
    except (MemoryStateError, BackendError):
        return 0, 0
    try:
        return catalog.session_count(), catalog.embedded_total()
    finally:
        catalog.close()
