"""How soon what agents write is recalled: `python -m benchmarks.freshness HOME`.

Several made-up agents of every harness append turns to live sessions, one block or a burst at a
time, while recall is asked again and again through the engine's socket, as a front does. Told is
how long after the write of a turn had ended it was found by words, and how long until it had its
vector: idle, and while a whole other history is indexed. At the end each turn must be found by its
vector alone.

HOME is one that `benchmarks.latency.make_memory` made; it is copied, never changed.
"""

import argparse
import json
import random
import shutil
import sqlite3
import string
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from benchmarks.latency.history import write_history
from benchmarks.latency.processes import Engine, environment
from funes_ls.engine.client import Connection, EngineError

_ASKED_AT_ONCE = 8
_WORDS_AT_ONCE = 40
_PAUSE_S = 0.03
_PATIENCE_S = 30.0
#: What blocks say besides their mark.
_PROSE = tuple(
    " ".join(
        (
            "the watcher restarts when the queue of the parser is full and the writer waits for",
            "the lock so we measure how the retry of the connection behaves under load and then",
            "decide whether the cache of the tokens should be dropped before the migration",
        )
    ).split()
)


class Times(Struct, kw_only=True):
    """When a turn was written, and its last block was found; None while it is not."""

    text: str
    written: float
    by_words: float | None = None
    by_vector: float | None = None


class Agent(Protocol):
    """Writes turns to one live session."""

    def write(self, texts: Sequence[str]) -> None:
        """Write one turn of some blocks, as its harness does."""
        ...


