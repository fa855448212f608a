"""Makes rows, vectors and memories for the tests of storage."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from funes_ls.indexer.chunk import chunk_id
from funes_ls.indexer.lock import writer_lock
from funes_ls.indexer.memory import Memory, open_memory
from funes_ls.indexer.model import Chunk
from funes_ls.indexer.times import parse_ts

STAMP = "test/model"
DIM = 8


def row(seq: int, text: str = "", *, session: str = "s1", **fields: Any) -> Chunk:
    """Return the row of one text turn."""
    ts = fields.pop("ts", f"2026-03-02T10:{seq // 60:02}:{seq % 60:02}Z")
    values: dict[str, Any] = {
        "id": chunk_id(session, f"t{seq}", fields.get("block_idx", 0), 0),
        "text": text or f"word{seq} spoken in turn {seq}",
        "session_id": session,
        "workdir": "-work-demo",
        "turn_uuid": f"t{seq}",
        "parent_uuid": None,
        "seq": seq,
        "ts": ts,
        "ts_us": parse_ts(ts),
        "role": "user",
        "block_type": "text",
        "tool_name": None,
        "source_path": f"/traces/{session}.jsonl",
        "block_idx": 0,
        "split_idx": 0,
        "harness": "claude_code",
        "repo": "",
    }
    return Chunk(**{**values, **fields})


def rows(count: int, *, session: str = "s1", start: int = 0) -> list[Chunk]:
    """Return rows of consecutive turns."""
    return [row(seq, session=session) for seq in range(start, start + count)]


def vectors(chunks: Sequence[Chunk], *, dim: int = DIM) -> "np.ndarray[Any, np.dtype[np.float32]]":
    """Return a unit vector for each row, the same whenever it is asked for."""
    made = np.stack(
        [np.random.default_rng(int(chunk.id, 16)).standard_normal(dim) for chunk in chunks]
    )
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


@contextmanager
def writing(home: Path) -> Iterator[Memory]:
    """Open a home's memory for writing, with the lock held."""
    with writer_lock(home), reading(home, writable=True) as memory:
        yield memory


@contextmanager
def reading(home: Path, *, writable: bool = False) -> Iterator[Memory]:
    """Open a home's memory."""
    with open_memory(home / "memory", derived=home / "derived", writable=writable) as memory:
        yield memory


def run_apart(script: str, home: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run a script in a process of its own, which finds the home in `HOME_DIR`."""
    begun = "import os\nfrom pathlib import Path\nfrom tests.indexer.making import *\n"
    begun += "HOME_DIR = Path(os.environ['FUNES_TEST_AT'])\n"
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([*sys.path, root])
    return subprocess.run(
        [sys.executable, "-c", begun + script],
        env={**os.environ, "PYTHONPATH": path, "FUNES_TEST_AT": str(home), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
