"""The watcher: whatever way a trace changes, it is told; where the system does not, by looking."""

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from funes_ls.indexer import watch, watch_places
from funes_ls.indexer.traces import TraceSource, source_for
from funes_ls.indexer.watch import Watcher
from funes_ls.indexer.watch_places import is_remote
from tests.indexer.living import until

CLAUDE, HERMES = source_for("claude"), source_for("hermes")


class Told:
    """What a watcher said, and the clocks it goes by."""

    def __init__(self, roots: list[tuple[TraceSource, Path]], **more: Any) -> None:
        self.paths: list[Path] = []
        self.sweeps = 0
        self.slept_s = 0.0
        self.lock = threading.Lock()
        self.roots = roots
        self.watcher = Watcher(
            lambda: [(source, root) for source, root in roots if root.exists()],
            self.on_paths,
            on_sweep=self.on_sweep,
            **more,
        )

    def on_paths(self, paths: list[Path]) -> None:
        with self.lock:
            self.paths += paths

    def on_sweep(self) -> None:
        self.sweeps += 1

    def ready(self, mode: str = "native") -> None:
        until(lambda: self.watcher.state.mode == mode and self.sweeps, what=mode)

    def hears(self, path: Path, change: Callable[[], object]) -> None:
        """Make a change and wait until it is told."""
        with self.lock:
            self.paths.clear()
        change()
        until(lambda: path in self.paths, what=f"{path} of {self.paths}")


@contextmanager
def watching(*roots: Path, source: TraceSource = CLAUDE, **more: Any) -> Iterator[Told]:
    told = Told([(source, root) for root in roots], **more)
    told.watcher.start()
    try:
        yield told
    finally:
        assert told.watcher.stop(wait_s=10)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "projects"
    (folder / "p").mkdir(parents=True)
    return folder


def grow(path: Path, text: str = "{}\n") -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


@pytest.mark.parametrize("polling", [False, True])
def test_a_trace_that_comes_grows_is_replaced_and_goes(root: Path, polling: bool) -> None:
    path, fresh = root / "p" / "s.jsonl", root.parent / "fresh"
    with watching(root, force_polling=polling) as told:
        told.ready("polling" if polling else "native")
        told.hears(path, lambda: grow(path))
        told.hears(path, lambda: grow(path))
        fresh.write_text("{}\n" * 9, encoding="utf-8")
        told.hears(path, lambda: fresh.rename(path))
        told.hears(path, path.unlink)


def test_other_files_are_not_told(root: Path) -> None:
    with watching(root) as told:
        told.ready()
        grow(root / "p" / "notes.txt")
        told.hears(root / "p" / "s.jsonl", lambda: grow(root / "p" / "s.jsonl"))
        assert root / "p" / "notes.txt" not in told.paths


def test_folders_made_deep_at_once_are_told(root: Path) -> None:
    deep = root / "a" / "b" / "c"
    with watching(root) as told:
        told.ready()

        def make() -> None:
            deep.mkdir(parents=True)
            grow(deep / "s.jsonl")

        make()
        until(lambda: any(deep.is_relative_to(path) for path in told.paths), what="a folder")
        told.hears(deep / "s.jsonl", lambda: grow(deep / "s.jsonl"))


def test_a_folder_moved_into_place_is_told(root: Path) -> None:
    other = root.parent / "other"
    other.mkdir()
    grow(other / "s.jsonl")
    with watching(root) as told:
        told.ready()
        told.hears(root / "moved", lambda: other.rename(root / "moved"))
        told.hears(root / "moved" / "s.jsonl", lambda: grow(root / "moved" / "s.jsonl"))


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_what_is_linked_into_a_root_is_told(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    grow(outside / "s.jsonl")
    grow(root.parent / "single.jsonl")
    (root / "linked").symlink_to(outside)
    (root / "p" / "one.jsonl").symlink_to(root.parent / "single.jsonl")
    (root / "loop").symlink_to(root)
    (root / "nowhere").symlink_to(root / "nothing")
    with watching(root) as told:
        told.ready()
        told.hears(root / "linked" / "s.jsonl", lambda: grow(outside / "s.jsonl"))
        told.hears(root / "p" / "one.jsonl", lambda: grow(root.parent / "single.jsonl"))
        later = root.parent / "later.jsonl"
        grow(later)
        told.hears(root / "p" / "two.jsonl", lambda: (root / "p" / "two.jsonl").symlink_to(later))
        until(lambda: grow(later) or (root / "p" / "two.jsonl") in told.paths[1:])


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_a_name_that_is_no_text_does_not_end_it(root: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(root / "p") + b"/\xff.jsonl"))
    try:
        grow(odd)
    except OSError:
        pytest.skip("the file system takes text only")
    with watching(root) as told:
        told.ready()
        told.hears(root / "p", lambda: grow(odd))
        told.hears(root / "p" / "s.jsonl", lambda: grow(root / "p" / "s.jsonl"))


