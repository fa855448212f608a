"""The words leg: BM25 over stemmed words and names, from the first second on."""

import numpy as np

from funes_ls.indexer.lexical import LexicalQuery
from funes_ls.indexer.memory import MemoryView
from funes_ls.retrieval.fuse import Leg
from funes_ls.retrieval.limits import Limits
from funes_ls.retrieval.query import WORDS_CHARS, shorten


def search_words(
    memory: MemoryView,
    text: str,
    limits: Limits,
    limit: int,
    *,
    names: tuple[tuple[str, float], ...] = (),
) -> Leg:
    """Return the chunks that share most with the question's words within the limits.

    Args:
        memory: Where to look.
        text: Free text; only "double quotes" mean something.
        limits: Which rows may be found; applied before the cut.
        limit: How many.
        names: Further words and names with their weights; the rarest are asked for too.
    """
    if limits.nothing:
        return Leg(ids=[], scores=np.zeros(0))
    query = LexicalQuery(
        text=shorten(text, WORDS_CHARS),
        names=names,
        session_ids=limits.session_ids,
        block_types=limits.block_types,
        tools=limits.tools,
        harnesses=limits.harnesses,
        since_us=limits.since_us,
        until_us=limits.until_us,
    )
    found = memory.search_words(query, limit)
    return Leg(
        ids=[id_ for id_, _ in found], scores=np.array([score for _, score in found], dtype=float)
    )
