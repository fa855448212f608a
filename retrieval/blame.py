"""Says which call wrote each line of a file, from what sessions did to it."""

from collections import Counter, defaultdict
from collections.abc import Container, Sequence
from typing import Any, Literal

from msgspec import Struct

from funes_ls.indexer.facts_lines import key_of, split_lines
from funes_ls.retrieval.blame_similar import similar
from funes_ls.retrieval.diff import pairs
from funes_ls.retrieval.replay import NOBODY, History, Witness, runs

Word = Literal["exact", "moved", "similar"]

#: Lines on each side that are compared to tell places apart.
_CONTEXT = 4
#: So many of the newest views of one written line are compared.
_MOST_VIEWS = 12
#: Of lines that stand in a text more often than this, no more are compared with each other.
_MOST_TWINS = 50
#: A line that stands alone, and elsewhere too, must have so many signs to be known again.
_LONG_LINE = 25


class Claim(Struct, frozen=True, kw_only=True):
    """A line's origin: the event that wrote it, how sure that is, and what says so."""

    event: Any
    word: Word
    evidence: str = "trace"


class Document:
    """A file's lines as they are asked about, and what is known of each.

    Attributes:
        keys: Of its lines.
        counts: How often each key stands in the document.
        weak: Which of them say nothing by themselves.
        telling: The keys that are not weak.
        claims: By line; None where nothing claims it.
        untimed: Sessions whose times are no more than guesses.
        explained: Lines that need no further search: claimed, or known to be nobody's.
    """

    def __init__(self, text: str, *, not_after: Sequence[int | None] = ()) -> None:
        """Cut a text into lines, of which nothing is known yet.

        Args:
            text: Of the file, unsaved changes included.
            not_after: When each line was there at the latest, UTC microseconds, None where that is
                not known; lines that are left out are not known.
        """
        self.lines = split_lines(text)
        if not self.lines[-1]:  # a line end at the very end begins no other line
            del self.lines[-1]
        judged = [key_of(line) for line in self.lines]
        self.keys = [key for key, _ in judged]
        self.weak = [weak for _, weak in judged]
        self.telling = frozenset(
            key for key, weak in zip(self.keys, self.weak, strict=True) if not weak
        )
        self.not_after = not_after
        self.untimed: Container[str] = ()
        self.counts = Counter(self.keys)
        self.claims: list[Claim | None] = [None] * len(self.lines)
        self.explained = [False] * len(self.lines)

    def left(self) -> set[str]:
        """Return the telling keys of lines that nothing explains yet."""
        rows = zip(self.keys, self.weak, self.explained, strict=True)
        return {key for key, weak, done in rows if not (weak or done)}

    def allows(self, line: int, event: Any) -> bool:
        """Tell whether an event is early enough to have written a line."""
        limit = self.not_after[line] if line < len(self.not_after) else None
        if limit is None or event.ts_us is None or event.ts_us <= limit:
            return True
        return bool(self.untimed) and event.session_id in self.untimed

    def explain(self, line: int, claim: Claim | None) -> None:
        """Settle a line; None is for what nobody of ours wrote."""
        self.claims[line] = claim
        self.explained[line] = True


def blame(document: Document, history: History) -> None:
    """Fill a document's claims from the history of its own file."""
    used: set[int] = set()
    best, _ = best_state(document, history)
    if best is not None:
        _match(document, best, history, used)
    _match_windows(document, history, used)
    if best is not None:
        for line, event in similar(document, best, history).items():
            if document.allows(line, history.events[event]):
                document.explain(line, Claim(event=history.events[event], word="similar"))


def best_state(document: Document, history: History) -> tuple[Witness | None, float]:
    """Return the known state of a file that is most like a document, the newest of equals.

    Returns:
        The state and how much of both texts is the same, from 0 to 1.
    """
    states = history.states
    if history.pieces:
        states = [*states, _assembled(document, history)]
    here = document.telling
    best, most = None, 0.0
    for state in reversed(states):
        both = len(here & state.telling)
        score = 2 * both / max(len(here) + len(state.telling), 1)
        if score > most:
            best, most = state, score
    return best, most


def _assembled(document: Document, history: History) -> Witness:
    """Return the pieces that are known of a file as one text, in the document's order."""
    first = {key: n for n, key in reversed(list(enumerate(document.keys)))}
    weak = document.weak

    def place(piece: Witness) -> int:
        places = [first[key] for key in piece.keys if key in first and not weak[first[key]]]
        return min(places, default=len(first))

    pieces = sorted(history.pieces, key=place)
    return Witness(
        event=max(piece.event for piece in pieces),
        keys=[key for piece in pieces for key in piece.keys],
        marks=[mark for piece in pieces for mark in piece.marks],
        whole=False,
        telling=document.telling.intersection(key for piece in pieces for key in piece.keys),
        lines=[line for piece in pieces for line in piece.lines],
    )


