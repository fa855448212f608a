"""Replays what sessions did to one file and remembers which call wrote each of its lines.

What is known of a file is either its *whole* text (after a write or a read of all of it) or
*pieces* of it (the surroundings of edits, parts that were read). Every state that was passed is
kept as a `Witness`, since the file that is asked about may be an older one.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct

from funes_ls.indexer.facts import FileEvent
from funes_ls.indexer.facts_lines import is_weak, line_key, split_lines, unix
from funes_ls.retrieval.diff import Pairs, pairs
from funes_ls.retrieval.sed import apply_sed

#: The mark of a line that no known call wrote.
NOBODY = -1
#: So many earlier states of a file are searched for lines that are back.
_LOOKED_BACK = 8
#: The mark of a line that was not there before, until it is known whose it is.
_NEW = -2
#: Lines around a change that are kept with it.
_AROUND = 8
#: Lines of whole states kept of one file; later states are kept as what changed.
_MOST_LINES = 60_000
#: Of longer files the last state alone is kept.
_LONG = 20_000
#: Of an edit's text that is not there word for word, so many lines must be.
_ENOUGH_THERE = 0.5


class Witness(Struct, frozen=True, kw_only=True):
    """A stretch of the file as it was after an event.

    Attributes:
        event: Index of the event.
        keys: Of its lines; see `line_key`.
        marks: Who wrote each line, an index into `History.written`, or `NOBODY`.
        whole: It is all of the file.
        lines: Verbatim.
        telling: The keys that say something by themselves.
    """

    event: int
    keys: list[str]
    marks: list[int]
    whole: bool
    lines: list[str]
    telling: frozenset[str]


class History(Struct, kw_only=True):
    """What a replay found out.

    Attributes:
        events: What was replayed.
        written: The index of the event that wrote a line, by the line's mark.
        states: The whole file after each change, oldest first.
        windows: What each event changed or saw, with the lines around it, oldest first.
        pieces: What is known in the end where the whole is not.
        replaced: Lines that an edit took away, by the edit's index; see `has_replaced`.
    """

    events: Sequence[Any] = ()
    written: list[int] = []
    states: list[Witness] = []
    windows: list[Witness] = []
    pieces: list[Witness] = []
    replaced: dict[int, frozenset[str]] = {}

    @property
    def size(self) -> int:
        """Return how many lines its states and windows have."""
        return sum(len(one.lines) for one in (*self.states, *self.windows))

    @property
    def suffix(self) -> str:
        """Return what the file's name ends with, such as `.py`."""
        return PurePosixPath(self.events[-1].path).suffix if self.events else ""

    def has_replaced(self, mark: int, line: str) -> bool:
        """Tell whether the edit that wrote a line took away this very one: it only indented it."""
        return line in self.replaced.get(self.written[mark], ())

    def author(self, mark: int) -> Any:
        """Return the event that wrote a line, by its mark."""
        return self.events[self.written[mark]]


class _Text:
    """Lines, their keys, and who wrote them."""

    def __init__(self, keys_of: "_Keys", lines: list[str], marks: list[int]) -> None:
        self._keys_of = keys_of
        self.lines = keys_of.shared(lines)
        self.keys = keys_of.all(lines)
        self.marks = marks

    def copy(self) -> "_Text":
        return _Text(self._keys_of, self.lines[:], self.marks[:])

    def witness(self, index: int, low: int, high: int, *, whole: bool = False) -> Witness:
        """Return what a part of the text is after an event."""
        keys = self.keys[low:high]
        return Witness(
            event=index,
            keys=keys,
            marks=self.marks[low:high],
            whole=whole,
            lines=self.lines[low:high],
            telling=self._keys_of.telling(keys),
        )

    @property
    def end(self) -> int:
        """Return how many lines there are: the end of the last one begins no other."""
        return len(self.lines) - (1 if self.lines and not self.lines[-1] else 0)

    def put(self, first: int, last: int, lines: list[str], marks: list[int]) -> None:
        """Replace the lines from `first` up to `last`."""
        self.lines[first:last] = self._keys_of.shared(lines)
        self.keys[first:last] = self._keys_of.all(lines)
        self.marks[first:last] = marks


