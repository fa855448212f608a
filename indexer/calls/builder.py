"""Follows a session block by block: pairs calls with answers, and answers with who asked.

Nothing counts before its answer came. The state is small and can be kept between two readings.
"""

import logging
import re
from collections.abc import Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from funes_ls.indexer.calls.call import Call
from funes_ls.indexer.calls.extract import facts_of, is_script
from funes_ls.indexer.calls.folders import for_each_file
from funes_ls.indexer.calls.mentions import named_files
from funes_ls.indexer.facts import FileEvent
from funes_ls.indexer.facts_tables import CallFacts, Provenance
from funes_ls.indexer.names import is_scaffolding

_log = logging.getLogger(__name__)
_CWD = re.compile(r"<cwd>([^<\n]{1,1000})</cwd>")
#: Calls without an answer that are still waited for.
_MOST_OPEN = 64
_MOST_CHARS = 4_000_000


class Piece(Struct, frozen=True, kw_only=True):
    """A block with all that is known of it from a trace or from stored rows.

    Attributes:
        text: As it is stored: trimmed, without the label of tool blocks.
    """

    turn_uuid: str
    parent_uuid: str | None
    seq: int
    block_idx: int
    ts_us: int | None
    role: str
    block_type: str
    tool_name: str | None
    tool_use_id: str | None
    text: str


class _Open(Struct, kw_only=True):
    """A call that was not answered yet; doubted once the user spoke before the answer came.

    `script` is whether it runs one, None until that matters.
    """

    at: Provenance
    id: str | None
    tool: str | None
    text: str
    batch: int = 0
    doubted: bool = False
    script: bool | None = None


class State(Struct, kw_only=True):
    """What goes on between two readings of a session.

    Attributes:
        batch: Grows with each call that comes after an answer or a prompt.
        answered: Whether one of these has come since the last call.
        last_call, last_role: Turn of the last call, and who made it.
        known: Files the session has to do with; see `for_each_file`.
        chain: Turn of the last answer, and the turn of the call that it was for.
    """

    open: list[_Open] = []
    batch: int = 0
    answered: bool = False
    chain: tuple[str, str] = ("", "")
    ask: str = ""
    reason: str = ""
    cwd: str = ""
    known: list[str] = []
    last_call: str = ""
    last_role: str = ""


