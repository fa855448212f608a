"""The tables of facts: written with the session, replaced and forgotten with it, made from rows."""

import sqlite3
from pathlib import Path

import pytest

from funes_ls.indexer import facts_tables as tables
from funes_ls.indexer.calls.rebuild import derive_steps, rebuild_steps
from funes_ls.indexer.catalog import Catalog, open_catalog
from funes_ls.indexer.facts import CHANGES, KINDS, Facts, FileEvent, StoredEvent, pack, unpack
from funes_ls.indexer.facts_lines import key_hash, line_key
from funes_ls.indexer.facts_tables import CallFacts, Provenance
from funes_ls.indexer.ingest import ingest
from funes_ls.indexer.memory import Memory, open_memory
from funes_ls.indexer.traces import Unit, source_for
from tests.indexer.making import STAMP, vectors
from tests.sessions import append, record, tool_result, tool_use, write

CLAUDE = source_for("claude")
ROOT = Path(__file__).resolve().parents[2]
OK = "The file /work/demo/a.py has been updated."


def read(root: Path, memory: Memory) -> None:
    for unit in CLAUDE.units(root):
        assert isinstance(unit, Unit)
        ingest(unit, CLAUDE, memory)


def session(number: int, new: str, *, answered: bool = True) -> list[dict[str, object]]:
    """Return a prompt, an edit and its answer."""
    args = {"file_path": "/work/demo/a.py", "old_string": "level = 0", "new_string": new}
    call = tool_use("Edit", args, id=f"c{number}")
    given = [
        record(f"please set the level {number}", uuid=f"ask{number}"),
        record(call, uuid=f"call{number}", role="assistant"),
        record(tool_result(OK, id=f"c{number}"), uuid=f"answer{number}"),
    ]
    return given if answered else given[:2]


def events(catalog: Catalog, name: str = "a.py") -> list[StoredEvent]:
    facts = Facts(catalog)
    return facts.events_of([path.path_id for path in facts.paths_named(name)])


def test_a_session_s_facts_come_with_it(memory: Memory, projects: Path) -> None:
    write(projects / "p" / "s1.jsonl", session(1, "level = tide(now)"))
    read(projects, memory)
    [event] = events(memory.catalog)
    assert (event.kind, event.path, event.old, event.new) == (
        "edit", "/work/demo/a.py", "level = 0", "level = tide(now)",
    )  # fmt: skip
    assert (event.session_id, event.turn_uuid, event.ask_turn_uuid) == ("s1", "call1", "ask1")
    assert (event.cwd, event.harness, event.seq) == ("/work/demo", "claude_code", 1)
    [path] = Facts(memory.catalog).paths_named("A.PY")
    assert path.places == (("/work/demo", ""),)


def test_a_later_reading_goes_on(memory: Memory, projects: Path) -> None:
    path = write(projects / "p" / "s1.jsonl", session(1, "level = tide(1)", answered=False))
    read(projects, memory)
    assert events(memory.catalog) == []
    append(path, [record(tool_result(OK, id="c1"), uuid="answer1"), *session(2, "level = tide(2)")])
    read(projects, memory)
    assert [(one.new, one.ask_turn_uuid) for one in events(memory.catalog)] == [
        ("level = tide(1)", "ask1"),
        ("level = tide(2)", "ask2"),
    ]
    assert tables.missing(memory.catalog) == []


def test_a_rewritten_trace_replaces_its_facts(memory: Memory, projects: Path) -> None:
    path = write(
        projects / "p" / "s1.jsonl",
        [*session(1, "level = tide(1)"), *session(2, "level = tide(2)")],
    )
    read(projects, memory)
    write(path, [*session(1, "level = other(1)"), record("and no more", uuid="u9")])
    read(projects, memory)
    assert [one.new for one in events(memory.catalog)] == ["level = other(1)"]
    facts = Facts(memory.catalog)
    assert not facts.writers_of([key_hash(line_key("level = tide(2)"))])
    assert facts.writers_of([key_hash(line_key("level = other(1)"))])


