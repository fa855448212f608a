"""Keeps a memory current: the one thread that writes, and what it does first.

Words of traces that agents are writing to, then their vectors, then requests, then a look at every
root, then vectors of everything else while nobody asks, then tidying up.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from funes_ls.indexer import purge
from funes_ls.indexer.errors import FunesError, ScannerError
from funes_ls.indexer.exclude import Exclusion
from funes_ls.indexer.live_jobs import job_steps, sweep_steps
from funes_ls.indexer.live_memory import WritableMemory
from funes_ls.indexer.live_queue import LiveQueue
from funes_ls.indexer.live_state import (
    Changed,
    Job,
    JobHandle,
    LiveState,
    stopped_error,
)
from funes_ls.indexer.live_task import LiveTask, Steps, forgetting, nothing, purging
from funes_ls.indexer.live_work import Work
from funes_ls.indexer.live_writer import Writer
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.memory_freed import give_back
from funes_ls.indexer.pipeline import where
from funes_ls.indexer.progress import Cancelled, Progress, ignore_progress, never
from funes_ls.indexer.redaction.base import Redaction
from funes_ls.indexer.traces import TraceSource

if TYPE_CHECKING:
    from funes_ls.indexer.embedding import Embedder

_log = logging.getLogger(__name__)
#: After an error of our own storage.
_PAUSE_S = 2.0
#: Whether bytes of what was taken out are left is looked at again after a task.
_PURGE_AGAIN_S = 30.0
#: What is kept out by now leaves together with what follows it within moments.
_PURGE_SOON_S = 2.0


class LiveIndexer:
    """The writer of a home's memory; its methods may be called from any thread."""

    def __init__(
        self,
        home: Path,
        base: Path,
        *,
        embedder: "Callable[[Memory], Embedder | None]",
        on_change: Callable[[Changed], None],
        roots: Callable[[], list[tuple[TraceSource, Path]]],
        on_event: Progress = ignore_progress,
        thinking: bool = True,
        redaction: Callable[[], Redaction | None] = lambda: None,
        exclusion: Callable[[], Exclusion] = Exclusion,
        tokens: Callable[[], bool] = lambda: False,
        busy: Cancelled = never,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is opened before there is something to write.

        Args:
            home: The funes home, whose writer lock is taken.
            base: Its memory.
            embedder: Loads the model; None or a `FunesError` leaves words only for a while.
            on_change: Told, on the writing thread, after every step that changed the memory.
            roots: Gives the readers and the places they read, those that exist now.
            on_event: Told how the work goes on.
            thinking: Whether thinking blocks are stored.
            redaction: Gives what takes secrets out, as the settings are now; None stores them.
            exclusion: Gives what is kept out, as settings and files are now.
            tokens: Whether token vectors are kept, as the settings are now.
            busy: Whether a query is being answered: vectors of old sessions wait then.
            clock: Gives seconds.
        """
        self._queue = LiveQueue(clock=clock)
        self._writable = WritableMemory(home, base, clock=clock)
        self._writer = Writer(
            self._queue,
            embedder=embedder,
            on_change=on_change,
            on_event=on_event,
            roots=roots,
            thinking=thinking,
            redaction=redaction,
            exclusion=exclusion,
            tokens=tokens,
            busy=busy,
            clock=clock,
        )
        self._work: Work | None = None
        self._handle: JobHandle | None = None
        self._task: LiveTask | None = None
        self._task_steps: Steps = nothing()
        self._home = home
        self._clock = clock
        #: Whether bytes of what was taken out are left, and when that is asked again.
        self._is_purge_due = False
        self._purge_at = float("-inf")
        self._trouble = ""
        self._thread = threading.Thread(target=self._run, name="funes-writer", daemon=True)

    # From any thread

    def start(self) -> None:
        """Begin; what was asked for before is done then."""
        self._thread.start()

    def stop(self, *, wait_s: float = 10.0) -> bool:
        """End after the step under way, free the lock and return whether that is done."""
        self._queue.stop()
        if (task := self._task) is not None:
            task.cancel()
        if not self._thread.is_alive():
            self._fail_all()
            return True
        self._thread.join(wait_s)
        return not self._thread.is_alive()

    def touch(self, paths: Iterable[Path]) -> None:
        """Have changed traces read soon: their words within a second of the last write."""
        self._queue.touch(paths)

    def sweep(self) -> None:
        """Have every root looked at for what was missed."""
        self._queue.sweep()

    def run(self, job: Job) -> JobHandle:
        """Queue an explicit request to index and return its handle."""
        handle = self._queue.add_job(job)
        if self._queue.is_stopped:
            self._queue.drop_job(handle)
            handle.finish(stopped_error())
        return handle

    def run_first(self, task: LiveTask) -> LiveTask:
        """Have something done before all else, and nothing beside it; return it."""
        self._queue.add_task(task)
        if self._queue.is_stopped:
            task.finish(None, stopped_error())
        return task

    def forget(self, session_id: str) -> "Future[int]":
        """Have a session taken out for good; the future gives how many rows that were."""
        return self.run_first(forgetting([session_id])).outcome

    def reload_model(self) -> None:
        """Have the model loaded anew when it is next needed: settings have changed."""
        self._writer.model_changed = True
        self._queue.wake()

    def wake(self) -> None:
        """Look again now, as when the last query has been answered."""
        self._queue.wake()

    @property
    def state(self) -> LiveState:
        """Return what is being done."""
        writer, writable = self._writer, self._writable
        waiting = bool(writable.error and writable.memory is None and self._wants_memory())
        note = (
            writable.error.message if waiting and writable.error else self._trouble or writer.note
        )
        phase = writer.phase or ("scan" if self._queue.wants_sweep else "")
        return LiveState(
            phase="waiting" if waiting else phase,
            done=writer.event.done,
            total=writer.event.total,
            eta_s=writer.event.eta_s,
            touched=self._queue.touched_count,
            words_only=writer.words_only,
            problems=writer.problems,
            jobs=self._queue.job_count + (self._handle is not None) + (self._task is not None),
            generation=writer.generation,
            holds_lock=writable.memory is not None,
            note=note,
        )

    # The writing thread. It does not step back behind others by its priority: it holds Python's
    # lock at times, and whoever then waits for it would wait for the whole machine. What it has
    # others do, embedding and reading ahead, does step back.

    def _run(self) -> None:
        try:
            while not self._queue.is_stopped:
                try:
                    wait_s = self._turn()
                except BaseException as exc:  # also what panics of native code are raised as
                    wait_s = self._stumbled(exc)
                if wait_s != 0:
                    # Touched traces are no reason to look before the lock may be free, or before
                    # secrets can be taken out of them.
                    may_read = self._writable.memory is not None and self._writer.is_scanner_ready
                    self._queue.wait(wait_s, for_touched=may_read)
        finally:
            self._close()

    def _turn(self) -> float | None:
        """Do the most urgent thing; return the seconds until there may be another, 0 for now."""
        if not self._wants_memory():
            self._writer.phase = ""
            return None
        memory = self._writable.take()
        if memory is None:
            return self._without_memory()
        self._writer.use(memory, self._writable.marks)
        self._trouble = ""
        if (wait_s := self._task_step(memory)) is not None:
            return wait_s
        if self._must_purge(memory):
            self._queue.add_task(purging(self._home))
            return 0.0
        if self._writer.urgent():
            return 0.0
        waits = [self._step(), *self._writer.later(is_working=self._work is not None)]
        if not self._is_purge_due and purge.is_due(memory):  # what is kept out by now has left
            self._is_purge_due, self._purge_at = True, self._clock() + _PURGE_SOON_S
        if self._is_purge_due:
            waits.append(max(0.05, self._purge_at - self._clock()))
        known = [wait for wait in waits if wait is not None]
        return min(known, default=None)

    def _wants_memory(self) -> bool:
        if self._queue.job_count or self._handle is not None or self._task is not None:
            return True
        if not self._writable.has_memory:
            self._queue.clear_touched()  # nobody has asked for a memory yet
            return self._queue.has_tasks
        return self._writable.memory is not None or self._queue.has_work or self._work is not None

    def _without_memory(self) -> float:
        """Fail the requests that do not want to wait longer for another writer."""
        error = self._writable.error
        left = [self._writable.retry_in_s]
        for handle in self._queue.waiting_jobs():
            patience_s = handle.patience_s()
            if handle.is_cancelled or patience_s <= 0 or (error and error.kind != "locked"):
                self._queue.drop_job(handle)
                if handle.is_cancelled:
                    handle.report.stopped = "cancelled"
                handle.finish(None if handle.is_cancelled else error)
            else:
                left.append(patience_s)
        if error and (task := self._queue.next_task()):
            task.finish(None, error)
        return max(min(left), 0.01)

    def _task_step(self, memory: Memory) -> float | None:
        """Take a step of what goes before all else; None when there is no such thing now."""
        if self._task is None:
            task = None if self._writer.is_held_up else self._queue.next_task()
            steps = task.begin(memory) if task is not None else None
            if task is None or steps is None:
                return None if task is None else 0.0
            self._writer.vectors.forget()
            self._task, self._task_steps = task, steps
            self._writer.phase = "rewrite"
        try:
            return next(self._task_steps)
        except StopIteration as end:
            self._end_task(end.value)
        except Exception as exc:
            self._end_task(None, exc)
            self._raise_if_ours(exc)
        return 0.0

    def _must_purge(self, memory: Memory) -> bool:
        """Return whether to see to bytes that a kill has left, or a task, or a reader kept."""
        if self._work is not None or self._clock() < self._purge_at:
            return False
        self._purge_at = self._clock() + _PURGE_AGAIN_S
        self._is_purge_due = purge.is_due(memory)
        return self._is_purge_due

    def _end_task(self, value: object, error: BaseException | None = None) -> None:
        """Say that the memory has changed, whatever came of it, and tell who waits."""
        task, self._task = self._task, None
        if task is None:
            return
        self._task_steps.close()
        self._writer.vectors.forget()
        self._writer.phase = ""
        if self._writable.memory is not None:
            self._purge_at = self._clock() + _PURGE_AGAIN_S
            self._is_purge_due = True  # it is asked, when that is time
            generation = self._writable.memory.generation
            self._writer.tell(Changed(generation=generation, sessions=task.sessions))
        task.finish(value, error)
        give_back()

    def _step(self) -> float | None:
        """Take a step of the request or sweep under way, or begin one."""
        if self._work is None:
            self._handle = self._queue.next_job()
            if self._handle is not None:
                self._work = job_steps(self._handle, self._writer)
            elif self._queue.take_sweep():
                self._work = sweep_steps(self._writer)
        if self._work is None:
            return None
        try:
            return next(self._work)
        except StopIteration:
            self._end_work(None)
        except ScannerError as exc:
            self._end_work(exc)
            self._writer.scanner_fails(exc)
        except Exception as exc:
            handled = self._handle is not None
            self._end_work(exc)
            if not handled:
                raise
            self._raise_if_ours(exc)
        return 0.0

    def _raise_if_ours(self, exc: Exception) -> None:
        """Let an error go on that whoever asked has been told of, if it is not his alone."""
        if not isinstance(exc, FunesError):
            raise exc
        if exc.kind in ("disk", "damaged"):
            raise exc

    def _end_work(self, error: BaseException | None) -> None:
        work, self._work = self._work, None
        handle, self._handle = self._handle, None
        if work is not None:
            work.close()
        self._writer.rest()
        if handle is not None:
            handle.finish(error)

    def _stumbled(self, exc: BaseException) -> float:
        """Begin anew with a memory opened again, after a while."""
        if isinstance(exc, FunesError):
            self._trouble = exc.message
            _log.warning("indexing is interrupted: %s", exc.kind)
        else:
            self._trouble = f"Indexing was interrupted by an internal error ({where(exc)})."
            _log.error("indexing is interrupted: %s", where(exc))
        _each(
            partial(self._end_task, None, exc),
            partial(self._end_work, exc),
            partial(self._writer.leave, is_ours=isinstance(exc, FunesError)),
            partial(self._writable.leave, pause_s=_PAUSE_S),
        )
        return _PAUSE_S

    def _close(self) -> None:
        _each(
            partial(self._end_task, None, stopped_error()),
            partial(self._end_work, stopped_error()),
            self._writer.finish,
            self._writable.leave,
            self._fail_all,
        )

    def _fail_all(self) -> None:
        while (handle := self._queue.next_job()) is not None:
            handle.finish(stopped_error())
        while (task := self._queue.next_task()) is not None:
            task.finish(None, stopped_error())


def _each(*steps: Callable[[], None]) -> None:
    """Take every step, whatever becomes of the others."""
    for step in steps:
        try:
            step()
        except BaseException as exc:
            _log.error("closing failed: %s", where(exc))
