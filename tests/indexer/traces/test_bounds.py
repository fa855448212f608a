"""Big traces are read in little memory and at good speed; measured in a process of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.indexer.traces.records import claude, codex, codex_header

resource = pytest.importorskip("resource", reason="peak memory is asked of the operating system")

_MEASURE = """
import resource, sys, time
from pathlib import Path
from funes_ls.indexer.chunk import chunks_of
from funes_ls.indexer.model import Turn
from funes_ls.indexer.traces import detect
path = Path(sys.argv[1])
source = detect(path)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
cpu, chunks, longest = time.process_time(), 0, 0
for unit in source.units(path):
    reading = source.read(unit)
    for item in reading:
        if isinstance(item, Turn):
            for chunk in chunks_of(item):
                chunks, longest = chunks + 1, max(longest, len(chunk.text))
state = len(reading.resume)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(chunks, longest, (peak - before) // 1024, state, time.process_time() - cpu)
"""


def measure(path: Path) -> tuple[int, int, int, int, float]:
    """Return chunks, longest chunk, MiB above the start, bytes of state, CPU seconds."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(path)], check=True, capture_output=True, text=True
    )
    chunks, longest, peak, state, cpu = done.stdout.split()
    scale = 1024 if sys.platform == "darwin" else 1
    return int(chunks), int(longest), int(peak) // scale, int(state), float(cpu)


def write_rollout(path: Path, size: int) -> None:
    """Write a rollout of calls and 2.6 KB answers, at least `size` bytes of it."""
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(codex_header()) + "\n")
        number = 0
        while file.tell() < size:
            for _ in range(500):
                number += 1
                call_id = f"call_{number:024d}"
                call = {"type": "function_call", "name": "exec", "call_id": call_id}
                call["arguments"] = json.dumps({"cmd": f"ls {number}"})
                text = f"line of output number {number} with some words in it\n" * 50
                answer = {"type": "function_call_output", "call_id": call_id, "output": text}
                file.write(json.dumps(codex(1, call)) + "\n" + json.dumps(codex(1, answer)) + "\n")


def check_rollout(path: Path, size: int) -> None:
    write_rollout(path, size)
    chunks, longest, peak, state, cpu = measure(path)
    path.unlink()
    assert longest <= 1200
    assert peak < 100 + size // (10 << 20)
    assert state < 2 << 20
    assert chunks / cpu > 10_000


@pytest.mark.slow
def test_a_rollout_of_100_mb(tmp_path: Path) -> None:
    check_rollout(tmp_path / "rollout-big.jsonl", 100_000_000)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif("FUNES_TEST_GB" not in os.environ, reason="set FUNES_TEST_GB to read 1 GB")
def test_a_rollout_of_1_gb(tmp_path: Path) -> None:
    check_rollout(tmp_path / "rollout-big.jsonl", 1_000_000_000)


@pytest.mark.slow
def test_lines_of_thirty_megabytes(tmp_path: Path) -> None:
    blob = "QUJD" * 7_500_000
    image = {"type": "image", "source": {"type": "base64", "data": blob}}
    answer = {"type": "tool_result", "tool_use_id": "t", "content": f"a data:x/y;base64,{blob} b"}
    path = tmp_path / "session.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number, content in enumerate(["before", [image, {"type": "text", "text": "in"}]]):
            file.write(json.dumps(claude(number, content)) + "\n")
        file.write(json.dumps(claude(2, [answer])) + "\n")
        file.write(json.dumps(claude(3, "after")) + "\n")
    chunks, longest, peak, _, cpu = measure(path)
    assert (chunks, longest) == (4, len("[tool_result] a data:x/y;base64,[elided] b"))
    assert peak < 250
    assert cpu < 10
