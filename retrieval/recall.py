"""Answers a question from a memory: words first, then everything that is known.

Stages, each a function of its own: plan → words → vectors → mix → prior → context → echoes →
fold → rerank → age → final form and neighbours → revisits and confidence. Between them the asker
may lose interest.
"""

import logging
import time
from collections.abc import Generator
from contextlib import closing
from datetime import tzinfo
from typing import TYPE_CHECKING

from msgspec import Struct

from funes_ls.indexer.embedding_tokens import gives_tokens
from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.memory import MemoryView
from funes_ls.retrieval import bm25, vector
from funes_ls.retrieval.answers import (
    AUTO,
    LATE,
    IsCancelled,
    RecallAnswer,
    RecallRequest,
    Scale,
    never,
)
from funes_ls.retrieval.confidence import WEAK, confidence
from funes_ls.retrieval.fuse import Leg, mix
from funes_ls.retrieval.hits import hits_of
from funes_ls.retrieval.plan import Plan, plan
from funes_ls.retrieval.preference import joined, lifted, opening
from funes_ls.retrieval.query import MODEL_CHARS, shorten
from funes_ls.retrieval.rank import ranked
from funes_ls.retrieval.rerank import Ahead, Late, Reranker
from funes_ls.retrieval.revisits import with_revisits

if TYPE_CHECKING:
    from funes_ls.indexer.embedding import Embedder

_log = logging.getLogger(__name__)

#: Chunks taken from each leg; a multiple is taken when copies leave too few hits.
LEG_POOL = 200
_WIDER = 5
_WIDEST = 5_000
_FAILURES = (FunesError, OSError, ValueError, RuntimeError)


class Question(Struct, frozen=True, kw_only=True):
    """The question as a vector, or why there is none.

    Attributes:
        vector: (dim,) float32, L2-normalised; None unless `state` is `ran`.
        tokens: (n, token_dim) float32, each of length one; None where none are compared.
        state: `ran`, `off`, `empty`, `no_model`, `wrong_model`, `pending` or `failed`.
        note: What to tell a person of it.
    """

    state: str
    tokens: "vector.Vector | None" = None
    vector: "vector.Vector | None" = None
    note: str = ""


class Legs(Struct, frozen=True, kw_only=True):
    """What the legs found, None for one that did not run, and how each fared."""

    words: Leg | None
    vector: Leg | None
    cosines: dict[str, float]
    states: dict[str, str]

    def may_hold_more(self, limit: int) -> bool:
        """Tell whether a leg was cut off at the limit."""
        return any(leg is not None and len(leg.ids) >= limit for leg in (self.words, self.vector))


class _Words(Struct, frozen=True, kw_only=True):
    """What the words leg found when it was asked for so many rows, and how it fared."""

    leg: Leg | None
    state: str
    limit: int


def recall(
    request: RecallRequest,
    memory: MemoryView,
    embedder: "Embedder | None",
    *,
    now_us: int,
    zone: tzinfo | None = None,
    cancelled: IsCancelled = never,
    reranker: Reranker | None = None,
) -> RecallAnswer:
    """Return the passages that answer a question, best first.

    Args:
        request: The question.
        memory: Where to look.
        embedder: The model of the memory's vectors, None when it is not at hand.
        now_us: UTC µs that ages and relative times count from.
        zone: The user's zone; None for the machine's.
        cancelled: Asked between stages.
        reranker: Reorders the top candidates; None for the one the request names.

    Raises:
        UsageError: The question or a filter means nothing.
        MemoryStateError: The memory lacks what a filter asks of it.
        FunesError: kind `cancelled`.
    """
    stages = recall_staged(
        request,
        memory,
        embedder,
        now_us=now_us,
        zone=zone,
        cancelled=cancelled,
        reranker=reranker,
        words_first=False,
    )
    with closing(stages):
        return next(stages)


def recall_words(
    request: RecallRequest,
    memory: MemoryView,
    *,
    now_us: int,
    zone: tzinfo | None = None,
    cancelled: IsCancelled = never,
) -> RecallAnswer:
    """Return what the words leg alone answers, in a fraction of the time; see `recall`."""
    clock = _Clock(cancelled)
    with memory.snapshot() as now:
        work = plan(request, now, now_us=now_us, zone=zone)
        clock.lap("plan")
        return _answer(work, now, Question(state="pending"), clock, None)


