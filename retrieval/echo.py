"""Puts the answer before the question: who repeats a question wants what was said to it."""

import re
from collections.abc import Sequence

from funes_ls.indexer.memory import Row
from funes_ls.retrieval.fuse import Scores

#: What an echo keeps of its score, so that the reply that takes its place stands above it.
_LEFT = 0.98
#: A passage that holds less of the question than this is no echo of it, only a short remark.
_SHARE = 0.5
#: Turns within which a reply to a question is looked for.
_WITHIN_SEQS = 4
_WORD = re.compile(r"\w+")


def past_echoes(query: str, rows: Sequence[Row], scores: Scores) -> Scores:
    """Return scores where the best reply to each earlier asking of the question takes its place.

    An earlier asking is a user's text that says nothing which the question does not say.

    Args:
        query: The question.
        rows: The candidates; only replies among them are known.
        scores: Their scores, in the same order.
    """
    asked = set(_WORD.findall(query.casefold()))
    moved = scores.copy()
    for index, row in enumerate(rows):
        if _is_echo(row, asked):
            reply = _best_reply(row, rows, scores)
            if reply is not None and scores[reply] < scores[index]:
                moved[reply] = max(moved[reply], scores[index])
                moved[index] = scores[index] * _LEFT
    return moved


def _is_echo(row: Row, asked: set[str]) -> bool:
    if row.role != "user" or row.block_type != "text" or row.split_idx:
        return False
    said = set(_WORD.findall(row.text.casefold()))
    return bool(said) and said <= asked and len(said) >= _SHARE * len(asked)


def _best_reply(row: Row, rows: Sequence[Row], scores: Scores) -> int | None:
    replies = [
        index
        for index, other in enumerate(rows)
        if other.session_id == row.session_id
        and row.seq < other.seq <= row.seq + _WITHIN_SEQS
        and other.role == "assistant"
        and other.block_type == "text"
    ]
    return max(replies, key=lambda index: float(scores[index]), default=None)
