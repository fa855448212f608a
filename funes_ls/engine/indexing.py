"""The engine's only writer: index requests, one after the other."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from funes_ls import protocol, service
from funes_ls.engine.progress import WorkDone
from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.progress import IndexEvent

if TYPE_CHECKING:
    from funes_ls.engine.core import Core

_log = logging.getLogger(__name__)


class IndexingState(Struct, frozen=True, kw_only=True):
    """What is being indexed; see `protocol.EngineStatus`."""

    phase: str = ""
    done: int = 0
    total: int = 0
    eta_s: float | None = None
    watching: str = "off"
    roots: int = 0
    note: str = ""


class Indexing:
    """Indexes what is asked for."""

    def __init__(self, core: "Core") -> None:
        """Index for a home."""
        self._core = core
        self._turn = threading.Lock()
        self._event: IndexEvent | None = None
        self._stopping = False
        self._asked = 0

    def start(self) -> None:
        """Begin to watch."""

    def stop(self, *, wait_s: float) -> None:
        """Undo or finish the step under way."""
        self._stopping = True
        if self._turn.acquire(timeout=wait_s):
            self._turn.release()

    def look_for_places(self) -> None:
        """Look where harnesses keep sessions, as there is news of it."""

    def touch(self, paths: Iterable[Path]) -> None:
        """Read traces that have changed."""

    @property
    def is_busy(self) -> bool:
        """Return whether something is being indexed."""
        return self._asked > 0

    def state(self) -> IndexingState:
        """Return what is being done."""
        event = self._event
        if event is None:
            return IndexingState()
        return IndexingState(
            phase=event.phase, done=event.done, total=event.total, eta_s=event.eta_s
        )

    def run(
        self,
        params: protocol.IndexParams,
        *,
        env: Mapping[str, str],
        cancelled: Callable[[], bool],
        progress: Callable[[Any], None] | None,
    ) -> service.IndexReport:
        """Index as asked and return what was done.

        Raises:
            FunesError: kind `cancelled`, or why it failed.
        """
        work = WorkDone(progress)

        def watch(event: IndexEvent) -> None:
            self._event = event
            if cancelled() or self._stopping:
                raise FunesError("The index was stopped.", kind="cancelled")
            work.report(event)

        settings = self._core.settings
        request = service.IndexRequest(
            target=params.target,
            harness=params.harness,
            limit=params.limit,
            words_only=params.words_only,
            finish=params.finish,
            wait=True,
            thinking=settings.thinking if params.thinking is None else params.thinking,
        )
        self._asked += 1
        work.begin()
        said = "Stopped."
        try:
            with self._turn:
                report = service.run_index(
                    request, settings, env={**self._core.env, **env}, progress=watch
                )
            said = f"{report.sessions:,} sessions read."
            return report
        finally:
            self._asked -= 1
            self._event = None
            work.end(said)
            self._tell()

    def forget(self, params: protocol.ForgetParams) -> protocol.ForgetAnswer:
        """Take a session out for good."""
        raise FunesError("Sessions cannot be forgotten yet.", kind="not_yet")

    def _tell(self) -> None:
        generation, _ = self._core.memories.known()
        news = protocol.DidIndex(generation=generation, sessions=())
        self._core.tell("funes/didIndex", news, False)
