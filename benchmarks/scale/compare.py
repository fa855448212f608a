"""Exact search beside an index of the dataset's own (IVF_HNSW_SQ): time, share found, cost."""

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.latency.questions import draw
from benchmarks.scale import make
from funes_ls.indexer import dataset as lance
from funes_ls.indexer.dataset import Dataset
from funes_ls.indexer.memory_held import Held, read_all

_K = 20
_POOL = 200

Found = list[str]


def compared(home: Path, *, questions: int, seed: int) -> str:
    """Return a table of both ways to search the vectors of a home's memory; on a copy of it."""
    asked = make.stand_in().encode(_questions(home, questions, seed))
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        base = Path(scratch)
        # Lance never changes a file that is there, so that links do.
        shutil.copytree(
            home / "memory" / "chunks.lance", base / "chunks.lance", copy_function=_link
        )
        dataset = lance.open_dataset(base)
        held = read_all(dataset)
        truth, exact_ms = _timed(asked, lambda one: _exact(held, one))
        before = _size(base)
        began = time.perf_counter()
        dataset.index_vectors()
        built_s = time.perf_counter() - began
        lines = [
            f"{len(held):,} chunks; the index took {built_s:,.0f} s and "
            f"{(_size(base) - before) / 1e6:,.0f} MB",
            "",
            f"| way | p50 ms | p95 | share of the true {_K} |",
            "|---|---|---|---|",
            _line("exact", exact_ms, truth, truth),
        ]
        for refine in (1, 2, 5, 10):
            found, took_ms = _timed(asked, lambda one, n=refine: _index(dataset, one, n))  # type: ignore[misc]
            lines.append(_line(f"index, refined {refine} times", took_ms, found, truth))
    return "\n".join(lines)


def _questions(home: Path, count: int, seed: int) -> list[str]:
    drawn = draw(home, seed=seed).questions
    return [next(drawn) for _ in range(count)]


def _timed(
    asked: "np.ndarray[tuple[int, int], np.dtype[np.float32]]",
    search: "Callable[[np.ndarray[tuple[int], np.dtype[np.float32]]], Found]",
) -> tuple[list[Found], list[float]]:
    search(asked[0])
    found, took = [], []
    for one in asked:
        began = time.perf_counter()
        found.append(search(one))
        took.append((time.perf_counter() - began) * 1000)
    return found, sorted(took)


def _exact(held: Held, query: "np.ndarray[tuple[int], np.dtype[np.float32]]") -> Found:
    return held.ids(held.nearest(query, _POOL)[0].tolist())


def _index(
    dataset: Dataset, query: "np.ndarray[tuple[int], np.dtype[np.float32]]", refine: int
) -> Found:
    return [id_ for id_, _ in dataset.nearest(query, _POOL, refine=refine)]


def _line(
    name: str, took_ms: Sequence[float], found: Sequence[Found], truth: Sequence[Found]
) -> str:
    shares = [
        len(set(one[:_K]) & set(true[:_K])) / _K for one, true in zip(found, truth, strict=True)
    ]
    p50, p95 = took_ms[len(took_ms) // 2], took_ms[int(len(took_ms) * 0.95)]
    return f"| {name} | {p50:.1f} | {p95:.1f} | {np.mean(shares):.3f} |"


def _size(path: Path) -> int:
    return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())


def _link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)
