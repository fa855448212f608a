"""Asks questions with more and more of what recall does, each stage by what a request sets."""

import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from msgspec import Struct

from benchmarks.quality.measures import Found, Labelled
from benchmarks.quality.replies import left_out
from funes_ls import service
from funes_ls.memories import Memories
from funes_ls.protocol import RecallParams
from funes_ls.retrieval.answers import RecallAnswer

#: Stage -> what it sets. The last is what people get.
STAGES: dict[str, dict[str, Any]] = {
    "words": {"vector_weight": 0.0, "half_life": 0.0, "rerank": "off"},
    "vectors": {"vector_weight": 1.0, "half_life": 0.0, "rerank": "off"},
    "fused": {"half_life": 0.0, "rerank": "off"},
    "fused+age": {"rerank": "off"},
    "fused+rerank": {"half_life": 0.0},
    "shipped": {},
    "cross": {"rerank": "cross"},
}
#: Stages that are asked for by name only.
_BY_NAME = frozenset({"cross"})
#: Hits asked for: several of one turn count once, and the tenth rank must be reached.
K = 12


class Asked(Struct, frozen=True, kw_only=True):
    """An answer, and how long it took."""

    answer: RecallAnswer
    ms: float

    @property
    def found(self) -> list[Found]:
        """Return its hits as any system's."""
        return [
            Found(session_id=hit.session_id, turn_uuid=hit.turn_uuid, text=hit.text)
            for hit in self.answer.hits
        ]


def stages_of(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the stages of these names, in order; of all when there are none.

    What this build cannot turn off is left out; of stages that are then the same the last stays.

    Raises:
        KeyError: no such stage.
    """
    known = set(RecallParams.__struct_fields__)
    chosen = {
        name: {key: value for key, value in STAGES[name].items() if key in known}
        for name in (tuple(names) or (one for one in STAGES if one not in _BY_NAME))
    }
    last = {str(options): name for name, options in chosen.items()}
    return {name: options for name, options in chosen.items() if last[str(options)] == name}


def ask(
    questions: Iterable[Labelled],
    memories: Mapping[str, Memories],
    options: Mapping[str, Any],
    *,
    at_us: int | None = None,
) -> dict[str, Asked]:
    """Return the answer to each question.

    Args:
        questions: What to ask.
        memories: By the name a question gives.
        options: Of a stage.
        at_us: When it is asked, UTC microseconds; None for now.
    """
    clock = service.now_us
    service.now_us = clock if at_us is None else lambda: at_us
    try:
        return {one.qid: _asked(one, memories[one.memory], options) for one in questions}
    finally:
        service.now_us = clock


def _asked(question: Labelled, memories: Memories, options: Mapping[str, Any]) -> Asked:
    params = RecallParams(query=question.query, k=K, neighbors=0, **options)
    started = time.perf_counter()
    with left_out(question.without) if question.without else nullcontext():
        answer = service.recall(params, memories)
    return Asked(answer=answer, ms=(time.perf_counter() - started) * 1000)