def recall_staged(
    request: RecallRequest,
    memory: MemoryView,
    embedder: "Embedder | None",
    *,
    now_us: int,
    zone: tzinfo | None = None,
    cancelled: IsCancelled = never,
    reranker: Reranker | None = None,
    words_first: bool = True,
) -> Generator[RecallAnswer, None, None]:
    """Yield the answer of the words leg, then the whole one, all of one generation; see `recall`.

    With a reranker that is slow the whole answer comes without it first.

    Args:
        request: The question.
        memory: Where to look.
        embedder: The model of the memory's vectors, None when it is not at hand.
        now_us: UTC µs that ages and relative times count from.
        zone: The user's zone; None for the machine's.
        cancelled: Asked between stages.
        reranker: Reorders the top candidates of the whole answer; see `recall`.
        words_first: False yields the whole answer only.
    """
    clock = _Clock(cancelled)
    with memory.snapshot() as now:
        work = plan(request, now, now_us=now_us, zone=zone)
        clock.lap("plan")
        words = _words(work, now, _first_limit(work))
        clock.lap("words")
        if words_first:
            yield _answer(work, now, Question(state="pending"), clock, None, words)
            clock = _Clock(cancelled)
        question = encode(work, now, embedder)
        clock.lap("encode")
        if words_first and reranker is not None and reranker.is_slow:
            yield _answer(work, now, question, clock, Ahead(), words)
            clock = _Clock(cancelled)
        yield _answer(work, now, question, clock, reranker, words)


def encode(work: Plan, memory: MemoryView, embedder: "Embedder | None") -> Question:
    """Return the question's vector, or why the vector leg cannot run."""
    dataset = memory.dataset
    if work.request.vector_weight <= 0.0 or work.preference.bare:  # an id has no meaning
        return Question(state="off")
    if not memory.attached:
        return Question(state="pending")
    if dataset is None or not dataset.count():
        return Question(state="empty")
    if embedder is None:
        stamp = dataset.stamp or "the memory's model"
        return Question(
            state="no_model",
            note=f"Answered by words only: {stamp} is not installed; see `funes model install`.",
        )
    if embedder.dim != dataset.dim or (dataset.stamp and embedder.stamp != dataset.stamp):
        return Question(
            state="wrong_model",
            note=f"Answered by words only: the vectors are of {dataset.stamp or 'another model'}, "
            f"not of {embedder.stamp}.",
        )
    try:
        return _encoded(work, memory, embedder)
    except _FAILURES as exc:
        _log.warning("the question could not be encoded: %s", type(exc).__name__)
        return Question(state="failed", note="Answered by words only: the model failed.")


def _encoded(work: Plan, memory: MemoryView, embedder: "Embedder") -> Question:
    """Return the question's vector, and those of its tokens where passages have theirs too."""
    text = shorten(work.meaning, MODEL_CHARS)
    is_late = work.request.rerank in (LATE, AUTO) and bool(memory.token_state().chunks)
    if is_late and gives_tokens(embedder):
        whole, tokens = embedder.encode_query_tokens(text)
        return Question(state="ran", vector=whole, tokens=tokens)
    return Question(state="ran", vector=embedder.encode_query(text))


def _words(work: Plan, memory: MemoryView, limit: int) -> "_Words":
    """Return what the words leg finds and how it fared."""
    if work.request.vector_weight >= 1.0:
        return _Words(leg=None, state="off", limit=limit)
    try:
        names = work.inquiry.names if work.inquiry is not None else ()
        leg = bm25.search_words(memory, work.text, work.limits, limit, names=names)
        if work.narrow is not None:
            leg = joined(leg, _preferred_words(work, memory, limit, leg))
    except _FAILURES as exc:
        _log.warning("the words leg failed: %s", type(exc).__name__)
        return _Words(leg=None, state="failed", limit=limit)
    return _Words(leg=leg, state="ran", limit=limit)


def _preferred_words(work: Plan, memory: MemoryView, limit: int, plain: Leg) -> Leg:
    """Return what words find of what the question prefers; of a session alone, its beginning."""
    assert work.narrow is not None
    sessions = work.preference.limits.session_ids
    if work.preference.bare and sessions:
        return opening(memory, min(sessions), score=_first(plain) or 1.0)
    return lifted(bm25.search_words(memory, work.text, work.narrow, limit), plain)


def vector_leg(
    work: Plan, memory: MemoryView, question: Question, limit: int
) -> tuple[Leg | None, str]:
    """Return what the vector leg finds and how it fared."""
    if question.vector is None:
        return None, question.state
    try:
        leg = vector.search_vectors(memory, question.vector, work.limits, limit)
        if work.narrow is not None:
            leg = joined(leg, vector.search_vectors(memory, question.vector, work.narrow, limit))
        return leg, "ran"
    except _FAILURES as exc:
        _log.warning("the vector leg failed: %s", type(exc).__name__)
        return None, "failed"


