"""Finds lines again that were formatted or changed a little: the same words in the same order."""

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from funes_ls.retrieval.diff import pairs
from funes_ls.retrieval.replay import NOBODY, History, Witness

if TYPE_CHECKING:
    from funes_ls.retrieval.blame import Document

_WORD = re.compile(r"\w+")
#: So much of a line's letters must come from one event.
_ENOUGH = 0.6
#: Longer lines are no text that a person changes a word of.
_MOST_CHARS = 4_000


def similar(document: "Document", state: Witness, history: History) -> dict[int, int]:
    """Return the event behind lines that are not explained, by the words they share with a state.

    Only words between the same explained lines count.
    """
    found: dict[int, int] = {}
    for lines, others in _gaps(document, state):
        here = [(word, line) for line in lines for word in _words(document.lines[line])]
        there = [(word, n) for n in others for word in _words(state.lines[n])]
        votes: dict[int, Counter[int]] = defaultdict(Counter)
        for i, j in pairs([word for word, _ in there], [word for word, _ in here]):
            word, line = here[j]
            mark = state.marks[there[i][1]]
            votes[line][NOBODY if mark == NOBODY else history.written[mark]] += len(word)
        sizes: Counter[int] = Counter()
        for word, line in here:
            sizes[line] += len(word)
        for line, events in votes.items():
            event, count = events.most_common(1)[0]
            is_sure = event != NOBODY and count >= _ENOUGH * sizes[line]
            if is_sure and not document.explained[line]:
                found[line] = event
    return found


def _words(line: str) -> list[str]:
    return _WORD.findall(line) if len(line) <= _MOST_CHARS else []


def _gaps(document: "Document", state: Witness) -> list[tuple[list[int], list[int]]]:
    """Return lines of the document that lie between paired ones, and those of the state there."""
    gaps = []
    i = j = 0
    for a, b in [*pairs(state.keys, document.keys), (len(state.keys), len(document.keys))]:
        lines, others = list(range(j, b)), list(range(i, a))
        if lines and others and not all(document.explained[line] for line in lines):
            gaps.append((lines, others))
        i, j = a + 1, b + 1
    return gaps
