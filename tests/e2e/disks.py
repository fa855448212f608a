"""A disk of a given size, to see what happens once it is full."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, *options: str, megabytes: int = 2) -> Iterator[None]:
    """Mount a small disk at a place, or skip where this user may not."""
    place.mkdir(parents=True, exist_ok=True)
    given = ",".join([f"size={megabytes}m", *options])
    mount = ["mount", "-t", "tmpfs", "-o", given, "tmpfs", str(place)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this user may not mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
