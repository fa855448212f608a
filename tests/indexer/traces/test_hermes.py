"""Hermes: schemas, a database that is being written, leftovers, and nothing left behind."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from funes_ls.indexer.chunk import chunks_of
from funes_ls.indexer.model import Problem, Turn
from funes_ls.indexer.traces import Unit, source_for, sqlitedb
from funes_ls.indexer.traces.hermes import HermesSource, rfc3339
from tests.indexer.traces.reading import stored_texts

SID = "20260302_100000_abc123"
SESSIONS = (
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, parent_session_id TEXT, {more})"
)
MESSAGES = (
    "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, "
    "content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL, "
    "reasoning TEXT, reasoning_content TEXT{more})"
)
NEW_SESSIONS = "end_reason TEXT, cwd TEXT, git_branch TEXT, title TEXT"
NEW_MESSAGES = ", active INTEGER DEFAULT 1, compacted INTEGER DEFAULT 0, api_content TEXT"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / ".hermes"
    folder.mkdir()
    return folder / "state.db"


def make(path: Path, *, old: bool = False, wal: bool = True) -> sqlite3.Connection:
    db = sqlite3.connect(path)
    if wal:
        db.execute("PRAGMA journal_mode=wal")
    db.execute(SESSIONS.format(more="end_reason TEXT" if old else NEW_SESSIONS))
    db.execute(MESSAGES.format(more="" if old else NEW_MESSAGES))
    if old:
        db.execute("INSERT INTO sessions (id, source) VALUES (?, 'cli')", (SID,))
    else:
        db.execute(
            "INSERT INTO sessions (id, source, cwd, git_branch) VALUES (?, 'cli', ?, 'main')",
            (SID, "/work/demo"),
        )
    db.commit()
    return db


def say(db: sqlite3.Connection, role: str, content: str | None, **more: object) -> None:
    values = {"session_id": SID, "role": role, "content": content, "timestamp": 1000.5, **more}
    marks = ", ".join("?" * len(values))
    db.execute(f"INSERT INTO messages ({', '.join(values)}) VALUES ({marks})", [*values.values()])
    db.commit()


def units_of(path: Path) -> list[Unit]:
    return [unit for unit in HermesSource().units(path) if isinstance(unit, Unit)]


def read(path: Path, key: str = SID) -> list[Turn]:
    source = HermesSource()
    (unit,) = [u for u in source.units(path) if isinstance(u, Unit) and u.key.endswith(key)]
    items = list(source.read(unit))
    assert not [item for item in items if isinstance(item, Problem)]
    return [item for item in items if isinstance(item, Turn)]


def beside(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


def test_turns(path: Path) -> None:
    db = make(path)
    say(db, "system", "you are helpful")
    say(db, "user", "why does the kiln log rotate")
    calls = (
        '[{"id":"c1","function":{"name":"bash","arguments":"{\\"cmd\\": \\"ls\\"}"}},'
        '{"function":{"name":"x","arguments":{"n":-0}}},{"function":{}},7]'
    )
    say(db, "assistant", "on it", reasoning="old", reasoning_content="hm", tool_calls=calls)
    say(db, "assistant", " ", reasoning="only this", timestamp=None)
    say(db, "tool", "kiln.log", tool_name="bash", tool_call_id="c1", active=0, compacted=1)
    db.close()
    (unit,) = units_of(path)
    assert (unit.size, unit.mtime_ns, unit.harness) == (5, 5, "hermes")
    turns = read(path)
    assert [(t.turn_uuid, t.seq, t.role, t.ts) for t in turns] == [
        ("2", 0, "user", "1970-01-01T00:16:40.500+00:00"),
        ("3", 1, "assistant", "1970-01-01T00:16:40.500+00:00"),
        ("4", 2, "assistant", ""),
        ("5", 3, "tool", "1970-01-01T00:16:40.500+00:00"),
    ]
    assert [(b.block_type, b.text, b.tool_name) for b in turns[1].blocks] == [
        ("thinking", "hm", None),
        ("text", "on it", None),
        ("tool_use", '{"cmd": "ls"}', "bash"),
        ("tool_use", '{"n":-0.0}', "x"),
        ("tool_use", "{}", None),
        ("tool_use", "{}", None),
    ]
    assert turns[3].blocks[0].tool_name == "bash"
    assert {(t.workdir, t.source_path) for t in turns} == {("-work-demo", str(path))}


@pytest.mark.parametrize("wal", [True, False])
def test_old_schemas_have_no_cwd(path: Path, wal: bool) -> None:
    db = make(path, old=True, wal=wal)
    say(db, "user", "hello")
    db.close()
    (turn,) = read(path)
    assert (turn.workdir, turn.turn_uuid) == ("hermes", "1")


def test_a_running_database_is_read_with_what_its_wal_holds(path: Path) -> None:
    db = make(path)
    say(db, "user", "hello")
    assert (path.parent / "state.db-wal").stat().st_size > 0
    assert stored_texts(read(path)) == ["hello"]
    db.execute("BEGIN IMMEDIATE")
    db.execute("UPDATE messages SET content = 'not yet'")
    assert stored_texts(read(path)) == ["hello"]
    db.rollback()
    db.close()


def test_a_closed_database_is_read_and_nothing_is_left_beside_it(path: Path) -> None:
    db = make(path)
    say(db, "user", "hello")
    db.close()
    assert beside(path) == ["state.db"]
    before = path.read_bytes()
    assert stored_texts(read(path)) == ["hello"]
    assert (beside(path), path.read_bytes()) == (["state.db"], before)


def test_a_wal_left_by_a_crash_is_read_from_a_copy(path: Path, tmp_path: Path) -> None:
    db = make(path)
    say(db, "user", "only in the wal")
    crashed = tmp_path / "crashed" / "state.db"
    crashed.parent.mkdir()
    shutil.copy(path, crashed)
    shutil.copy(f"{path}-wal", f"{crashed}-wal")
    db.close()
    assert stored_texts(read(crashed)) == ["only in the wal"]
    assert beside(crashed) == ["state.db", "state.db-wal"]


def test_where_read_only_is_refused_a_copy_is_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = make(path)
    say(db, "user", "hello")
    real = sqlitedb._connect

    def refusing(target: Path, mode: str) -> sqlite3.Connection:
        if target == path:
            raise sqlite3.OperationalError("unable to open database file")
        return real(target, mode)

    monkeypatch.setattr(sqlitedb, "_connect", refusing)
    assert stored_texts(read(path)) == ["hello"]
    db.close()


def test_a_writer_that_comes_while_rows_are_read_is_seen(path: Path) -> None:
    db = make(path)
    for number in range(300):
        say(db, "user", f"message {number}")
    db.close()
    source = HermesSource()
    (unit,) = units_of(path)
    items = iter(source.read(unit))
    texts = [next(items).blocks[0].text]  # type: ignore[union-attr]  # the first is a turn
    db = sqlite3.connect(path)
    say(db, "user", "message 300")
    texts += [item.blocks[0].text for item in items if isinstance(item, Turn)]
    db.close()
    assert texts == [f"message {number}" for number in range(301)]


def test_only_new_messages_are_read_from_a_state(path: Path) -> None:
    db = make(path)
    say(db, "user", "first")
    say(db, "assistant", None, tool_calls='[{"id":"c","function":{"name":"mcp__funes__recall"}}]')
    source = HermesSource()
    reading = source.read(units_of(path)[0])
    assert len(list(reading)) == 2
    say(db, "tool", "an old passage", tool_call_id="c", tool_name="recall")
    say(db, "user", "second")
    later = source.read(units_of(path)[0], resume=reading.resume)
    turns = [item for item in later if isinstance(item, Turn)]
    assert [(t.turn_uuid, t.seq) for t in turns] == [("3", 2), ("4", 3)]
    assert (stored_texts(turns), later.restarted, later.session.title) == (
        ["second"],
        False,
        "first",
    )
    db.execute("UPDATE messages SET content = 'edited longer' WHERE id = 1")
    db.commit()
    again = source.read(units_of(path)[0], resume=later.resume)
    assert (len(list(again)), again.restarted) == (4, True)
    db.close()


def test_content_kept_as_json_is_stored_as_its_text(path: Path) -> None:
    db = make(path)
    parts = '[{"type":"text","text":"what is it"},{"type":"image_url","image_url":{"url":"x"}}]'
    say(db, "user", "\0json:" + parts)
    db.close()
    (turn,) = read(path)
    assert [chunk.text for chunk in chunks_of(turn, compat=True)] == ["\0json:" + parts]
    assert [chunk.text for chunk in chunks_of(turn)] == ["what is it"]


def test_links_to_other_sessions(path: Path) -> None:
    db = make(path)
    db.execute("INSERT INTO sessions (id, end_reason) VALUES ('p1', 'compression')")
    db.execute("INSERT INTO sessions (id, end_reason) VALUES ('p2', 'branched')")
    for child, parent in (("a", "p1"), ("b", "p2"), ("c", SID)):
        db.execute("INSERT INTO sessions (id, parent_session_id) VALUES (?, ?)", (child, parent))
        say(db, "user", "hello", session_id=child)
    say(db, "user", "hello")
    db.execute("UPDATE sessions SET title = 'Mine' WHERE id = 'a'")
    db.commit()
    source = HermesSource()
    units = units_of(path)
    assert [(u.key.split("#")[1], u.subagent) for u in units] == [
        (SID, False),
        ("b", False),
        ("a", False),
        ("c", True),
    ]
    links = {}
    for unit in units:
        reading = source.read(unit)
        list(reading)
        session = reading.session
        links[session.session_id] = (session.parent_id, session.link, session.title)
    assert links == {
        SID: ("", "", "hello"),
        "a": ("p1", "continuation", "Mine"),
        "b": ("p2", "fork", "hello"),
        "c": (SID, "subagent", "hello"),
    }
    db.close()


def test_profiles_are_found_but_not_what_else_is_in_the_home(path: Path) -> None:
    for place in (path, path.parent / "profiles" / "work" / "state.db"):
        place.parent.mkdir(parents=True, exist_ok=True)
        db = make(place)
        say(db, "user", "hello")
        db.close()
    odd = path.parent / "checkout" / "deep" / "state.db"
    odd.parent.mkdir(parents=True)
    odd.write_bytes(b"no database")
    assert [unit.container for unit in units_of(path.parent)] == [
        str(path),
        str(path.parent / "profiles" / "work" / "state.db"),
    ]


@pytest.mark.parametrize("data", [b"", b"garbage" * 1000, b"SQLite format 3\0" + b"\0" * 5000])
def test_what_is_no_database_is_a_problem(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    found = list(HermesSource().units(path))
    assert [getattr(item, "kind", "") for item in found] == ["bad_source"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1796140051, "2026-12-01T15:47:31+00:00"),
        (1796140051.5, "2026-12-01T15:47:31.500+00:00"),
        (1796140051.2862427, "2026-12-01T15:47:31.286242723+00:00"),
        (-1.5, "1969-12-31T23:59:59.500+00:00"),
        (None, ""),
        (float("inf"), ""),
        (1e300, ""),
        (b"x", ""),
    ],
)
def test_times(seconds: object, text: str) -> None:
    assert rfc3339(seconds) == text


def test_known_places(tmp_path: Path) -> None:
    source = source_for("hermes")
    assert source.roots(tmp_path, {}) == [tmp_path / ".hermes"]
    assert source.roots(tmp_path, {"HERMES_HOME": "/h"}) == [Path("/h")]
