"""What was freed goes back to the system."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc holds back what was freed"
)

RESIDENT = """
import sys
from pathlib import Path
from funes_ls.indexer.memory_freed import give_back, hold_little_back

def resident_mb():
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * 4096 / 1e6
"""
#: Blocks of a heap, with something that stays after each.
SMALL = """
kept = []
def work():
    blocks = []
    for _ in range(1000):
        blocks.append(b"x" * 100_000)
        kept.append(b"y" * 10_000)
"""
#: Buffers of a size that glibc puts into its heap once a larger one was freed.
LARGE = """
kept = []
def work():
    b"x" * 30_000_000
    buffers = []
    for _ in range(10):
        buffers.append(b"x" * 8_000_000)
        kept.append(b"y" * 100_000)
"""


def left_mb(*parts: str) -> float:
    """Return what some work leaves resident; `end` runs after it."""
    program = "\n".join([RESIDENT, *parts])
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    return float(run.stdout)


def test_what_lies_between_things_that_stay_is_given_back() -> None:
    end = "before = resident_mb(); work(); {}; print(resident_mb() - before)"
    assert left_mb(SMALL, end.format("pass")) > 80
    assert left_mb(SMALL, end.format("give_back()")) < 20


def test_large_buffers_go_back_by_themselves() -> None:
    end = "before = resident_mb(); work(); print(resident_mb() - before)"
    assert left_mb(LARGE, end) > 40
    assert left_mb(LARGE, "hold_little_back()", end) < 10


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_files_that_are_mapped_to_be_read_go_back_and_can_be_read_again(tmp_path: Path) -> None:
    data = os.urandom(1 << 20) * 64
    (tmp_path / "words").write_bytes(data)
    program = f"""
import mmap
from funes_ls.indexer.memory_freed import let_files_go

with open({str(tmp_path / "words")!r}, "r+b") as file:
    words = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    own = mmap.mmap(file.fileno(), 4096, access=mmap.ACCESS_COPY)
own[:4] = b"mine"  # is in no file
before = resident_mb()
first = sum(words[at] for at in range(0, len(words), 4096))
assert resident_mb() - before > 50
let_files_go()
print(resident_mb() - before)
assert sum(words[at] for at in range(0, len(words), 4096)) == first
assert own[:4] == b"mine"
"""
    assert left_mb(program) < 10
