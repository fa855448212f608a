"""What the engine answers from: settings, open memories, threads to work on, the index."""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from funes_ls import __version__, protocol
from funes_ls.engine.address import RECORD, read_address, run_dir
from funes_ls.engine.indexing import Indexing
from funes_ls.indexer.memory_freed import give_back, let_files_go
from funes_ls.indexer.settings import ENV_KEYS, QUESTION_FIELDS, Settings, load_settings
from funes_ls.memories import KeptOpen

_log = logging.getLogger(__name__)
Lane = Literal["queries", "lookups", "tables", "waits"]
#: What is quickly found has threads of its own, or recalls could queue before it; what an editor
#: asks at every move of the cursor comes before what a person asks now and then.
_THREADS: dict[Lane, int] = {"queries": 4, "lookups": 2, "tables": 2, "waits": 16}
#: What a question is answered with comes with the question, not from whoever started the engine.
_OF_QUESTIONS = {name for name, field in ENV_KEYS.items() if field in QUESTION_FIELDS}
_CONFIG = "config.toml"
#: When nothing has been done for so long, what work has left is given back.
_QUIET_S = 3.0
#: Sends a notification to every client that wants it; from any thread. The last argument says that
#: it may be left out for clients that are behind.
Tell = Callable[[str, Any, bool], None]


class Core:
    """Everything warm; several threads use it at once."""

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        """Prepare to answer for a home; nothing is opened yet.

        Args:
            home: The funes home.
            env: The engine's own environment.
        """
        self.home = home
        self.env = {name: value for name, value in env.items() if name not in _OF_QUESTIONS}
        self.env["FUNES_HOME"] = str(home)
        self.started_at = time.monotonic()
        self.active_at = self.started_at
        self._worked_at, self._gave_back_at = self.started_at, float("-inf")
        self.clients: Callable[[], int] = lambda: 0
        self.address = ""
        self.is_lost = False
        #: Questions being answered; background work steps aside for them. The loop counts.
        self.answering = 0
        self.tell: Tell = _tell_nobody
        self._config_stamp: tuple[int, int] | None = None
        self._config_lock = threading.Lock()
        self._known_envs: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        self._lanes = {
            name: ThreadPoolExecutor(count, thread_name_prefix=name)
            for name, count in _THREADS.items()
        }
        self.memories = KeptOpen(self._load_settings(None))
        self.indexing = Indexing(self)

    def lane(self, name: Lane) -> ThreadPoolExecutor:
        """Return the threads that a kind of request runs on."""
        return self._lanes[name]

    @property
    def settings(self) -> Settings:
        """Return the settings in force; a changed file is read first."""
        with self._config_lock:
            if self._stamp() != self._config_stamp:
                self.memories.use(self._load_settings(self.memories.settings))
                self.indexing.settings_changed()
                _log.info("the settings have changed")
        return self.memories.settings

    def current_memories(self) -> KeptOpen:
        """Return where answers come from, with the settings in force."""
        _ = self.settings
        return self.memories

    def _load_settings(self, last: Settings | None) -> Settings:
        """Return the settings as they are by now; what is read stays as it was in a broken file."""
        self._config_stamp = self._stamp()
        settings, warnings = load_settings(self.env)
        for warning in warnings:
            _log.warning("%s", warning)
        if not settings.broken:
            return settings
        if last is None or last.broken:  # nobody knows what is to be kept out
            return replace(settings, watch=False)
        return replace(
            settings, broken="", exclude=last.exclude, thinking=last.thinking, watch=last.watch
        )

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = (self.home / _CONFIG).stat()
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size)

    def know_env(self, env: Mapping[str, str]) -> None:
        """Note where a front says that harnesses keep their sessions."""
        key = tuple(sorted(env.items()))
        if env and key not in self._known_envs:
            self._known_envs[key] = dict(env)
            self.indexing.look_for_places()

    def place_envs(self) -> list[dict[str, str]]:
        """Return every environment that says where harnesses keep sessions."""
        return list(self._known_envs.values()) or [self.env]

    def note_activity(self) -> None:
        """Note that somebody wants something."""
        self.active_at = self._worked_at = time.monotonic()

    def touch(self, params: Any) -> None:
        """Read traces that a hook says have grown."""
        try:
            told = msgspec.convert(params, protocol.TouchParams)
        except msgspec.ValidationError:
            return
        self.indexing.touch(Path(path) for path in told.paths)

    def is_idle(self, idle_s: float) -> bool:
        """Return whether nobody is there and nothing is done for so long."""
        if self.clients() or self.indexing.is_busy:
            self.active_at = time.monotonic()
            return False
        return time.monotonic() - self.active_at >= idle_s

    def tick(self) -> None:
        """Do what is due now and then; on a thread, since it may wait."""
        _ = self.settings
        self.is_lost = self._is_lost()
        self.memories.close_idle()
        self.indexing.watch()
        self.indexing.tell_when_idle()
        self._give_back()

    def _give_back(self) -> None:
        """Give back the memory that work has left, once after it and not between two questions."""
        now = time.monotonic()
        if self.answering or self.indexing.is_busy or not self.memories.is_whole:
            self._worked_at = now
        elif now - self._worked_at >= _QUIET_S and self._gave_back_at < self._worked_at:
            self._gave_back_at = now
            give_back()
            let_files_go()

    def _is_lost(self) -> bool:
        """Return whether no front finds this engine any more: its home was deleted or moved."""
        if self.address == "inline":
            return False
        if not (run_dir(self.home) / RECORD).exists():
            return True
        found = read_address(self.home)  # None while somebody has spoilt the record
        return found is not None and found.pid != os.getpid()

    def warm_up(self) -> None:
        """Load what the first question needs, so that it need not wait; on a thread of its own."""
        threading.Thread(target=self._warm_up, name="warm-up", daemon=True).start()

    def _warm_up(self) -> None:
        self.memories.warm_up()
        self.indexing.start()

    def close(self, *, wait_s: float) -> None:
        """Finish or undo what is under way, and let files go."""
        self.indexing.stop(wait_s=wait_s)
        for lane in self._lanes.values():
            lane.shutdown(wait=False, cancel_futures=True)
        self.memories.close()

    def status(self) -> protocol.EngineStatus:
        """Return how the engine is."""
        state = self.indexing.state()
        generation, model = self.memories.known()
        return protocol.EngineStatus(
            version=__version__,
            protocol=protocol.PROTOCOL,
            pid=os.getpid(),
            home=str(self.home),
            address=self.address,
            uptime_s=round(time.monotonic() - self.started_at, 1),
            clients=self.clients(),
            generation=generation,
            model=model,
            watching=state.watching,
            roots=state.roots,
            indexing=state.phase,
            done=state.done,
            total=state.total,
            eta_s=state.eta_s,
            rss_bytes=rss_bytes(),
            note=state.note,
        )


def rss_bytes() -> int:
    """Return the resident memory of this process, 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _tell_nobody(_method: str, _params: Any, _may_be_left_out: bool) -> None:
    """Tell nobody: there are no clients yet."""
