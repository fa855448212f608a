"""Many clients of one engine at once, while sessions grow: no error, no leak, nothing stale.

    python -m benchmarks.load [--home DIR] [--clients 50] [--minutes 10] [--check]

Works on a copy of a home made by `benchmarks.latency.make_memory` (made here without --home).
Each client asks, thinks a while and asks again. A few live sessions get a turn at a time, each
with a word that is nowhere else: once `funes/didIndex` has named the session, every client must
find that word. Every answer must be of the generation its client was last told of, or a later one.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

from msgspec import Struct

from benchmarks.latency.figures import Figure, as_objects, milliseconds, table
from benchmarks.latency.make_memory import add_arguments, make_from
from benchmarks.latency.processes import Engine, environment
from benchmarks.latency.questions import Place, draw
from funes_ls.engine.async_client import Engine as Client
from funes_ls.indexer.errors import FunesError

_REQUEST_S = 30.0
_FRESH_S = 30.0
_MOST_GROWTH = 0.05
_QUESTIONS = 3000
#: How many sessions grow, a turn at a time each.
LIVE_SESSIONS = 4
_WITNESSES = 3
#: After a turn has its vector, how long what is told of that may be under way.
_SETTLED_S = 1.0
_SAMPLED_EVERY_S = 0.5
#: How often each thing is asked, in a hundred.
_MIX = {
    "recall": 25,
    "staged": 15,
    "get": 20,
    "related": 20,
    "sessions": 8,
    "status": 7,
    "cancel": 5,
}


class Load(Struct, frozen=True, kw_only=True):
    """How much is asked, and for how long.

    Attributes:
        warm_up_s: How long the same load runs before memory is sampled: caches of a bounded size
            fill then, which is no leak.
    """

    clients: int
    seconds: float
    warm_up_s: float = 0.0
    think_s: float = 2.0
    seed: int = 7


class Result(Struct, kw_only=True):
    """What came of it.

    Attributes:
        took_s: Seconds by what was asked.
        fresh_s: Seconds from a turn's write until `funes/didIndex` named its session.
        errors: Answers that were errors, and none at all.
        stale: Answers that were older than their client knew, or lacked a turn told of.
        rss_mb: Resident memory of the engine, sampled evenly.
        waiting: Turns that had no vector yet at the end.
    """

    took_s: dict[str, list[float]] = {}
    fresh_s: list[float] = []
    errors: list[str] = []
    stale: list[str] = []
    rss_mb: list[float] = []
    turns: int = 0
    waiting: int = 0

    def growth(self) -> float:
        """Return how much resident memory grew from the first third to the last, as a share."""
        third = len(self.rss_mb) // 3
        if not third:
            return 0.0
        first, last = sum(self.rss_mb[:third]), sum(self.rss_mb[-third:])
        return last / first - 1

    def figures(self) -> list[Figure]:
        """Return the result as figures; errors, stale answers and growth are missed targets."""
        figures = [
            Figure(name=name, values=milliseconds(took))
            for name, took in sorted(self.took_s.items())
        ]
        figures.append(
            Figure(name="turn written to `funes/didIndex`", values=milliseconds(self.fresh_s))
        )
        figures.append(_count("errors", self.errors))
        figures.append(_count("stale answers", self.stale))
        growth = Figure(
            name="growth of resident memory",
            values=(100 * self.growth(),),
            unit="%",
            most={"max": 100 * _MOST_GROWTH},
        )
        return [*figures, growth, Figure(name="engine", values=tuple(self.rss_mb), unit="MB")]


def _count(name: str, lines: list[str]) -> Figure:
    faults = tuple(dict.fromkeys(lines))[:5]
    return Figure(name=name, values=(float(len(lines)),), unit="", most={"max": 0}, faults=faults)


class _Front:
    """One client and the newest generation it was told of."""

    def __init__(self, client: Client, on_index: Callable[[int, list[str]], None]) -> None:
        self.generation = 0
        self._client = client
        self._on_index = on_index
        client.on_notification("funes/didIndex", self._told)

    def _told(self, params: Any) -> None:
        self.generation = max(self.generation, params["generation"])
        self._on_index(params["generation"], list(params["sessions"]))

    async def ask(self, method: str, params: dict[str, Any], **more: Any) -> Any:
        return await self._client.request(method, params, timeout_s=_REQUEST_S, **more)

    async def close(self) -> None:
        await self._client.close()


class Run:
    """One run of the load against the engine of a home."""

    def __init__(self, home: Path, user: Path, engine: Engine, load: Load) -> None:
        """Draw what will be asked."""
        self.result = Result()
        self._load = load
        self._home = home
        self._engine = engine
        self._live = user / ".claude" / "projects" / "-work-live"
        self._live.mkdir(parents=True, exist_ok=True)
        drawn = draw(home, seed=load.seed)
        self._questions = list(islice(drawn.questions, _QUESTIONS))
        self._places: tuple[Place, ...] = drawn.places
        self._files = drawn.files
        self._fronts: list[_Front] = []
        self._told: dict[str, int] = defaultdict(int)
        self._ends = 0.0

    async def go(self) -> Result:
        """Ask until the time is over."""
        self._fronts = [await self._front() for _ in range(self._load.clients)]
        self._ends = time.monotonic() + self._load.seconds
        tasks = [self._client(number) for number in range(self._load.clients)]
        tasks += [self._write(number) for number in range(LIVE_SESSIONS)]
        await asyncio.gather(*tasks, self._watch_memory())
        if self._engine.process.poll() is not None:
            self.result.errors.append("the engine has ended")
        for front in self._fronts:
            await front.close()
        return self.result

    async def _front(self) -> _Front:
        client = await Client.connect(
            self._home, client="bench", start=False, notify=True, env=self._engine.env
        )
        return _Front(client, self._on_index)

    def _on_index(self, generation: int, sessions: list[str]) -> None:
        for session in sessions:
            self._told[session] = max(self._told[session], generation)

    def _over(self) -> bool:
        return time.monotonic() >= self._ends

    async def _client(self, number: int) -> None:
        """Ask one thing after the other, as the mix says."""
        chance = random.Random(f"{self._load.seed} {number}")
        front = self._fronts[number]
        kinds, weights = list(_MIX), list(_MIX.values())
        while not self._over():
            await asyncio.sleep(chance.expovariate(1 / self._load.think_s))
            kind = chance.choices(kinds, weights)[0]
            started, known = time.perf_counter(), front.generation
            try:
                answer = await self._ask(kind, front, chance)
            except (FunesError, OSError, TimeoutError) as exc:
                self.result.errors.append(f"{kind}: {type(exc).__name__}: {exc}"[:160])
                continue
            took = time.perf_counter() - started
            self.result.took_s.setdefault(kind, []).append(took)
            self._check_generation(kind, answer, known)

    def _check_generation(self, kind: str, answer: Any, known: int) -> None:
        if answer is not None and answer.get("generation", known) < known:
            self.result.stale.append(f"{kind}: of generation {answer['generation']} after {known}")

    async def _ask(self, kind: str, front: _Front, chance: random.Random) -> Any:
        if kind == "cancel":
            return await self._cancel(front, chance)
        question = {"query": chance.choice(self._questions)}
        place = chance.choice(self._places)
        asked: dict[str, tuple[str, dict[str, Any]]] = {
            "recall": ("funes/recall", question),
            "staged": ("funes/recall", question),
            "get": (
                "funes/get",
                {"sessionId": place.session_id, "turnUuid": place.turn_uuid},
            ),
            "related": ("funes/related", {"path": chance.choice(self._files)}),
            "sessions": ("funes/sessions", {"limit": 20, "offset": chance.randrange(50)}),
            "status": ("funes/status", {}),
        }
        method, params = asked[kind]
        partial = {"on_partial": lambda _: None} if kind == "staged" else {}
        answer = await front.ask(method, params, **partial)
        if kind in ("recall", "staged") and not answer["hits"]:
            self.result.errors.append(f"{kind}: no hits")
        if kind == "get" and not answer["found"]:
            self.result.errors.append("get: a turn that is there was not found")
        return answer

    async def _cancel(self, front: _Front, chance: random.Random) -> None:
        """Ask, and think better of it; the next answer on the connection must still come."""
        asking = asyncio.ensure_future(
            front.ask("funes/recall", {"query": chance.choice(self._questions)})
        )
        await asyncio.sleep(chance.random() * 0.05)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        await front.ask("engine/status", {})

    async def _write(self, number: int) -> None:
        """Let one session grow turn by turn, and look whether each is found once told of."""
        chance = random.Random(f"{self._load.seed} live {number}")
        path = self._live / f"live-{number}-{chance.getrandbits(48):012x}.jsonl"
        turn = 0
        while not self._over():
            word = f"zq{chance.getrandbits(48):012x}"
            floor = max(self._told.values(), default=0)
            written = time.perf_counter()
            _append(path, turn, f"turn {turn} of a live session speaks of {word}")
            turn += 1
            self.result.turns += 1
            generation = await self._named(path.stem, above=floor)
            if generation is None:
                continue
            self.result.fresh_s.append(time.perf_counter() - written)
            await self._witness(word, generation, chance)
            await self._embedded(word)
            await asyncio.sleep(_SETTLED_S)

    async def _named(self, session: str, *, above: int) -> int | None:
        """Wait until `funes/didIndex` names a session with a generation above one already seen."""
        found = await _until(lambda: self._told[session] > above, _FRESH_S)
        if found:
            return self._told[session]
        self.result.errors.append(f"didIndex: a written turn was not told of in {_FRESH_S:g} s")
        return None

    async def _witness(self, word: str, generation: int, chance: random.Random) -> None:
        """Ask several clients for a turn that they were told of."""
        witnesses = chance.sample(self._fronts, min(_WITNESSES, len(self._fronts)))
        for answer in await asyncio.gather(*(self._find(front, word) for front in witnesses)):
            if answer is None:
                continue
            if answer["generation"] < generation:
                self.result.stale.append(
                    f"a live turn: of generation {answer['generation']} after {generation}"
                )
            if not any(word in hit["text"] for hit in answer["hits"]):
                self.result.stale.append(
                    f"a live turn was not found in generation {answer['generation']} after "
                    f"funes/didIndex {generation}"
                )

    async def _find(self, front: _Front, word: str) -> Any:
        try:
            return await front.ask("funes/recall", {"query": word, "vectorWeight": 0.0, "k": 3})
        except (FunesError, OSError, TimeoutError) as exc:
            self.result.errors.append(f"a live turn: {type(exc).__name__}: {exc}"[:160])
            return None

    async def _embedded(self, word: str) -> None:
        """Wait until a turn has its vector; what is told of it later is of a later turn."""
        while not self._over():
            answer = await self._find(self._fronts[0], word)
            hits = answer["hits"] if answer else ()
            if any(word in hit["text"] and hit["embedded"] for hit in hits):
                return
            await asyncio.sleep(0.5)
        self.result.waiting += 1

    async def _watch_memory(self) -> None:
        await asyncio.sleep(self._load.warm_up_s)
        while not self._over():
            self.result.rss_mb.append(self._engine.rss_mb())
            await asyncio.sleep(_SAMPLED_EVERY_S)


async def _until(ready: Callable[[], bool], seconds: float) -> bool:
    ends = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > ends:
            return False
        await asyncio.sleep(0.005)
    return True


def _append(path: Path, turn: int, text: str) -> None:
    """Add a turn as Claude Code writes one."""
    role = ("user", "assistant")[turn % 2]
    record = {
        "type": role,
        "uuid": f"{path.stem}-{turn:06d}-0000-0000-000000000000",
        "sessionId": path.stem,
        "cwd": "/work/live",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
        "message": {"role": role, "content": [{"type": "text", "text": text}]},
    }
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def run(home: Path, user: Path, load: Load) -> Result:
    """Start an engine for a home, load it, end it, and return what came of it."""
    with Engine(home, environment(home, user)) as engine:
        engine.connect().close()
        return asyncio.run(Run(home, user, engine, load).go())


@contextmanager
def _copied(home: Path | None, args: argparse.Namespace) -> Iterator[tuple[Path, Path]]:
    """Give a copy of a home, made when there is none, and a home directory without sessions."""
    scratch = Path(tempfile.mkdtemp(prefix="funes-load-"))
    try:
        source = home or scratch / "made"
        if not (source / "memory").is_dir():
            make_from(args, source)
        copytree(source / "memory", scratch / "home" / "memory")
        if (source / "models").is_dir():
            (scratch / "home" / "models").symlink_to((source / "models").resolve())
        (scratch / "user" / ".claude" / "projects").mkdir(parents=True)
        yield scratch / "home", scratch / "user"
    finally:
        rmtree(scratch, ignore_errors=True)


def main() -> None:
    """Load an engine, print what came of it, and fail with `--check` when something is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--home", type=Path, help="a funes home with a memory; made without")
    add_arguments(parser)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument(
        "--warm-up",
        type=float,
        default=2.0,
        metavar="MINUTES",
        help="of the same load, before the memory it takes is sampled",
    )
    parser.add_argument("--think", type=float, default=2.0, help="mean seconds between requests")
    parser.add_argument("--json", action="store_true", help="one JSON object, no table")
    parser.add_argument("--check", action="store_true", help="exit with 1 when something is wrong")
    args = parser.parse_args()
    load = Load(
        clients=args.clients,
        seconds=(args.warm_up + args.minutes) * 60,
        warm_up_s=args.warm_up * 60,
        think_s=args.think,
    )
    before = os.getloadavg()[0]
    with _copied(args.home, args) as (home, user):
        result = run(home, user, load)
    figures = result.figures()
    missed = [line for figure in figures for line in figure.missed()]
    if args.json:
        print(json.dumps({"figures": as_objects(figures), "missed": missed}, indent=1))
    else:
        print(
            f"{args.clients} clients, {args.minutes:g} minutes after {args.warm_up:g} to warm up, "
            f"load {before:.1f} before"
        )
        print(f"{result.turns} turns written, {result.waiting} without a vector at the end\n")
        print(table(figures))
        print("".join(f"\nmissed: {line}" for line in missed))
    if args.check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
