"""Lenses of functions, classes and methods: who wrote most of each. They stay put while one types.

What was shown is kept with the moment of its text. While edits come, it is moved along with the
lines it stands on; when they have been over for a while, the text is looked at anew.
"""

import asyncio
import contextlib
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from msgspec import Struct

from funes_ls.handlers.code_actions import WHY_LINE
from funes_ls.handlers.failures import changed
from funes_ls.handlers.line_facts import Table, facts_within, turn_of
from funes_ls.handlers.texts import State
from funes_ls.handlers.wording import counted, harness_word, one_line, since

if TYPE_CHECKING:
    from funes_ls.handlers.front import Front

#: Who has not typed for so long has stopped.
_QUIET_S = 0.7
#: Longer than this other lenses do not wait for these, if the client can be asked to ask again.
_FIRST_S = 0.3
_MOST_KEPT = 8
_MOST_LENSES = 500
_MOST_CHARS = 50


class Lens(Struct, frozen=True, kw_only=True):
    """A lens; lines (from 0, both included) are those of the text at the moment it was made.

    Attributes:
        key: Of the symbol within its document, the same after edits elsewhere.
        title: What it says; it is told when it is asked for.
    """

    key: str
    first: int
    last: int
    title: str


class Shown(Struct, kw_only=True):
    """The lenses of a document.

    Attributes:
        told: Keys of those whose title the client has seen: they keep it, so that none blinks.
    """

    state: State
    generation: int
    lenses: Sequence[Lens]
    told: set[str]


class SymbolLenses:
    """The lenses of symbols of all open documents."""

    def __init__(self, ls: "Front", refresh: Callable[[], None]) -> None:
        """Have nothing yet; `refresh` asks the client to ask again."""
        self._ls = ls
        self._refresh = refresh
        self._shown: OrderedDict[str, Shown] = OrderedDict()
        self._looking: dict[str, asyncio.Task[None]] = {}

    async def of(self, uri: str) -> list[types.CodeLens]:
        """Return the lenses of a document, where they are now."""
        state = self._ls.lines.state(uri)
        if state.document is None:
            return []
        shown = self._shown.get(uri)
        if shown is not None and shown.state.document is state.document:
            if self._is_current(shown, state):
                return self._placed(uri, shown)
            if time.monotonic() - state.document.edited_at < _QUIET_S:
                self._look_later(uri)
                return self._placed(uri, shown)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_S if self._ls.client.lens_refresh else None):
                shown = await self._looked(uri)
                return self._placed(uri, shown) if shown else []
        self._look_later(uri)
        return []

    def resolved(self, lens: types.CodeLens, uri: str, key: str) -> types.CodeLens:
        """Return a lens with its title.

        Raises:
            Refused: there is no such symbol any more.
        """
        shown = self._shown.get(uri)
        for one in shown.lenses if shown else ():
            if shown and one.key == key:
                shown.told.add(key)
                command = _command(uri, one, shown.state.moment)
                return types.CodeLens(range=lens.range, command=command, data=lens.data)
        raise changed()

    def _is_current(self, shown: Shown, state: State) -> bool:
        return shown.state == state and shown.generation == self._ls.generation

    async def _looked(self, uri: str) -> Shown | None:
        """Look at a document anew; what was shown stays when that cannot be done."""
        table = await self._ls.lines.table(uri)
        before = self._shown.get(uri)
        if table is None or table.state.document is not self._ls.lines.state(uri).document:
            return before
        lenses = list(_lenses(table))[:_MOST_LENSES]
        told = {one.key for one in lenses} & (before.told if before else set())
        shown = Shown(state=table.state, generation=table.generation, lenses=lenses, told=told)
        self._shown[uri] = shown
        self._shown.move_to_end(uri)
        while len(self._shown) > _MOST_KEPT:
            self._shown.popitem(last=False)
        return shown

    def _look_later(self, uri: str) -> None:
        task = self._looking.get(uri)
        if task is None or task.done():
            self._looking[uri] = self._ls.spawn(self._look(uri))

    async def _look(self, uri: str) -> None:
        """Wait until nobody types, look at the document and have the client ask again."""
        try:
            while (document := self._ls.lines.state(uri).document) is not None:
                left = document.edited_at + _QUIET_S - time.monotonic()
                if left <= 0:
                    await self._looked(uri)
                    self._refresh()
                    return
                await asyncio.sleep(left)
        finally:
            self._looking.pop(uri, None)

    def _placed(self, uri: str, shown: Shown) -> list[types.CodeLens]:
        document = shown.state.document
        assert document is not None
        found = []
        for lens in shown.lenses:
            try:
                line = document.now(lens.first, moment=shown.state.moment)
            except LookupError:
                return []
            if line is not None:
                found.append(self._lens(uri, lens, shown, line))
        return found

    def _lens(self, uri: str, lens: Lens, shown: Shown, line: int) -> types.CodeLens:
        told = self._ls.client.lens_at_once or lens.key in shown.told
        place = types.Position(line=line, character=0)
        return types.CodeLens(
            range=types.Range(start=place, end=place),
            command=_command(uri, lens, shown.state.moment) if told else None,
            data={"uri": uri, "generation": shown.generation, "symbol": lens.key},
        )


def _command(uri: str, lens: Lens, moment: int) -> types.Command:
    place = {
        "start": {"line": lens.first, "character": 0},
        "end": {"line": lens.last + 1, "character": 0},
    }
    about: dict[str, Any] = {"uri": uri, "range": place, "moment": moment}
    return types.Command(title=lens.title, command=WHY_LINE, arguments=[about])


def _lenses(table: Table) -> Iterator[Lens]:
    """Yield a lens for each symbol of which a session wrote lines."""
    seen: Counter[str] = Counter()
    for symbol in table.symbols:
        seen[symbol.name] += 1
        counts: Counter[tuple[str, str]] = Counter()
        for lines, count in facts_within(table.lines, symbol.first, symbol.last):
            counts[turn_of(lines)] += count
        known = [turn for turn, _ in counts.most_common() if turn in table.turns]
        if known:
            yield Lens(
                key=f"{symbol.name}#{seen[symbol.name]}",
                first=symbol.first,
                last=symbol.last,
                title=_title(table.turns[known[0]], len(known) - 1),
            )


def _title(turn: Any, others: int) -> str:
    parts = [
        harness_word(turn["harness"]),
        since(turn["ts"]),
        one_line(turn["ask"], most=_MOST_CHARS),
        counted(others, "more turn") if others else "",
    ]
    return " · ".join(filter(None, parts))