class _Keys:
    """Keys of lines, each worked out once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._lines: dict[str, str] = {}
        self._is_weak: dict[str, bool] = {}

    def all(self, lines: Iterable[str]) -> list[str]:
        known, keys = self._known, []
        for line in lines:
            key = known.get(line)
            if key is None:
                key = known[line] = line_key(line)
                self._is_weak[key] = is_weak(key)
            keys.append(key)
        return keys

    def shared(self, lines: Iterable[str]) -> list[str]:
        """Return lines as the same objects wherever they are the same text."""
        return [self._lines.setdefault(line, line) for line in lines]

    def is_weak(self, line: str) -> bool:
        return self._is_weak[self.all((line,))[0]]

    def telling(self, keys: Iterable[str]) -> frozenset[str]:
        weak = self._is_weak
        return frozenset(key for key in keys if not weak[key])


def replay(
    events: Sequence[FileEvent], *, path_of: Callable[[FileEvent], str] | None = None
) -> History:
    """Return the history of a file from what sessions did to it.

    Args:
        events: Oldest first. Those of other files matter where this one was moved or copied from.
        path_of: Names the file of an event; those of the last event's file are followed.
    """
    name = path_of or (lambda event: event.path)
    if not events:
        return History()
    shared = History(events=events)
    files: dict[str, _File] = {}
    keys = _Keys()
    wanted = name(events[-1])
    for index, event in enumerate(events):
        if event.kind == "edit" and event.old:
            old, new = (frozenset(split_lines(text)) for text in (event.old, event.new))
            shared.replaced[index] = old - new
        file = files.setdefault(name(event), _File(shared, keys, is_kept=name(event) == wanted))
        if event.kind in ("move", "copy") and event.source:
            source = files.get(event.source)
            if source is not None:
                file.take_over(source, index)
        else:
            file.apply(event, index)
    files[wanted].finish(len(events) - 1)
    return shared


class _File:
    """One file while its history is replayed."""

    def __init__(self, history: History, keys: _Keys, *, is_kept: bool) -> None:
        self._history = history
        self._keys = keys
        self._is_kept = is_kept
        self._main: _Text | None = None
        self._gone: _Text | None = None
        self._pieces: list[_Text] = []
        self._kept_lines = 0
        self._to_keep: int | None = None

    def apply(self, event: FileEvent, index: int) -> None:
        match event.kind:
            case "write":
                self._write(split_lines(event.new), index)
            case "edit":
                self._edit(event, index)
            case "append":
                self._append(split_lines(event.new), index)
            case "read":
                self._read(event, index)
            case "sed":
                self._run_sed(event, index)
            case "delete":
                if self._to_keep is not None:
                    self._keep_state(self._to_keep, in_any_case=True)
                # What is written there again soon is mostly what was there.
                self._gone = self._main or self._gone
                self._main, self._pieces = None, []

    def take_over(self, source: "_File", index: int) -> None:
        """Be what another file is: it was moved or copied here."""
        self._main = source._main.copy() if source._main else None
        self._pieces = [piece.copy() for piece in source._pieces]
        if self._main:
            self._keep_state(index)

    def finish(self, index: int) -> None:
        """Leave what is known in the end."""
        if self._to_keep is not None:
            self._keep_state(self._to_keep, in_any_case=True)
        if self._main is None:
            self._history.pieces = [one.witness(index, 0, len(one.lines)) for one in self._pieces]

    # What calls do

    def _write(self, lines: list[str], index: int) -> None:
        marks = self._known_marks(lines)
        if not lines[-1]:
            marks[-1] = NOBODY  # the end of the last line, no line
        self._sign(marks, index)
        self._main, self._pieces = _Text(self._keys, lines, marks), []
        self._keep_state(index)
        self._keep_window(self._main, 0, len(lines), index)

    def _edit(self, event: FileEvent, index: int) -> None:
        old, new = unix(event.old), unix(event.new)
        texts = [self._main] if self._main else []
        texts += reversed(self._pieces)
        if old:
            for text in texts:
                if self._replace(text, old, new, index, every=event.every):
                    return
            if self._main and self._resync(self._main, old.split("\n")):
                self._replace(self._main, old, new, index, every=False)
                return
        self._add_piece(old, new, index)

    def _append(self, lines: list[str], index: int) -> None:
        marks = [_NEW if line or n < len(lines) - 1 else NOBODY for n, line in enumerate(lines)]
        self._sign(marks, index)
        text = self._main
        if text is None:
            self._pieces.append(text := _Text(self._keys, [], []))
        start = len(text.lines)
        while start and not text.lines[start - 1]:
            start -= 1
        text.put(start, len(text.lines), lines, marks)
        self._keep_window(text, start, len(text.lines), index)
        if text is self._main:
            self._keep_state(index)

    def _run_sed(self, event: FileEvent, index: int) -> None:
        for text in [self._main] if self._main else self._pieces:
            after = apply_sed(text.lines, event.new, extended=event.every)
            if after is not text.lines and after != text.lines:
                self._put(text, 0, len(text.lines), after, index)
                self._keep_window(text, 0, len(text.lines), index)
        self._keep_state(index)

    def _read(self, event: FileEvent, index: int) -> None:
        lines = split_lines(event.new)
        if event.whole:
            is_news = self._main is None or self._main.lines != lines
            marks = _settled(self._returned(lines, self._known_marks(lines)))
            self._main, self._pieces = _Text(self._keys, lines, marks), []
            if is_news:
                self._keep_state(index)
                self._keep_window(self._main, 0, len(lines), index)
        elif self._main is None:
            self._see(lines, index)
        elif event.first_line:
            self._see_part(self._main, lines, event.first_line - 1, index)

    def _see(self, lines: list[str], index: int) -> None:
        """Take in a part of a file that is not known whole."""
        text = _Text(self._keys, lines, _settled(self._known_marks(lines)))
        self._pieces.append(text)
        self._keep_window(text, 0, len(lines), index)

    def _see_part(self, main: _Text, lines: list[str], start: int, index: int) -> None:
        """Take in what somebody else changed since, where the place is sure."""
        end = start + len(lines)
        if main.lines[start:end] == lines:
            return
        low, high = max(start - 200, 0), end + 200
        there = pairs(main.lines[low:high], lines)
        if len(there) < _ENOUGH_THERE * len(lines):
            return
        first, last = low + there[0][0] - there[0][1], low + there[-1][0] + 1
        last += len(lines) - 1 - there[-1][1]
        first, last = max(first, 0), min(last, len(main.lines))
        if main.lines[first].lstrip() == lines[0]:  # stored texts begin without their spaces
            lines = [main.lines[first], *lines[1:]]
        marks = _carried(main.lines[first:last], main.marks[first:last], lines)
        main.put(first, last, lines, _settled(marks))
        self._keep_state(index)

    # How texts change

    def _replace(self, text: _Text, old: str, new: str, index: int, *, every: bool) -> bool:
        whole = "\n".join(text.lines)
        places = _all_places(whole, old) if every else [_place(whole, old)]
        if not places or places[0] < 0:
            return False
        changes = _replaced(whole, old, new, places)
        behind = len(text.lines) - changes[-1][1]
        # From the end on, so that what is before keeps its place.
        for first, last, after in reversed(changes):
            self._put(text, first, last, after, index)
        self._keep_window(text, changes[0][0], len(text.lines) - behind, index)
        if text is self._main:
            self._keep_state(index)
        return True

    def _put(self, text: _Text, first: int, last: int, after: list[str], index: int) -> None:
        marks = _carried(text.lines[first:last], text.marks[first:last], after)
        self._sign(marks, index)
        text.put(first, last, after, marks)

    def _resync(self, text: _Text, old: list[str]) -> bool:
        """Make a text hold what an edit says is there, where most of it is."""
        there = _solid(pairs(text.lines, old), old, self._keys)
        if len(there) < _ENOUGH_THERE * len(old):
            return False
        first, last = there[0][0], there[-1][0] + 1
        if last - first > 2 * len(old) + 4:
            return False
        marks = _carried(text.lines[first:last], text.marks[first:last], old)
        text.put(first, last, old, _settled(marks))
        return True

    def _add_piece(self, old: str, new: str, index: int) -> None:
        before, after = old.split("\n") if old else [], new.split("\n")
        if not old and not after[-1]:
            del after[-1]  # whole lines were put in: their end begins no other
        marks = _carried(before, [NOBODY] * len(before), after)
        self._sign(marks, index)
        text = _Text(self._keys, after, marks)
        self._pieces.append(text)
        self._keep_window(text, 0, len(after), index)

    def _known_marks(self, lines: list[str]) -> list[int]:
        """Return who wrote a text's lines as far as they were there before."""
        main = self._main or self._gone
        marks = _carried(main.lines, main.marks, lines) if main else [_NEW] * len(lines)
        for piece in self._pieces:  # newer ones last: they know better
            for i, j in _solid(pairs(piece.lines, lines), lines, self._keys):
                if marks[j] == _NEW or piece.marks[i] != NOBODY:
                    marks[j] = piece.marks[i]
        return marks

    def _returned(self, lines: list[str], marks: list[int]) -> list[int]:
        """Give lines that somebody has brought back the marks they had when they went."""
        states = self._history.states[-_LOOKED_BACK:] if self._is_kept else []
        for state in reversed(states):
            rows = zip(marks, lines, strict=True)
            if not any(mark == _NEW and not self._keys.is_weak(line) for mark, line in rows):
                break
            for i, j in _solid(pairs(state.lines, lines), lines, self._keys):
                if marks[j] == _NEW:
                    marks[j] = state.marks[i]
        return marks

    def _sign(self, marks: list[int], index: int) -> None:
        """Give every line that was not there before a mark of its own."""
        for n, mark in enumerate(marks):
            if mark == _NEW:
                marks[n] = len(self._history.written)
                self._history.written.append(index)

    # What is remembered

    def _keep_state(self, index: int, *, in_any_case: bool = False) -> None:
        main = self._main
        if main is None or not self._is_kept:
            return
        if len(main.lines) > _LONG and not in_any_case:
            self._to_keep = index
            return
        self._to_keep = None
        states = self._history.states
        if states and states[-1].event == index:
            self._kept_lines -= len(states.pop().lines)
        if self._kept_lines + len(main.lines) > _MOST_LINES and len(states) > 1:
            self._kept_lines -= len(states.pop(len(states) // 2).lines)
        self._kept_lines += len(main.lines)
        states.append(main.witness(index, 0, main.end, whole=True))

    def _keep_window(self, text: _Text, start: int, end: int, index: int) -> None:
        if self._is_kept:
            high = end + _AROUND
            if text is self._main:
                high = min(high, text.end)
            window = text.witness(index, max(start - _AROUND, 0), high)
            self._history.windows.append(window)


def _place(whole: str, old: str) -> int:
    """Return where a text stands, as whole lines if it does anywhere, -1 for nowhere."""
    if whole.startswith(f"{old}\n"):
        return 0
    place = whole.find(f"\n{old}\n")
    return place + 1 if place >= 0 else whole.find(old)


def _all_places(whole: str, old: str) -> list[int]:
    """Return every place where a text stands; none lies within another."""
    places = []
    place = whole.find(old)
    while place >= 0:
        places.append(place)
        place = whole.find(old, place + len(old))
    return places


def _replaced(
    whole: str, old: str, new: str, places: Sequence[int]
) -> list[tuple[int, int, list[str]]]:
    """Return what becomes of the lines that hold these places: the first, the one behind, the new.

    Places on one line are replaced together.
    """
    found: list[tuple[int, int, list[str]]] = []
    n = line = seen = 0
    while n < len(places):
        line += whole.count("\n", seen, places[n])
        parts, at, last = [], whole.rfind("\n", 0, places[n]) + 1, line
        line_end = places[n]
        while n < len(places) and places[n] <= line_end:
            parts += [whole[at : places[n]], new]
            last += old.count("\n")
            at = places[n] + len(old)
            line_end = whole.find("\n", at)
            line_end = len(whole) if line_end < 0 else line_end
            n += 1
        after = ("".join(parts) + whole[at:line_end]).split("\n")
        found.append((line, last + 1, after))
        line, seen = last, at
    return found


def _carried(before: Sequence[str], marks: Sequence[int], after: Sequence[str]) -> list[int]:
    """Return the marks of the lines that stayed, `_NEW` for the others."""
    carried = [_NEW] * len(after)
    for i, j in pairs(before, after):
        carried[j] = marks[i]
    return carried


def _settled(marks: list[int]) -> list[int]:
    """Return marks in which what was not there before is nobody's."""
    return [NOBODY if mark == _NEW else mark for mark in marks]


def _solid(found: Pairs, lines: Sequence[str], keys: _Keys) -> Pairs:
    """Return the pairs of runs that hold at least one line that says something."""
    return [
        pair
        for run in runs(found)
        if any(not keys.is_weak(lines[j]) for _, j in run)
        for pair in run
    ]


def runs(found: Iterable[tuple[int, int]]) -> list[Pairs]:
    """Cut pairs where a line is left out on either side."""
    cut: list[Pairs] = []
    last = (-2, -2)
    for i, j in found:
        if not cut or (i - 1, j - 1) != last:
            cut.append([])
        cut[-1].append((i, j))
        last = (i, j)
    return cut
