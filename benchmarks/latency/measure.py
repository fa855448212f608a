"""What is measured, one function a thing; each returns figures with the targets they have."""

import json
import random
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.latency.figures import Figure, milliseconds
from benchmarks.latency.processes import Engine, LanguageServer, Refused, command, rss_mb
from benchmarks.latency.questions import Drawn
from benchmarks.latency.written import Written
from funes_ls.engine.client import Connection
from funes_ls.protocol import CONTENT_MODIFIED

_REQUEST_S = 30.0
_WARM_UP = 10
_IDLE_S = 10.0

#: What the product promises on two cores with 100,000 chunks, by figure and quantile.
TARGETS: dict[str, dict[str, float]] = {
    "recall": {"p50": 80, "p99": 250},
    "recall, words stage": {"p50": 30},
    "get": {"p50": 20},
    "hover": {"p50": 15},
    "hover, nobody's line": {"p50": 15},
    "code lens": {"p50": 15},
    "blame of 5,000 lines": {"p50": 50},
    "`funes recall`, whole process": {"p50": 150},
    "start to words-only answer": {"max": 1000},
    "start to first full answer": {"max": 4000},
    "engine, idle": {"max": 450},
    "language server": {"max": 70},
}
#: The same while an index runs, where something is promised.
INDEXING_TARGETS: dict[str, dict[str, float]] = {
    "hover": {"p50": 15, "p95": 150},
    "hover, nobody's line": {"p50": 15, "p95": 150},
    "code lens": {"p50": 15, "p95": 150},
}


