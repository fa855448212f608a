"""What is measured of a memory, whatever its size."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.latency.figures import Figure
from benchmarks.latency.measure import Asker, Clock, start
from benchmarks.latency.processes import Engine, environment, rss_mb
from benchmarks.latency.questions import draw
from funes_ls.engine.client import Connection
from funes_ls.indexer.lock import writer_lock
from funes_ls.indexer.memory import open_memory

_ADDED = 20
_WARM_UP = 15
_PATIENCE_S = 120.0
_PAUSE_S = 0.02
_REQUEST_S = 60.0
_MB = 1e6


class Measured(Struct, frozen=True, kw_only=True):
    """What was measured of one memory: a figure in words for each thing, in the order of rows."""

    chunks: int
    rows: dict[str, str]
    stages: dict[str, float]


def measured(home: Path, *, rounds: int, seed: int) -> Measured:
    """Start an engine over a home, ask, add, stop and tidy; the home grows a little."""
    user = home / "user"
    (user / ".claude" / "projects").mkdir(parents=True, exist_ok=True)
    env = environment(home, user)
    drawn = draw(home, seed=seed)
    engine, first = start(home, env, drawn)
    with engine:
        connection = engine.connect()
        asker = Asker(connection, drawn, (), seed=seed)
        rows = {
            "start to an answer by words, ms": _once(first[1]),
            "start to one by both legs, ms": _once(first[2]),
        }
        rows |= _asked(asker, connection, rounds)
        stages = _stages(connection, drawn.questions, rounds)
        rows |= _taken(engine, "after questions")
        rows |= _added(connection, user, seed)
        rows |= _taken(engine, "after 20 rows more")
    rows |= _tidied(home)
    rows["disk, MB: dataset, words, catalog"] = _disk(home / "memory")
    return Measured(chunks=_count(home), rows=rows, stages=stages)


def _once(figure: Figure) -> str:
    return f"{figure.at('max'):,.0f}"


def _asked(asker: Asker, connection: Connection, rounds: int) -> dict[str, str]:
    for _ in range(_WARM_UP):
        _round(asker, connection, Clock())
    clock = Clock()
    for _ in range(rounds):
        _round(asker, connection, clock)
    return {
        f"{figure.name}, ms: p50, p95": f"{figure.at('p50'):.1f}, {figure.at('p95'):.1f}"
        + "".join(f" ({fault})" for fault in figure.faults)
        for figure in clock.figures({})
    }


def _round(asker: Asker, connection: Connection, clock: Clock) -> None:
    asker.recall(clock)
    asker.staged(clock)
    asker.get(clock)
    asker.related(clock)
    for name, params in (("sessions", {"limit": 20}), ("status", {})):
        with clock.timed(name):
            connection.request(f"funes/{name}", params, timeout_s=_REQUEST_S)


def _stages(connection: Connection, questions: Iterator[str], rounds: int) -> dict[str, float]:
    """Return the median milliseconds of each stage of a recall, as the engine tells them."""
    seen: dict[str, list[float]] = {}
    for _ in range(rounds):
        params = {"query": next(questions)}
        answer = connection.request("funes/recall", params, timeout_s=_REQUEST_S)
        for name, took in answer["timings_ms"].items():
            seen.setdefault(name, []).append(took)
    return {name: sorted(took)[len(took) // 2] for name, took in seen.items()}


def _taken(engine: Engine, when: str) -> dict[str, str]:
    pid = engine.process.pid
    kinds = (rss_mb(pid, kind) for kind in ("VmRSS", "RssAnon", "RssFile", "VmHWM"))
    values = ", ".join(f"{value:,.0f}" for value in kinds)
    return {f"engine {when}, MB: resident, no file's, files', peak": values}


def _added(connection: Connection, user: Path, seed: int) -> dict[str, str]:
    """Write a session of 20 turns as an agent does; return how soon all are found."""
    mark = f"zq{seed}x{int(time.time() * 1000):x}"
    texts = [f"the {mark}n{number} valve was turned by hand" for number in range(_ADDED)]
    path = user / ".claude" / "projects" / "-scale" / f"{mark}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(_turn(mark, text))}\n" for text in texts), "utf-8")
    began = time.perf_counter()

    def found(text: str, weight: float) -> bool:
        params = {"query": text, "vectorWeight": weight, "k": 5}
        answer = connection.request("funes/recall", params, timeout_s=_REQUEST_S)
        return any(text in hit["text"] and hit["embedded"] >= weight for hit in answer["hits"])

    by_words = _until(lambda: found(texts[-1], 0.0), began)
    by_vector = _until(lambda: found(texts[-1], 1.0), began)
    return {f"{_ADDED} rows more found, s: by words, by vector": f"{by_words:.2f}, {by_vector:.2f}"}


def _turn(session: str, text: str) -> dict[str, Any]:
    return {
        "type": "user",
        "uuid": f"{session}-{text.split()[1]}",
        "sessionId": session,
        "cwd": "/work/scale",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
        "message": {"role": "user", "content": text},
    }


def _until(found: Callable[[], bool], began: float) -> float:
    while not found():
        if time.perf_counter() - began > _PATIENCE_S:
            return float("nan")
        time.sleep(_PAUSE_S)
    return time.perf_counter() - began


def _tidied(home: Path) -> dict[str, str]:
    """Return what an engine does in an idle time, with nobody waiting, takes."""
    with (
        writer_lock(home),
        open_memory(home / "memory", derived=home / "derived", writable=True) as memory,
    ):
        began = time.perf_counter()
        memory.tidy()
        tidy_s = time.perf_counter() - began
        memory.count_turns()
        counted_s = time.perf_counter() - began - tidy_s
    return {"compaction, counting turns, s": f"{tidy_s:.2f}, {counted_s:.2f}"}


def _disk(memory: Path) -> str:
    parts = (_size(memory / name) for name in ("chunks.lance", "lexical", "catalog.db"))
    return ", ".join(f"{size / _MB:,.0f}" for size in parts)


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(one.stat().st_size for one in files if one.is_file())


def _count(home: Path) -> int:
    with open_memory(home / "memory", derived=home / "derived") as memory:
        return memory.embedded_count()
