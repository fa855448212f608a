"""The catalog: queue, sessions, sources and what survives damage."""

import sqlite3
from pathlib import Path

import pytest

from funes_ls.indexer.catalog import (
    Catalog,
    Session,
    SessionFilter,
    Source,
    open_catalog,
    priority,
)
from funes_ls.indexer.catalog_salvage import open_or_salvage
from funes_ls.indexer.errors import BackendError, MemoryStateError
from funes_ls.indexer.model import Problem
from tests.indexer.making import row, rows, run_apart

NEW_US, OLD_US = 1_772_445_600_000_000, 1_704_412_800_000_000


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return open_catalog(tmp_path / "catalog.db")


def test_queued_rows_come_back_whole(catalog: Catalog) -> None:
    odd = row(3, "line\nbreak \x00 and 日本", parent_uuid="t2", tool_name="Bash", ts="", ts_us=None)
    assert catalog.add_pending([odd, row(1)]) == 2
    assert catalog.pending_rows([odd.id]) == [odd]
    assert catalog.add_pending([row(1, "other text"), row(2)]) == 1
    assert catalog.pending_rows([row(1).id]) == [row(1)]
    assert catalog.pending_count() == 3


def test_the_queue_gives_text_first_newest_first_subagents_last(catalog: Catalog) -> None:
    def queue(session: str, started_us: int, block_type: str, *, subagent: bool = False) -> None:
        chunk = row(0, session=session, block_type=block_type, id=f"{session}-{block_type}")
        catalog.add_pending([chunk], started_us=started_us, subagent=subagent)

    for kind in ("tool_result", "tool_use", "text"):
        queue("helper", NEW_US + 5, kind, subagent=True)
        queue("old", OLD_US, kind)
        queue("new", NEW_US, kind)
    assert [chunk.id for chunk in catalog.next_pending(9)] == [
        f"{session}-{kind}"
        for kind in ("text", "tool_use", "tool_result")
        for session in ("new", "old", "helper")
    ]
    assert [chunk.id for chunk in catalog.next_pending(2)] == ["new-text", "old-text"]
    assert priority("thinking", None) == priority("text", 0)


def test_a_transaction_is_all_or_nothing(catalog: Catalog) -> None:
    with pytest.raises(ZeroDivisionError), catalog.transaction():
        catalog.add_pending(rows(5))
        catalog.put_source(_source("k"))
        raise ZeroDivisionError
    assert (catalog.pending_count(), catalog.source("k"), catalog.generation) == (0, None, 0)
    with catalog.transaction():
        catalog.add_pending(rows(5))
        catalog.put_source(_source("k"))
    assert (catalog.pending_count(), catalog.generation) == (5, 1)


def _source(key: str, session: str = "s1") -> Source:
    return Source(key=key, harness="codex", path=f"/x/{key}", session_id=session, size=9,
                  mtime_ns=8, inode=7, resume=b"\x00state", updated_at=5)  # fmt: skip


def test_sources_come_back_whole(catalog: Catalog) -> None:
    catalog.put_source(_source("a"))
    catalog.put_source(_source("b"))
    catalog.put_source(_source("c", "s2"))
    assert catalog.source("a") == _source("a")
    assert [one.key for one in catalog.session_sources("s1")] == ["a", "b"]
    catalog.forget_source("a")
    assert [one.key for one in catalog.sources()] == ["b", "c"]


SESSIONS = [
    Session(session_id="jp1", harness="claude_code", cwd="/work/外注", workdir="-work---",
            title="Sorter port", started_us=NEW_US, ended_us=NEW_US + 60, updated_at=1),
    Session(session_id="jp2", harness="claude_code", cwd="/work/個人", workdir="-work---",
            title="Mixer port 100%", started_us=NEW_US - 10, ended_us=NEW_US, updated_at=1),
    Session(session_id="api", harness="codex", cwd="/work/api/proxy", workdir="-work-api-proxy",
            repo="acme/api acme/fork", branch="main", started_us=OLD_US, ended_us=OLD_US,
            inner_id="inner-9", updated_at=1),
    Session(session_id="sub", harness="claude_code", cwd="/work/api-proxy/sub",
            workdir="-work-api-proxy-sub", subagent=True, parent_id="jp1", updated_at=1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (SessionFilter(), {"jp1", "jp2", "api", "sub"}),
        (SessionFilter(harness="codex"), {"api"}),
        (SessionFilter(branch="main"), {"api"}),
        (SessionFilter(since_us=NEW_US + 30), {"jp1"}),
        (SessionFilter(until_us=NEW_US - 10), {"api"}),
        (SessionFilter(until_us=NEW_US - 9), {"api", "jp2"}),
        (SessionFilter(text="port 100%"), {"jp2"}),
        (SessionFilter(text="SORTER"), {"jp1"}),
        (SessionFilter(no_subagents=True), {"jp1", "jp2", "api"}),
        (SessionFilter(path="/work/外注/src/core/flux.py"), {"jp1"}),
        (SessionFilter(path="core/flux.py"), {"jp1", "api"}),
        (SessionFilter(path="flux.py"), {"jp1", "api"}),
        (SessionFilter(path="lux.py"), set()),
        (SessionFilter(path="/work/外注/src/"), {"jp1"}),
    ],
)
def test_sessions_are_chosen(catalog: Catalog, wanted: SessionFilter, ids: set[str]) -> None:
    for session in SESSIONS:
        catalog.put_session(session)
    catalog.put_files("jp1", ["/work/外注/src/core/flux.py", "README.md"])
    catalog.put_files("api", ["core/flux.py"])
    assert catalog.session_ids(wanted) == ids
    assert catalog.session_count(wanted) == len(ids)


