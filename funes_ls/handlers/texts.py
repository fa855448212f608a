"""Open documents as LSP means them: lines end at LF, CRLF or CR alone, positions as agreed.

pygls splits lines wherever Python does (at form feeds and more), so that edits behind such a
character land in the wrong place. These documents do not, and they keep what was edited, so that
what was computed for an older text can be placed in the text of now.
"""

import itertools
import re
import time
from collections import deque
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lsprotocol import types
from msgspec import Struct
from pygls.workspace import TextDocument, Workspace

if TYPE_CHECKING:
    from funes_ls.protocol import Position, Range

_LINE_END = re.compile(r"\r\n|\n|\r")
#: What was computed before so many edits is computed anew.
_MOST_EDITS = 2_000
#: Encoding that the client counts in -> how Python calls it, and bytes a unit.
_CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


class State(Struct, frozen=True, kw_only=True):
    """A document's text at a moment; None stands for a file as it lies on disk."""

    document: "OpenText | None"
    moment: int

    @property
    def text(self) -> str | None:
        """Return the text; its lines end at LF. Only that of now can be had."""
        return None if self.document is None else self.document.plain


#: The document that the request under way is about, and its state when the request came: its
#: positions are of that text, whatever has come since.
ASKED: ContextVar[tuple[str, State] | None] = ContextVar("asked", default=None)


class Edit(Struct, frozen=True, kw_only=True):
    """Lines `first` to `last` (from 0) became one line and `added` more.

    Attributes:
        keeps_first: Something before the edited part of the first line stayed.
        keeps_last: The last line stayed whole, at the end of what was put in.
        is_apart: And what was put in before it is on lines of its own.
    """

    first: int
    last: int
    added: int
    keeps_first: bool
    keeps_last: bool
    is_apart: bool

    def line(self, number: int) -> int | None:
        """Return where a line is after the edit, None when it is no more."""
        if number < self.first:
            return number
        if number > self.last or (number == self.last and self.keeps_last):
            return number + self.added - (self.last - self.first)
        if number == self.first and (self.keeps_first or self.first == self.last):
            return number
        return None if number > self.first or self.added == 0 else number

    def before(self, number: int) -> int | None:
        """Return where a line was before the edit, None when the edit has touched it."""
        if number < self.first:
            return number
        last = self.first + self.added
        if number > last or (number == last and self.is_apart):
            return number - self.added + (self.last - self.first)
        return None