class JsonlAgent:
    """Appends records to a file."""

    def __init__(self, path: Path, records: Callable[[int, Sequence[str]], list[Any]]) -> None:
        """Write to a path what `records` makes of a turn's number and texts."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._records, self._turns = path, records, 0

    def write(self, texts: Sequence[str]) -> None:
        """Append the records of a turn, flushed one by one."""
        with self._path.open("a", encoding="utf-8") as file:
            for record in self._records(self._turns, texts):
                file.write(json.dumps(record) + "\n")
                file.flush()
        self._turns += 1


class HermesAgent:
    """Inserts into a database in WAL mode that stays open, as a running Hermes has it."""

    def __init__(self, home: Path) -> None:
        """Make the database."""
        home.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(
            home / "state.db", isolation_level=None, check_same_thread=False, timeout=10
        )
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, source TEXT, cwd TEXT, "
            "title TEXT, parent_session_id TEXT, end_reason TEXT, started_at REAL)"
        )
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY AUTOINCREMENT, "
            "session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT, tool_calls TEXT, "
            "tool_name TEXT, timestamp REAL, reasoning TEXT, reasoning_content TEXT)"
        )
        self._db.execute(
            "INSERT OR IGNORE INTO sessions(id, source, cwd, started_at) VALUES (?, 'cli', ?, ?)",
            ("hermes-live", "/work/live", time.time()),
        )

    def write(self, texts: Sequence[str]) -> None:
        """Insert a message for each text."""
        for text in texts:
            self._db.execute(
                "INSERT INTO messages(session_id, role, content, timestamp) VALUES (?, ?, ?, ?)",
                ("hermes-live", "user", text, time.time()),
            )


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())


def _claude(turn: int, texts: Sequence[str]) -> list[Any]:
    content = [{"type": "text", "text": text} for text in texts]
    message = {"role": "assistant", "content": content}
    return [
        {
            "type": "assistant",
            "uuid": f"live-{turn}",
            "sessionId": "live",
            "cwd": "/work/live",
            "timestamp": _now(),
            "message": message,
        }
    ]


def _codex(turn: int, texts: Sequence[str]) -> list[Any]:
    head = {"type": "session_meta", "timestamp": _now(), "payload": {"id": "codex-live"}}
    content = [{"type": "output_text", "text": text} for text in texts]
    payload = {"type": "message", "role": "assistant", "content": content}
    body = {"type": "response_item", "timestamp": _now(), "payload": payload}
    return [body] if turn else [head, body]


def _pi(turn: int, texts: Sequence[str]) -> list[Any]:
    head = {"type": "session", "id": "pi-live", "timestamp": _now(), "cwd": "/work/live"}
    content = [{"type": "text", "text": text} for text in texts]
    message = {"role": "assistant", "content": content}
    body = {"type": "message", "id": f"p{turn:07x}", "timestamp": _now(), "message": message}
    return [body] if turn else [head, body]


def agents(user: Path) -> list[Agent]:
    """Return live sessions of every harness below a home directory."""
    codex = user / ".codex" / "sessions" / "2026" / "12" / "01"
    return [
        JsonlAgent(user / ".claude" / "projects" / "-work-live" / "live-one.jsonl", _claude),
        JsonlAgent(user / ".claude" / "projects" / "-work-live" / "live-two.jsonl", _claude),
        JsonlAgent(codex / "rollout-2026-12-01T10-00-00-live.jsonl", _codex),
        JsonlAgent(user / ".pi" / "agent" / "sessions" / "--work-live--" / "live.jsonl", _pi),
        HermesAgent(user / ".hermes"),
    ]


class Run:
    """One measurement: agents that write, and what has been found of it."""

    def __init__(self, writing: Sequence[Agent], seed: int) -> None:
        """Prepare for some agents."""
        self._agents = writing
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self.turns: dict[str, Times] = {}
        self.answers: list[float | None] = []
        self.is_writing = True

    def write_for(self, seconds: float) -> None:
        """Write turns of one to four blocks about twice a second, now and then a burst of ten."""
        chance, until = self._chance, time.monotonic() + seconds
        while time.monotonic() < until:
            agent = chance.choice(self._agents)
            for _ in range(10 if chance.random() < 0.06 else 1):
                self._write_turn(agent, chance.randint(1, 4))
                time.sleep(0.02)
            time.sleep(chance.uniform(0.2, 0.9))
        self.is_writing = False

    def _write_turn(self, agent: Agent, count: int) -> None:
        chance = self._chance
        mark = "".join(chance.choices(string.ascii_lowercase, k=14))
        texts = [" ".join(chance.choices(_PROSE, k=60)) for _ in range(count)]
        texts[-1] = f"{mark} {texts[-1]}"
        agent.write(texts)
        with self._lock:
            self.turns[mark] = Times(text=texts[-1], written=time.monotonic())

    def ask_until_found(self, engine: Connection) -> None:
        """Ask for what is not found yet until all is, or the patience for the last one is over."""
        gave_up = None
        while self.is_writing or gave_up is None or time.monotonic() < gave_up:
            if not self.is_writing and gave_up is None:
                gave_up = time.monotonic() + _PATIENCE_S
            with self._lock:
                open_ = [mark for mark, times in self.turns.items() if times.by_vector is None]
            if not open_ and not self.is_writing:
                return
            # The newest for words, the oldest for vectors.
            wordless = [mark for mark in open_ if self.turns[mark].by_words is None]
            asked = [*wordless[:_ASKED_AT_ONCE], *open_[: _ASKED_AT_ONCE // 2]]
            if asked:
                self._ask(engine, " ".join(asked), len(asked))
                # Marks mean nothing: by the mix of both legs, a row that has its vector may come
                # behind hundreds that have none of them.
                self._ask(engine, " ".join(open_[:_WORDS_AT_ONCE]), _WORDS_AT_ONCE, weight=0.0)
            time.sleep(_PAUSE_S)

    def _ask(
        self, engine: Connection, query: str, count: int, *, weight: float | None = None
    ) -> None:
        params = {"query": query, "k": 20 + count, "halfLife": 0, "neighbors": 0}
        began = time.monotonic()
        try:
            answer = engine.request(
                "funes/recall",
                params if weight is None else {**params, "vectorWeight": weight},
                timeout_s=30.0,
            )
        except EngineError:
            self.answers.append(None)
            return
        now = time.monotonic()
        if weight is None:
            self.answers.append(now - began)
        for hit in answer["hits"]:
            times = self.turns.get(_mark_of(hit))
            if times is not None:
                times.by_words = times.by_words or now
                if hit["embedded"]:
                    times.by_vector = times.by_vector or now

    def check_vectors(self, engine: Connection) -> None:
        """Ask for every turn by its vector alone; what is not found so counts as missing."""
        for mark, times in self.turns.items():
            params = {"query": times.text, "k": 5, "halfLife": 0, "vectorWeight": 1.0}
            answer = engine.request("funes/recall", params, timeout_s=30.0)
            if mark not in map(_mark_of, answer["hits"]):
                times.by_vector = None


def _mark_of(hit: dict[str, Any]) -> str:
    return str(hit["text"]).partition(" ")[0]


class Figures(Struct, frozen=True, kw_only=True):
    """Seconds from the write until a turn was found; `missing` were not at all.

    For a recall: the seconds it took.
    """

    p50: float
    p95: float
    worst: float
    count: int
    missing: int


def figures(delays: Sequence[float | None]) -> Figures:
    """Return what some delays come to."""
    found = sorted(delay for delay in delays if delay is not None) or [float("nan")]

    def at(share: float) -> float:
        return round(found[min(len(found) - 1, int(share * len(found)))], 3)

    return Figures(
        p50=at(0.5),
        p95=at(0.95),
        worst=round(found[-1], 3),
        count=len(delays),
        missing=sum(delay is None for delay in delays),
    )


def measure(
    engine: Connection, writing: Sequence[Agent], *, seconds: float, seed: int
) -> dict[str, Figures]:
    """Write for a while and return how soon all of it was found."""
    run = Run(writing, seed)
    writer = threading.Thread(target=run.write_for, args=(seconds,), daemon=True)
    writer.start()
    run.ask_until_found(engine)
    writer.join()
    run.check_vectors(engine)
    times = list(run.turns.values())
    return {
        "words": figures([t.by_words and t.by_words - t.written for t in times]),
        "vector": figures([t.by_vector and t.by_vector - t.written for t in times]),
        "one recall": figures(run.answers),
    }


def main() -> None:
    """Measure and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("home", type=Path, help="a home made by benchmarks.latency.make_memory")
    parser.add_argument("--seconds", type=float, default=60.0, help="of writing, each time")
    parser.add_argument("--history", type=float, default=60.0, help="MB to index meanwhile")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="funes-fresh-") as scratch:
        found = run(args.home.absolute(), Path(scratch), args)
    if args.json:
        print(msgspec.json.encode(found).decode())
        return
    print(f"{'':24}{'p50':>8}{'p95':>8}{'worst':>8}{'turns':>8}{'missing':>8}  (seconds)")
    for name, one in found.items():
        print(f"{name:24}{one.p50:8.2f}{one.p95:8.2f}{one.worst:8.2f}{one.count:8}{one.missing:8}")


