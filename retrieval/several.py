"""Makes one answer of those of several memories."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from funes_ls.retrieval.answers import Hit, RecallAnswer, Scale


def common(scales: Sequence[Scale]) -> Scale:
    """Return one scale for memories whose vectors are of one model."""
    return Scale(
        words=max((one.words for one in scales), default=0.0),
        vector=max((one.vector for one in scales), default=0.0),
    )


def fused(answers: Sequence[RecallAnswer], *, k: int, one_scale: bool) -> RecallAnswer:
    """Return the best hits of several answers, a turn that more than one memory holds once.

    Args:
        answers: Of at least one memory, in the order the memories were named: of equals, and of
            copies, the first one counts.
        k: How many hits.
        one_scale: Scores can be compared; else what stands equally high is equally good.
    """
    hits = [hit for answer in answers for hit in answer.hits]
    of = [at for at, answer in enumerate(answers) for _ in answer.hits]
    keys = [
        (-hit.score, at) if one_scale else (hit.rank, at) for hit, at in zip(hits, of, strict=True)
    ]
    seen: set[tuple[str, str]] = set()
    chosen: list[Hit] = []
    for _, hit in sorted(zip(keys, hits, strict=True), key=lambda one: one[0]):
        turn = (hit.session_id, hit.turn_uuid)
        if turn not in seen and len(chosen) < k:
            seen.add(turn)
            chosen.append(replace(hit, rank=len(chosen) + 1))
    first = answers[0]
    return replace(
        first,
        memory=", ".join(dict.fromkeys(answer.memory for answer in answers)),
        generation=sum(answer.generation for answer in answers),
        note=_notes(answers),
        legs=_legs(answers),
        hits=tuple(chosen),
        timings_ms=_timings(answers),
        confidence=max(
            (one.confidence for one in answers if one.confidence is not None), default=None
        ),
        weak=all(answer.weak or not answer.hits for answer in answers)
        and any(answer.weak for answer in answers),
    )


class AskedOnce:
    """A model that several memories ask for the vector of one question, which is made once."""

    def __init__(self, model: Any) -> None:
        """Ask a model."""
        self._model = model
        self._known: dict[str, Any] = {}

    def encode_query(self, text: str) -> Any:
        """Return what the model returns."""
        if text not in self._known:
            self._known[text] = self._model.encode_query(text)
        return self._known[text]

    def __getattr__(self, name: str) -> Any:
        """Return all else of the model."""
        return getattr(self._model, name)


def _notes(answers: Sequence[RecallAnswer]) -> str:
    if len({answer.note for answer in answers}) == 1:
        return answers[0].note
    return " ".join(f"{answer.memory}: {answer.note}" for answer in answers if answer.note)


def _legs(answers: Sequence[RecallAnswer]) -> dict[str, str]:
    """Return how each leg fared, in the memory where it fared worst."""
    legs: dict[str, str] = {}
    for answer in answers:
        for name, state in answer.legs.items():
            if legs.get(name, "ran") == "ran":
                legs[name] = state
    return legs


def _timings(answers: Sequence[RecallAnswer]) -> dict[str, float]:
    total: dict[str, float] = {}
    for answer in answers:
        for name, ms in answer.timings_ms.items():
            total[name] = round(total.get(name, 0.0) + ms, 1)
    return total
