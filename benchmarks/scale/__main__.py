"""What a memory costs as it grows: a table with a column for each size.

    python -m benchmarks.scale --chunks 10000,100000,1000000 --home-root DIR --models MODELS

Makes a home of each size below DIR, or goes on with one that is half made, and measures it with an
engine of its own. `--index` compares exact search with an index of the dataset's own instead.
Vectors of the bulk are a stand-in's (make.py): clocks and the share of neighbours found mean
something, what is found does not. A million chunks take some twenty minutes to make, and 4 GB.
"""

import argparse
import os
import sys
from pathlib import Path

from benchmarks.scale import make
from benchmarks.scale.compare import compared
from benchmarks.scale.measure import Measured, measured


def main() -> None:
    """Make what is lacking, measure and print."""
    args = _arguments()
    homes = {chunks: args.home_root / f"h{chunks}" for chunks in args.chunks}
    for chunks, home in homes.items():
        _made(args, home, chunks)
    if args.make_only:
        return
    if args.index:
        for home in homes.values():
            print(compared(home, questions=args.rounds, seed=args.seed))
        return
    found = [measured(home, rounds=args.rounds, seed=args.seed) for home in homes.values()]
    print(f"load {os.getloadavg()[0]:.1f} at the end\n")
    print(table([make.made(home) for home in homes.values()], found))


def _made(args: argparse.Namespace, home: Path, chunks: int) -> None:
    while not make.make(
        home, chunks=chunks, real=args.real, models_from=args.models, seconds=args.seconds
    ):
        sys.stderr.write(f"{make.made(home).chunks:,} of {chunks:,} chunks\n")


def table(made: list[make.Made], found: list[Measured]) -> str:
    """Return the figures as a Markdown table, a column for each size."""
    lines = [["chunks", *(f"{one.chunks:,}" for one in found)]]
    lines.append(["words indexed, chunks/s", *(f"{one.chunks / one.words_s:,.0f}" for one in made)])
    moved = (f"{one.chunks / one.moved_s:,.0f}" for one in made)
    lines.append(["moved to the dataset, chunks/s", *moved])
    lines.append(["compaction after all that, s", *(f"{one.tidied_s:.1f}" for one in made)])
    for name in found[0].rows:
        lines.append([name, *(one.rows[name] for one in found)])
    for name in found[0].stages:
        values = (f"{one.stages.get(name, 0.0):.1f}" for one in found)
        lines.append([f"stage of a recall, p50 ms: {name}", *values])
    lines.insert(1, ["---"] * (len(found) + 1))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--chunks", type=_sizes, default=[10_000, 100_000], help="sizes, by comma")
    parser.add_argument("--home-root", type=Path, required=True, help="homes are kept below this")
    parser.add_argument("--models", type=Path, required=True, help="a models directory (MiniLM)")
    parser.add_argument("--real", type=int, default=2000, help="rows that the model embeds")
    parser.add_argument("--rounds", type=int, default=60, help="samples of each warm figure")
    parser.add_argument("--seconds", type=float, default=120.0, help="of making between two lines")
    parser.add_argument("--make-only", action="store_true", help="measure nothing")
    parser.add_argument("--index", action="store_true", help="exact search beside an index")
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


def _sizes(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]


if __name__ == "__main__":
    main()