class FactsBuilder:
    """Gives the facts of a session as its blocks come by."""

    def __init__(self, cwd: str, state: bytes = b"") -> None:
        """Begin, or go on from a kept state."""
        self._state = _decoded(state)
        self._state.cwd = cwd or self._state.cwd

    @property
    def state(self) -> bytes:
        """Return what is to be kept for the next reading."""
        return msgspec.json.encode(self._state)

    def add(self, piece: Piece) -> Iterator[CallFacts]:
        """Take a block and yield what is known by it."""
        if piece.block_type == "tool_use":
            if self._is_of_another_message(piece):
                yield from self._silent(piece)
            self._begin(piece)
        elif piece.block_type == "tool_result":
            yield from self._answer(piece)
        elif piece.role == "assistant":
            yield from self._silent(piece)
            self._state.reason = piece.turn_uuid
            yield from self._mentions(piece)
        elif piece.role == "user" and piece.block_type == "text":
            self._prompt(piece)
            yield from self._mentions(piece)

    def _mentions(self, piece: Piece) -> Iterator[CallFacts]:
        if piece.block_type != "text":
            return
        paths = named_files(piece.text, self._state.cwd)
        if paths:
            events = tuple(FileEvent(kind="mention", path=path) for path in paths)
            yield CallFacts(at=self._here(piece), events=events)

    def _here(self, piece: Piece) -> Provenance:
        return Provenance(
            turn_uuid=piece.turn_uuid,
            seq=piece.seq,
            block_idx=piece.block_idx,
            ts_us=piece.ts_us,
            ask_turn_uuid=self._state.ask,
            reason_turn_uuid=self._state.reason,
        )

    def _silent(self, piece: Piece) -> Iterator[CallFacts]:
        """Yield what scripts did that printed nothing: a blank answer is stored nowhere.

        An agent speaks again only when all its calls were answered, or when the user broke in.
        """
        for call in self._state.open[:]:
            if call.at.turn_uuid == piece.turn_uuid or call.doubted:
                continue
            if call.script is None:
                call.script = is_script(call.text)
            if call.script:
                yield from self._closed(call, "")

    def _is_of_another_message(self, piece: Piece) -> bool:
        """Tell whether a call is not one of several made at once with the one before it.

        These follow one another; where turns do not name their parents, nothing is known.
        """
        last = self._state.last_call
        known = piece.parent_uuid is not None and last != ""
        follows = piece.parent_uuid == last and piece.role == self._state.last_role
        return known and not follows and last != piece.turn_uuid

    def _closed(self, call: _Open, output: str) -> Iterator[CallFacts]:
        self._state.open.remove(call)
        try:
            found = facts_of(
                Call(tool=call.tool or "", text=call.text, output=output, cwd=self._state.cwd)
            )
        except Exception as exc:  # what it was not made for must not keep a session from being read
            _log.error("a call is passed over: %s", type(exc).__name__)
            return
        # What a blank answer shows of files is nothing, not that they are empty.
        given = found.events if output else [replace(one, whole=False) for one in found.events]
        events = tuple(for_each_file(given, self._state.known))
        if events or found.command:
            yield CallFacts(
                at=call.at,
                events=events,
                command=found.command,
                exit_status=found.exit_status,
            )

    def _prompt(self, piece: Piece) -> None:
        for call in self._state.open:
            call.doubted = True
        if not self._state.cwd and (found := _CWD.search(piece.text[:4000])):
            self._state.cwd = found[1].strip()
        if not is_scaffolding(piece.text, commands=False):
            self._state.ask, self._state.reason = piece.turn_uuid, ""
            self._state.answered = True  # who is asked anew has no answers to wait for

    def _begin(self, piece: Piece) -> None:
        state = self._state
        at = self._here(piece)
        state.last_call, state.last_role = piece.turn_uuid, piece.role
        if state.answered:
            state.batch, state.answered = state.batch + 1, False
        if len(piece.text) <= _MOST_CHARS:
            state.open.append(
                _Open(
                    at=at,
                    id=piece.tool_use_id,
                    tool=piece.tool_name,
                    text=piece.text,
                    batch=state.batch,
                )
            )
        del state.open[:-_MOST_OPEN]

    def _answer(self, piece: Piece) -> Iterator[CallFacts]:
        self._state.answered = True
        call = self._matching(piece)
        if call is None:
            return
        self._state.chain = (piece.turn_uuid, call.at.turn_uuid)
        yield from self._closed(call, piece.text)

    def _matching(self, piece: Piece) -> _Open | None:
        """Return the call an answer is for: by its id, else by its turn, else by order.

        Rows have no ids. There an answer follows its call (or another answer to the same turn)
        where turns name their parents; elsewhere it is for the first open call of the last batch.
        """
        state = self._state
        if piece.tool_use_id is not None and any(one.id is not None for one in state.open):
            return next((one for one in state.open if one.id == piece.tool_use_id), None)
        named = [one for one in state.open if piece.tool_name in (None, one.tool)] or state.open
        parent = piece.parent_uuid
        if parent and parent == state.chain[0]:
            parent = state.chain[1]
        asked = [one for one in named if one.at.turn_uuid == parent]
        if asked and parent == state.last_call and piece.parent_uuid == parent:
            asked = []  # whatever comes next follows the last call, not only its answer
        return next(iter(asked or [one for one in named if one.batch == state.batch]), None)


def _decoded(state: bytes) -> State:
    try:
        return msgspec.json.decode(state, type=State) if state else State()
    except msgspec.DecodeError:
        return State()