def test_a_root_may_come_vanish_and_come_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "ROOTS_S", 0.05)
    later = root.parent / "later"
    with watching(root, later) as told:
        told.ready()
        assert told.watcher.state.roots == 1
        for _ in range(2):
            told.hears(later, later.mkdir)
            until(lambda: told.watcher.state.roots == 2)
            told.hears(later / "s.jsonl", lambda: grow(later / "s.jsonl"))
            shutil.rmtree(later)
            until(lambda: told.watcher.state.roots == 1)
        told.hears(root / "p" / "s.jsonl", lambda: grow(root / "p" / "s.jsonl"))


def test_nothing_to_watch_is_no_error(tmp_path: Path) -> None:
    with watching(tmp_path / "none") as told:
        told.ready()
        assert told.watcher.state.roots == 0


def test_a_database_is_watched_by_its_log(tmp_path: Path) -> None:
    root = tmp_path / ".hermes"
    (root / "profiles" / "work").mkdir(parents=True)
    for folder in (root, root / "profiles" / "work"):
        db = sqlite3.connect(folder / "state.db", isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t (x)")
        with watching(root, source=HERMES) as told:
            told.ready()
            told.hears(
                folder / "state.db-wal", lambda db=db: db.execute("INSERT INTO t VALUES (1)")
            )
        db.close()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("OS file watch limit reached. about [..]", "max_user_watches"),
        ("Too many open files (os error 24)", "max_user_instances"),
        ("anything else", "does not tell"),
    ],
)
def test_where_the_system_refuses_it_looks(
    root: Path, monkeypatch: pytest.MonkeyPatch, error: str, said: str
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError(error)

    monkeypatch.setattr("watchfiles._rust_notify.RustNotify", refuse)
    with watching(root) as told:
        told.ready("polling")
        assert said in told.watcher.state.note
        told.hears(root / "p" / "s.jsonl", lambda: grow(root / "p" / "s.jsonl"))


def test_a_root_that_is_made_anew_at_once_is_watched_anew(root: Path) -> None:
    with watching(root) as told:
        told.ready()
        for turn in range(5):  # now and then the new folder has the inode of the old one

            def remake() -> None:
                shutil.rmtree(root)
                root.mkdir()

            told.hears(root, remake)
            trace = root / f"{turn}.jsonl"
            told.hears(trace, lambda: trace.write_text("{}\n"))  # noqa: B023 - called at once


def test_a_root_made_anew_while_the_watch_is_rebuilt_is_looked_at(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rebuild = Watcher._open_native
    remade = threading.Event()

    def slow(watcher: Watcher) -> str:
        if other.exists() and not remade.is_set():
            shutil.rmtree(root)
            root.mkdir()
            (root / "s.jsonl").write_text("{}\n", encoding="utf-8")
            remade.set()
        return rebuild(watcher)

    other = tmp_path / "other"
    monkeypatch.setattr(Watcher, "_open_native", slow)
    # The system may tell of it only after the old watch has been asked for the last time.
    monkeypatch.setattr(Watcher, "_let_go", lambda _self, notify: notify and notify.close())
    with watching(root, other) as told:
        told.ready()
        told.hears(root, other.mkdir)
        assert remade.is_set()


def test_network_disks_are_looked_at(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "mounted", lambda: {"/": "ext4", str(root.parent): "nfs4"})
    with watching(root) as told:
        told.ready("polling")
        assert "network disk" in told.watcher.state.note
        told.hears(root / "p" / "s.jsonl", lambda: grow(root / "p" / "s.jsonl"))


def test_the_innermost_mount_decides(tmp_path: Path) -> None:
    mounts = {"/": "ext4", str(tmp_path): "9p", str(tmp_path / "local"): "ext4"}
    assert is_remote(tmp_path / "a", mounts)
    assert not is_remote(tmp_path / "local" / "a", mounts)
    assert not is_remote(Path("/usr"), mounts)


def test_mount_points_are_read_as_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "mounts"
    table.write_text(
        "disk / ext4 rw 0 0\nhost:/x /mnt/a\\040b nfs4 rw 0 0\nodd\n", encoding="utf-8"
    )
    monkeypatch.setattr(watch_places, "_MOUNTS", table)
    assert watch_places.mounted() == {"/": "ext4", "/mnt/a b": "nfs4"}


def test_every_root_is_looked_at_after_a_sleep_and_now_and_then(root: Path) -> None:
    now = {"clock": 0.0, "wall": 1_000.0}
    with watching(root, clock=lambda: now["clock"], wall=lambda: now["wall"]) as told:
        told.ready()
        assert told.sweeps == 1
        now["wall"] += 3_600  # the clock that stands still while a machine sleeps did not go on
        until(lambda: told.sweeps == 2)
        now["clock"] += watch.SWEEP_S
        now["wall"] += watch.SWEEP_S
        until(lambda: told.sweeps == 3)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="Linux tells of open files")
def test_many_roots_take_one_watch_instance(tmp_path: Path) -> None:
    roots = [tmp_path / f"r{n}" for n in range(20)]
    for one in roots:
        one.mkdir()
    with watching(*roots) as told:
        told.ready()
        links = [str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
        assert links.count("anon_inode:inotify") == 1
