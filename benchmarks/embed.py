"""How fast each installed model embeds real chunks, and how far int8 strays from fp32.

    python benchmarks/embed.py --traces ../shared/traces/real --texts 1000
    python benchmarks/embed.py --models ~/.funes/models --texts 300

Texts are chunks of the traces, drawn at random with a fixed seed; each is encoded alone (batch
size 1) by two threads on sessions of one thread. `cpu` counts chunks per second of processor time
and two processors, which a busy machine disturbs less than the clock.
"""

import argparse
import os
import random
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from funes_ls.indexer.chunk import chunks_of
from funes_ls.indexer.embedding import InstalledModel, installed, load
from funes_ls.indexer.model import Problem, Turn
from funes_ls.indexer.traces import detect

_HERE = Path(__file__).resolve().parent
_SEED = 11
_WARM_UP = 8


def main() -> None:
    """Print one row per model."""
    args = _arguments()
    texts = sample(args.traces, args.texts)
    lengths = sorted(len(text) for text in texts)
    _say(
        f"{len(texts)} chunks of {args.traces}: {sum(lengths) / len(lengths):.0f} characters on "
        f"average, median {lengths[len(lengths) // 2]}, longest {lengths[-1]}\n"
    )
    _say("model                    chunks/s   cpu  one text  load   disk   cosine to fp32 (min)")
    vectors: dict[str, np.ndarray] = {}
    for model in sorted(installed(args.models), key=lambda model: model.precision):
        _say(_row(model, args.models, texts, vectors=vectors, threads=args.threads))
    _say(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def sample(folder: Path, count: int) -> list[str]:
    """Return `count` chunk texts drawn from every trace below `folder`."""
    texts = list(_chunk_texts(folder))
    random.Random(_SEED).shuffle(texts)
    return texts[:count]


def _chunk_texts(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.jsonl")):
        source = detect(path)
        for unit in source.units(path):
            if isinstance(unit, Problem):
                continue
            for turn in source.read(unit):
                if isinstance(turn, Turn):
                    yield from (chunk.text for chunk in chunks_of(turn))


def _row(
    model: InstalledModel,
    models_dir: Path,
    texts: list[str],
    *,
    vectors: dict[str, np.ndarray],
    threads: int,
) -> str:
    started_at = time.perf_counter()
    embedder = load(str(model.path), models_dir, threads=threads, nice=0)
    load_s = time.perf_counter() - started_at
    embedder.encode(texts[:_WARM_UP])
    started_at, cpu_at = time.perf_counter(), time.process_time()
    vectors[model.precision] = embedder.encode(texts)
    wall_s, cpu_s = time.perf_counter() - started_at, time.process_time() - cpu_at
    started_at = time.perf_counter()
    embedder.encode_query("why does the retry test fail on slow machines?")
    query_s = time.perf_counter() - started_at
    return (
        f"{model.name:24} {len(texts) / wall_s:8.1f} {len(texts) / cpu_s * threads:5.1f}"
        f" {query_s * 1000:6.1f} ms {load_s:4.1f} s {model.size_bytes / 1e6:4.0f} MB"
        f"   {_cosines(vectors, model.precision)}"
    )


def _cosines(vectors: dict[str, np.ndarray], precision: str) -> str:
    if precision == "fp32" or "fp32" not in vectors:
        return "-"
    cosines = np.sum(vectors[precision] * vectors["fp32"], axis=1)
    return f"{cosines.mean():.4f} ({cosines.min():.4f})"


def _arguments() -> argparse.Namespace:
    home = Path(os.environ.get("FUNES_HOME") or "~/.funes").expanduser()
    shared = _HERE.parent.parent / "shared" / "traces" / "real"
    traces = shared if shared.is_dir() else _HERE.parent / "tests" / "traces"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", type=Path, default=home / "models", help="where models are")
    parser.add_argument("--traces", type=Path, default=traces, help="folder of traces")
    parser.add_argument("--texts", type=int, default=1000, help="how many chunks to embed")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
