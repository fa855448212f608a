"""Makes homes with memories of a given size, step by step: what is there is gone on with.

Each step writes some sessions, reads them as `funes index` does, and moves their rows to the
dataset. The first rows get vectors of the model itself, the bulk those of a stand-in.
"""

import os
import shutil
import time
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.latency.history import gather, write_history
from benchmarks.latency.stand_ins import StandIn, Vectors, fill_tokens
from funes_ls import service
from funes_ls.indexer import embedding
from funes_ls.indexer.lock import writer_lock
from funes_ls.indexer.memory import Memory, open_memory
from funes_ls.indexer.settings import Settings

#: Bytes a chunk of the written history takes in its trace, about.
_BYTES_A_CHUNK = 900
_MOST_MB = 40.0
_BATCH = 4096
#: MiniLM's width.
_DIM = 384
#: Share of what all texts have in common that is taken out of a stand-in's vector.
_COMMON = 0.8
_ABOUT = "scale.json"


class Made(Struct, frozen=True, kw_only=True):
    """What a home made here holds, and the seconds it took.

    Attributes:
        parts: Steps done.
        real: Rows that the model embedded.
        words_s: For reading, redaction, the queue and words.
        moved_s: For moving rows to the dataset, embedding aside.
        tidied_s: For merging fragments at the end; 0 until then.
    """

    chunks: int = 0
    parts: int = 0
    real: int = 0
    words_s: float = 0.0
    moved_s: float = 0.0
    tidied_s: float = 0.0


class Clustered:
    """Vectors of texts that share words are close, as `StandIn`'s, without what all have in common.

    So cosines lie as far apart as a model's: what is near is a cluster, not everything.
    """

    def __init__(self, dim: int) -> None:
        """Draw the directions."""
        self._stand_in = StandIn(dim)
        self._common: Vectors | None = None

    def learn(self, texts: list[str]) -> None:
        """Take what these texts have in common for what all have."""
        self._common = self._stand_in.encode(texts).mean(axis=0) * np.float32(_COMMON)

    def encode(self, texts: list[str]) -> Vectors:
        """Return (len(texts), dim) float32, L2-normalised."""
        if self._common is None:
            raise ValueError("nothing was learnt yet")
        vectors = self._stand_in.encode(texts) - self._common
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, 1e-9), dtype=np.float32)


def made(home: Path) -> Made:
    """Return how far a home is made."""
    path = home / _ABOUT
    return msgspec.json.decode(path.read_bytes(), type=Made) if path.is_file() else Made()


def make(home: Path, *, chunks: int, real: int, models_from: Path, seconds: float) -> bool:
    """Go on making a home for so long; return whether it is whole.

    Args:
        home: What is made here before is gone on with.
        chunks: Least number of chunks.
        real: How many of them the model itself embeds.
        models_from: A `models` directory to link to.
        seconds: A step that has begun is finished.
    """
    until = time.monotonic() + seconds
    settings = Settings(home=home)
    if not settings.models_dir.exists():
        home.mkdir(parents=True, exist_ok=True)
        settings.models_dir.symlink_to(models_from.resolve())
    clustered = stand_in()
    while (state := made(home)).chunks < chunks:
        if time.monotonic() > until:
            return False
        _note(home, _step(settings, state, clustered, wanted=chunks, real=real))
    if not state.tidied_s:
        _note(home, replace(state, tidied_s=_tidied(settings)))
    return True


def stand_in() -> Clustered:
    """Return what gives the bulk its vectors, the same every time."""
    found = Clustered(_DIM)
    found.learn(list(gather().prose[:2000]))
    return found


def _step(settings: Settings, state: Made, clustered: Clustered, *, wanted: int, real: int) -> Made:
    """Write, read and move a part; return how far all is."""
    part = settings.home / "part"
    shutil.rmtree(part, ignore_errors=True)
    megabytes = max(0.5, min(_MOST_MB, (wanted - state.chunks) * _BYTES_A_CHUNK / 1e6))
    write_history(part, megabytes=megabytes, seed=7000 + state.parts)
    began = time.monotonic()
    request = service.IndexRequest(target=str(part), words_only=True)
    service.run_index(request, settings, env=os.environ)
    words_s = time.monotonic() - began
    with _opened(settings) as memory:
        by_model, moved_s = _move(memory, settings, clustered, most=max(0, real - state.real))
        chunks = memory.embedded_count()
    shutil.rmtree(part)
    return replace(
        state,
        chunks=chunks,
        parts=state.parts + 1,
        real=state.real + by_model,
        words_s=state.words_s + words_s,
        moved_s=state.moved_s + moved_s,
    )


def _opened(settings: Settings) -> Memory:
    with writer_lock(settings.home):
        return open_memory(settings.memory_dir, derived=settings.home / "derived", writable=True)


def _move(
    memory: Memory, settings: Settings, clustered: Clustered, *, most: int
) -> tuple[int, float]:
    """Move every queued row; return how many the model embedded, and the seconds of moving."""
    stamp = memory.state().stamp or embedding.resolve_auto(settings.models_dir) or ""
    model = embedding.load(stamp, settings.models_dir) if most else None
    done, moved_s = 0, 0.0
    while rows := memory.catalog.next_pending(_BATCH):
        texts = [row.text for row in rows]
        parts = []
        if model is not None and done < most:
            parts.append(model.encode(texts[: most - done]))
            done += len(parts[0])
            texts = texts[len(parts[0]) :]
        if texts:
            parts.append(clustered.encode(texts))
        vectors = np.concatenate(parts)
        began = time.monotonic()
        memory.move(rows, vectors, stamp=stamp)
        moved_s += time.monotonic() - began
    return done, moved_s


def _tidied(settings: Settings) -> float:
    """Merge fragments as an engine does when it is idle; return the seconds it took."""
    with _opened(settings) as memory:
        began = time.monotonic()
        memory.tidy(keep_s=1.0)
        memory.count_turns()
        tidied_s = time.monotonic() - began
        fill_tokens(memory, embedding.load(memory.state().stamp, settings.models_dir))
        return tidied_s


def _note(home: Path, state: Made) -> None:
    (home / _ABOUT).write_bytes(msgspec.json.encode(state))