def run(made: Path, scratch: Path, args: argparse.Namespace) -> dict[str, Figures]:
    """Return the figures, idle and while indexing."""
    home, user = scratch / "home", scratch / "user"
    shutil.copytree(made, home, ignore=shutil.ignore_patterns("user", "run", "logs"))
    writing = agents(user)
    for agent in writing:
        agent.write(["a first turn"])
    found: dict[str, Figures] = {}
    with Engine(home, environment(home, user)) as engine:
        connection = engine.connect()
        settle(connection)
        for name, one in measure(connection, writing, seconds=args.seconds, seed=args.seed).items():
            found[f"idle, {name}"] = one
        write_history(scratch / "more", megabytes=args.history, seed=args.seed)
        indexing = threading.Thread(
            target=index, args=(engine.connect(), scratch / "more"), daemon=True
        )
        indexing.start()
        for name, one in measure(
            connection, writing, seconds=args.seconds, seed=args.seed + 1
        ).items():
            found[f"indexing, {name}"] = one
        if not indexing.is_alive():
            raise SystemExit("the index was done before the measurement: give a larger --history")
    return found


def settle(engine: Connection) -> None:
    """Wait until the engine has the model and nothing is left to do."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            answer = engine.request(
                "funes/recall", {"query": "a first turn", "k": 50}, timeout_s=30.0
            )
        except EngineError:  # it is reading a large memory for the first time
            continue
        fresh = [hit for hit in answer["hits"] if hit["text"] == "a first turn"]
        if len(fresh) >= 1 and all(hit["embedded"] for hit in fresh):
            return
        time.sleep(0.2)
    raise SystemExit("the engine does not find the first turns")


def index(engine: Connection, history: Path) -> None:
    """Index a history until the engine stops."""
    try:
        engine.request("funes/index", {"target": str(history), "finish": True}, timeout_s=3600)
    except Exception:
        return


if __name__ == "__main__":
    main()
