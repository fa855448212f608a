"""How soon everything answers on a memory of 100,000 chunks; prints a table with targets.

    python -m benchmarks.latency [--home DIR] [--json] [--check]

Makes a home with such a memory when DIR has none (a temporary one without --home; see
make_memory.py for what is in it), works on a copy, and starts an engine and a language server of
its own. Every question is new. The index that runs beside is a history the memory does not hold.
Quote figures of a quiet machine only: the table says how loaded it was.
"""

import argparse
import datetime as dt
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.latency import measure
from benchmarks.latency.figures import Figure, as_objects, table
from benchmarks.latency.history import write_history
from benchmarks.latency.make_memory import About, about, add_arguments, make_from
from benchmarks.latency.processes import LanguageServer, command, environment
from benchmarks.latency.questions import draw
from benchmarks.latency.written import large, written


def main() -> None:
    """Measure, print, and fail with `--check` when a target is missed."""
    args = _arguments()
    before = os.getloadavg()[0]
    with _scratch() as scratch:
        made = _home(args, scratch)
        home, user = _copy(args.home or scratch / "made", scratch)
        figures = _measured(args, home, user, scratch)
    missed = [line for figure in figures for line in figure.missed()]
    if args.json:
        print(json.dumps({**_machine(made, before), "figures": as_objects(figures)}, indent=1))
    else:
        _print(_machine(made, before), figures, missed)
    if args.check and missed:
        sys.exit(1)


@contextmanager
def _scratch() -> Iterator[Path]:
    """Give a folder whose path is short enough for a socket, and remove it."""
    folder = Path(tempfile.mkdtemp(prefix="funes-lat-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _home(args: argparse.Namespace, scratch: Path) -> About | None:
    """See that there is a home to measure on; return what was put in it, None if not by us."""
    home = args.home or scratch / "made"
    if (home / "memory").is_dir():
        return about(home)
    return make_from(args, home)


def _copy(home: Path, scratch: Path) -> tuple[Path, Path]:
    """Return a copy of a home, and a home directory without any sessions."""
    copied, user = scratch / "home", scratch / "user"
    shutil.copytree(home / "memory", copied / "memory")
    if (home / "models").is_dir():
        (copied / "models").symlink_to((home / "models").resolve())
    (user / ".claude" / "projects").mkdir(parents=True)
    return copied, user


def _measured(args: argparse.Namespace, home: Path, user: Path, scratch: Path) -> list[Figure]:
    env = environment(home, user)
    _make_facts(home, env)
    drawn = draw(home, seed=args.seed)
    files = written(home, drawn.files, seed=args.seed, count=args.files)
    more = scratch / "more"
    write_history(more, megabytes=args.more_mb, seed=args.seed + 1)
    engine, figures = measure.start(home, env, drawn)
    with engine, LanguageServer(env, str(user)) as server:
        big = large(files, seed=args.seed)
        asker = measure.Asker(engine.connect(), drawn, big, seed=args.seed)
        reader = measure.Reader(server, files, seed=args.seed)
        figures += measure.warm(asker, reader, rounds=args.rounds)
        figures += measure.shim(env, drawn, runs=args.runs)
        figures += measure.memory_taken(engine, server)
        if args.more_mb:
            figures += measure.while_indexing(engine, asker, reader, more, seconds=args.seconds)
    return figures


def _make_facts(home: Path, env: Mapping[str, str]) -> None:
    """See that the facts of an older memory are made before anything is timed."""
    argv = [*command("funes"), "index", "--words-only", "--yes", "-q"]
    subprocess.run(argv, env={**env, "FUNES_ENGINE": "inline"}, check=True, timeout=1800)


def _machine(made: About | None, load: float) -> dict[str, object]:
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python "
        f"{platform.python_version()}",
        "load": round(load, 1),
        "load_after": round(os.getloadavg()[0], 1),
        "memory": _memory_in_words(made),
    }


def _memory_in_words(made: About | None) -> str:
    if made is None:
        return "taken as it was"
    return (
        f"{made.chunks:,} chunks of {made.sessions:,} sessions ({made.history}); "
        f"{made.real_vectors:,} embedded by {made.model}, the others by a stand-in"
    )


def _print(machine: dict[str, object], figures: list[Figure], missed: list[str]) -> None:
    print(f"{machine['date']}, {machine['machine']}, load {machine['load']} before")
    print(f"{machine['memory']}\n")
    print(table(figures))
    print("\nMilliseconds unless said otherwise; bold misses its target.")
    for line in missed:
        print(f"missed: {line}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.latency",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--home", type=Path, help="a funes home; made when it has no memory")
    add_arguments(parser)
    parser.add_argument("--rounds", type=int, default=200, help="samples of each warm figure")
    parser.add_argument("--runs", type=int, default=40, help="runs of the command line")
    parser.add_argument("--files", type=int, default=50, help="files opened in the editor")
    parser.add_argument(
        "--more-mb", type=float, default=60.0, help="history to index beside; 0: none"
    )
    parser.add_argument("--seconds", type=float, default=40.0, help="of measuring beside vectors")
    parser.add_argument("--json", action="store_true", help="one JSON object, no table")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    return parser.parse_args()


if __name__ == "__main__":
    main()
