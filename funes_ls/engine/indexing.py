"""The engine's only writer, and what it is told: requests, changed traces, new places."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from funes_ls import protocol, service
from funes_ls.engine.progress import WorkDone
from funes_ls.index_run import check_model, known_places, load_installed, load_model, places_of
from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.exclude import Exclusion
from funes_ls.indexer.live import LiveIndexer
from funes_ls.indexer.live_state import Changed, Job, JobHandle, JobReport
from funes_ls.indexer.live_task import LiveTask
from funes_ls.indexer.memory import CATALOG, Memory
from funes_ls.indexer.progress import IndexEvent
from funes_ls.indexer.redaction.base import Redaction
from funes_ls.indexer.redaction.child import RedactingChild
from funes_ls.indexer.settings import check_whole
from funes_ls.indexer.traces import TraceSource
from funes_ls.indexer.watch import Watcher, WatchState
from funes_ls.protocol_pull import PullAnswer, PullParams
from funes_ls.pulling import pull
from funes_ls.writing import Change, Writer

if TYPE_CHECKING:
    from funes_ls.engine.core import Core
    from funes_ls.indexer.embedding import Embedder

_log = logging.getLogger(__name__)
#: How often clients are told of background work, at most.
_TOLD_EVERY_S = 0.25
#: How soon a withdrawn request is noticed.
_ASKED_EVERY_S = 0.1


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
    """Keeps the home's memory current and does what is asked for; any thread may ask."""

    def __init__(self, core: "Core") -> None:
        """Index for a core; nothing begins before `start`."""
        self._core = core
        self._told_at = 0.0
        self._told_phase = ""
        self._lock = threading.Lock()
        self._started = self._stopped = False
        self._wanting_vectors = 0
        self._watcher: Watcher | None = None
        settings = core.memories.settings
        self._scanner = RedactingChild(settings.rules_dir)
        self._live = LiveIndexer(
            core.home,
            settings.memory_dir,
            embedder=self._embedder,
            on_change=self._changed,
            roots=self._roots,
            on_event=self._event,
            thinking=settings.thinking,
            redaction=self._redaction,
            exclusion=lambda: Exclusion(core.settings.exclude),
            tokens=lambda: core.settings.keeps_tokens,
            busy=lambda: core.answering > 0,
        )

    def start(self) -> None:
        """Begin, with a look at what was missed since the memory was last written."""
        with self._lock:
            if self._stopped or self._started:
                return
            self._started = True
            self._live.start()
        self.watch()

    def watch(self) -> None:
        """Watch, or do so no more, as the settings say; not before there is a memory.

        Without one nobody has asked for his sessions to be read.
        """
        settings = self._core.memories.settings
        wanted = settings.watch and (settings.memory_dir / CATALOG).exists()
        with self._lock:
            watcher = self._watcher
            if self._stopped or not self._started or wanted == (watcher is not None):
                return
            if watcher is not None:
                self._watcher = None
                watcher.stop()
                return
            self._watcher = Watcher(self._roots, self.touch, on_sweep=self._live.sweep)
            self._watcher.start()  # with a look at what was missed

    def stop(self, *, wait_s: float) -> None:
        """Finish or undo the step under way."""
        with self._lock:
            self._stopped = True
            watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop(wait_s=0.0)
        if not self._scanner.is_ready:
            self._scanner.close()  # nobody waits for rules to be compiled
        if not self._live.stop(wait_s=wait_s):
            _log.warning("the writer was not done in time")
        self._scanner.close()

    def settings_changed(self) -> None:
        """Do as the settings now say: the model they name, what they keep out."""
        self._live.reload_model()
        if self._core.memories.settings.watch:
            self._live.sweep()

    def look_for_places(self) -> None:
        """Look where harnesses keep sessions, as there is news of it."""
        watcher = self._watcher
        if watcher is not None:
            watcher.look_for_roots()

    def touch(self, paths: Iterable[Path]) -> None:
        """Read traces that have changed."""
        if self._core.memories.settings.broken:
            return
        self._live.touch(paths)
        if (redaction := self._redaction()) is not None:
            redaction.prepare()  # while the traces come to rest

    def wake(self) -> None:
        """Go on with what stepped aside for a question."""
        self._live.wake()

    @property
    def is_busy(self) -> bool:
        """Return whether something is being indexed."""
        return not self._live.state.is_idle

    def state(self) -> IndexingState:
        """Return what is being done."""
        live, watcher = self._live.state, self._watcher
        seen = watcher.state if watcher is not None else WatchState()
        return IndexingState(
            phase=live.phase,
            done=live.done,
            total=live.total,
            eta_s=live.eta_s,
            watching=seen.mode,
            roots=seen.roots,
            note=" ".join(filter(None, (live.note, seen.note))),
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
        settings = self._core.settings
        check_whole(settings)
        request = service.IndexRequest(
            target=params.target,
            origin=params.origin,
            harness=params.harness,
            limit=params.limit,
            words_only=params.words_only,
            finish=params.finish,
        )
        places = places_of(request, {**self._core.env, **env})
        work = WorkDone(progress)
        job = Job(
            places=places,
            limit=params.limit,
            words_only=params.words_only,
            finish=params.finish or bool(params.target),
            budget_s=settings.budget_s,
            thinking=settings.thinking if params.thinking is None else params.thinking,
            progress=work.report,
            check=lambda memory: check_model(settings, memory),
        )
        self.start()
        self._want_vectors(1 if not params.words_only else 0)
        said = "Stopped; what is stored stays."
        try:
            report = _awaited(self._live.run(job), cancelled)
            said = f"{report.words.sessions:,} sessions read, {report.words.new:,} new chunks."
        finally:
            self._want_vectors(-1 if not params.words_only else 0)
            work.end(said)
        self.watch()
        return _index_report(report, memory=str(settings.memory_dir))

    def forget(
        self,
        params: protocol.ForgetParams,
        *,
        cancelled: Callable[[], bool],
        progress: Callable[[Any], None] | None,
    ) -> protocol.ForgetAnswer:
        """Take sessions out for good, or say what would go; see `service.forget`."""
        with self._alone("Forgetting sessions", cancelled, progress) as how:
            return service.forget(params, self._core.memories, **how)

    def scrub(
        self,
        params: protocol.ScrubParams,
        *,
        cancelled: Callable[[], bool],
        progress: Callable[[Any], None] | None,
    ) -> protocol.ScrubAnswer:
        """Take secrets out of what is stored, or count them; see `service.scrub`."""
        # In a process of its own, that the engine does not grow by what a scanner takes.
        scanner = RedactingChild(self._core.settings.rules_dir)
        with (
            closing(scanner),
            self._alone("Looking for secrets", cancelled, progress) as how,
        ):
            return service.scrub(params, self._core.memories, scanner=scanner, **how)

    def pull(
        self,
        params: PullParams,
        *,
        cancelled: Callable[[], bool],
        progress: Callable[[Any], None] | None,
    ) -> PullAnswer:
        """Take in what a memory elsewhere holds; see `pulling.pull`."""
        with self._alone("Taking in a memory", cancelled, progress) as how:
            return pull(params, self._core.memories, **how)

    @contextmanager
    def _alone(
        self, title: str, cancelled: Callable[[], bool], progress: Callable[[Any], None] | None
    ) -> Iterator[dict[str, Any]]:
        """Give what work needs that wants the memory to itself, and tell of its end."""
        self.start()
        work = WorkDone(progress, title=title)
        said = "Stopped."
        try:
            yield {
                "write": self._writer(cancelled),
                "cancelled": cancelled,
                "progress": work.report,
            }
            said = "Done."
        finally:
            work.end(said)

    def _writer(self, cancelled: Callable[[], bool]) -> Writer:
        """Return what makes a change on the writing thread, before all else."""

        def write(change: Change) -> Any:
            task = LiveTask(lambda memory, task: change(memory, lambda: task.is_cancelled))
            self._live.run_first(task)
            while True:
                try:
                    return task.outcome.result(_ASKED_EVERY_S)
                except TimeoutError:
                    if task.outcome.done():
                        raise
                    if cancelled():
                        task.cancel()

        return write

    def _want_vectors(self, more: int) -> None:
        with self._lock:
            self._wanting_vectors += more

    def _roots(self) -> list[tuple[TraceSource, Path]]:
        """Return every place where harnesses keep sessions, as any front sees it."""
        found = {
            (source.harness, root): (source, root)
            for env in self._core.place_envs()
            for source, root in known_places(env)
        }
        return list(found.values())

    def _redaction(self) -> Redaction | None:
        """Return what takes secrets out, None when the settings want none taken out."""
        off = self._core.settings.redaction == "off"
        return None if off else self._scanner

    def _embedder(self, memory: Memory) -> "Embedder | None":
        """Return the memory's model, the very one that questions are encoded with."""
        memories = self._core.memories
        stamp = memory.state().stamp
        known = memories.loaded(stamp) if stamp else None
        if known is not None:
            return known
        if self._wanting_vectors:
            embedder = load_model(memories.settings, memory, self._event)
        else:  # nobody has asked for vectors: then no model is fetched for them either
            embedder = load_installed(memories.settings, memory)
        memories.keep_model(embedder)
        return embedder

    def _changed(self, changed: Changed) -> None:
        if changed.moved is not None:
            self._core.memories.moved(changed.moved)
        news = protocol.DidIndex(generation=changed.generation, sessions=changed.sessions)
        self._core.tell("funes/didIndex", news, False)

    def _event(self, event: IndexEvent) -> None:
        now = time.monotonic()
        if event.phase == self._told_phase and now - self._told_at < _TOLD_EVERY_S:
            return
        self._tell_progress(event.phase, event.done, event.total, event.eta_s)

    def tell_when_idle(self) -> None:
        """Tell clients once that there is nothing left to do."""
        if self._told_phase and not self.is_busy:
            self._tell_progress("", 0, 0, None)

    def _tell_progress(self, phase: str, done: int, total: int, eta_s: float | None) -> None:
        self._told_phase, self._told_at = phase, time.monotonic()
        told = protocol.EngineProgress(
            phase=phase,
            done=done,
            total=total,
            eta_s=eta_s,
            words_only=self._live.state.words_only,
        )
        self._core.tell("engine/progress", told, True)


def _awaited(handle: JobHandle, cancelled: Callable[[], bool]) -> JobReport:
    while True:
        try:
            report = handle.result(_ASKED_EVERY_S)
        except TimeoutError:
            if cancelled():
                handle.cancel()
            continue
        if report.stopped == "cancelled":
            raise FunesError("Indexing was stopped; what is stored stays.", kind="cancelled")
        return report


def _index_report(report: JobReport, *, memory: str) -> service.IndexReport:
    words, vectors = report.words, report.vectors
    return service.IndexReport(
        memory=memory,
        model=report.model,
        sessions=words.sessions,
        current=words.current,
        failed=words.failed,
        chunks=words.new,
        removed=words.removed,
        embedded=vectors.embedded,
        words_only=report.left,
        problems=report.problems,
        troubled=words.troubled,
        redacted=words.redacted,
        excluded=words.excluded,
        # Nothing is left undone for good: the engine goes on by itself.
        stopped="background" if report.stopped == "budget" else report.stopped,
        note=report.note,
        seconds=report.seconds,
        embedded_per_s=vectors.embedded / vectors.seconds if vectors.seconds else 0.0,
    )