def _both_legs(
    work: Plan, memory: MemoryView, question: Question, words: _Words, clock: "_Clock"
) -> Legs:
    found, vector_state = vector_leg(work, memory, question, words.limit)
    cosines: dict[str, float] = {}
    if words.leg is not None and found is not None and question.vector is not None:
        known = set(found.ids)
        rest = [id_ for id_ in words.leg.ids if id_ not in known]
        cosines = vector.cosines(memory, question.vector, rest)
    clock.lap("vector")
    return Legs(
        words=words.leg,
        vector=found,
        cosines=cosines,
        states={"words": words.state, "vector": vector_state},
    )


def _first_limit(work: Plan) -> int:
    return max(LEG_POOL, 4 * work.request.k)


def _answer(
    work: Plan,
    memory: MemoryView,
    question: Question,
    clock: "_Clock",
    reranker: Reranker | None,
    words: _Words | None = None,
) -> RecallAnswer:
    """Search, widening the pool while copies leave too few hits, and put the answer together."""
    limit = _first_limit(work)
    if reranker is None and question.tokens is not None:
        reranker = Late(memory, question.tokens)
    while True:
        if words is None or words.limit != limit:
            words = _words(work, memory, limit)
            clock.lap("words")
        legs = _both_legs(work, memory, question, words, clock)
        pool = mix(
            legs.words,
            legs.vector,
            vector_weight=work.request.vector_weight,
            cosines=legs.cosines,
            best=_best_of(work),
        )
        looked_at = limit if work.narrow is None else len(pool.ids)
        passages = ranked(work, memory, pool, limit=looked_at, reranker=reranker)
        clock.lap("rank")
        hits = hits_of(work, memory, passages)
        clock.lap("hits")
        if len(hits) >= work.request.k or limit >= _WIDEST or not legs.may_hold_more(limit):
            break
        limit *= _WIDER
    sure = None
    if legs.states["vector"] != "pending":  # else the answer that says all this comes next
        rows = [passage.row for passage in passages]
        hits = with_revisits(hits, rows, memory, memory_name=work.request.memory_name)
        sure = confidence(work.subject, hits, memory) if work.inquiry is None else None
        clock.lap("marks")
    return RecallAnswer(
        memory=work.request.memory_name,
        generation=memory.generation,
        note=" ".join([*work.notes, *_leg_notes(memory, question, legs.states), *_said(reranker)]),
        legs={**legs.states, **_rerank_state(reranker)},
        hits=hits,
        timings_ms=clock.total(),
        asked=work.inquiry.asked if work.inquiry is not None else None,
        confidence=sure,
        weak=bool(hits) and sure is not None and sure < WEAK,
    )


def _best_of(work: Plan) -> tuple[float, float] | None:
    scale = work.request.scale
    return None if scale is None else (scale.words, scale.vector)


def best_scores(
    request: RecallRequest,
    memory: MemoryView,
    embedder: "Embedder | None",
    *,
    now_us: int,
    zone: tzinfo | None = None,
) -> Scale:
    """Return the best scores a memory has for a question, to compare memories by."""
    with memory.snapshot() as now:
        work = plan(request, now, now_us=now_us, zone=zone)
        words = _words(work, now, 1).leg
        vectors, _ = vector_leg(work, now, encode(work, now, embedder), 1)
        return Scale(words=_first(words), vector=_first(vectors))


def _first(leg: Leg | None) -> float:
    return max(0.0, float(leg.scores[0])) if leg is not None and len(leg.ids) else 0.0


def _leg_notes(memory: MemoryView, question: Question, states: dict[str, str]) -> list[str]:
    """Say what a person should know of how complete the answer is."""
    notes: list[str] = []
    if states["words"] == "failed":
        notes.append("The words index could not be searched; `funes index` rebuilds it.")
    if question.note:
        notes.append(question.note)
    elif states["vector"] == "failed":
        notes.append("Answered by words only: the vectors could not be searched.")
    waiting = memory.catalog.pending_count()
    if waiting:
        total = waiting + memory.embedded_count()
        notes.append(f"{waiting:,} of {total:,} chunks are found by words only so far.")
    return notes


def _said(reranker: Reranker | None) -> list[str]:
    return [reranker.note] if reranker is not None and reranker.note else []


def _rerank_state(reranker: Reranker | None) -> dict[str, str]:
    """Return how a reranker fared that people wait for."""
    return {"rerank": reranker.state} if reranker is not None and reranker.state else {}


class _Clock:
    """Times the stages and asks between them whether to go on."""

    def __init__(self, cancelled: IsCancelled) -> None:
        self._cancelled = cancelled
        self._last = self._start = time.perf_counter()
        self.laps: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.laps[stage] = self.laps.get(stage, 0.0) + round((now - self._last) * 1000, 1)
        self._last = now
        if self._cancelled():
            raise FunesError("The question was withdrawn.", kind="cancelled")

    def total(self) -> dict[str, float]:
        return {**self.laps, "total": round((time.perf_counter() - self._start) * 1000, 1)}
