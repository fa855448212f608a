"""What taking secrets out costs and what it finds; prints tables.

    python -m benchmarks.redact TRACES [--corpus FILE] [--index TRACES] [--pairs 3]

TRACES is read as `funes index` reads it; every text of its blocks is looked through, on one core
and then on two. FILE is JSON lines, gzipped or not, of `label` (`pos` or `neg`), `kind`, `text` and
`secrets`. What `--index` names is indexed with and without redaction in turn. Nothing that is
found is printed.
"""

import argparse
import gzip
import json
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.index_run import Step, run
from funes_ls import parsing
from funes_ls.gate.check import Block, check
from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.model import Problem
from funes_ls.indexer.redaction.base import loaded

_SUFFIXES = (".jsonl", ".json", ".parquet", ".db", ".sqlite")
#: What is left of a secret in one piece of so many characters still shows it.
_PIECE = 8
#: Rules are compiled, and texts are read, in less.
_WAIT_S = 900.0


class Sample(Struct, frozen=True, kw_only=True):
    """A text of a corpus and the secrets in it."""

    label: str
    kind: str
    text: str
    secrets: list[str] = []


class Started(Struct, frozen=True, kw_only=True):
    """What it took a process to load the scanner."""

    seconds: float
    cpu_s: float
    grown_mb: float


class Worked(Struct, frozen=True, kw_only=True):
    """What a process looked through between two moments of one clock."""

    started: float
    ended: float
    cpu_s: float
    size_bytes: int
    finds: int


def main() -> None:
    """Measure what was asked for."""
    args = _arguments()
    print(f"load before: {os.getloadavg()[0]:.1f}\n" if hasattr(os, "getloadavg") else "")
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="funes-bench-") as folder:
        rules = Path(folder) / "rules"
        starts(context, rules)
        throughput(context, rules, args.traces)
        if args.corpus:
            coverage(list(_samples(args.corpus)), loaded(rules))
        if args.index:
            indexing(args.index, rules, Path(folder), args.pairs)


# What it costs


def starts(context: SpawnContext, rules: Path) -> None:
    """Print what a process takes until it can look at something, rules compiled or not."""
    print("| start | seconds | CPU s | MB |\n|---|---|---|---|")
    for name in ("rules to be compiled", "rules compiled before"):
        with context.Pool(1) as pool:
            took = pool.apply(_start, (rules,))
        print(f"| {name} | {took.seconds:.2f} | {took.cpu_s:.2f} | {took.grown_mb:.0f} |")
    print()


def _start(rules: Path) -> Started:
    before, wall, cpu = _peak_mb(), time.perf_counter(), time.process_time()
    loaded(rules)
    return Started(
        seconds=time.perf_counter() - wall,
        cpu_s=time.process_time() - cpu,
        grown_mb=_peak_mb() - before,
    )


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 if sys.platform == "linux" else 1024**2)


def throughput(context: SpawnContext, rules: Path, traces: Path) -> None:
    """Print how fast texts of traces are looked through, by one process and by two at once."""
    print("| processes | MB | seconds | MB/s | MB per CPU s | finds |\n|---|---|---|---|---|---|")
    for count in (1, 2):
        done = _at_once(context, rules, traces, count)
        wall = max(one.ended for one in done) - min(one.started for one in done)
        size = sum(one.size_bytes for one in done) / 1e6
        per_cpu = size / sum(one.cpu_s for one in done)
        finds = sum(one.finds for one in done)
        rate = size / wall
        print(f"| {count} | {size:.1f} | {wall:.2f} | {rate:.1f} | {per_cpu:.1f} | {finds} |")
    print()


def _at_once(context: SpawnContext, rules: Path, traces: Path, count: int) -> list[Worked]:
    ready, results = context.Barrier(count), context.Queue()
    processes = [
        context.Process(target=_work, args=(rules, traces, number, count, ready, results))
        for number in range(count)
    ]
    for process in processes:
        process.start()
    done = [results.get(timeout=_WAIT_S) for _ in processes]
    for process in processes:
        process.join()
    return done


def _work(rules: Path, traces: Path, number: int, count: int, ready: Any, results: Any) -> None:
    scanner = loaded(rules)
    # By size in turn, so that each process has as much to do.
    texts = sorted(_texts(traces), key=len)[number::count]
    scanner.text("a first text of some words")
    ready.wait(_WAIT_S)
    cpu, started = time.process_time(), time.perf_counter()
    finds = sum(sum(scanner.text(text).counts.values()) for text in texts)
    ended = time.perf_counter()
    results.put(
        Worked(
            started=started,
            ended=ended,
            cpu_s=time.process_time() - cpu,
            size_bytes=sum(len(text.encode("utf-8", "replace")) for text in texts),
            finds=finds,
        )
    )


