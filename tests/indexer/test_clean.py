"""What is read is clean before anything is made of it, whoever reads it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from funes_ls.indexer import facts_tables, live_writer
from funes_ls.indexer.errors import ScannerError
from funes_ls.indexer.ingest import Ingested, ingest
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.model import Problem
from funes_ls.indexer.pipeline import WordsReport, plan, run_words
from funes_ls.indexer.progress import ignore_progress
from funes_ls.indexer.redaction import record
from funes_ls.indexer.traces import Unit, source_for
from tests import sessions
from tests.indexer.hushing import SECRET, Hushing
from tests.indexer.living import living, until
from tests.indexer.making import row, writing
from tests.sessions import append, write

CLAUDE = source_for("claude")


def said(text: str, *, uuid: str = "u1", **more: Any) -> dict[str, Any]:
    return sessions.record(text, uuid=uuid, **more)


def calls(name: str, args: dict[str, Any], *, uuid: str) -> dict[str, Any]:
    return sessions.record(sessions.tool_use(name, args, id="c1"), uuid=uuid, role="assistant")


def answers(text: str, *, uuid: str) -> dict[str, Any]:
    return sessions.record(sessions.tool_result(text, id="c1"), uuid=uuid)


@pytest.fixture
def hushing() -> Hushing:
    return Hushing()


@pytest.fixture
def memory(funes_home: Path) -> Iterator[Memory]:
    with writing(funes_home) as memory:
        yield memory


def unit_of(path: Path, root: Path) -> Unit:
    found = [unit for unit in CLAUDE.units(root) if not isinstance(unit, Problem)]
    return next(unit for unit in found if unit.key == str(path))


def read(path: Path, root: Path, memory: Memory, hushing: Hushing | None) -> Ingested:
    return ingest(unit_of(path, root), CLAUDE, memory, redaction=hushing)


def files_with(home: Path, text: str) -> list[str]:
    """Return the files under a home whose bytes hold a text."""
    wanted = text.encode()
    return [str(one) for one in home.rglob("*") if one.is_file() and wanted in one.read_bytes()]


def test_rows_facts_and_titles_are_clean(
    memory: Memory, projects: Path, funes_home: Path, hushing: Hushing
) -> None:
    cwd = f"/work/{SECRET}"
    path = write(
        projects / "p" / "s1.jsonl",
        [
            said(f"use {SECRET} now", uuid="u1", cwd=cwd),
            calls("Write", {"file_path": f"/work/{SECRET}.py", "content": SECRET}, uuid="u2"),
            answers(f"wrote {SECRET}", uuid="u3"),
        ],
    )
    done = read(path, projects, memory, hushing)
    memory.commit_words()
    assert done.redacted == {"hush": 4}
    assert memory.session_rows("s1")[0].text == "use <redacted> now"
    session = memory.catalog.session("s1")
    assert session is not None
    assert (session.title, session.cwd) == ("use <redacted> now", "/work/<redacted>")
    assert list(memory.catalog.files("s1")) == ["/work/<redacted>.py"]
    memory.catalog.shrink()
    assert files_with(funes_home, SECRET) == []
    assert record.counts(memory.catalog) == {"hush": 4}


def test_a_title_cut_within_a_secret_is_clean(
    memory: Memory, projects: Path, funes_home: Path, hushing: Hushing
) -> None:
    prompt = "x" * 194 + " " + SECRET
    read(write(projects / "p" / "s1.jsonl", [said(prompt)]), projects, memory, hushing)
    session = memory.catalog.session("s1")
    assert session is not None
    assert SECRET[:5] not in session.title
    source = memory.catalog.source(str(projects / "p" / "s1.jsonl"))
    assert source is not None and source.resume is not None
    assert SECRET[:5].encode() not in source.resume


def test_what_is_added_is_counted_once(memory: Memory, projects: Path, hushing: Hushing) -> None:
    path = write(projects / "p" / "s1.jsonl", [said(SECRET, uuid="u1")])
    read(path, projects, memory, hushing)
    append(path, [said(f"again {SECRET}", uuid="u2")])
    assert read(path, projects, memory, hushing).redacted == {"hush": 1}
    assert record.counts(memory.catalog) == {"hush": 2}
    write(path, [said(f"anew {SECRET}", uuid="u1")])
    read(path, projects, memory, hushing)
    assert record.counts(memory.catalog) == {"hush": 1}
    assert [one.text for one in memory.session_rows("s1")] == ["anew <redacted>"]


def test_a_broken_scanner_stores_nothing(memory: Memory, projects: Path, hushing: Hushing) -> None:
    write(projects / "p" / "s1.jsonl", [said(SECRET)])
    tasks, report = plan(((CLAUDE, unit) for unit in CLAUDE.units(projects)), memory)
    hushing.is_broken = True
    with pytest.raises(ScannerError):
        run_words(tasks, memory, report=report, progress=ignore_progress, redaction=hushing)
    assert (report.new, report.failed) == (0, 0)
    assert memory.catalog.pending_count() == 0
    hushing.is_broken = False
    tasks, report = plan(((CLAUDE, unit) for unit in CLAUDE.units(projects)), memory)
    run_words(tasks, memory, report=report, progress=ignore_progress, redaction=hushing)
    assert [one.text for one in memory.session_rows("s1")] == ["<redacted>"]


def test_the_stamp_is_of_the_oldest_rows(memory: Memory, projects: Path, hushing: Hushing) -> None:
    catalog = memory.catalog
    assert record.stored_stamp(catalog) is None
    assert not record.is_scrub_due(catalog, "hush-1")
    read(write(projects / "p" / "s1.jsonl", [said("one")]), projects, memory, hushing)
    assert record.stored_stamp(catalog) == "hush-1"
    hushing.stamp = "hush-2"  # type: ignore[misc]  # newer rules
    read(write(projects / "p" / "s2.jsonl", [said("two")]), projects, memory, hushing)
    assert record.stored_stamp(catalog) == "hush-1"
    assert record.is_scrub_due(catalog, "hush-2")
    read(write(projects / "p" / "s3.jsonl", [said("three")]), projects, memory, None)
    assert record.stored_stamp(catalog) == record.OFF


def test_rows_from_before_are_not_taken_for_clean(
    memory: Memory, projects: Path, hushing: Hushing
) -> None:
    memory.queue([row(0, SECRET)])
    read(write(projects / "p" / "s1.jsonl", [said("one")]), projects, memory, hushing)
    assert record.stored_stamp(memory.catalog) == record.UNKNOWN
    assert record.is_scrub_due(memory.catalog, hushing.stamp)


def test_facts_of_old_rows_are_made_clean(funes_home: Path, hushing: Hushing) -> None:
    projects = funes_home.parent / "projects"
    records = [
        calls("Bash", {"command": f"cat {SECRET}.txt"}, uuid="u2"),
        answers("done", uuid="u3"),
    ]
    path = write(projects / "p" / "s1.jsonl", records)
    with writing(funes_home) as memory:
        read(path, projects, memory, None)
        facts_tables.forget(memory.catalog, "s1")
        report = WordsReport()
        run_words([], memory, report=report, progress=ignore_progress, redaction=hushing)
        found = memory.catalog.select("SELECT text FROM facts_commands")
    assert found == [("cat <redacted>.txt",)]


def test_secrets_in_the_names_of_files_and_folders_are_kept_nowhere(
    memory: Memory, projects: Path, funes_home: Path, hushing: Hushing
) -> None:
    folder = projects / f"-work-{SECRET}"
    path = write(folder / f"{SECRET}.jsonl", [said("one", cwd=f"/work/{SECRET}")])
    bad = folder / f"bad-{SECRET}.jsonl"
    write(bad, [said("two", uuid="b1")])
    with bad.open("ab") as file:
        file.write(b"{half a record\n")

    def index() -> WordsReport:
        tasks, report = plan(
            ((CLAUDE, unit) for unit in CLAUDE.units(projects)), memory, redaction=hushing
        )
        run_words(tasks, memory, report=report, progress=ignore_progress, redaction=hushing)
        memory.catalog.shrink()
        return report

    report = index()
    assert (report.sessions, report.new) == (2, 2)
    names = [one.session_id for one in memory.catalog.sessions()]
    (name,) = (one for one in names if one.startswith("<redacted>"))
    assert [one.session_id for one in memory.session_rows(name)] == [name]
    assert len(memory.catalog.problems()) == 1
    assert files_with(funes_home, SECRET) == []
    assert index().current == 2
    append(path, [said("more", uuid="u2", cwd=f"/work/{SECRET}")])
    report = index()
    assert (report.current, report.new) == (1, 1)
    assert [one.text for one in memory.session_rows(name)] == ["one", "more"]
    assert files_with(funes_home, SECRET) == []


def test_two_sessions_named_after_secrets_stay_two(
    memory: Memory, projects: Path, hushing: Hushing
) -> None:
    for name in (f"{SECRET}1", f"{SECRET}2"):
        write(projects / "p" / f"{name}.jsonl", [said(f"of {name[-1]}", uuid=f"u{name[-1]}")])
    tasks, report = plan(
        ((CLAUDE, unit) for unit in CLAUDE.units(projects)), memory, redaction=hushing
    )
    run_words(tasks, memory, report=report, progress=ignore_progress, redaction=hushing)
    names = {one.session_id for one in memory.catalog.sessions()}
    assert len(names) == 2
    assert all(SECRET not in name for name in names)
    texts = sorted([row.text for row in memory.session_rows(name)] for name in names)
    assert texts == [["of 1"], ["of 2"]]


def test_the_live_index_stores_nothing_while_the_scanner_fails(
    own_home: Path, projects: Path, hushing: Hushing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_writer, "_RETRY_S", 0.3)
    path = write(projects / "p" / "s1.jsonl", [said("marmot")])
    with living(own_home / ".funes", projects, redaction=lambda: hushing) as live:
        live.index.run(live.job()).result(30)
        hushing.is_broken = True
        append(path, [said(f"heron {SECRET}", uuid="u2")])
        live.index.touch([path])
        until(lambda: "broken" in live.index.state.note)
        assert live.found("marmot") and not live.found("heron")
        with pytest.raises(ScannerError):
            live.index.run(live.job()).result(30)
        hushing.is_broken = False
        until(lambda: live.found("heron"))
        until(lambda: not live.index.state.note)
    assert files_with(own_home / ".funes", SECRET) == []
