"""How a long run tells what it is doing, without knowing who watches."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

#: No estimate before so many seconds: the first units say little about the rest.
_WARM_UP_S = 3.0

Phase = Literal[
    "rules", "scan", "words", "model", "vectors", "tidy", "search",
    "scrub", "rewrite", "fetch", "send",
]  # fmt: skip


class IndexEvent(Struct, frozen=True, kw_only=True):
    """A moment of an index run.

    Attributes:
        phase: `rules` prepares the rules for secrets, `scan` finds traces, `words` reads and makes
            them searchable, `model` downloads, `vectors` embeds, `tidy` compacts; `search` and
            `scrub` go through sessions, `rewrite` writes the memory anew; `fetch` and `send` bytes
            from and to a memory elsewhere.
        done: Units done in this phase: sessions for `words`, chunks for `vectors`, bytes for
            `model`.
        total: Units in all, 0 when unknown.
        chunks: Chunks made so far in this run.
        rate: Units per second over the last seconds.
        eta_s: Estimated seconds left in this phase, None when unknown.
        tier: What is being embedded: 1 text, 2 tool calls, 3 tool results.
        label: What is being worked on: a folder name, a file of a model; never trace text.
    """

    phase: Phase
    done: int = 0
    total: int = 0
    chunks: int = 0
    rate: float = 0.0
    eta_s: float | None = None
    tier: int = 0
    label: str = ""


Progress = Callable[[IndexEvent], None]
Cancelled = Callable[[], bool]


def ignore_progress(_event: IndexEvent) -> None:
    """Watch nothing."""


def never() -> bool:
    """Return False: nobody cancels."""
    return False


class Meter:
    """Estimates rate and time left from what was done, smoothed over the last seconds."""

    def __init__(self, total: int, *, clock: Callable[[], float]) -> None:
        """Start counting now towards `total` units; `clock` gives seconds."""
        self._total = total
        self._clock = clock
        self._start = self._last = clock()
        self._done = self._last_done = 0
        self.rate = 0.0

    def advance(self, done: int) -> None:
        """Note that `done` units are done in all."""
        self._done = done
        now = self._clock()
        elapsed = now - self._last
        if elapsed < 0.5:
            return
        recent = (done - self._last_done) / elapsed
        self.rate = recent if not self.rate else 0.7 * self.rate + 0.3 * recent
        self._last, self._last_done = now, done

    def eta_s(self) -> float | None:
        """Return the seconds left at the mean of recent and overall rate, None at first."""
        elapsed = self._clock() - self._start
        if not self._done or elapsed < _WARM_UP_S:
            return None
        rate = ((self.rate or self._done / elapsed) + self._done / elapsed) / 2
        return (self._total - self._done) / rate if rate > 0 else None