def _texts(traces: Path) -> Iterator[str]:
    """Yield the texts of all blocks that readers make of traces."""
    files = [traces] if traces.is_file() else sorted(traces.rglob("*"))
    for path in files:
        if path.suffix not in _SUFFIXES or not path.is_file():
            continue
        try:
            for parsed in parsing.parse(path):
                if isinstance(parsed, Problem):
                    continue
                for item in parsing.items_of(parsed):
                    if not isinstance(item, Problem):
                        for block in (*item.blocks, *(item.ext_blocks or ())):
                            yield block.text
        except (FunesError, OSError, ValueError) as exc:
            print(f"{path.name} is left out ({type(exc).__name__})", file=sys.stderr)


# What it finds


def coverage(samples: Sequence[Sample], scanner: Any) -> None:
    """Print what the redactor takes out, and what the gate then lets through of the rest."""
    shown = [scanner.text(one.text).text for one in samples]
    positives = [at for at, one in enumerate(samples) if one.label == "pos"]
    negatives = [at for at, one in enumerate(samples) if one.label != "pos"]
    whole = [at for at in positives if any(secret in shown[at] for secret in samples[at].secrets)]
    left = [at for at in positives if _shows(samples[at], shown[at])]
    report = check(Block(str(at), shown[at]) for at in {*left, *whole, *negatives})
    passed = [at for at in left if str(at) in report.passed]
    flagged = [at for at in negatives if shown[at] != samples[at].text]
    held = [at for at in negatives if str(at) in report.withheld]

    def line(what: str, part: Sequence[int], of: Sequence[int]) -> None:
        kinds = Counter(samples[at].kind for at in part)
        named = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common(8))
        share = len(part) / len(of) if of else 0.0
        print(f"| {what} | {len(part)} of {len(of)} | {share:.3f} | {named} |")

    print("| texts | | share | kinds |\n|---|---|---|---|")
    line("with a secret that is left whole", whole, positives)
    line(f"with {_PIECE} characters of one left", left, positives)
    line("of those, let through by the gate", passed, positives)
    line("without any, changed", flagged, negatives)
    line("without any, kept back by the gate", held, negatives)
    print()


def _shows(sample: Sample, shown: str) -> bool:
    """Return whether a piece of a secret is left that stood nowhere else in the text."""
    return any(
        piece in shown and sample.text.count(piece) <= sample.text.count(secret)
        for secret in sample.secrets
        for piece in _pieces(secret)
    )


def _pieces(secret: str) -> Iterator[str]:
    for at in range(max(1, len(secret) - _PIECE + 1)):
        yield secret[at : at + _PIECE]


def _samples(path: Path) -> Iterator[Sample]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        for line in file:
            one = json.loads(line)
            yield Sample(
                label=one["label"],
                kind=one.get("kind", ""),
                text=one["text"],
                secrets=one.get("secrets", []),
            )


# What it costs a first index


def indexing(traces: str, rules: Path, folder: Path, pairs: int) -> None:
    """Print what a first index by words takes with redaction and without, in turn."""
    steps: dict[str, list[Step]] = {"on": [], "off": []}
    for number in range(pairs):
        for name, done in steps.items():
            env = {
                **os.environ,
                "FUNES_HOME": str(folder / f"{name}-{number}"),
                "FUNES_RULES_CACHE": str(rules),
                "FUNES_REDACTION": name,
            }
            done.append(run(["index", traces, "--words-only", "--json", "-q"], env))
    on, off = steps["on"], steps["off"]
    chunks = on[0].report["chunks"]
    ratios = [one.seconds / other.seconds for one, other in zip(on, off, strict=True)]
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"{pairs} pairs, {chunks:,} chunks\n\n| | on | off | on/off |\n|---|---|---|---|")
    for what, field in (("seconds", "seconds"), ("CPU seconds", "cpu_s")):
        with_, without = (
            statistics.median(getattr(one, field) for one in part) for part in (on, off)
        )
        ratio = f"{statistics.median(ratios):.2f} ({spread})" if field == "seconds" else ""
        ratio = ratio or f"{with_ / without:.2f}"
        print(f"| {what} | {with_:.1f} | {without:.1f} | {ratio} |")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("traces", type=Path, help="what `funes index` reads")
    parser.add_argument("--corpus", type=Path, help="texts with and without secrets")
    parser.add_argument("--index", default="", help="traces to index with redaction and without")
    parser.add_argument("--pairs", type=int, default=3, help="how often each")
    return parser.parse_args()


if __name__ == "__main__":
    main()
