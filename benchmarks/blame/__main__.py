"""Whether lines are traced to the turns that wrote them; prints a table.

    python -m benchmarks.blame [--projects N] [--seed N] [--check] [--json]

Two sets whose truth is known by how they are made: projects that a seeded author writes with
agents of every harness (author.py), and the files that the sample sessions write (samples.py).
Every file is asked about as it is and in the variants of variants.py. `--check` fails below the
floor, which is what the product promises.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.blame.author import World, worlds
from benchmarks.blame.samples import sample_worlds
from benchmarks.blame.score import Score, table
from benchmarks.blame.variants import Case, cases

#: What every run must reach: column -> variants -> at least, or for a share of errors at most.
FLOORS: dict[str, dict[str, float]] = {
    "P(exact)": dict.fromkeys(("plain", "script", "tool", "human", "unsaved"), 0.99),
    "P(moved)": {"rename": 0.90},
    "recall": {"plain": 0.97, "script": 0.97, "tool": 0.90, "human": 0.95, "stale": 0.90},
    "recall moved": {"moved": 0.85},
}
CEILINGS: dict[str, dict[str, float]] = {
    "false human": {"human": 0.015},
    "false base": {"plain": 0.015},
    "edited exact": {"unsaved": 0.0},
}


def main() -> None:
    """Measure, print, and fail with `--check` when a floor is not reached."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.blame", description=__doc__)
    parser.add_argument("--projects", type=int, default=12, help="projects to make up (12)")
    parser.add_argument("--seed", type=int, default=1, help="of what is made up (1)")
    parser.add_argument("--check", action="store_true", help="fail below the floor")
    parser.add_argument("--json", action="store_true", help="print one object")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="funes-blame-") as folder:
        rows, times = measured(Path(folder), projects=args.projects, seed=args.seed)
    missed = below_floor(rows)
    times.sort()
    p50, p95 = (round(times[int(len(times) * share)] * 1e3, 1) for share in (0.5, 0.95))
    if args.json:
        print(json.dumps({"variants": rows, "p50_ms": p50, "p95_ms": p95, "missed": missed}))
    else:
        print(table(rows), f"\n\nAnswers: p50 {p50} ms, p95 {p95} ms.")
        print(*(f"MISSED: {line}" for line in missed), sep="\n")
    if args.check and missed:
        sys.exit(1)


def measured(
    folder: Path, *, projects: int, seed: int
) -> tuple[dict[str, dict[str, float | None]], list[float]]:
    """Return the figures by variant, and the seconds every answer took.

    Args:
        folder: Empty; a home and the projects' files are made in it.
        projects: How many to make up, besides the sample sessions.
        seed: Of what is made up.
    """
    made = [*worlds(seed, count=projects, cwd=lambda name: str(folder / name)), *sample_worlds()]
    home = folder / "home"
    _write_sessions(made, home)
    _index(home)
    scores: dict[str, Score] = {}
    times: list[float] = []
    for world in made:
        for case in cases(world, seed=seed):
            answer = _ask(case, world, times)
            for name in (case.variant, "all"):
                scores.setdefault(name, Score()).add(case, answer)
    return {name: score.row() for name, score in scores.items()}, times


def below_floor(rows: Mapping[str, Mapping[str, float | None]]) -> list[str]:
    """Return a line for every figure that is not what it must be."""
    missed = []
    for column, limits in FLOORS.items():
        for variant, least in limits.items():
            if (found := rows[variant][column]) is None or found < least:
                missed.append(f"{variant}: {column} is {found}, not {least} or more")
    for column, limits in CEILINGS.items():
        for variant, most in limits.items():
            if (found := rows[variant][column]) is None or found > most:
                missed.append(f"{variant}: {column} is {found}, not {most} or less")
    return missed


def _write_sessions(made: Iterable[World], home: Path) -> None:
    from tests.traces.make import WRITERS

    scripts = [script for world in made for script in world.scripts]
    for harness, write in WRITERS.items():
        write([script for script in scripts if script.head["harness"] == harness], home)


def _index(home: Path) -> None:
    """Make this process live in a home and read its sessions, words only."""
    from funes_ls.cli import main as funes

    os.environ |= {"HOME": str(home), "FUNES_HOME": str(home / ".funes"), "FUNES_ENGINE": "inline"}
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "HERMES_HOME"):
        os.environ.pop(name, None)
    code = funes(["index", "--yes", "--words-only", "-q"])
    if code:
        sys.exit(f"Indexing ended with {code}.")


def _ask(case: Case, world: World, times: list[float]) -> Mapping[str, object]:
    import msgspec

    from funes_ls.indexer.settings import load_settings
    from funes_ls.memories import OpenEachTime
    from funes_ls.protocol import BlameParams
    from funes_ls.service import blame

    settings, _ = load_settings(os.environ)
    params = BlameParams(
        path=f"{world.cwd}/{case.path}",
        text=case.text,
        as_of=case.as_of.isoformat() if case.as_of else "",
    )
    began = time.perf_counter()
    answer = blame(params, OpenEachTime(settings))
    times.append(time.perf_counter() - began)
    found: Mapping[str, object] = msgspec.to_builtins(answer)
    return found


if __name__ == "__main__":
    main()
