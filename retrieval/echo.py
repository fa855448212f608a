"""Puts the answer before the question: who asks what was asked before wants what was said to it."""

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
#: What a user's turn keeps of its score when a reply takes its place.
_KEPT = 0.95
#: Steps within which a reply to it is looked for, and what share of its score the reply must have.
_REPLY_STEPS, _LEAST = 8, 0.25
#: Sentences that ask or order; what tells something is an answer itself.
_SENTENCE = re.compile(r"[^.!?\n]*[.!?\n]?")
_ASKS = re.compile(
    r"\?$|^\W*(?:and|so|ok|okay|but|also|now|then|good|great|thanks|hm+|well|,|\W)*\b"
    r"(?:how|why|what|which|where|when|who|whose|can|could|should|shall|is|are|was|were|do|does|did"
    r"|will|would|has|have|any|find|look|fix|make|write|add|explain|compare|show|tell|check|audit"
    r"|review|run|try|use|change|remove|get|give|help|investigate|please|reproduce|research|see)\b",
    re.IGNORECASE,
)
#: So much of a text must ask for it to be a question.
_ASKING_SHARE = 0.6
#: More is no question but what it is about: a log, a plan.
_MOST_CHARS = 1_000
#: A question of so many characters that stands in what a user said is looked for there.
_TELLING_CHARS = 12


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


def answers_first(query: str, rows: Sequence[Row], scores: Scores) -> Scores:
    """Return scores where the best reply to what a user asked takes its place, just before it.

    A question that is like this one points at the answer, and is none. What holds the query word
    for word stays, as does what nobody has replied to among the candidates.

    Args:
        query: The question.
        rows: The candidates.
        scores: Their scores, in the same order.

    Source: MRR .52 to .61 on the shipped questions, the same on public traces; performance.md.
    """
    replies: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        if row.role == "assistant" and row.block_type == "text":
            replies.setdefault(row.session_id, []).append(index)
    asked = _plain(query)
    moved = scores.copy()
    for index, row in enumerate(rows):
        if row.role != "user" or row.block_type != "text" or len(row.text) > _MOST_CHARS:
            continue
        if not _is_question(row.text) or _holds(row.text, asked):
            continue
        near = [
            reply
            for reply in replies.get(row.session_id, ())
            if row.seq < rows[reply].seq <= row.seq + _REPLY_STEPS
        ]
        best = max(near, key=lambda reply: float(scores[reply]), default=None)
        if best is not None and _LEAST * scores[index] <= scores[best] < scores[index]:
            moved[best] = max(moved[best], scores[index])
            moved[index] = min(moved[index], scores[index] * _KEPT)
    return moved


def _is_question(text: str) -> bool:
    """Tell whether most of a text asks or orders, rather than tells."""
    sentences = [one.strip() for one in _SENTENCE.findall(text) if one.strip()]
    asking = sum(len(one) for one in sentences if _ASKS.search(one))
    return asking >= _ASKING_SHARE * max(1, sum(map(len, sentences)))


def _holds(text: str, asked: str) -> bool:
    return len(asked) >= _TELLING_CHARS and asked in _plain(text)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
