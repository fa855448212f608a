"""How fast an index run is, what memory it takes and what it leaves on disk; prints a table.

    python benchmarks/index_run.py TRACES [--words-only] [--model M] [--keep HOME]

TRACES is any folder that `funes index` reads. Each step is a process of its own, so that its peak
memory is its own. The words step counts everything from start to commit: imports, reading,
chunking, queueing and the words index.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from msgspec import Struct

COMMAND = [sys.executable, "-c", "import sys; from funes_ls.cli import main; sys.exit(main())"]


class Step(Struct, frozen=True, kw_only=True):
    """One timed process and what it reported."""

    seconds: float
    cpu_s: float
    peak_mb: float
    report: dict[str, object]


def main() -> None:
    """Index into a scratch home and print what it took."""
    args = _arguments()
    home = Path(args.keep or tempfile.mkdtemp(prefix="funes-bench-"))
    env = {**os.environ, "FUNES_HOME": str(home)}
    if args.model:
        env["FUNES_MODEL"] = args.model
    words = run(["index", args.traces, "--words-only", "--json", "-q"], env)
    rows = [row("words", words, int(str(words.report["chunks"])))]
    if not args.words_only:
        vectors = run(["index", args.traces, "--yes", "--json", "-q"], env)
        rows.append(row("vectors", vectors, int(str(vectors.report["embedded"]))))
    print("| step | chunks | seconds | chunks/s | CPU s | peak MB |\n|---|---|---|---|---|---|")
    print("\n".join(rows))
    chunks = int(str(words.report["chunks"])) or 1
    print(f"\ndisk: {disk_table(home / 'memory', chunks)}")
    if not args.keep:
        shutil.rmtree(home)


def run(argv: list[str], env: dict[str, str]) -> Step:
    """Run one `funes` command and measure the process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    done = subprocess.run(
        [*COMMAND, *argv, "--no-engine"],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.exit(done.stderr.decode())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Step(
        seconds=seconds,
        cpu_s=cpu_s,
        peak_mb=after.ru_maxrss / (1024 if sys.platform == "linux" else 1024**2),
        report=json.loads(done.stdout),
    )


def row(name: str, step: Step, chunks: int) -> str:
    """Return one line of the table."""
    return (
        f"| {name} | {chunks:,} | {step.seconds:.1f} | {chunks / step.seconds:,.0f} "
        f"| {step.cpu_s:.1f} | {step.peak_mb:.0f} |"
    )


def disk_table(memory: Path, chunks: int) -> str:
    """Return the bytes a chunk takes, by part of the memory."""
    parts = {}
    for place in sorted(memory.iterdir()):
        files = [place] if place.is_file() else place.rglob("*")
        size = sum(file.stat().st_size for file in files if file.is_file())
        parts[place.name] = size / chunks
    listed = ", ".join(f"{name} {size:,.0f}" for name, size in parts.items())
    return f"{sum(parts.values()):,.0f} bytes a chunk ({listed})"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", help="a folder that `funes index` reads")
    parser.add_argument("--words-only", action="store_true", help="no vectors")
    parser.add_argument("--model", default="", help="model, as FUNES_MODEL takes it")
    parser.add_argument("--keep", default="", help="use this home and leave it")
    return parser.parse_args()


if __name__ == "__main__":
    main()
