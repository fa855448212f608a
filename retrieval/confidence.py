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
WEAK = 0.3
#: Hits that are looked at.
_FIRST = 3
#: Models whose cosines the weights below were fitted on; those of others mean something else.
_FITTED = frozenset({MINILM_STAMP, MINILM_INT8_STAMP})
#: Weights of a logistic regression: cosine, words held, words unknown, constant.
#: Source: `python -m benchmarks.quality`, on labelled questions asked of memories with and without
#: their answers; weights of one set tell the other's apart as well.
_WITH_VECTORS = (12.8, 4.3, -2.2, -6.4)
_WORDS_ALONE = (0.0, 5.8, -2.3, -1.5)
#: Words that make a question and say nothing of what it is about.
_SMALL_WORDS = """
a about again am an and any are as at be because been but by can could did do does doing done for
from had has have having how i if in into is it its just me my no not of often on or our ours she
should so some than that the their them then there these they this those to too up us was we were
what when where whether which while who whom whose why will with without would you your
"""
#: A question that stands word for word in a hit, and has so many characters, is answered.
_TELLING_CHARS = 12
_VERBATIM = 0.95


def confidence(question: str, hits: Sequence[Hit], memory: MemoryView) -> float:
    """Return, in 0..1, how likely it is that one of the first hits answers the question.

    Args:
        question: Its subject; "" for one that only names a session, whose hits are what it asks.
        hits: Best first.
        memory: Where they were found.
    """
    first = hits[:_FIRST]
    if not first:
        return 0.0
    if not question:
        return _VERBATIM
    text = shorten(question, WORDS_CHARS)
    coverage = memory.words.coverage(text, [hit.text for hit in first], ignored=_SMALL_WORDS)
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
