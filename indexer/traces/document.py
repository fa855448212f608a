"""Reads a trace that is one document, written anew at each change: whole, and again when changed.

What a harness makes of its document is a function that yields drafts; here they become turns. The
ids of turns come from the document, so that what did not change keeps them.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from funes_ls.indexer.model import Block, Problem, SessionMeta, Turn
from funes_ls.indexer.traces import jsonvalue, lines, texts
from funes_ls.indexer.traces.base import Unit
from funes_ls.indexer.traces.jsonl import Draft, JsonlReading
from funes_ls.indexer.traces.own import own_answer, own_call

#: A document is held in memory as a whole; one that is longer is told, not read.
MAX_BYTES = 128 << 20
#: What readers keep is looked through for secrets: it is MessagePack, whatever it says.
_RESUME = msgspec.msgpack.encode("document 1")
_STEP = 1 << 20
#: What a document that cannot be read, or is none, is told by.
BROKEN: tuple[type[Exception], ...] = (*lines.READ_ERRORS, ValueError)


class OddFormatError(ValueError):
    """A document does not have the shape its harness is known to write; says what is missing."""


class UnreadableError(ValueError):
    """A trace cannot be read to its end; says why."""


class Sheet(Struct, kw_only=True):
    """What is learnt of a session while its turns are made.

    Attributes:
        skipped: Parts that were passed over, by what they are.
        bad: Records that could not be read.
    """

    meta: SessionMeta
    workdir: str
    skipped: dict[str, int] = field(default_factory=dict)
    bad: int = 0

    def skip(self, what: str) -> None:
        """Count a part that is passed over."""
        self.skipped[what] = self.skipped.get(what, 0) + 1

    def live_in(self, cwd: Any) -> None:
        """Take a work directory, unless one is known or this is none."""
        munged = texts.munge(cwd)
        if munged is not None and not self.meta.cwd:
            self.meta.cwd, self.workdir = cwd, munged

    def entitle(self, title: Any) -> None:
        """Take a title that was given, in one line."""
        if isinstance(title, str) and title.strip():
            self.meta.title = " ".join(title.split())[:200]


class Marker:
    """Names the tools of answers, and marks calls that ask funes and what it answered."""

    def __init__(self) -> None:
        """Begin with no call known."""
        self._names: dict[str, str] = {}
        self._own: set[str] = set()

    def marked(self, block: Block) -> Block:
        """Return a block with its tool's name and whether it is funes's own."""
        call_id, name, is_own = block.tool_use_id, block.tool_name, False
        if block.block_type == "tool_use":
            asked = own_call(name, block.text)
            is_own = asked == "whole"
            if call_id is not None:
                if asked:
                    self._own.add(call_id)
                if name is not None:
                    self._names[call_id] = name
        elif block.block_type == "tool_result":
            if name is None and call_id is not None:
                name = self._names.get(call_id)
            is_own = call_id in self._own or own_answer(name, block.text)
        return msgspec.structs.replace(block, tool_name=name, own=is_own)


class DocumentReading:
    """A reading of one document, see `Reading`; it always gives the turns of the whole trace."""

    late_names = False

    def __init__(
        self,
        unit: Unit,
        sheet: Sheet,
        drafts: Callable[[Any, Unit, Sheet], Iterator[Draft]],
        *,
        resume: bytes | None = None,
        load: Callable[[Path], Any] | None = None,
    ) -> None:
        """Make a reading of a unit.

        Args:
            unit: The document.
            sheet: What its path tells of the session.
            drafts: Yields the turns; raises `OddFormatError` for an unknown shape.
            resume: State of an earlier reading; there is nothing to go on from.
            load: Returns the document, a JSON file as a rule; what cannot be read is an `OSError`
                or a `ValueError`.
        """
        self._unit, self._sheet, self._drafts = unit, sheet, drafts
        self._load = load or load_json
        self.restarted = resume is not None
        self.failed = False
        self.offset = 0

    @property
    def session(self) -> SessionMeta:
        """Return what the trace says of its session."""
        return self._sheet.meta

    @property
    def skipped(self) -> dict[str, int]:
        """Return how many parts of unknown kinds were passed over."""
        return self._sheet.skipped

    @property
    def resume(self) -> bytes:
        """Return the state for the next reading: only that there was one."""
        return b"" if self.failed else _RESUME

    def __iter__(self) -> Iterator[Turn | Problem]:
        """Yield the turns and problems of the document."""
        try:
            document = self._load(self._unit.path)
            yield from self._turns(document)
            self.offset = self._unit.size
        except OddFormatError as exc:
            yield self._problem("unknown_format", str(exc))
        except BROKEN as exc:
            self.failed = True
            yield self._problem("unreadable", _why(exc))

    def _turns(self, document: Any) -> Iterator[Turn | Problem]:
        sheet, marker, seq = self._sheet, Marker(), 0
        used: set[str] = set()
        for index, draft in enumerate(self._drafts(document, self._unit, sheet)):
            blocks = [marker.marked(block) for block in draft.blocks]
            if not blocks:
                continue
            if draft.role == "user" and not sheet.meta.title:
                sheet.meta.title = first_title(blocks)
            uuid = draft.uuid or f"{sheet.meta.session_id}-{index}"
            if uuid in used:  # ids are the key of rows: two turns must not share one
                uuid = f"{uuid}-{index}"
            used.add(uuid)
            yield Turn(
                session_id=sheet.meta.session_id,
                turn_uuid=uuid,
                parent_uuid=draft.parent,
                seq=seq,
                ts=draft.ts,
                role=draft.role,
                blocks=tuple(blocks),
                workdir=sheet.workdir,
                source_path=self._unit.container or self._unit.key,
                harness=sheet.meta.harness,
                record=index,
                ext_blocks=texts.without_nul(blocks),
            )
            seq += 1
        if sheet.bad:
            message = f"{sheet.bad} of its records cannot be read."
            yield self._problem("bad_line", message, count=sheet.bad)
        if not seq and sheet.skipped:
            yield self._problem("unknown_format", nothing_known(sheet.skipped))

    def _problem(self, kind: str, message: str, *, count: int = 1) -> Problem:
        return Problem(path=self._unit.key, kind=kind, message=message, count=count)


class WaryReading(JsonlReading):
    """A reading of a JSONL trace that tells when nothing in it has a known form."""

    def __iter__(self) -> Iterator[Turn | Problem]:
        """Yield the turns and problems of the trace."""
        empty = True
        for item in super().__iter__():
            empty = empty and not isinstance(item, Turn)
            yield item
        if empty and not self._state.seq and self.skipped:
            yield self._problem("unknown_format", nothing_known(self.skipped), 0)


def nothing_known(skipped: dict[str, int]) -> str:
    """Return what to say of a trace without a turn in it."""
    return (
        f"None of its {sum(skipped.values())} records has a known form; "
        "the agent may write another version of its format."
    )


def first_title(blocks: list[Block]) -> str:
    """Return the first text that can be a title, "" when there is none."""
    titles = (texts.title_of(block.text) for block in blocks if block.block_type == "text")
    return next((title for title in titles if title), "")


def tool_use(name: Any, given: Any, call_id: Any) -> Block:
    """Return the block of a call whose input is JSON, or text as it was sent."""
    text = given if isinstance(given, str) else jsonvalue.dumps({} if given is None else given)
    return Block(
        block_type="tool_use",
        text=text or "{}",
        tool_name=texts.string(name),
        tool_use_id=texts.string(call_id),
    )


def tool_result(text: Any, call_id: Any, name: Any = None) -> list[Block]:
    """Return the block of an answer, none for a blank one."""
    if not isinstance(text, str) or texts.is_blank(text):
        return []
    return [
        Block(
            block_type="tool_result",
            text=text,
            tool_name=texts.string(name),
            tool_use_id=texts.string(call_id),
        )
    ]


def dicts(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list, nothing for any other value."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def table(value: Any) -> dict[str, Any]:
    """Return an object, an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return a regular file's bytes.

    Raises:
        OSError: it cannot be read.
        UnreadableError: it is longer than `most`.
    """
    data = bytearray()
    with lines.open_regular(path) as file:
        while part := file.read(_STEP):
            data += part
            if len(data) > most:
                raise UnreadableError("It is too long to read.")
    return bytes(data)


def load_json(path: Path) -> Any:
    """Return the value of a JSON file, also one that only a lenient reader takes.

    Raises:
        OSError: it cannot be read.
        ValueError: it is too long, or no JSON.
    """
    data = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    try:
        return jsonvalue.parse(data)
    except ValueError:
        value, end = jsonvalue.parse_with_care(data.decode("utf-8", "replace").lstrip())
        if end == 0:
            raise
        return value


def glance_json(path: Path, most: int = 1 << 20) -> Any:
    """Return the value of a small file beside a trace, None when it tells nothing."""
    try:
        return jsonvalue.parse(read_bytes(path, most))
    except BROKEN:
        return None


def _why(exc: BaseException) -> str:
    if isinstance(exc, OSError) and exc.strerror:
        return f"{exc.strerror}."
    return str(exc) if isinstance(exc, UnreadableError) else "It is no whole JSON document."