def test_a_forgotten_session_leaves_no_facts(memory: Memory, projects: Path) -> None:
    write(projects / "p" / "s1.jsonl", session(1, "level = tide(1)"))
    write(projects / "p" / "s2.jsonl", session(2, "level = tide(2)"))
    read(projects, memory)
    memory.forget_session("s1")
    assert [one.session_id for one in events(memory.catalog)] == ["s2"]
    read(projects, memory)
    assert [one.session_id for one in events(memory.catalog)] == ["s2"]
    left = {
        table: memory.catalog.select(f"SELECT count(*) FROM {table}")[0][0]
        for table in ("facts_sessions", "facts_events", "facts_lines", "facts_paths")
    }
    assert left == {"facts_sessions": 1, "facts_events": 1, "facts_lines": 1, "facts_paths": 1}


def test_who_wrote_a_line(memory: Memory, projects: Path) -> None:
    write(projects / "p" / "s1.jsonl", session(1, "level = tide('x')\nlevel = 0\n}\n"))
    read(projects, memory)
    [event] = events(memory.catalog)
    hashes = [
        key_hash(line_key('  level = tide("x"),')),
        key_hash(line_key("level = 0")),
        key_hash(line_key("}")),
    ]
    assert Facts(memory.catalog).writers_of(hashes) == {hashes[0]: [event.event_id]}
    assert Facts(memory.catalog).events([event.event_id, 999]) == [event]


def test_what_sessions_did_is_counted(memory: Memory, projects: Path) -> None:
    write(projects / "p" / "s1.jsonl", [*session(1, "level = 1"), *session(2, "level = 2")])
    look = tool_use("Read", {"file_path": "/work/demo/a.py"}, id="r")
    write(
        projects / "p" / "s2.jsonl",
        [
            record(look, uuid="u1", role="assistant"),
            record(tool_result("     1→level = 0", id="r"), uuid="u2"),
        ],
    )
    read(projects, memory)
    facts = Facts(memory.catalog)
    touched = facts.touched([path.path_id for path in facts.paths_named("a.py")])
    assert sorted((one.session_id, one.kind, one.count) for one in touched) == [
        ("s1", "edit", 2),
        ("s2", "read", 1),
    ]
    assert {one.last_turn_uuid for one in touched} == {"call2", "u1"}


def test_commands(memory: Memory, projects: Path) -> None:
    call = tool_use("Bash", {"command": "make check"}, id="b")
    write(
        projects / "p" / "s1.jsonl",
        [
            record(call, uuid="u1", role="assistant"),
            record(tool_result("Exit code 2\nmake: no rule", id="b"), uuid="u2"),
        ],
    )
    read(projects, memory)
    [command] = Facts(memory.catalog).commands("s1")
    assert (command.text, command.exit_status, command.turn_uuid) == ("make check", 2, "u1")


def test_rows_give_the_facts_of_an_old_memory(memory: Memory, projects: Path) -> None:
    path = write(
        projects / "p" / "s1.jsonl",
        [*session(1, "level = tide(1)"), *session(2, "level = tide(2)")],
    )
    read(projects, memory)
    before = [(one.turn_uuid, one.new, one.ask_turn_uuid) for one in events(memory.catalog)]
    with memory.catalog.transaction():
        for table in ("facts_sessions", "facts_events", "facts_lines", "facts_paths"):
            memory.catalog.change(f"DELETE FROM {table}")
    append(path, session(3, "level = tide(3)"))
    read(projects, memory)
    assert events(memory.catalog) == [], "the first part is not known: all comes from the rows"
    assert tables.missing(memory.catalog) == ["s1"]
    assert list(rebuild_steps(memory))
    after = [(one.turn_uuid, one.new, one.ask_turn_uuid) for one in events(memory.catalog)]
    assert after == [*before, ("call3", "level = tide(3)", "ask3")]
    append(path, session(4, "level = tide(4)"))
    read(projects, memory)
    assert len(events(memory.catalog)) == 4
    assert list(rebuild_steps(memory)) == []


