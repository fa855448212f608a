"""How likely it is that an answer's first hits answer the question at all.

A memory always has something that is nearest. Whether it is near enough shows in three things: the
meaning of the best hits, how much of the question's words they hold, and how much of it no row of
the memory knows.
"""

import math
from collections.abc import Sequence

from funes_ls.indexer.embedding import MINILM_INT8_STAMP, MINILM_STAMP
from funes_ls.indexer.memory import MemoryView
from funes_ls.retrieval.answers import Hit
from funes_ls.retrieval.query import WORDS_CHARS, shorten

#: Below this an answer is a weak match. Half of the questions it was fitted on have no answer.
WEAK = 0.35
#: Hits that are looked at.
_FIRST = 3
#: Models whose cosines the weights below were fitted on; those of others mean something else.
_FITTED = frozenset({MINILM_STAMP, MINILM_INT8_STAMP})
#: Weights of a logistic regression: cosine, words held, words unknown, constant.
#: Source: `python -m benchmarks.quality`, on labelled questions asked of memories with and without
#: their answers; weights of one set tell the other's apart as well.
_WITH_VECTORS = (13.5, 4.9, -2.4, -7.1)
_WORDS_ALONE = (0.0, 7.0, -2.6, -2.0)
#: A question that stands word for word in a hit, and has so many characters, is answered.
_TELLING_CHARS = 12
_VERBATIM = 0.95


def confidence(question: str, hits: Sequence[Hit], memory: MemoryView) -> float:
    """Return, in 0..1, how likely it is that one of the first hits answers the question.

    Args:
        question: As searched for, without its filters.
        hits: Best first.
        memory: Where they were found.
    """
    first = hits[:_FIRST]
    if not first:
        return 0.0
    text = shorten(question, WORDS_CHARS)
    coverage = memory.words.coverage(text, [hit.text for hit in first])
    cosines = [hit.explain.vector_score for hit in first if hit.explain.vector_score is not None]
    stamp = memory.dataset.stamp if memory.dataset is not None else ""
    fitted = bool(cosines) and stamp in _FITTED
    cosine, held, unknown, constant = _WITH_VECTORS if fitted else _WORDS_ALONE
    logit = held * max(coverage.held) + unknown * coverage.unknown + constant
    logit += cosine * max(cosines, default=0.0)
    sure = 1.0 / (1.0 + math.exp(-logit))
    return round(max(sure, _VERBATIM) if _stands_in(question, first) else sure, 3)


def _stands_in(question: str, hits: Sequence[Hit]) -> bool:
    """Tell whether a hit holds the question word for word."""
    asked = " ".join(question.split()).casefold()
    return len(asked) >= _TELLING_CHARS and any(
        asked in " ".join(hit.text.split()).casefold() for hit in hits
    )
