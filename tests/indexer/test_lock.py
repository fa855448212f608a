"""One writer at a time."""

import subprocess
import sys
from pathlib import Path

import pytest

from funes_ls.indexer.errors import BackendError, MemoryStateError
from funes_ls.indexer.lock import lock_owner, writer_lock
from tests.indexer.making import run_apart

_TRY = """
from funes_ls.indexer.errors import MemoryStateError
try:
    with writer_lock(HOME_DIR):
        print("held")
except MemoryStateError as exc:
    print(exc.kind, exc.message)
"""


def test_a_second_process_is_told_who_writes(tmp_path: Path) -> None:
    with writer_lock(tmp_path):
        owner = lock_owner(tmp_path)
        said = run_apart(_TRY, tmp_path).stdout
    assert said.startswith("locked ")
    assert f"process {owner}" in said
    assert run_apart(_TRY, tmp_path).stdout == "held\n"


def test_a_dead_writer_leaves_no_lock(tmp_path: Path) -> None:
    died = run_apart("with writer_lock(HOME_DIR): os._exit(9)", tmp_path)
    assert died.returncode == 9
    with writer_lock(tmp_path):
        assert lock_owner(tmp_path) is not None


def test_the_lock_is_let_go_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), writer_lock(tmp_path):
        raise ZeroDivisionError
    with writer_lock(tmp_path):
        pass


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BackendError) as raised, writer_lock(tmp_path / "file" / "home"):
        pass
    assert raised.value.kind == "disk"
    assert str(tmp_path / "file" / "home") in raised.value.message


def test_waiting_ends(tmp_path: Path) -> None:
    with writer_lock(tmp_path), pytest.raises(MemoryStateError), writer_lock(tmp_path, wait_s=0.05):
        pass


def test_importing_storage_loads_nothing_heavy() -> None:
    script = (
        "import sys, funes_ls.indexer.memory\n"
        "heavy = {'lancedb', 'pyarrow', 'tantivy', 'numpy', 'filelock'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
