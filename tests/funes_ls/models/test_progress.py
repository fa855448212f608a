"""A download is followed by the size of the folder it fills."""

import threading
from pathlib import Path

import pytest

from funes_ls.models.progress import folder_bytes, watched


def test_what_is_there_is_reported_while_the_work_runs(tmp_path: Path) -> None:
    seen = threading.Event()
    steps: list[tuple[int, int | None, str]] = []

    def progress(done_bytes: int, total_bytes: int | None, what: str) -> None:
        steps.append((done_bytes, total_bytes, what))
        if done_bytes == 40:
            seen.set()

    def work() -> str:
        (tmp_path / "deep").mkdir()
        (tmp_path / "deep" / "part").write_bytes(b"x" * 40)
        assert seen.wait(10)
        return "done"

    assert watched(work, tmp_path, total_bytes=100, what="w", progress=progress) == "done"
    assert (40, 100, "w") in steps
    assert steps[-1] == (100, 100, "w")


def test_what_the_work_raises_comes_out(tmp_path: Path) -> None:
    def work() -> None:
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        watched(work, tmp_path, total_bytes=1, what="w", progress=lambda *_: None)


def test_an_absent_folder_is_empty(tmp_path: Path) -> None:
    assert folder_bytes(tmp_path / "none") == 0
