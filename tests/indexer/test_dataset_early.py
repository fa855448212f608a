"""Rows are read by lancedb's compiled part alone exactly as they are by all of it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from funes_ls.indexer import dataset as lance
from funes_ls.indexer import dataset_early
from funes_ls.indexer.dataset_early import open_early
from tests.indexer.making import row


@pytest.fixture
def base(tmp_path: Path) -> Path:
    rows = [row(n, f"text {n}", session=f"s-{n % 2}", id=f"id-{n}") for n in range(10)]
    made = lance.create(tmp_path, stamp="tiny", dim=4)
    made.append(rows, np.eye(10, 4, dtype=np.float32))
    return tmp_path


def test_it_reads_what_the_whole_of_it_reads(base: Path) -> None:
    early, whole = open_early(base), lance.open_dataset(base)
    assert early is not None
    assert (early.stamp, early.dim, early.count()) == ("tiny", 4, 10)
    assert early.version == whole.version
    wanted = ["id-3", "id-1", "id-none"]
    assert early.rows(wanted) == whole.rows(wanted)
    assert [row.id for row in early.rows(wanted)] == ["id-3", "id-1"]
    assert early.session_rows("s-1") == whole.session_rows("s-1")
    assert early.existing(wanted) == {"id-1", "id-3"}


def test_it_sees_what_was_written_since_when_asked_to(base: Path) -> None:
    early = open_early(base)
    assert early is not None
    later = row(0, "later", session="s-9", id="id-later")
    lance.open_dataset(base).append([later], np.ones((1, 4), dtype=np.float32))
    assert early.count() == 10
    early.refresh()
    assert [one.text for one in early.rows(["id-later"])] == ["later"]


def test_it_loads_little_and_lancedb_loads_as_ever_after_it(base: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from funes_ls.indexer.dataset_early import open_early\n"
        f"base = Path({str(base)!r})\n"
        "early = open_early(base)\n"
        "assert early is not None and early.count() == 10\n"
        "assert {n for n in sys.modules if n.startswith('lancedb')} == {'lancedb._lancedb'}\n"
        "from funes_ls.indexer.dataset import open_dataset\n"
        "whole = open_dataset(base)\n"
        "assert whole.rows(['id-3']) == early.rows(['id-3'])\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_another_version_of_lancedb_is_waited_for(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other:
        async def connect(self, _uri: str) -> None:
            raise AttributeError("open_table")

    monkeypatch.setattr(dataset_early, "_native", Other)
    assert open_early(base) is None


def test_nothing_there_is_nothing_early(tmp_path: Path) -> None:
    assert open_early(tmp_path) is None
    (tmp_path / "chunks.lance").mkdir()
    assert open_early(tmp_path) is None
