"""Answers from a memory on a Hub of this machine beside those of the same memory here.

    python benchmarks/remote.py [--rows 10000] [--questions 150]

Both are asked in turn, in one run, warm, by the tiny model of the tests: what is compared is all
but the model. Then 50 rows are pushed by another machine, and it is told what came of that here:
seconds until a question is answered with them, requests, and bytes that came down.
"""

import argparse
import os
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from funes_ls import protocol, service
from funes_ls.hub import reading
from funes_ls.indexer import embedding
from funes_ls.indexer.settings import load_settings
from funes_ls.memories import KeptOpen
from tests.hub.fakehub import FakeHub
from tests.hub.published import Encode, extend, publish, row
from tests.tiny_model import STAMP, tiny_model_dir

NAME = "acme/kb"
WORDS = [f"word{number}" for number in range(4000)]
_MINUTES_S = 600.0


def main() -> None:
    """Print a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=150)
    args = parser.parse_args()
    model = tiny_model_dir()
    with tempfile.TemporaryDirectory() as folder, FakeHub(Path(folder) / "hub") as hub:
        tmp = Path(folder)
        env = {**os.environ, **hub.env(tmp / "hf", hub.token("acme"))}
        env |= {"HOME": folder, "FUNES_HOME": f"{folder}/home", "FUNES_MODEL": str(model)}
        settings, _ = load_settings(env)
        encode = embedding.load(str(model), model.parent).encode
        rows = [row(f"s{n // 40}", n % 40, text) for n, text in enumerate(texts(args.rows))]
        made = publish(tmp / "made", rows, encode, stamp=STAMP, indexed=False)
        shutil.copytree(made, settings.memory_dir)
        hub.upload(NAME, made)
        memories = KeptOpen(settings, env)
        try:
            compare(memories, hub, args.questions)
            push(memories, hub, made, encode)
        finally:
            memories.close()


def texts(count: int) -> list[str]:
    """Return texts of chunks."""
    chosen = random.Random(7)
    return [" ".join(chosen.choices(WORDS, k=40)) for _ in range(count)]


def ask(opened: KeptOpen, query: str, **named: Any) -> float:
    """Return how many milliseconds an answer took."""
    started = time.perf_counter()
    service.recall(protocol.RecallParams(query=query, **named), opened)
    return (time.perf_counter() - started) * 1000


def compare(memories: KeptOpen, hub: FakeHub, count: int) -> None:
    """Print how long answers take from here, from elsewhere, and from both."""
    chosen = random.Random(11)
    questions = [" ".join(chosen.choices(WORDS, k=6)) for _ in range(count)]
    reading.FIRST_WAIT_S = _MINUTES_S
    places: dict[str, dict[str, Any]] = {
        "local": {"memory": "local"},
        "remote": {"memory": NAME},
        "both": {"memories": ("local", NAME)},
    }
    for name, named in places.items():
        print(f"{name}: first answer {ask(memories, questions[0], **named) / 1000:.2f} s")
    took: dict[str, list[float]] = {name: [] for name in places}
    asked = len(hub.requests)
    for question in [*questions[:10], *questions]:
        for name, named in chosen.sample(sorted(places.items()), k=len(places)):
            took[name].append(ask(memories, question, **named))
    for name, every in took.items():
        warm = sorted(every[10:])
        p95 = warm[int(len(warm) * 0.95)]
        print(f"{name}: median {statistics.median(warm):.1f} ms, p95 {p95:.1f} ms")
    ratio = statistics.median(took["remote"][10:]) / statistics.median(took["local"][10:])
    print(f"remote / local {ratio:.2f}; requests meanwhile {len(hub.requests) - asked}")


def push(memories: KeptOpen, hub: FakeHub, made: Path, encode: Encode) -> None:
    """Print what it takes until a push of another machine is answered from."""
    extend(made, [row("new", n, text) for n, text in enumerate(texts(50))], encode)
    hub.upload(NAME, made)
    reading.LOOK_S, reading.WAIT_S = 0.0, _MINUTES_S
    asked = len(hub.requests)
    seconds = ask(memories, WORDS[0], memory=NAME) / 1000
    new = hub.requests[asked:]
    print(f"50 new rows: {seconds:.2f} s, {len(new)} requests, {sum(r.sent for r in new):,} bytes")


if __name__ == "__main__":
    main()
