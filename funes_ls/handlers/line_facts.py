"""Who wrote the lines of open documents, asked of the engine once for each state of a text."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from funes_ls.handlers.failures import changed
from funes_ls.handlers.outlines import Outlines
from funes_ls.handlers.symbol_ranges import Symbol, grammar_of
from funes_ls.handlers.texts import ASKED, State, state_of
from funes_ls.uris import path_of

if TYPE_CHECKING:
    from funes_ls.handlers.front import Front

#: What says who wrote a line; the other words only hint.
FACTS = ("exact", "moved")
#: Of larger documents nothing is asked.
MOST_CHARS = 8_000_000
#: Larger documents have no lenses of symbols.
MOST_LINES = 20_000
_MOST_KEPT = 50
#: Who has not typed for so long has stopped.
_QUIET_S = 0.7
#: While a history is read, what is known of a document grows old all the time; it is looked at
#: this long after it was, instead of with every hover.
_PASS_S = 3.0
#: What was told is asked again after so long.
_LONGEST_S = 300.0
#: Of so many sessions it is known when they last changed.
_MOST_CHANGES = 10_000

Turn = Mapping[str, Any]
Lines = Mapping[str, Any]


class Table(Struct, frozen=True, kw_only=True):
    """All that is known of a document at one moment.

    Attributes:
        lines: As `funes/blame` names them.
        turns: By session and turn.
        is_final: Asking again at once tells nothing more.
        asked_at: When, by the monotonic clock; commits may tell more later.
    """

    state: State
    generation: int
    lines: Sequence[Lines]
    turns: Mapping[tuple[str, str], Turn]
    symbols: Sequence[Symbol]
    is_final: bool = True
    asked_at: float = 0.0

    @property
    def is_good(self) -> bool:
        """Return whether it may be told still."""
        return self.is_final and time.monotonic() - self.asked_at < _LONGEST_S


class LineFacts:
    """Answers about lines; those of whole documents are kept while their text is the same."""

    def __init__(self, ls: "Front") -> None:
        """Know nothing yet."""
        self._ls = ls
        self.outlines = Outlines()
        self._looking: set[str] = set()
        #: Generation at which a session last changed, and at which any of them may have.
        self._changed: dict[str, int] = {}
        self._all_changed = 0
        self._kept: OrderedDict[str, tuple[State, int, asyncio.Task[Table | None]]] = OrderedDict()

    def state(self, uri: str) -> State:
        """Return the state of a document now."""
        return state_of(self._ls.workspace, uri)

    def asked(self, uri: str) -> State:
        """Return the state of a document when the request under way came."""
        asked = ASKED.get()
        return asked[1] if asked is not None and asked[0] == uri else self.state(uri)

    def check(self, uri: str, state: State) -> None:
        """Refuse an answer about a text that is no longer that of the document.

        Raises:
            Refused: it has changed.
        """
        if self.state(uri) != state:
            raise changed()

    async def of(self, uri: str, line: int) -> tuple[Lines, Turn] | None:
        """Return who wrote a line (from 0) of a document as it was when this was asked.

        Raises:
            Refused: the document has changed meanwhile.
        """
        state = self.asked(uri)
        self.check(uri, state)
        placed = self._placed(uri, line)
        if placed is not None:
            table, then = placed
            claim = claim_of(table.lines, list(table.turns.values()), then)
            if table.generation == self._ls.generation:
                return claim
            if claim is not None and self._stands(table, claim[1]):
                self._look_soon(uri)
                return claim
        answer = await self._blame(uri, state, lines=(line, line))
        self.check(uri, state)
        self._look_soon(uri)
        return claim_of(answer["lines"], answer["turns"], line) if answer else None

    def told(self, uri: str, line: int) -> tuple[Table, int] | None:
        """Return what was told of a document and where a line was then, if it was there as it is.

        What is typed elsewhere changes nothing about who wrote a line.
        """
        placed = self._placed(uri, line)
        is_new = placed is not None and placed[0].generation == self._ls.generation
        return placed if is_new else None

    def heard(self, generation: int, sessions: Sequence[str]) -> None:
        """Hear which sessions have changed in the memory; none named: any of them may have."""
        if not sessions or len(self._changed) + len(sessions) > _MOST_CHANGES:
            self._changed.clear()
            self._all_changed = generation
        else:
            self._changed.update(dict.fromkeys(sessions, generation))

    def _stands(self, table: Table, turn: Turn) -> bool:
        """Return whether an older answer may be told once more while it is asked again.

        While a history is indexed the memory changes all the time. What it said of a session is
        true as long as that one stays as it was; that another wrote the same line after it is
        known at the next look.
        """
        changed = self._changed.get(turn["session_id"], self._all_changed)
        return table.generation >= max(changed, self._all_changed)

    def _last(self, uri: str) -> Table | None:
        """Return what was made out last of a document, whatever has become of it since."""
        kept = self._kept.get(uri)
        return _result(kept[2]) if kept and kept[2].done() else None

    def _placed(self, uri: str, line: int) -> tuple[Table, int] | None:
        table = self._last(uri)
        if table is None or not table.is_good:
            return None
        document = self.state(uri).document
        if document is None or table.state.document is not document:
            return None
        try:
            then = document.then(line, moment=table.state.moment)
        except LookupError:
            return None
        return None if then is None else (table, then)

    def _look_soon(self, uri: str) -> None:
        """Look at the whole document once nobody types: who asks for one line asks for more."""
        if uri not in self._looking and self.state(uri).document is not None:
            self._looking.add(uri)
            self._ls.spawn(self._look(uri))

    async def _look(self, uri: str) -> None:
        asked_at = time.monotonic()
        try:
            while (document := self.state(uri).document) is not None:
                now = time.monotonic()
                left = document.edited_at + _QUIET_S - now
                if self._ls.is_indexing and self._knows(uri):
                    left = max(left, min(_QUIET_S, asked_at + _PASS_S - now))
                if left <= 0:
                    await self.table(uri)
                    return
                await asyncio.sleep(left)
        finally:
            self._looking.discard(uri)

    def _knows(self, uri: str) -> bool:
        """Return whether there is something to tell of a document as it is."""
        table = self._last(uri)
        return table is not None and table.state.document is self.state(uri).document

    async def table(self, uri: str) -> Table | None:
        """Return what is known of a whole document, as it is when this is asked."""
        state, generation = self.state(uri), self._ls.generation
        kept = self._kept.get(uri)
        if kept is None or kept[:2] != (state, generation) or _is_over(kept[2]):
            kept = (state, generation, self._ls.spawn(self._table(uri, state, generation)))
            self._kept[uri] = kept
        self._kept.move_to_end(uri)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return await asyncio.shield(kept[2])

    async def _table(self, uri: str, state: State, generation: int) -> Table | None:
        document = state.document
        if document is None or len(document.starts) > MOST_LINES:
            return None
        text, grammar = document.plain, grammar_of(document.language_id or "", path_of(uri))
        answer = await self._blame(uri, state)
        if answer is None:
            return None
        named = {(one["session_id"], one["turn_uuid"]): one for one in answer["turns"]}
        return Table(
            state=state,
            generation=generation,
            lines=answer["lines"],
            turns=named,
            is_final=not answer["note"],
            asked_at=time.monotonic(),
            symbols=await self.outlines.of(text, grammar) if answer["lines"] else [],
        )

    async def _blame(self, uri: str, state: State, *, lines: tuple[int, int] | None = None) -> Any:
        params: dict[str, Any] = {"path": path_of(uri)}
        text = state.text
        if text is not None:
            if len(text) > MOST_CHARS:
                return None
            params["text"] = text
        if lines is not None:
            params["range"] = {
                "start": {"line": lines[0], "character": 0},
                "end": {"line": lines[1] + 1, "character": 0},
            }
        return await self._ls.quick(
            "funes/blame", self._ls.with_settings("funes/blame", params, uri=uri)
        )


def _is_over(task: "asyncio.Task[Table | None]") -> bool:
    """Return whether it is done, but asking again may tell more."""
    table = _result(task) if task.done() else None
    return task.done() and (table is None or not table.is_good)


def _result(task: "asyncio.Task[Table | None]") -> Table | None:
    return None if task.cancelled() or task.exception() is not None else task.result()


def claim_of(lines: Sequence[Lines], turns: Sequence[Turn], line: int) -> tuple[Lines, Turn] | None:
    """Return what says who wrote a line (from 0), and the turn; None when nothing does."""
    for one, _ in facts_within(lines, line, line):
        for turn in turns:
            if turn_of(turn) == turn_of(one):
                return one, turn
    return None


def facts_within(
    lines: Sequence[Lines], first: int, last: int, *, words: Sequence[str] = FACTS
) -> Iterator[tuple[Lines, int]]:
    """Yield what is known of lines (from 0, both included), and of how many each is said."""
    for one in lines:
        count = min(one["end"], last + 1) - max(one["start"], first + 1) + 1
        if count > 0 and one["confidence"] in words:
            yield one, count


def turn_of(one: Lines) -> tuple[str, str]:
    """Return which turn lines are of."""
    return one["session_id"], one["turn_uuid"]
