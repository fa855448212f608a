"""Orders the mixed candidates: priors, context, echoes, fold, rerank, age."""

import numpy as np
from msgspec import Struct

from funes_ls.indexer.memory import MemoryView, Row
from funes_ls.retrieval.answers import Explain
from funes_ls.retrieval.artefact_files import file_factors
from funes_ls.retrieval.context import with_context
from funes_ls.retrieval.echo import answers_first, past_echoes
from funes_ls.retrieval.fold import Folded, fold
from funes_ls.retrieval.fuse import Pool, Scores
from funes_ls.retrieval.lineage import lineages_of
from funes_ls.retrieval.plan import Plan
from funes_ls.retrieval.preference import newest_factors, preference_factors, with_plain_answer
from funes_ls.retrieval.prior import brevity_factors, prior_factors
from funes_ls.retrieval.recency import age_factors
from funes_ls.retrieval.rerank import Reranker


class Ranked(Struct, frozen=True, kw_only=True):
    """A passage in its final place."""

    row: Row
    score: float
    also_in: tuple[str, ...]
    repeats: int
    explain: Explain


def ranked(
    work: Plan, memory: MemoryView, pool: Pool, *, limit: int, reranker: Reranker | None = None
) -> list[Ranked]:
    """Return the passages of a pool, best first, each once and one per turn.

    Args:
        work: The question.
        memory: Where the rows are.
        pool: Candidates of both legs.
        limit: How many of them to look at.
        reranker: Rescores the top `candidates`; None leaves them.
    """
    request = work.request
    places = {chunk_id: place for place, chunk_id in enumerate(pool.ids[:limit])}
    rows = memory.rows(list(places))
    at = np.array([places[row.id] for row in rows], dtype=np.int64)
    prior = prior_factors(
        [row.block_type for row in rows],
        tool_use=request.prior_tool_use,
        tool_result=request.prior_tool_result,
    )
    prior *= brevity_factors([len(row.text) for row in rows])
    prior *= file_factors(rows, work.preferred)
    base = past_echoes(work.meaning, rows, with_context(rows, pool.fused[at] * prior))
    base = _replies_first(work, rows, base)
    favour = preference_factors(rows, work.preference)
    order = np.argsort(-base * favour, kind="stable")
    lineages = lineages_of({row.session_id for row in rows}, memory.catalog)
    passages = fold([rows[index] for index in order], lineages)
    best = order[[passage.best for passage in passages]] if passages else order
    scores = _reranked(work, passages, base[best], reranker)
    times_us = np.array([_time(passage.row) for passage in passages])
    age = age_factors(
        times_us,
        now_us=work.now_us,
        half_life_days=request.half_life_days,
        floor=request.age_floor,
    )
    if work.preference.newest:
        age *= newest_factors(times_us, scores)
    favour = favour[best]
    final = with_plain_answer(scores * age * favour, scores * age, favour)
    prior = prior[best] * favour
    return [
        _ranked(passages[n], float(final[n]), _explain(pool, int(at[best[n]]), prior[n], age[n]))
        for n in np.argsort(-final, kind="stable")
    ]


def _reranked(
    work: Plan, passages: list[Folded], scores: Scores, reranker: Reranker | None
) -> Scores:
    top = min(len(passages), max(work.request.candidates, work.request.k))
    if reranker is None or not top:
        return scores
    head = [passage.row for passage in passages[:top]]
    again = reranker.scores(
        work.meaning, [row.id for row in head], [row.text for row in head], scores[:top]
    )
    again = _replies_first(work, head, again)  # a question is like another, word for word
    # What was not rescored stays below what was.
    rest = np.minimum(scores[top:], float(again.min()))
    return np.concatenate([again, rest])


def _replies_first(work: Plan, rows: list[Row], scores: Scores) -> Scores:
    if work.inquiry is not None or work.preference.bare:
        return scores
    return answers_first(work.text, rows, scores)


def _time(row: Row) -> float:
    return float("nan") if row.ts_us is None else float(row.ts_us)


def _explain(pool: Pool, place: int, prior: float, age: float) -> Explain:
    return Explain(
        words=int(pool.words_rank[place]) or None,
        vector=int(pool.vector_rank[place]) or None,
        words_score=_known(pool.words[place]),
        vector_score=_known(pool.vector[place]),
        fused=round(float(pool.fused[place]), 4),
        prior=float(prior),
        age=round(float(age), 4),
    )


def _known(score: float) -> float | None:
    return None if np.isnan(score) else round(float(score), 4)


def _ranked(passage: Folded, score: float, explain: Explain) -> Ranked:
    return Ranked(
        row=passage.row,
        score=score,
        also_in=passage.also_in,
        repeats=passage.repeats,
        explain=explain,
    )
