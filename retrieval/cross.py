"""Reads the best passages together with the question, each cut to the part that answers best.

A cross-encoder is a model that is given both at once: it tells more than vectors do, and takes a
hundred times as long. So it comes last, reads only the best, and has a time after which the order
stays what it was.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from funes_ls.indexer.errors import FunesError
from funes_ls.retrieval.answers import IsCancelled, never

_log = logging.getLogger(__name__)
Scores = NDArray[np.float64]

#: What reading may take, all in all, and tokens of a passage that are read.
LIMIT_S = 3.0
WINDOW_TOKENS = 128
#: Windows begin so many tokens after one another.
_STEP_TOKENS = 32
#: Share of what the model says in what becomes of a score.
CROSS_WEIGHT = 0.5
TOO_SLOW = "Not reranked: reading the best passages took too long."
FAILED = "Not reranked: the cross-encoder failed."


class Piece(Struct, frozen=True, kw_only=True):
    """A token of a text: which one, and where it stands in the characters."""

    token: int
    start: int
    end: int


class PairModel(Protocol):
    """A model that reads a question and a passage together; for several threads."""

    name: str

    def pieces(self, text: str) -> Sequence[Piece]:
        """Return the tokens of a text, all of them, special ones left out."""
        ...

    def score(self, question: str, passage: str) -> float:
        """Return how well a passage answers, on any scale, higher is better."""
        ...


class Cross:
    """Reorders the best passages by what a model says that reads them; for one question.

    Attributes:
        note: Why the order is the fused one, "" when it is not.
        state: `ran`, `failed` or `late`.
    """

    is_slow = True

    def __init__(
        self,
        load: Callable[[], PairModel],
        *,
        cancelled: IsCancelled = never,
        limit_s: float = LIMIT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read with a model that is loaded once it is needed.

        Args:
            load: Returns the model; may raise a `FunesError`.
            cancelled: Asked between passages.
            limit_s: When to give up, loading included.
            clock: Seconds.
        """
        self.note, self.state = "", "ran"
        self._load = load
        self._cancelled = cancelled
        self._limit_s = limit_s
        self._clock = clock
        self._until: float | None = None
        self._said: dict[str, float] = {}

    def scores(self, query: str, ids: Sequence[str], texts: Sequence[str], fused: Scores) -> Scores:
        """Return scores with what the model says mixed in, the fused ones when it cannot.

        Raises:
            FunesError: kind `cancelled`.
        """
        if self.note:  # a wider pool is looked at, and it has failed before
            return fused
        if self._until is None:
            self._until = self._clock() + self._limit_s
        try:
            is_read = self._read(query, ids, texts, self._until)
        except FunesError as exc:
            if exc.kind == "cancelled":
                raise
            self.note, self.state = f"Not reranked: {exc.message} {exc.hint}".strip(), "failed"
            return fused
        except (OSError, ValueError, RuntimeError) as exc:
            _log.warning("the cross-encoder failed: %s", type(exc).__name__)
            self.note, self.state = FAILED, "failed"
            return fused
        if not is_read:
            self.note, self.state = TOO_SLOW, "late"
            return fused
        return mixed(fused, np.array([self._said[id_] for id_ in ids]))

    def _read(self, query: str, ids: Sequence[str], texts: Sequence[str], until: float) -> bool:
        """Read what has not been read yet; False when the time is over before the end."""
        model = self._load()
        asked = model.pieces(query)
        for id_, text in zip(ids, texts, strict=True):
            if self._cancelled():
                raise FunesError("The question was withdrawn.", kind="cancelled")
            if id_ in self._said:
                continue
            if self._clock() >= until:
                return False
            window = best_window(asked, text, model.pieces(text))
            self._said[id_] = model.score(query, window)
        return True


def mixed(fused: Scores, said: Scores) -> Scores:
    """Return fused scores with those of a model mixed in, spread over the same range."""
    if not len(said) or not np.isfinite(said).all() or np.ptp(said) <= 0.0:
        return fused
    low, high = float(fused.min()), float(fused.max())
    near = low + (said - said.min()) / np.ptp(said) * (high - low)
    scores: Scores = (1.0 - CROSS_WEIGHT) * fused + CROSS_WEIGHT * near
    return scores


def best_window(
    asked: Sequence[Piece], text: str, pieces: Sequence[Piece], *, tokens: int = WINDOW_TOKENS
) -> str:
    """Return the part of a text, no longer than a window, that holds most of the question.

    A token of the question counts by how rare it is in the text: what stands everywhere in it
    tells no part from another. Of equal parts the first is taken.
    """
    if len(pieces) <= tokens:
        return text
    at = np.array([piece.token for piece in pieces])
    last = len(pieces) - tokens
    starts = np.array([*range(0, last, _STEP_TOKENS), last])
    worth = np.zeros(len(starts))
    for token in {piece.token for piece in asked}:
        places = np.flatnonzero(at == token)
        if len(places):
            holds = np.searchsorted(places, starts + tokens) > np.searchsorted(places, starts)
            worth += holds * np.log(len(pieces) / len(places))
    first = int(starts[int(worth.argmax())])
    return text[pieces[first].start : pieces[first + tokens - 1].end]
