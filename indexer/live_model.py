"""Has the model loaded beside the thread that writes, and again later when it could not be."""

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.memory import Memory

if TYPE_CHECKING:
    from funes_ls.indexer.embedding import Embedder

_log = logging.getLogger(__name__)
_FIRST_RETRY_S = 60.0
_LAST_RETRY_S = 1800.0


class ModelLoader:
    """Loads once, on first need; a failure leaves words only until the next try."""

    def __init__(
        self,
        load: "Callable[[Memory], Embedder | None]",
        *,
        on_done: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Load with `load`, and call `on_done` from another thread when that has ended."""
        self._load = load
        self._on_done = on_done
        self._clock = clock
        self._thread: threading.Thread | None = None
        self._embedder: Embedder | None = None
        self._retry_s = 0.0
        self._retry_at = float("-inf")
        self.note = ""

    @property
    def loaded(self) -> "Embedder | None":
        """Return the model if it is here."""
        return self._embedder

    @property
    def is_loading(self) -> bool:
        """Return whether it is being loaded."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def has_failed(self) -> bool:
        """Return whether the last try failed and the next one is not due."""
        return self._embedder is None and not self.is_loading and self._clock() < self._retry_at

    @property
    def retry_in_s(self) -> float:
        """Return the seconds until the next try is due, 0 when it is."""
        return max(0.0, self._retry_at - self._clock())

    def get(self, memory: Memory, *, now: bool = False) -> "Embedder | None":
        """Return the model if it is here, else see to it that it is loaded; never waits.

        Args:
            memory: Its stamp says which model.
            now: Do not wait for the next try to be due: somebody asks for it.
        """
        if self._embedder is None and not self.is_loading and (now or not self.has_failed):
            self._thread = threading.Thread(
                target=self._run, args=(memory,), name="funes-model", daemon=True
            )
            self._thread.start()
        return self._embedder

    def drop(self) -> None:
        """Forget the model: the next `get` loads what the settings then say."""
        self._embedder = None
        self._retry_at, self._retry_s = float("-inf"), 0.0

    def join(self, timeout_s: float) -> None:
        """Wait for a load under way."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self, memory: Memory) -> None:
        try:
            embedder = self._load(memory)
            note = "" if embedder else "No model is loaded; new rows are found by words only."
        except FunesError as exc:
            embedder, note = None, str(exc)
        except Exception as exc:  # a model's own libraries raise anything
            _log.exception("the model could not be loaded")
            embedder, note = None, f"The model could not be loaded ({type(exc).__name__})."
        if embedder is None:
            self._retry_s = min(max(2 * self._retry_s, _FIRST_RETRY_S), _LAST_RETRY_S)
            self._retry_at = self._clock() + self._retry_s
        self.note = note
        self._embedder = embedder
        self._thread = None
        self._on_done()