def test_a_big_session_is_made_in_parts(
    memory: Memory, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [turn for n in range(30) for turn in session(n, f"level = tide({n})")]
    write(projects / "p" / "s1.jsonl", turns)
    read(projects, memory)
    monkeypatch.setattr("funes_ls.indexer.calls.rebuild._BIG_CHUNKS", 10)
    monkeypatch.setattr("funes_ls.indexer.calls.rebuild._PART_TURNS", 7)
    list(derive_steps(memory, "s1"))
    assert [one.new for one in events(memory.catalog)] == [f"level = tide({n})" for n in range(30)]


def test_what_is_cut_short_is_made_anew(memory: Memory, projects: Path) -> None:
    write(projects / "p" / "s1.jsonl", session(1, "level = tide(1)"))
    read(projects, memory)
    tables.begin(memory.catalog, "s1", anew=False)
    assert tables.missing(memory.catalog) == ["s1"]
    list(rebuild_steps(memory))
    assert tables.missing(memory.catalog) == []
    assert [one.new for one in events(memory.catalog)] == ["level = tide(1)"]


def test_a_published_memory_gives_the_same(
    memory: Memory, projects: Path, tmp_path: Path, funes_home: Path
) -> None:
    write(projects / "p" / "s1.jsonl", session(1, "level = tide(1)"))
    read(projects, memory)
    queued = memory.catalog.next_pending(100)
    memory.move(queued, vectors(queued), stamp=STAMP)
    other = tmp_path / "published" / "chunks.lance"
    other.parent.mkdir()
    (memory.base / "chunks.lance").rename(other)
    with open_memory(other.parent, derived=funes_home / "derived") as foreign:
        [event] = events(foreign.catalog)
        assert (event.new, event.ask_turn_uuid) == ("level = tide(1)", "ask1")
        assert event.harness == "claude_code"
    append(projects / "p" / "s1.jsonl", session(2, "level = tide(2)"))
    (other).rename(memory.base / "chunks.lance")
    read(projects, memory)
    queued = memory.catalog.next_pending(100)
    memory.move(queued, vectors(queued), stamp=STAMP)
    (memory.base / "chunks.lance").rename(other)
    with open_memory(other.parent, derived=funes_home / "derived") as foreign:
        assert len(events(foreign.catalog)) == 2, "its owner has published more"


def test_a_catalog_of_an_older_program(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    open_catalog(path).close()
    with sqlite3.connect(path) as db:
        for name in ("sessions", "paths", "events", "lines", "commands"):
            db.execute(f"DROP TABLE facts_{name}")
    db.close()
    old = open_catalog(path, writable=False)
    facts = Facts(old)
    assert (facts.paths_named("a"), facts.events([1]), facts.touched([1])) == ([], [], [])
    assert tables.missing(old) == []
    old.close()
    catalog = open_catalog(path)
    add(catalog, FileEvent(kind="write", path="/a", new="some text of it\n"))
    assert [one.new for one in events(catalog, "a")] == ["some text of it\n"]
    catalog.close()


def add(catalog: Catalog, *given: FileEvent) -> None:
    at = Provenance(
        turn_uuid="t", seq=0, block_idx=0, ts_us=None, ask_turn_uuid="", reason_turn_uuid=""
    )
    tables.begin(catalog, "s", anew=False)
    tables.add(catalog, "s", [CallFacts(at=at, events=given)])
    tables.finish(catalog, "s", b"")


def test_every_field_is_kept() -> None:
    catalog = open_catalog(None)
    given = [
        FileEvent(kind=kind, path=f"/w/{kind}", old="o\r\n\0", new="ü\ud800", every=True,
                  first_line=3, whole=True, source="/w/from")
        for kind in KINDS
    ]  # fmt: skip
    add(catalog, *given)
    add(catalog, *given)  # known ones are left
    rows = catalog.select("SELECT event_id FROM facts_events")
    stored = Facts(catalog).events([row[0] for row in rows])
    assert [
        FileEvent(**{name: getattr(one, name) for name in FileEvent.__struct_fields__})
        for one in stored
    ] == given
    assert set(KINDS) > CHANGES
    assert unpack(pack(FileEvent(kind="read", path="/a"))) == ("", "")
