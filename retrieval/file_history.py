"""Histories of files, replayed from facts and kept while they are asked for."""

import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from funes_ls.indexer.catalog import Catalog
from funes_ls.indexer.facts import EventKind, FactPath, Facts, StoredEvent
from funes_ls.indexer.facts_lines import key_hash
from funes_ls.retrieval.blame import Document
from funes_ls.retrieval.lineage import lineages_of, origin_order
from funes_ls.retrieval.replay import History, replay
from funes_ls.retrieval.same_file import with_sources

#: What a replay needs.
_KINDS: tuple[EventKind, ...] = (
    "write", "edit", "append", "read", "delete", "move", "copy", "sed",
)  # fmt: skip
#: Of other files that hold lines of one, so many likely ones are replayed.
_MOST_OTHERS = 6
#: A line that more events than this wrote is no sign of where it comes from.
_MOST_WRITERS = 20
#: Lines of states that are kept of all files; about a hundred bytes each.
_MOST_LINES = 120_000


class Histories:
    """Replays what happened to files; the last asked for are kept. Safe to share by threads."""

    def __init__(self) -> None:
        """Begin with none."""
        self._kept: OrderedDict[Any, History] = OrderedDict()
        self._lock = threading.Lock()

    def of(
        self, facts: Facts, paths: Sequence[FactPath], *, memory: str, until_us: int | None = None
    ) -> History:
        """Return the history of a file.

        Args:
            facts: Where its events are.
            paths: Those by which facts know it.
            memory: Names where the facts are of, for keeping apart what is kept.
            until_us: Later events are left out; None takes all.
        """
        ids = sorted(path.path_id for path in paths)
        every = with_sources(facts, ids)
        key = (memory, until_us, tuple(ids), tuple(sorted(every)), facts.stamp(every))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = _replayed(facts, ids, every, until_us)
        # The texts of the events have done their part, and are much larger than all the rest.
        made.events = [replace(event, old="", new="") for event in made.events]
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > 1 and self._lines() > _MOST_LINES:
                self._kept.popitem(last=False)
        return made

    def _lines(self) -> int:
        return sum(history.size for history in self._kept.values())

    def others(
        self,
        facts: Facts,
        document: Document,
        *,
        but: Iterable[FactPath],
        memory: str,
        until_us: int | None = None,
    ) -> list[tuple[FactPath, History]]:
        """Return other files in which lines of a document were written, with their histories."""
        known = {path.path_id for path in but}
        left = document.left()
        found = facts.writers_of([key_hash(key) for key in left], limit_per_hash=_MOST_WRITERS)
        writers = Counter(
            event_id for ids in found.values() if len(ids) < _MOST_WRITERS for event_id in ids
        )
        shared: Counter[int] = Counter()
        for event_id, path_id in facts.paths_of(list(writers)):
            if path_id not in known:
                shared[path_id] += writers[event_id]
        ids = [path_id for path_id, _ in shared.most_common(_MOST_OTHERS)]
        return [
            (path, self.of(facts, [path], memory=memory, until_us=until_us))
            for path in _with_places(facts, ids)
        ]


def _with_places(facts: Facts, ids: Sequence[int]) -> list[FactPath]:
    """Return paths by their ids, with the places they were named in."""
    names = {path.path.rsplit("/", 1)[-1] for path in facts.paths(ids)}
    return [
        path for name in sorted(names) for path in facts.paths_named(name) if path.path_id in ids
    ]


def _replayed(
    facts: Facts, ids: Sequence[int], every: Sequence[int], until_us: int | None
) -> History:
    events = [
        event
        for event in _once(facts.events_of(every, kinds=_KINDS), facts.catalog)
        if until_us is None or event.ts_us is None or event.ts_us <= until_us
    ]
    wanted = {one.path for one in facts.paths(ids)}
    while events and events[-1].path not in wanted:
        events.pop()
    name = min(wanted, default="")
    return replay(events, path_of=lambda event: name if event.path in wanted else event.path)


def _once(events: Sequence[StoredEvent], catalog: Catalog) -> list[StoredEvent]:
    """Leave out what forks and resumed sessions only copied: the same turn did it once."""
    copies: dict[object, list[StoredEvent]] = defaultdict(list)
    for event in events:
        place = (event.turn_uuid, event.ts_us, event.block_idx, event.n, event.path)
        copies[place].append(event)
    sessions = {one.session_id for many in copies.values() if len(many) > 1 for one in many}
    lineages = lineages_of(sessions, catalog)
    return [
        min(many, key=lambda one: origin_order(one.session_id, lineages))
        for many in copies.values()
    ]
