"""What the writing thread works with: the open memory, the model, and what is due on both."""

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

from funes_ls.indexer.crash_marks import CrashMarks
from funes_ls.indexer.errors import FunesError, ScannerError
from funes_ls.indexer.exclude import Exclusion
from funes_ls.indexer.live_facts import FactsWork
from funes_ls.indexer.live_model import ModelLoader
from funes_ls.indexer.live_queue import LiveQueue
from funes_ls.indexer.live_state import Changed
from funes_ls.indexer.live_vectors import VectorWork
from funes_ls.indexer.live_work import Places, WordsWork, run_apart
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.memory_freed import give_back
from funes_ls.indexer.pipeline import OWN_FAILURES, where
from funes_ls.indexer.progress import Cancelled, IndexEvent, Meter, Progress
from funes_ls.indexer.redaction.base import Redaction
from funes_ls.indexer.token_work import Backfill, TokenWork

if TYPE_CHECKING:
    from funes_ls.indexer.embedding import Embedder
    from funes_ls.indexer.memory_held import Moved

_log = logging.getLogger(__name__)

#: Vectors of old sessions wait for queries, but not for ever.
_MOST_BUSY_S = 5.0
_BUSY_POLL_S = 0.05
#: Moves after which the dataset is tidied once nothing else is to be done, and without waiting.
_UNTIDY, _VERY_UNTIDY = 40, 300
_QUIET_S = 10.0
_COUNT_S = 0.5
_UNTIDY_KEY = "untidy"
#: After a failure that does not pass by itself.
_RETRY_S = 60.0


