"""A question that is found gives its place to what was said to it."""

import numpy as np
import pytest

from funes_ls.indexer.memory import Row
from funes_ls.indexer.memory_read import _row
from funes_ls.retrieval.echo import answers_first
from tests.retrieval.building import said


def row(session: str, seq: int, text: str, role: str = "user") -> Row:
    return _row(said(session, seq, text, role=role), True)


def order(query: str, rows: list[Row], *scores: float) -> list[int]:
    moved = answers_first(query, rows, np.array(scores))
    return np.argsort(-moved, kind="stable").tolist()


ASKED = "which parser should we use for the journal?"


def test_the_best_reply_takes_the_place_of_a_question_that_was_asked() -> None:
    rows = [
        row("a", 4, "what would you parse the journal with?"),
        row("b", 0, "the parser of the journal is old", "assistant"),
        row("a", 5, "By hand: recursive descent.", "assistant"),
        row("a", 9, "It is done by hand now.", "assistant"),
    ]
    assert order(ASKED, rows, 0.9, 0.8, 0.3, 0.5) == [3, 0, 1, 2]


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("why is the parser slow", True),
        ("ok. What parser would you take then?", True),
        ("find a parser for the journal", True),
        ("The parser we use is pest. It is slow.", False),
        ("We agreed on pest, a grammar file is easy to read. Right?", False),
        ("Log of the parser: what " + "why is it so slow? " * 80, False),
    ],
)
def test_what_asks_moves_and_what_tells_stays(text: str, moves: bool) -> None:
    rows = [row("a", 0, text), row("a", 1, "Written by hand.", "assistant")]
    assert (order(ASKED, rows, 0.9, 0.5) == [1, 0]) == moves


def test_what_is_looked_for_word_for_word_stays_first() -> None:
    rows = [
        row("a", 0, "What is error E0308 mismatched types?"),
        row("a", 1, "A type.", "assistant"),
    ]
    assert order("error E0308 mismatched types", rows, 0.9, 0.5) == [0, 1]


@pytest.mark.parametrize(
    "reply",
    [
        row("b", 1, "In another session.", "assistant"),
        row("a", 12, "Long after.", "assistant"),
        row("a", 1, "Said by the user as well."),
    ],
)
def test_only_a_near_reply_of_the_same_session_counts(reply: Row) -> None:
    assert order(ASKED, [row("a", 2, "what parser?"), reply], 0.9, 0.5) == [0, 1]


def test_a_reply_that_hardly_fits_stays_where_it_is() -> None:
    rows = [row("a", 0, "what parser?"), row("a", 1, "Done.", "assistant")]
    assert order(ASKED, rows, 0.9, 0.1) == [0, 1]