class OpenText(TextDocument):
    """A document that the client has open."""

    def __init__(self, *args: Any, **more: Any) -> None:
        """Keep a document; see pygls."""
        super().__init__(*args, **more)
        #: How many edits there have been; the text at a moment never changes.
        self.moment = 0
        #: When it was last edited, by the monotonic clock.
        self.edited_at = 0.0
        self._edits: deque[Edit] = deque(maxlen=_MOST_EDITS)
        self._starts: tuple[str, list[int]] = ("", [0])

    @property
    def starts(self) -> list[int]:
        """Return the offset at which each line begins; there is one line at least."""
        text = self.source
        if self._starts[0] is not text:
            self._starts = (text, [0, *(found.end() for found in _LINE_END.finditer(text))])
        return self._starts[1]

    @property
    def lines(self) -> Sequence[str]:
        """Return the lines with their ends."""
        text = self.source
        return tuple(text[a:b] for a, b in itertools.pairwise([*self.starts, len(text)]))

    @property
    def plain(self) -> str:
        """Return the text with lines that all end at LF."""
        return _LINE_END.sub("\n", self.source) if "\r" in self.source else self.source

    def line(self, number: int) -> str:
        """Return a line without its end, "" when there is none."""
        starts, text = self.starts, self.source
        if not 0 <= number < len(starts):
            return ""
        ends = starts[number + 1] if number + 1 < len(starts) else len(text)
        return text[starts[number] : ends].rstrip("\r\n")

    def text_of(self, first: int, last: int) -> str:
        """Return the text of lines, both included, without its end."""
        return "\n".join(self.line(one) for one in range(first, last + 1))

    def offset(self, position: "Position | types.Position") -> int:
        """Return where a position is in the text; what is beyond a line's end is its end."""
        if position.line >= len(self.starts):
            return len(self.source)
        line = self.line(position.line)
        if line.isascii():
            return self.starts[position.line] + min(position.character, len(line))
        codec, width = _CODECS.get(self.position_codec.encoding or "", _CODECS["utf-16"])
        data = line.encode(codec, "surrogatepass")[: position.character * width]
        # Within a character is before it.
        return self.starts[position.line] + len(data.decode(codec, "ignore"))

    def within(self, place: "Range | types.Range") -> str:
        """Return the text of a stretch."""
        return self.source[self.offset(place.start) : self.offset(place.end)]

    def apply_change(self, change: types.TextDocumentContentChangeEvent) -> None:
        """Change the text as the client says."""
        if isinstance(change, types.TextDocumentContentChangePartial):
            edit = self._replace(change.range, change.text)
        else:
            edit = self._replace_all(change.text)
        self._edits.append(edit)
        self.moment += 1
        self.edited_at = time.monotonic()

    def now(self, number: int, *, moment: int) -> int | None:
        """Return where a line of an earlier moment is now, None when it is no more.

        Raises:
            LookupError: that moment is too long ago.
        """
        found: int | None = number
        for edit in self._since(moment):
            found = edit.line(found) if found is not None else None
        return found

    def then(self, number: int, *, moment: int) -> int | None:
        """Return where a line of now was at an earlier moment, None when it was not yet.

        Raises:
            LookupError: that moment is too long ago.
        """
        found: int | None = number
        for edit in reversed(self._since(moment)):
            found = edit.before(found) if found is not None else None
        return found

    def _since(self, moment: int) -> Sequence[Edit]:
        past = self.moment - moment
        if not 0 <= past <= len(self._edits):
            raise LookupError(moment)
        return list(itertools.islice(self._edits, len(self._edits) - past, None))

    def _replace(self, place: types.Range, text: str) -> Edit:
        start, end = self.offset(place.start), self.offset(place.end)
        most = len(self.starts) - 1
        first, last = min(place.start.line, most), min(place.end.line, most)
        keeps_first = start > self.starts[first]
        keeps_last = end == self.starts[last] and (last > first or start == end)
        is_closed = text.endswith(("\n", "\r")) if text else not keeps_first
        edit = Edit(
            first=first,
            last=last,
            added=len(_LINE_END.findall(text)),
            keeps_first=keeps_first,
            keeps_last=keeps_last,
            is_apart=keeps_last and is_closed,
        )
        self._source = self.source[:start] + text + self.source[end:]
        return edit

    def _replace_all(self, text: str) -> Edit:
        """Replace the text; the lines that both have at their beginning and end stayed."""
        old, self._source = self.lines, text
        new = self.lines
        most = min(len(old), len(new))
        begin = _alike(old, new, most)
        end = _alike(old[::-1], new[::-1], most - begin)
        return Edit(
            first=begin,
            last=len(old) - end,
            added=len(new) - end - begin,
            keeps_first=False,
            keeps_last=True,
            is_apart=True,
        )


def _alike(left: Sequence[str], right: Sequence[str], most: int) -> int:
    pairs = itertools.islice(zip(left, right, strict=False), most)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def state_of(workspace: Workspace, uri: str) -> State:
    """Return the state of a document now."""
    document: OpenText | None = workspace.text_documents.get(unquote(uri))
    return State(document=document, moment=document.moment if document else 0)


def keep_texts(workspace: Workspace) -> None:
    """Have a workspace keep documents of this kind."""

    def create(
        doc_uri: str,
        source: str | None = None,
        version: int | None = None,
        language_id: str | None = None,
    ) -> TextDocument:
        return OpenText(
            doc_uri,
            source=source,
            version=version,
            language_id=language_id,
            position_codec=workspace.position_codec,
        )

    workspace._create_text_document = create  # type: ignore[method-assign]  # no other way in