class Writer:
    """Used by the writing thread; others read its plain attributes.

    Attributes:
        event: The last moment of the work under way.
        note: What a person should know of the model.
        words_only: Rows without vector when last counted.
        model_changed: Set from outside: load the model anew.
    """

    def __init__(
        self,
        queue: LiveQueue,
        *,
        embedder: "Callable[[Memory], Embedder | None]",
        on_change: Callable[[Changed], None],
        on_event: Progress,
        roots: Callable[[], Places],
        thinking: bool,
        busy: Cancelled,
        redaction: Callable[[], Redaction | None] = lambda: None,
        exclusion: Callable[[], Exclusion] = Exclusion,
        tokens: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; see `LiveIndexer`."""
        self.queue = queue
        self.roots = roots
        self.thinking = thinking
        self._redaction = redaction
        self._exclusion = exclusion
        self.loader = ModelLoader(embedder, on_done=queue.wake, clock=clock)
        self._tokens = TokenWork(is_on=tokens)
        self.vectors = VectorWork(clock=clock, tokens=self._tokens)
        self._backfill = Backfill(self._tokens, clock=clock)
        self._facts = FactsWork()
        self.event = IndexEvent(phase="scan")
        self.phase = ""
        self.words_only = self.problems = self.generation = 0
        self.model_changed = False
        self._on_change = on_change
        self._on_event = on_event
        self._busy = busy
        self._clock = clock
        self._busy_since: float | None = None
        self._memory: Memory | None = None
        self._words: WordsWork | None = None
        self._tidying: Future[None] | None = None
        self._counting: Future[None] | None = None
        self._acted_s = clock()
        self._counted_s = float("-inf")
        self._meter: Meter | None = None
        self._vector_trouble = ""
        self._vectors_at = self._tidy_at = float("-inf")
        self._scanner_trouble = ""
        self._sweep_at: float | None = None

    # The memory

    @property
    def memory(self) -> Memory:
        """Return the open memory."""
        assert self._memory is not None
        return self._memory

    @property
    def words(self) -> WordsWork:
        """Return what reads traces into the open memory."""
        assert self._words is not None
        return self._words

    @property
    def note(self) -> str:
        """Return what a person should know, "" when all is well."""
        return self._scanner_trouble or self._vector_trouble or self.loader.note

    def use(self, memory: Memory, marks: CrashMarks) -> None:
        """Work on an open memory from now on."""
        if memory is self._memory:
            return
        self._memory = memory
        self._words = WordsWork(
            memory,
            marks=marks,
            thinking=self.thinking,
            told=self.tell,
            queued=self.vectors.add_touched,
            redaction=self._redaction,
            exclusion=self._exclusion,
            busy=self._busy,
        )
        self.vectors.forget()
        self._backfill.forget()
        self._facts.forget()
        self.count(now=True)

    def leave(self, *, is_ours: bool = True) -> None:
        """Let the memory go as it is, after an error: of our storage, or of who knows what."""
        self.vectors.forget(keep_touched=is_ours)
        self._wait_for_tidying()
        self._memory = self._words = None

    def finish(self) -> None:
        """Move what is embedded already and let the memory go; it is about to be closed."""
        self._wait_for_tidying()
        embedder = self.loader.loaded
        if self._memory is not None and embedder is not None:
            self.moved(self.vectors.flush(self._memory, embedder))
        self._memory = self._words = None

    def _wait_for_tidying(self) -> None:
        for apart in (self._tidying, self._counting):
            if apart is not None:
                apart.exception()
        self._tidying = self._counting = None

    # Telling

    def tell(self, changed: Changed) -> None:
        """Pass on that the memory changed."""
        self.generation = changed.generation
        self._acted_s = self._clock()
        self._counted_s = float("-inf")
        try:
            self._on_change(changed)
        except Exception as exc:  # whoever watches must not stop the work
            _log.error("telling of a change failed: %s", where(exc))

    def on_event(self, event: IndexEvent) -> None:
        """Note how the work goes on and pass it on."""
        self.event, self.phase = event, event.phase
        try:
            self._on_event(event)
        except Exception as exc:
            _log.error("telling of progress failed: %s", where(exc))

    def rest(self) -> None:
        """Note that a request or sweep has ended."""
        self.event, self.phase = IndexEvent(phase="scan"), ""
        self._meter = None
        self._counted_s = float("-inf")

    def count(self, *, now: bool = False) -> int:
        """Return how many rows wait for vectors, counted now and then."""
        if now or self._clock() - self._counted_s >= _COUNT_S:
            self.words_only = self.memory.catalog.pending_count()
            self.problems = self.memory.catalog.problem_count()
            self.generation = self.memory.generation
            self._counted_s = self._clock()
        return self.words_only

    # What goes first

    @property
    def is_held_up(self) -> bool:
        """Return whether what wants the memory to itself must wait, never for long."""
        counting = self._counting is not None and not self._counting.done()
        return self.is_tidying or counting or self.words.is_half_read

    def urgent(self) -> bool:
        """Do what cannot wait, and return whether there was something."""
        if self._touched_words():
            return True
        return self._touched_due_s() == 0.0 and self._touched_vectors()

    def _touched_words(self) -> bool:
        if not self.is_scanner_ready:
            return False
        if self._sweep_at is not None:
            self.queue.due()  # the look at every root that is to come finds them
            return False
        paths = self.queue.due()
        if not paths:
            return False
        try:
            later, much = self.words.read_touched(paths, self.roots())
        except ScannerError as exc:
            self.scanner_fails(exc)
            return False
        except FunesError:
            self.queue.touch(paths)
            raise
        except BaseException:
            self.queue.sweep()  # not these again and again: one of them may be what failed
            raise
        for path in later:
            self.queue.put_back(path)
        if much:
            self.queue.sweep()
        elif len(later) < len(paths):
            self.scanner_works()
        return len(later) < len(paths)

    # What takes secrets out

    @property
    def is_scanner_ready(self) -> bool:
        """Return whether touched traces can be read at once; what that takes is under way."""
        is_wanted = self.queue.touched_count and self._sweep_at is None
        redaction = self._redaction() if is_wanted else None
        if redaction is None:
            return True
        redaction.prepare()
        return redaction.is_ready

    def scanner_works(self) -> None:
        """Note that traces were read."""
        self._scanner_trouble, self._sweep_at = "", None

    def scanner_fails(self, exc: FunesError) -> None:
        """Read nothing for a while, and then look at every root: the rest goes on meanwhile."""
        _log.warning("nothing is read now: %s", exc.kind)
        self._scanner_trouble = str(exc)
        self._sweep_at = self._clock() + _RETRY_S

    def _rest_scanner(self) -> list[float | None]:
        """End the scanner when it was not used for a while; return when to look again."""
        waits: list[float | None] = []
        if self._sweep_at is not None:
            left_s = self._sweep_at - self._clock()
            if left_s <= 0:
                self._sweep_at = None
                self.queue.sweep()
            waits.append(max(0.0, left_s))
        redaction = self._redaction()
        if redaction is not None:
            waits.append(redaction.rest())
        return waits

    def _touched_due_s(self) -> float | None:
        return self.vectors.touched_due_s(may_move=not self.is_tidying)

    def _touched_vectors(self) -> bool:
        step = partial(self.vectors.touched_step, may_move=not self.is_tidying)
        return self._vector_step(step, lambda: self.queue.is_urgent)

    # Vectors

    def embedder(self, *, now: bool = False) -> "Embedder | None":
        """Return the model, None while it is being loaded or cannot be had; never waits."""
        if self.model_changed:
            self.model_changed = False
            self.loader.drop()
            self.vectors.forget()
            self._backfill.forget()
            self._vector_trouble, self._vectors_at = "", float("-inf")
        if self._clock() < self._vectors_at and not now:
            return None
        return self.loader.get(self.memory, now=now)

    def background(self) -> float | None:
        """Embed old rows for a slice of time; return when to go on, None for no sooner than asked.

        Queries go first: nothing is done while one is answered, but for a slice now and then.
        """
        if not self.count() or not self.vectors.has_background(self.memory):
            return None
        if self.embedder() is None:
            return self.model_wait_s()
        if self.is_tidying or self._must_wait():
            return _BUSY_POLL_S
        is_owed = self._busy_since is not None  # queries have had all the time until now
        step = self.vectors.background_step
        is_done = self._vector_step(
            step, lambda: self.queue.is_urgent or (self._busy() and not is_owed)
        )
        return 0.0 if is_done else self.model_wait_s()

    def model_wait_s(self) -> float | None:
        """Return when the model may be there; its loader wakes the thread by itself."""
        if self.loader.is_loading:
            return None
        return max(self.loader.retry_in_s, self._vectors_at - self._clock(), _BUSY_POLL_S)

    def _must_wait(self) -> bool:
        if not self._busy():
            self._busy_since = None
            return False
        now = self._clock()
        if self._busy_since is None:
            self._busy_since = now
        if now - self._busy_since < _MOST_BUSY_S:
            return True
        self._busy_since = now
        return False

    def _vector_step(
        self,
        step: "Callable[..., Moved | None]",
        interrupted: Cancelled,
    ) -> bool:
        """Take a step with the model; return False when there is none to take it with."""
        embedder = self.embedder()
        if embedder is None:
            return False
        try:
            moved = step(self.memory, embedder, interrupted=interrupted)
        except FunesError as exc:
            self._vector_trouble = str(exc)
            if exc.kind in OWN_FAILURES:
                raise
            # The memory is of another model, say: words go on, and it is tried again some time.
            _log.warning("vectors are not made now: %s", exc.kind)
            self.vectors.forget()
            self._vectors_at = self._clock() + _RETRY_S
            return False
        self._vector_trouble = ""
        self.moved(moved)
        return True

    def moved(self, moved: "Moved | None") -> None:
        """Say that rows went into the dataset, and count what makes it untidy."""
        if moved is None:
            return
        memory = self.memory
        memory.catalog.put(_UNTIDY_KEY, int(memory.catalog.get(_UNTIDY_KEY, 0)) + 1)
        self.words.tell(list(dict.fromkeys(row.session_id for row in moved.rows)), moved)

    # What can wait

    def later(self, *, is_working: bool) -> list[float | None]:
        """Do what waits for a quiet moment; return when to look again."""
        due_s = self._touched_due_s()
        waits = [due_s or None, *self._rest_scanner()]
        if not self.is_scanner_ready:
            waits.append(_BUSY_POLL_S)
        if self.vectors.has_touched and self.is_tidying:
            waits.append(_BUSY_POLL_S)
        elif due_s == 0.0:
            waits.append(self.model_wait_s())
        if is_working:
            return waits
        if not (self._busy() or self.is_tidying):
            waits.append(self._facts_step())
        waits.append(self.background())
        self.phase = self._idle_phase()
        is_quiet = waits[-1] is None
        waits.append(self._backfill_tokens() if is_quiet else None)
        waits.append(self._tidy(is_quiet=is_quiet))
        if is_quiet and not self.is_tidying:
            waits.append(self._count_turns())
        return waits

    def _backfill_tokens(self) -> float | None:
        """Give old rows their token vectors for a slice of time; return when to go on."""
        if not self._backfill.is_due(self.memory):
            return None
        embedder = self.embedder()
        if embedder is None:
            return self.model_wait_s()
        if self.is_tidying or self._must_wait():
            return _BUSY_POLL_S
        is_done = self._backfill.step(
            self.memory, embedder, interrupted=lambda: self.queue.is_urgent or self._busy()
        )
        return 0.0 if is_done else None

    def _facts_step(self) -> float | None:
        if self._scanner_trouble:
            return None
        try:
            return self._facts.step(self.memory, self._redaction())
        except ScannerError as exc:
            self._facts.forget()
            self.scanner_fails(exc)
            return None

    def _count_turns(self) -> float | None:
        """Count turns anew once nothing has happened for a while; it reads the whole dataset."""
        if self._counting is not None:
            if not self._counting.done():
                return _BUSY_POLL_S
            error, self._counting = self._counting.exception(), None
            if error is not None:
                _log.warning("turns are not counted now: %s", where(error))
                self._acted_s = self._clock()
        if self.memory.catalog.get("turns_at") == self.memory.generation:
            return None
        left_s = self._acted_s + _QUIET_S - self._clock()
        if left_s > 0:
            return left_s
        self._counting = run_apart(self.memory.count_turns)
        self._counting.add_done_callback(lambda _: self.queue.wake())
        return _BUSY_POLL_S

    def _idle_phase(self) -> str:
        if self.is_tidying:
            return "tidy"
        if self.loader.is_loading:
            return "model"
        if not self.words_only or self.loader.loaded is None:
            self._meter = None
            return ""
        self._tell_background()
        return "vectors"

    def _tell_background(self) -> None:
        done = self.vectors.embedded + self.vectors.unmoved
        left = self.words_only - self.vectors.unmoved
        if self._meter is None:
            self._meter = Meter(done + left, clock=self._clock)
        self._meter.advance(done)
        self.on_event(
            IndexEvent(
                phase="vectors",
                done=done,
                total=done + left,
                rate=self._meter.rate,
                eta_s=left / self._meter.rate if self._meter.rate else None,
                tier=self.vectors.tier,
            )
        )

    @property
    def is_tidying(self) -> bool:
        """Return whether the dataset is being tidied: nothing is moved or removed then."""
        return self._tidying is not None and not self._tidying.done()

    def _tidy(self, *, is_quiet: bool) -> float | None:
        """Tidy the dataset on a thread of its own, when it needs it and nothing else is done."""
        if self._tidying is not None:
            if not self._tidying.done():
                return _BUSY_POLL_S
            self._end_tidying(self._tidying)
        moves = int(self.memory.catalog.get(_UNTIDY_KEY, 0))
        quiet_s = self._clock() - self._acted_s
        if moves < _UNTIDY or self._clock() < self._tidy_at:
            return None
        if moves < _VERY_UNTIDY and not (is_quiet and quiet_s >= _QUIET_S):
            return _QUIET_S - quiet_s if is_quiet else None
        self._tidying = run_apart(partial(_tidied, self.memory))
        self._tidying.add_done_callback(lambda _: self.queue.wake())
        return _BUSY_POLL_S

    def _end_tidying(self, tidying: "Future[None]") -> None:
        self._tidying = None
        error = tidying.exception()
        if error is None:
            self.memory.catalog.put(_UNTIDY_KEY, 0)
            self.tell(Changed(generation=self.memory.generation))
            return
        _log.warning("tidying failed: %s", where(error))
        self._tidy_at = self._clock() + _RETRY_S


def _tidied(memory: Memory) -> None:
    """Tidy, and give back the memory it took, which is more than all that the engine holds."""
    memory.tidy()
    give_back()
