r"""Other ways to search past sessions beside ours, quality and latency in one table.

    python -m benchmarks.peers                                the shipped questions
    python -m benchmarks.peers --questions FILE --traces DIR  others, in the memory of $FUNES_HOME

`ripgrep` searches the raw traces for the lines that hold most of the words, and is left out where
there is no rg (`--rg` names it). `tantivy` and `FTS5` index the same chunks as ours, as they come;
`vector` is an exact search by the same model, and `RRF` adds the ranks of tantivy and of vector
with k = 60. `--program` names another one, by a command line that prints the layout of
`funes recall`:

    python -m benchmarks.peers --questions FILE --traces DIR \
        --program "/path/to/funes recall -k 12 {query}"

Its memory must have been made of the same traces beforehand; what it needs in the environment is
passed on. Latencies are of one question after the other in a warm process; of ripgrep and of other
programs with their start.
"""

import argparse
import os
import shlex
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from benchmarks.peers import systems
from benchmarks.quality.__main__ import load_questions
from benchmarks.quality.measures import Labelled, means, score
from benchmarks.quality.sample_memory import (
    make_memory,
    model_dir,
    scripts,
    write_sessions,
)
from funes_ls.indexer.embedding import Embedder
from funes_ls.indexer.memory import MemoryView
from funes_ls.indexer.model import Chunk
from funes_ls.indexer.settings import Settings, load_settings
from funes_ls.memories import KeptOpen

_COLUMNS = ("hit@1", "hit@5", "mrr", "ndcg@10", "recall@10")


class Measured(Struct, frozen=True, kw_only=True):
    """What one system scored, and how long its answers took."""

    name: str
    means: dict[str, float]
    ms: list[float]


def main() -> None:
    """Ask every system every question and print the table."""
    args = _arguments()
    with tempfile.TemporaryDirectory(prefix="funes-peers-") as folder:
        settings, traces, questions = _what(args, Path(folder))
        memories = KeptOpen(settings)
        try:
            rows = measured(memories, traces, questions, rg=args.rg, program=args.program)
        finally:
            memories.close()
    print(table(rows))


def measured(
    memories: KeptOpen, traces: Path | None, questions: Sequence[Labelled], *, rg: str, program: str
) -> list[Measured]:
    """Return what each system scores on questions that have an answer."""
    answerable = [question for question in questions if question.gold]
    with memories.reading("", whole=True) as memory, memory.snapshot() as view:
        rows = all_rows(view)
        embedder = memories.embedder(memory)
        found = [
            _one(name, search, answerable)
            for name, search in _systems(memories, view, rows, traces, rg, embedder)
        ]
    if program:
        found.append(_one("program", systems.command(shlex.split(program)), answerable))
    return found


def all_rows(memory: MemoryView) -> list[Chunk]:
    """Return every row of a memory."""
    ids = [session.session_id for session in memory.catalog.sessions()]
    return [row for session_id in ids for row in memory.session_rows(session_id)]


def _systems(
    memories: KeptOpen,
    view: MemoryView,
    rows: list[Chunk],
    traces: Path | None,
    rg: str,
    embedder: Embedder | None,
) -> Iterator[tuple[str, systems.Search]]:
    """Yield the name of each system and its search."""
    if rg and traces is not None:
        yield "ripgrep over the traces", systems.ripgrep(rg, traces)
    words = systems.tantivy(rows)
    yield "tantivy alone", systems.of_rows(rows, words)
    yield "SQLite FTS5, bm25()", systems.of_rows(rows, systems.fts5(rows))
    if embedder is not None:
        near = systems.nearest(rows, view, embedder.encode_query)
        yield "vector alone", systems.of_rows(rows, near)
        both = systems.reciprocal([words, near])
        yield "RRF of both, k = 60", systems.of_rows(rows, both)
    yield "ours, words", systems.ours(memories, vector_weight=0.0)
    yield "ours", systems.ours(memories)


def _one(name: str, search: systems.Search, questions: Sequence[Labelled]) -> Measured:
    search("warm up")
    scores, took = [], []
    for question in questions:
        started = time.perf_counter()
        found = search(question.query)
        took.append((time.perf_counter() - started) * 1000)
        scores.append(score(found, question.gold))
    return Measured(name=name, means=means(scores), ms=took)


def table(rows: Sequence[Measured]) -> str:
    """Return the systems as a Markdown table."""
    lines = [
        f"| system | {' | '.join(_COLUMNS)} | p50 ms | p95 ms |",
        "|" + "---|" * (len(_COLUMNS) + 3),
    ]
    for one in rows:
        cells = " | ".join(f"{one.means[column]:.3f}" for column in _COLUMNS)
        p95 = float(np.quantile(one.ms, 0.95))
        lines.append(f"| {one.name} | {cells} | {statistics.median(one.ms):.1f} | {p95:.1f} |")
    return "\n".join(lines)


def _what(args: argparse.Namespace, folder: Path) -> tuple[Settings, Path | None, list[Labelled]]:
    if args.questions:
        settings, _ = load_settings(os.environ)
        return settings, args.traces, load_questions(args.questions)
    model = args.model or model_dir(Path.home() / ".cache" / "funes-tests" / "models")
    if model is None:
        sys.exit("No MiniLM here: name a model's directory with --model.")
    write_sessions(scripts(), folder / "traces")
    return make_memory(folder / "home", model=model), folder / "traces", load_questions()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--questions", type=Path, help="a labelled file about $FUNES_HOME's memory")
    parser.add_argument("--traces", type=Path, help="the raw traces it was made of")
    parser.add_argument("--rg", default=shutil.which("rg") or "", help="ripgrep's program")
    parser.add_argument("--program", default="", help="another program's command line")
    parser.add_argument("--model", type=Path, help="the model's directory")
    return parser.parse_args()


if __name__ == "__main__":
    main()