def _match(document: Document, state: Witness, history: History, used: set[int]) -> None:
    for run in runs(pairs(state.keys, document.keys)):
        if not state.whole and not _says_something(document, [j for _, j in run]):
            continue
        for i, j in run:
            _explain(document, j, state.marks[i], history, used)


def _says_something(document: Document, lines: Sequence[int]) -> bool:
    """Tell whether lines, found again, prove anything: weak ones, or one of many, do not."""
    strong = [document.keys[line] for line in lines if not document.weak[line]]
    if len(strong) == len(lines) == 1:
        return len(strong[0]) >= _LONG_LINE or document.counts[strong[0]] == 1
    return bool(strong)


def _explain(document: Document, line: int, mark: int, history: History, used: set[int]) -> bool:
    """Settle a line by who wrote it, unless it is settled, or that is later than the line."""
    if document.explained[line]:
        return False
    if mark == NOBODY:
        document.explain(line, None)
        return True
    if not may_claim(document, line, mark, history):
        return False
    used.add(mark)
    document.explain(line, Claim(event=history.author(mark), word="exact"))
    return True


def may_claim(document: Document, line: int, mark: int, history: History) -> bool:
    """Tell whether the event behind a mark can have written a line that is like the one it wrote.

    It cannot when the line was there before it, or is what the event took away to indent it.
    """
    if not document.allows(line, history.author(mark)):
        return False
    return not history.has_replaced(mark, document.lines[line])


def _match_windows(document: Document, history: History, used: set[int]) -> None:
    """Explain what is left by the surroundings of single events: longest context, then newest."""
    places = _places(document, history)
    found = []
    for line, candidates in places.items():
        best = max(
            (_context(document, line, window, n), window.event, w, n) for w, window, n in candidates
        )
        found.append((best, line))
    for (context, _, w, n), line in sorted(found, reverse=True):
        if document.explained[line]:
            continue
        window = history.windows[w]
        mark = window.marks[n]
        if context == 0 and not _says_something(document, [line]):
            continue
        if mark in used:
            continue
        if not _explain(document, line, mark, history, used):
            continue
        for step in (-1, 1):
            _along(document, line, window, n, step, history, used)


def _places(document: Document, history: History) -> dict[int, list[tuple[int, Witness, int]]]:
    wanted: dict[str, list[int]] = defaultdict(list)
    for line, key in enumerate(document.keys):
        if not document.explained[line] and not document.weak[line]:
            wanted[key].append(line)
    wanted = {key: lines[:_MOST_TWINS] for key, lines in wanted.items()}
    places: dict[int, list[tuple[int, Witness, int]]] = defaultdict(list)
    seen: Counter[tuple[int, int]] = Counter()
    for w in range(len(history.windows) - 1, -1, -1) if wanted else ():
        window = history.windows[w]
        if window.telling.isdisjoint(wanted):
            continue
        twins: Counter[str] = Counter()
        for n, key in enumerate(window.keys):
            if key not in wanted or twins[key] >= _MOST_TWINS:
                continue
            twins[key] += 1
            for line in wanted[key]:
                mark = window.marks[n]
                seen[line, mark] += 1
                if seen[line, mark] > _MOST_VIEWS:
                    continue
                if mark == NOBODY or may_claim(document, line, mark, history):
                    places[line].append((w, window, n))
    return places


def _context(document: Document, line: int, window: Witness, n: int) -> int:
    return _run(document.keys, line, window.keys, n, 1) + _run(
        document.keys, line, window.keys, n, -1
    )


def _run(here: Sequence[str], i: int, there: Sequence[str], j: int, step: int) -> int:
    count = 0
    while count < _CONTEXT:
        i, j = i + step, j + step
        if not (0 <= i < len(here) and 0 <= j < len(there)) or here[i] != there[j]:
            break
        count += 1
    return count


def _along(
    document: Document,
    line: int,
    window: Witness,
    n: int,
    step: int,
    history: History,
    used: set[int],
) -> None:
    """Explain the weak lines next to an explained one, as far as both texts agree."""
    line, n = line + step, n + step
    while (
        0 <= line < len(document.keys)
        and 0 <= n < len(window.keys)
        and document.keys[line] == window.keys[n]
        and document.weak[line]
        and not document.explained[line]
        and window.marks[n] not in used
        and _explain(document, line, window.marks[n], history, used)
    ):
        line, n = line + step, n + step