class Clock:
    """Collects how long things took, and what went wrong, by name."""

    def __init__(self) -> None:
        """Start empty."""
        self.took_s: dict[str, list[float]] = defaultdict(list)
        self.faults: dict[str, list[str]] = defaultdict(list)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Time a block; an error is noted and swallowed."""
        started = time.perf_counter()
        try:
            yield
        except Exception as exc:
            self.faults[name].append(f"{type(exc).__name__}: {exc}"[:200])
        else:
            self.took_s[name].append(time.perf_counter() - started)

    def figures(self, targets: Mapping[str, dict[str, float]], *, load: str = "") -> list[Figure]:
        """Return a figure for each name, with its target."""
        return [
            Figure(
                name=f"{name}{load}",
                values=milliseconds(self.took_s[name]),
                most=targets.get(name, {}),
                faults=tuple(dict.fromkeys(self.faults[name])),
            )
            for name in dict.fromkeys([*self.took_s, *self.faults])
        ]


class Asker:
    """Asks one engine over one connection, a new question every time."""

    def __init__(
        self, connection: Connection, drawn: Drawn, files: Sequence[Written], *, seed: int
    ) -> None:
        """Ask over a connection what was drawn from the memory, and who wrote large files."""
        self._connection = connection
        self._files = files
        self._drawn = drawn
        self._chance = random.Random(seed)

    def recall(self, clock: Clock) -> None:
        """Time one recall without stages."""
        params = {"query": next(self._drawn.questions)}
        with clock.timed("recall"):
            answer = self._request("funes/recall", params)
        _expect(clock, "recall", answer["hits"], "no hits")
        _expect(clock, "recall", "ran" in answer["legs"].values(), "no leg ran")

    def staged(self, clock: Clock) -> None:
        """Time one staged recall: its words, and the whole."""
        params = {"query": next(self._drawn.questions)}
        came: list[float] = []
        started = time.perf_counter()
        with clock.timed("recall, staged, whole"):
            self._request(
                "funes/recall", params, on_partial=lambda _: came.append(time.perf_counter())
            )
        if came:
            clock.took_s["recall, words stage"].append(came[0] - started)
        else:
            clock.faults["recall, words stage"].append("no partial answer came")

    def get(self, clock: Clock) -> None:
        """Time one `funes/get`."""
        place = self._chance.choice(self._drawn.places)
        params = {"sessionId": place.session_id, "turnUuid": place.turn_uuid}
        with clock.timed("get"):
            answer = self._request("funes/get", params)
        _expect(clock, "get", answer["found"], "a turn that is there was not found")

    def related(self, clock: Clock) -> None:
        """Time one `funes/related`."""
        params = {"path": self._chance.choice(self._drawn.files)}
        with clock.timed("related"):
            answer = self._request("funes/related", params)
        _expect(clock, "related", answer["sessions"], "no sessions for a file they touched")

    def blame(self, clock: Clock) -> None:
        """Time who wrote the lines of a large file that has just been changed."""
        file = self._chance.choice(self._files)
        lines = file.text.split("\n")
        lines.insert(self._chance.randrange(len(lines)), f"changed = {self._chance.random()}")
        params = {"path": file.path, "text": "\n".join(lines)}
        with clock.timed("blame of 5,000 lines"):
            answer = self._request("funes/blame", params)
        _expect(clock, "blame of 5,000 lines", answer["lines"], "nobody wrote a written file")

    def _request(self, method: str, params: dict[str, Any], **more: Any) -> Any:
        return self._connection.request(method, params, timeout_s=_REQUEST_S, **more)


def _expect(clock: Clock, name: str, ok: object, fault: str) -> None:
    if not ok:
        clock.faults[name].append(fault)


class Reader:
    """Looks at files in an editor: hovers, and the lenses of a file."""

    def __init__(self, server: LanguageServer, files: Sequence[Written], *, seed: int) -> None:
        """Open files that sessions wrote."""
        self._server = server
        self._chance = random.Random(seed)
        self._files = [(server.open(file.path, file.text), file) for file in files]

    def hover(self, clock: Clock) -> None:
        """Time one hover over a line that a session wrote."""
        uri, file = self._chance.choice(self._files)
        said = self._hover(clock, "hover", uri, self._chance.choice(file.claimed))
        _expect(clock, "hover", said, "nothing is said of a line that a session wrote")

    def hover_nobody(self, clock: Clock) -> None:
        """Time one hover over a line of a file they know that sessions only read."""
        uri, file = self._chance.choice(self._files)
        others = sorted(set(file.lines) - set(file.claimed))
        self._hover(clock, "hover, nobody's line", uri, self._chance.choice(others or file.lines))

    def _hover(self, clock: Clock, name: str, uri: str, line: int) -> Any:
        params = {"textDocument": {"uri": uri}, "position": {"line": line, "character": 2}}
        with clock.timed(name):
            return self._server.request("textDocument/hover", params)

    def lens(self, clock: Clock) -> None:
        """Time the list of lenses, resolved as an editor does for the visible ones."""
        params = self._document()
        lenses: list[Any] = []
        with clock.timed("code lens"):
            lenses = self._server.request("textDocument/codeLens", params) or []
        _expect(clock, "code lens", lenses, "no lens on a file that sessions touched")
        if lenses and "command" not in lenses[0]:
            with clock.timed("code lens, resolve"):
                self._resolve(lenses[0])

    def _resolve(self, lens: Any) -> None:
        try:
            self._server.request("codeLens/resolve", lens)
        except Refused as exc:
            if exc.code != CONTENT_MODIFIED:  # then an editor asks for the list again
                raise

    def _document(self) -> dict[str, Any]:
        return {"textDocument": {"uri": self._chance.choice(self._files)[0]}}


def start(home: Path, env: Mapping[str, str], drawn: Drawn) -> tuple[Engine, list[Figure]]:
    """Start an engine; return it and how long its first answers took from its start."""
    engine = Engine(home, env)
    try:
        connection = engine.connect()
        hello_s = time.perf_counter() - engine.started_at
        words_s, full_s = _first_answers(engine, connection, drawn)
    except BaseException:
        engine.stop()
        raise
    connection.close()
    return engine, [
        _once("start to hello", hello_s),
        _once("start to words-only answer", words_s),
        _once("start to first full answer", full_s),
    ]


def _first_answers(engine: Engine, connection: Connection, drawn: Drawn) -> tuple[float, float]:
    """Return seconds from the start until words were answered, and until both legs ran."""
    words: list[float] = []

    def note(_answer: Any) -> None:
        words.append(time.perf_counter() - engine.started_at)

    while True:
        params = {"query": next(drawn.questions)}
        answer = connection.request("funes/recall", params, timeout_s=_REQUEST_S, on_partial=note)
        full_s = time.perf_counter() - engine.started_at
        if not words and answer["hits"]:
            note(answer)
        if answer["legs"].get("vector") == "ran":
            return words[0], full_s
        if full_s > _REQUEST_S:
            raise SystemExit(f"The engine does not come to search vectors: {answer['legs']}")


def _once(name: str, seconds: float) -> Figure:
    return Figure(name=name, values=milliseconds([seconds]), most=TARGETS.get(name, {}))


def warm(asker: Asker, reader: Reader, *, rounds: int) -> list[Figure]:
    """Return what a warm engine takes when nothing else goes on."""
    clock = Clock()
    for _ in range(_WARM_UP):
        _round(asker, reader, Clock())
    for _ in range(rounds):
        _round(asker, reader, clock)
    return clock.figures(TARGETS)


def _round(asker: Asker, reader: Reader, clock: Clock) -> None:
    asker.recall(clock)
    asker.staged(clock)
    for ask in (
        asker.get,
        asker.related,
        asker.blame,
        reader.hover,
        reader.hover_nobody,
        reader.lens,
    ):
        ask(clock)


def shim(env: Mapping[str, str], drawn: Drawn, *, runs: int) -> list[Figure]:
    """Return how long `funes recall` takes as a whole process."""
    clock = Clock()
    name = "`funes recall`, whole process"
    for _ in range(runs):
        argv = [*command("funes"), "recall", "--", next(drawn.questions)]
        with clock.timed(name):
            subprocess.run(
                argv, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, check=True
            )
    return clock.figures(TARGETS)


def memory_taken(engine: Engine, server: LanguageServer) -> list[Figure]:
    """Return the resident memory of both, after a while without work."""
    time.sleep(_IDLE_S)
    taken = {
        "engine, idle": engine.rss_mb(),
        "engine, idle, without files": rss_mb(engine.process.pid, "RssAnon"),
        "language server": server.rss_mb(),
    }
    return [
        Figure(name=name, values=(value,), unit="MB", most=TARGETS.get(name, {}))
        for name, value in taken.items()
    ]


class _Indexing:
    """A full index that runs in the background, and the phase it is in."""

    def __init__(self, connection: Connection, traces: Path) -> None:
        self.phase = ""
        self.done = False
        self.fault = ""
        self._connection = connection
        self._thread = threading.Thread(target=self._run, args=(traces,), daemon=True)
        self._thread.start()

    def _run(self, traces: Path) -> None:
        params = {"target": str(traces), "finish": True}
        try:
            self._connection.request("funes/index", params, timeout_s=3600, on_progress=self._note)
        except Exception as exc:
            self.fault = f"{type(exc).__name__}: {exc}"
        self.done = True

    def _note(self, value: Any) -> None:
        said = json.dumps(value)
        if "ector" in said or "mbed" in said:
            self.phase = "vectors"
        elif self.phase != "vectors" and value.get("kind") == "report":
            self.phase = "words"

    def cancel(self) -> None:
        self._connection.cancel()
        self._thread.join(30)


def while_indexing(
    engine: Engine,
    asker: Asker,
    reader: Reader,
    traces: Path,
    *,
    seconds: float,
) -> list[Figure]:
    """Return what answers take while a history is read and embedded.

    Args:
        engine: Where it runs.
        asker: Asks questions meanwhile.
        reader: Looks at files meanwhile.
        traces: A history that is not in the memory.
        seconds: How long to measure while vectors are made.
    """
    clocks: dict[str, Clock] = {"words": Clock(), "vectors": Clock()}
    connection = engine.connect()
    indexing = _Indexing(connection, traces)
    actions: list[Callable[[Clock], None]] = [reader.hover, reader.lens, asker.recall, asker.get]
    actions += [reader.hover_nobody, reader.lens, asker.staged, asker.related]
    ends: float | None = None
    number = 0
    while not indexing.done and (ends is None or time.monotonic() < ends):
        phase = indexing.phase
        if phase == "vectors" and ends is None:
            ends = time.monotonic() + seconds
        actions[number % len(actions)](clocks.get(phase, Clock()))
        number += 1
    rss = engine.rss_mb()
    if not indexing.done:
        indexing.cancel()
    connection.close()
    figures = []
    for phase, clock in clocks.items():
        figures += clock.figures(INDEXING_TARGETS, load=f", while {phase} are indexed")
        if not clock.took_s:
            figures.append(_nothing(phase, indexing.fault))
    return [*figures, Figure(name="engine, indexing", values=(rss,), unit="MB")]


def _nothing(phase: str, fault: str) -> Figure:
    reason = fault or "the index was over before anything could be measured"
    return Figure(name=f"while {phase} are indexed", values=(), faults=(reason,))