def test_sessions_are_listed_newest_first_page_by_page(catalog: Catalog) -> None:
    for session in SESSIONS:
        catalog.put_session(session)
    assert [one.session_id for one in catalog.sessions()] == ["jp1", "jp2", "api", "sub"]
    assert catalog.sessions(limit=1, offset=2) == [SESSIONS[2]]
    assert [one.session_id for one in catalog.sessions_like("jp")] == ["jp1", "jp2"]
    assert [one.session_id for one in catalog.sessions_like("inner")] == ["api"]
    assert catalog.sessions_like("%") == []
    assert catalog.session("nobody") is None


def test_problems_of_a_trace_are_replaced_or_added_to(catalog: Catalog) -> None:
    first = Problem(path="/a", kind="bad_line", message="not JSON", line=3)
    later = Problem(path="/a", kind="bad_line", message="not JSON", line=9)
    catalog.put_problems("/a", [first])
    catalog.add_problems([later])
    assert catalog.problems() == [first, later]
    catalog.put_problems("/a", [])
    assert catalog.problem_count() == 0


def test_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    open_catalog(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = path.read_bytes()
    with pytest.raises(MemoryStateError) as raised:
        open_or_salvage(path, [])
    assert raised.value.kind == "newer_format"
    assert "pip install --upgrade" in raised.value.hint
    assert path.read_bytes() == before


def test_readers_see_what_a_writer_commits(catalog: Catalog, tmp_path: Path) -> None:
    reader = open_catalog(tmp_path / "catalog.db", writable=False)
    catalog.add_pending(rows(3))
    assert (reader.pending_count(), reader.generation) == (3, 1)
    with pytest.raises(BackendError):
        reader.add_pending(rows(1, start=9))
    with pytest.raises(MemoryStateError) as raised:
        open_catalog(tmp_path / "none.db", writable=False)
    assert raised.value.kind == "missing"


def test_a_full_disk_is_said_and_changes_nothing(tmp_path: Path) -> None:
    script = """
import resource
from funes_ls.indexer.catalog import open_catalog
from funes_ls.indexer.errors import BackendError
catalog = open_catalog(HOME_DIR / "catalog.db")
catalog.add_pending(rows(2))
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
try:
    catalog.add_pending([row(n, "x" * 1000) for n in range(10, 3000)])
except BackendError as exc:
    print(exc.kind, exc.hint)
"""
    said = run_apart(script, tmp_path)
    assert said.stdout.startswith("disk Free some disk space"), said.stderr
    assert open_catalog(tmp_path / "catalog.db").pending_count() == 2


def _damaged(path: Path, at: float) -> None:
    """Overwrite four pages at a part of the file, as a failing disk would."""
    data = bytearray(path.read_bytes())
    start = int(len(data) * at) // 4096 * 4096
    data[start : start + 4 * 4096] = b"\xa5" * (4 * 4096)
    path.unlink()
    path.write_bytes(data)


def test_what_a_damaged_catalog_still_holds_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    catalog = open_catalog(path)
    catalog.put_session(SESSIONS[0])
    catalog.add_tombstone("gone")
    catalog.add_pending([row(n, f"unique{n} " * 50) for n in range(600)])
    catalog.shrink()
    catalog.close()
    _damaged(path, 0.5)
    path.with_name("catalog.db.suspect").touch()
    notes: list[str] = []
    again = open_or_salvage(path, notes)
    assert 500 < again.pending_count() < 600
    assert again.session("jp1") == SESSIONS[0]
    assert again.tombstones() == {"gone"}
    assert again.sources() == []
    assert "damaged" in notes[0]
    assert list(tmp_path.glob("catalog.db.damaged-*"))
    assert again.is_sound()


def test_a_file_that_is_no_database_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    path.write_bytes(b"not a database at all" * 500)
    notes: list[str] = []
    again = open_or_salvage(path, notes)
    assert again.pending_count() == 0
    assert len(notes) == 1
    assert next(tmp_path.glob("catalog.db.damaged-*")).read_bytes().startswith(b"not a database")


def test_a_false_alarm_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    catalog = open_catalog(path)
    catalog.add_pending(rows(3))
    catalog.close()
    suspect = path.with_name("catalog.db.suspect")
    suspect.touch()
    notes: list[str] = []
    assert open_or_salvage(path, notes).pending_count() == 3
    assert (notes, suspect.exists()) == ([], False)


def test_space_of_rows_that_left_goes_back_to_the_disk(catalog: Catalog, tmp_path: Path) -> None:
    chunks = [row(n, "x" * 1000) for n in range(3000)]
    catalog.add_pending(chunks)
    catalog.shrink()
    full = (tmp_path / "catalog.db").stat().st_size
    catalog.finish_moving(chunks)
    catalog.shrink()
    assert (tmp_path / "catalog.db").stat().st_size < full / 10
    assert catalog.embedded_count("s1") == 3000
