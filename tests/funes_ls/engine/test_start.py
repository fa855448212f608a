"""Who may be the engine of a home: one process, also where the home's disk knows no locks."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import filelock
import pytest

from funes_ls.engine import start
from funes_ls.engine.log import log_path
from funes_ls.engine.start import _one_engine


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    with tempfile.TemporaryDirectory(prefix="fr-", dir="/tmp") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        monkeypatch.setattr(start, "_TURN_S", 0.05)
        (tmp_path / "h").mkdir()
        yield tmp_path / "h"


def test_one_process_is_the_engine(home: Path) -> None:
    with _one_engine(home) as first:
        assert first
        with _one_engine(home) as second:
            assert not second
    with _one_engine(home) as third:
        assert third


@pytest.mark.parametrize("error", [NotImplementedError("flock"), OSError(37, "No locks")])
def test_a_disk_without_locks_has_one_engine_too(
    home: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    real = filelock.FileLock.acquire

    def acquire(self: Any, *args: Any, **more: Any) -> Any:
        if str(self.lock_file).startswith(str(home)):
            raise error
        return real(self, *args, **more)

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)
    with _one_engine(home) as first, _one_engine(home) as second:
        assert (first, second) == (True, False)


def test_the_log_keeps_frames_and_turns_over(home: Path) -> None:
    code = (
        "import logging, sys; from pathlib import Path\n"
        "from funes_ls.engine import log\n"
        "log._MOST_BYTES = 2000\n"
        f"log.log_to_file(Path({str(home)!r}))\n"
        "told = logging.getLogger('funes_ls.x')\n"
        "said = 'what somebody ' + 'said'\n"
        "try:\n    raise ValueError(said)\n"
        "except ValueError:\n    told.exception('it failed')\n"
        "logging.getLogger('lancedb').warning(said)\n"
        "logging.getLogger('asyncio').error(said)\n"
        f"first = log.log_path(Path({str(home)!r})).read_text()\n"
        "assert 'it failed' in first and 'ValueError' in first and said not in first, first\n"
        "for n in range(100):\n    told.info('a line of the log %d', n)\n"
        "raise RuntimeError(said)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    files = sorted(path for path in log_path(home).parent.iterdir() if "faults" not in path.name)
    assert [path.name for path in files] == ["engine.log", "engine.log.1"]
    assert all(path.stat().st_size <= 2000 for path in files)
    assert "RuntimeError" in files[0].read_text(encoding="utf-8")
    assert os.name == "nt" or log_path(home).parent.stat().st_mode & 0o077 == 0
