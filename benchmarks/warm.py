"""How fast one open memory answers; prints a table: `python benchmarks/warm.py HOME [-n 200]`.

HOME is copied first, since rows are appended to it; `benchmarks.latency.make_memory` makes a large
one. Questions are runs of words from its own rows. Wall time is what a person waits, processor time
what it costs: on a busy machine only the latter can be compared.
"""

import argparse
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np

from funes_ls.indexer import embedding
from funes_ls.indexer.catalog import now_us
from funes_ls.indexer.embedding import Embedder
from funes_ls.indexer.lock import writer_lock
from funes_ls.indexer.memory import Memory, Row, open_for_words, open_memory
from funes_ls.indexer.memory_held import Moved
from funes_ls.indexer.model import Chunk
from funes_ls.retrieval.answers import RecallRequest
from funes_ls.retrieval.get import get
from funes_ls.retrieval.paths import normal
from funes_ls.retrieval.recall import recall, recall_staged, recall_words
from funes_ls.retrieval.related import by_facts
from funes_ls.retrieval.same_file import Asked

_THREADS = 4
_APPENDED_ROWS = 20
_APPENDS = 30


def main() -> None:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("home", type=Path)
    parser.add_argument("-n", type=int, default=200, help="questions")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        shutil.copytree(args.home / "memory", home / "memory")
        shutil.copytree(args.home / "models", home / "models")
        measure(home, args.n)


def measure(home: Path, count: int) -> None:
    """Print a line for each kind of answer."""
    base, derived = home / "memory", home / "derived"
    open_memory(base, derived=derived).close()  # what is to be mended is mended now
    print("| what | p50 ms | p99 ms | processor ms |\n|---|---|---|---|")
    line("open for words", [once(lambda: _close(open_for_words(base)))])
    with open_memory(base, derived=derived) as memory:
        model = embedding.load(memory.state().stamp, home / "models")
        line("read the vectors", [once(lambda: _hold(memory))])
        rows = some_rows(memory, count)
        asked = [question(row.text) for row in rows]
        answers(memory, model, rows, asked)
        appends(memory, home, rows, lambda query: ask(query, memory, model))
    print(f"\nmemory of this process: {resident_mb()} MB")


def answers(memory: Memory, model: Embedder, rows: Sequence[Row], asked: Sequence[str]) -> None:
    """Print the lines of a memory that nobody writes to."""
    for query in asked[:10]:
        ask(query, memory, model)
    line("words", [once(_words, query, memory) for query in asked])
    line("recall", [once(ask, query, memory, model) for query in asked])
    line("staged, both answers", [once(_staged, query, memory, model) for query in asked])
    line("get", [once(get, row.session_id, row.turn_uuid, memory) for row in rows])
    catalog = memory.catalog
    touched = [catalog.files(one.session_id)[:1] for one in catalog.sessions(limit=200)]
    files = [Asked(path=normal(file)) for one in touched for file in one]
    line("sessions of a file", [once(by_facts, memory, file) for file in files])
    with ThreadPoolExecutor(_THREADS) as pool:
        found = pool.map(lambda query: once(ask, query, memory, model), asked)
        line(f"recall, {_THREADS} threads", list(found))


def appends(
    memory: Memory, home: Path, rows: Sequence[Row], ask_one: Callable[[str], object]
) -> None:
    """Print what an append costs readers, told of it by the writer or not."""
    with writing(home) as writer:
        for told in (True, False):
            seen, after = [], []
            for turn in range(_APPENDS):
                step = _append(writer, rows, f"{told}-{turn}")
                seen.append(once(memory.refresh, step if told else None))
                after.append(once(ask_one, question(rows[turn % len(rows)].text)))
            how = "told" if told else "not told"
            line(f"see {_APPENDED_ROWS} more rows, {how}", seen)
            line(f"recall after them, {how}", after)


@contextmanager
def writing(home: Path) -> Iterator[Memory]:
    """Open the memory of a home for writing as well."""
    with (
        writer_lock(home),
        open_memory(home / "memory", derived=home / "derived", writable=True) as memory,
    ):
        yield memory


def _append(writer: Memory, rows: Sequence[Row], name: str) -> Moved | None:
    new = [_copy(rows[n % len(rows)], f"{name}-{n}") for n in range(_APPENDED_ROWS)]
    writer.queue(new)
    writer.commit_words()
    dataset = writer.dataset
    dim = dataset.dim if dataset else 0
    drawn = np.random.default_rng(len(name)).standard_normal((len(new), dim))
    vectors = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    return writer.move(new, vectors, stamp=dataset.stamp if dataset else "")


def _copy(row: Row, id_: str) -> Chunk:
    values = {name: getattr(row, name) for name in Chunk.__struct_fields__}
    return msgspec.structs.replace(Chunk(**values), id=id_, seq=row.seq + 100_000)


def ask(query: str, memory: Memory, model: Embedder) -> object:
    """Answer a question."""
    return recall(RecallRequest(query=query), memory, model, now_us=now_us())


def _words(query: str, memory: Memory) -> object:
    return recall_words(RecallRequest(query=query), memory, now_us=now_us())


def _staged(query: str, memory: Memory, model: Embedder) -> object:
    return list(recall_staged(RecallRequest(query=query), memory, model, now_us=now_us()))


def _hold(memory: Memory) -> None:
    with memory.snapshot() as now:
        now.vectors()


def _close(memory: Memory | None) -> None:
    if memory is not None:
        memory.close()


def some_rows(memory: Memory, count: int) -> list[Row]:
    """Return rows drawn from all over the memory, the same each time."""
    with memory.snapshot() as now:
        held = now.vectors()
        places = random.Random(4).sample(range(len(held)), count) if held else []
        return now.rows(held.ids(places)) if held else []


def question(text: str) -> str:
    """Return some neighbouring words of a text, the same each time."""
    words = [word for word in text.split() if word.isalnum()] or ["hello"]
    draw = random.Random(text)
    first = draw.randrange(max(1, len(words) - 8))
    return " ".join(words[first : first + draw.randint(4, 10)])


def once(work: Callable[..., object], *args: object) -> tuple[float, float]:
    """Return wall milliseconds of some work, and processor milliseconds of this process."""
    wall, processor = time.perf_counter(), time.process_time()
    work(*args)
    return (time.perf_counter() - wall) * 1e3, (time.process_time() - processor) * 1e3


def line(what: str, took: Sequence[tuple[float, float]]) -> None:
    """Print a line of the table."""
    if not took:
        return
    walls, processors = (sorted(part) for part in zip(*took, strict=True))
    last = int(0.99 * (len(walls) - 1))
    middle = len(walls) // 2
    print(f"| {what} | {walls[middle]:.1f} | {walls[last]:.1f} | {processors[middle]:.1f} |")


def resident_mb() -> int:
    """Return what this process holds of the machine's memory; Linux only."""
    for entry in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if entry.startswith("VmRSS"):
            return int(entry.split()[1]) // 1024
    return 0


if __name__ == "__main__":
    main()
