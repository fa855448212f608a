"""A changed path leads to the very units that a walk of its root gives."""

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from funes_ls.indexer.traces import TraceSource, Unit, detect, sources, units_of
from tests.indexer.traces.reading import write_lines

SAMPLES = Path(__file__).resolve().parents[2] / "traces" / "home"
PARQUET = Path(__file__).resolve().parents[2] / "traces" / "parquet"


def walked(source: TraceSource, root: Path) -> dict[str, Unit]:
    return {unit.key: unit for unit in source.units(root) if isinstance(unit, Unit)}


def told(path: Path, source: TraceSource, root: Path) -> list[Unit]:
    return [unit for _, unit in units_of(path, [(source, root)])]


def sample_places() -> list[tuple[TraceSource, Path]]:
    found = [(source, root) for source in sources() for root in source.roots(SAMPLES, {})]
    return [(source, root) for source, root in found if root.exists()]


@pytest.mark.parametrize("place", sample_places(), ids=lambda place: str(place[1].name))
def test_every_sample_is_found_by_its_path(place: tuple[TraceSource, Path]) -> None:
    source, root = place
    units = walked(source, root)
    assert units
    for unit in units.values():
        path = Path(unit.container or unit.key)
        found = {one.key: one for one in told(path, source, root)}
        assert found[unit.key] == unit
        assert found.keys() <= units.keys()


def test_a_path_is_of_its_own_place_only() -> None:
    path = next((SAMPLES / ".claude").rglob("*.jsonl"))
    assert [source.harness for source, _ in units_of(path, sample_places())] == ["claude_code"]
    assert units_of(SAMPLES / "elsewhere.jsonl", sample_places()) == []


def test_a_tree_of_everything_and_parquet_files() -> None:
    for root in (SAMPLES, PARQUET):
        source = detect(root)
        units = walked(source, root)
        assert units
        found = {
            unit.key: unit
            for one in units.values()
            for unit in told(Path(one.container or one.key), source, root)
        }
        assert found == units


def test_a_folder_gives_all_that_is_in_it() -> None:
    for source, root in sample_places():
        units = walked(source, root)
        assert {unit.key for unit in told(root, source, root)} == units.keys()
        for folder in (entry for entry in root.iterdir() if entry.is_dir()):
            below = {key for key in units if Path(key).is_relative_to(folder)}
            assert {unit.key for unit in told(folder, source, root)} == below


def test_what_is_gone_or_no_trace_gives_nothing(tmp_path: Path) -> None:
    for source, root in sample_places():
        assert told(root / "gone.jsonl", source, root) == []
        assert told(root / "notes.txt", source, root) == []
        assert told(tmp_path / "other.jsonl", source, root) == []


def links(base: Path) -> Path:
    """Make a root with links of every kind and return it."""
    root, outside = base / "projects", base / "outside"
    write_lines(root / "a" / "s1.jsonl", {"type": "user"})
    write_lines(outside / "deep" / "s2.jsonl", {"type": "user"})
    write_lines(base / "single.jsonl", {"type": "user"})
    (root / "0-again").symlink_to(root / "a")
    (root / "linked").symlink_to(outside)
    (root / "linked-too").symlink_to(outside / "deep")
    (root / "a" / "one.jsonl").symlink_to(base / "single.jsonl")
    (root / "loop").symlink_to(root)
    (root / "up").symlink_to(base)
    (root / "nowhere").symlink_to(root / "nothing")
    write_lines(root / "odd.jsonl" / "inside.jsonl", {"type": "user"})
    return root


@pytest.mark.skipif(os.name == "nt", reason="links")
@pytest.mark.parametrize("through", ["", "projects-link"])
def test_links_lead_to_the_name_a_walk_gives(tmp_path: Path, through: str) -> None:
    root = links(tmp_path)
    if through:
        (tmp_path / through).symlink_to(root)
        root = tmp_path / through
    source = detect(SAMPLES / ".claude" / "projects")
    units = walked(source, root)
    assert len(units) == 3
    for unit in units.values():
        assert told(Path(unit.key), source, root) == [unit]
    ways = [root / "0-again" / "s1.jsonl", root / "loop" / "a" / "s1.jsonl"]
    ways += [root / "linked-too" / "s2.jsonl", root / "linked" / "deep" / "s2.jsonl"]
    for way in ways:
        assert [unit.path for unit in told(way, source, root)] == [way.resolve()]
        assert {unit.key for unit in told(way, source, root)} <= units.keys()
    assert told(root / "odd.jsonl" / "inside.jsonl", source, root) == []


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_names_that_are_no_text(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/p\xff/s\xfe.jsonl"))
    try:
        write_lines(odd, {"type": "user"})
    except OSError:
        pytest.skip("the file system takes text only")
    source = detect(SAMPLES / ".claude" / "projects")
    assert told(odd, source, tmp_path) == list(walked(source, tmp_path).values()) != []


def test_a_rollout_and_its_compressed_copy(tmp_path: Path) -> None:
    packed = next((SAMPLES / ".codex").rglob("*.jsonl.zst"))
    root = tmp_path / "sessions"
    root.mkdir()
    copy = root / packed.name
    plain = root / packed.name.removesuffix(".zst")
    shutil.copy(packed, copy)
    source = detect(SAMPLES / ".codex" / "sessions")
    assert [unit.key for unit in told(copy, source, root)] == [str(copy)]
    write_lines(plain, {"type": "session_meta", "payload": {"id": "x"}})
    assert told(copy, source, root) == []
    assert [unit.key for unit in told(plain, source, root)] == [str(plain)]
    plain.unlink()
    assert [unit.key for unit in told(plain, source, root)] == [str(copy)]
    assert told(write_lines(root / "history.jsonl", {}), source, root) == []


def test_files_beside_a_database_lead_to_its_sessions(tmp_path: Path) -> None:
    root = tmp_path / ".hermes"
    source = detect(SAMPLES / ".hermes")
    for place in (root, root / "profiles" / "work", root / "backup"):
        place.mkdir(parents=True)
        shutil.copy(SAMPLES / ".hermes" / "state.db", place)
    units = walked(source, root)
    writer = sqlite3.connect(root / "state.db", isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("UPDATE messages SET role = role")
    for place in (root, root / "profiles" / "work"):
        wanted = {key for key, unit in units.items() if unit.path.parent == place}
        for name in ("state.db", "state.db-wal", "state.db-shm"):
            found = told(place / name, source, root)
            assert {unit.key for unit in found} == wanted != set()
    writer.close()
    assert told(root / "backup" / "state.db", source, root) == []
