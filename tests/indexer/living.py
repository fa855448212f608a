"""Runs a live index for tests: a small embedder, what it told, and waiting with a deadline."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from funes_ls.indexer.errors import BackendError
from funes_ls.indexer.lexical import LexicalQuery
from funes_ls.indexer.live import LiveIndexer
from funes_ls.indexer.live_state import Changed, Job
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.traces import TraceSource, source_for
from tests.indexer.making import reading

DEADLINE_S = 30.0
CLAUDE = source_for("claude")


def until(condition: Callable[[], Any], *, what: str = "") -> Any:
    """Return the condition's first true value; fails after the deadline."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.005)
    raise AssertionError(f"it did not happen: {what or condition}")


class SmallEmbedder:
    """Gives a text a vector by its length and keeps what it was asked, and how many times.

    It may be held back: by its gate, and after the `most` texts it may embed.
    """

    stamp = "test/small"
    dim = 8
    max_tokens = 64

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.held = threading.Event()
        self.most: int | None = None
        self.calls = 0

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([vector for _, vector in self.encode_iter(texts)])

    def encode_iter(self, texts: Sequence[str]) -> Iterator[tuple[int, np.ndarray]]:
        self.calls += 1
        for position, text in enumerate(texts):
            if len(self.seen) == self.most:
                self.gate.clear()
                self.held.set()
            assert self.gate.wait(DEADLINE_S)
            self.seen.append(text)
            vector = np.zeros(self.dim, dtype=np.float32)
            vector[len(text) % self.dim] = 1.0
            yield position, vector

    def encode_query(self, text: str) -> np.ndarray:
        return self.encode([text])[0]


class Living:
    """A live index over a home, and everything it said."""

    def __init__(self, home: Path, roots: list[tuple[TraceSource, Path]], **more: Any) -> None:
        self.home = home
        self.roots = roots
        self.embedder = SmallEmbedder()
        self.changes: list[Changed] = []
        self.loads = 0
        self.has_model = True
        more.setdefault("embedder", self.load)
        self.index = LiveIndexer(
            home, home / "memory", on_change=self._changed, roots=self.places, **more
        )
        self.on_change: Callable[[Changed], object] = lambda _change: None

    def _changed(self, change: Changed) -> None:
        self.changes.append(change)
        self.on_change(change)

    def places(self) -> list[tuple[TraceSource, Path]]:
        return [(source, root) for source, root in self.roots if root.exists()]

    def load(self, _memory: Memory) -> SmallEmbedder:
        self.loads += 1
        if not self.has_model:
            raise BackendError("No model is installed.", kind="no_model")
        return self.embedder

    def job(self, **more: Any) -> Job:
        return Job(places=self.places(), **more)

    def found(self, words: str) -> list[str]:
        """Return the sessions of the rows that hold some words, as another process sees them."""
        with reading(self.home) as memory:
            ids = [id_ for id_, _ in memory.search_words(LexicalQuery(text=words), 20)]
            return [row.session_id for row in memory.rows(ids)]

    def moved(self, text: str) -> bool:
        """Return whether it was told that a row has its vector."""
        moves = [change.moved for change in self.changes if change.moved is not None]
        return any(row.text == text for moved in moves for row in moved.rows)

    def total(self) -> int:
        """Return how many rows are found by words."""
        with reading(self.home) as memory:
            return memory.lexical.count()

    def sources(self) -> int:
        """Return how many traces have been read to their end."""
        with reading(self.home) as memory:
            return len(memory.catalog.sources())

    def untidy(self) -> int:
        """Return how many moves there were since the dataset was tidied."""
        with reading(self.home) as memory:
            return int(memory.catalog.get("untidy", 0))

    def waiting(self) -> int:
        """Return how many rows have no vector."""
        with reading(self.home) as memory:
            return memory.catalog.pending_count()

    def settle(self) -> None:
        """Return when nothing is left to do."""
        until(lambda: self.index.state.is_idle and not self.index.state.words_only, what="idle")


@contextmanager
def living(home: Path, projects: Path, **more: Any) -> Iterator[Living]:
    """Run a live index over Claude's projects, and stop it."""
    projects.mkdir(parents=True, exist_ok=True)
    one = Living(home, [(CLAUDE, projects)], **more)
    one.index.start()
    try:
        yield one
    finally:
        assert one.index.stop(wait_s=DEADLINE_S), "it did not stop"
