"""What is kept out of a memory, taken out of it later, and comes back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from funes_ls.indexer import excluded, purge
from funes_ls.indexer.exclude import MARKER, Exclusion, is_private
from funes_ls.indexer.exclude_globs import glob_regex, lines_of
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.model import Block, Turn
from funes_ls.indexer.pipeline import WordsReport, list_units, plan, run_words
from funes_ls.indexer.progress import ignore_progress
from funes_ls.indexer.redaction import record
from funes_ls.indexer.traces import source_for
from tests import sessions
from tests.indexer.hushing import SECRET, Hushing
from tests.indexer.living import living, until
from tests.indexer.making import writing
from tests.sessions import append, write

CLAUDE = source_for("claude")


@pytest.fixture
def memory(funes_home: Path) -> Iterator[Memory]:
    with writing(funes_home) as memory:
        yield memory


def said(text: str, cwd: Path | str = "/work/demo", *, uuid: str = "u1") -> dict[str, Any]:
    return sessions.record(text, uuid=uuid, cwd=str(cwd))


def index(memory: Memory, projects: Path, *globs: str) -> WordsReport:
    exclusion = Exclusion(globs)
    units = list_units([(CLAUDE, projects)])
    tasks, report = plan(units, memory, exclusion=exclusion)
    run_words(tasks, memory, report=report, progress=ignore_progress, exclusion=exclusion)
    return report


def stored(memory: Memory) -> list[str]:
    return sorted(session.session_id for session in memory.catalog.sessions())


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("~/secret/**", "{home}/secret/a/b", True),
        ("~/secret/**", "{home}/secret", True),
        ("~/secret", "{home}/secret/a", True),
        ("~/secret/**", "{home}/secrets", False),
        ("~/secret/**", "/other/secret/a", False),
        ("~", "{home}/x", True),
        ("/work/*/keys", "/work/a/keys/x", True),
        ("/work/*/keys", "/work/a/b/keys", False),
        ("/work/**/keys", "/work/a/b/keys", True),
        ("/work/**/keys", "/work/keys", True),
        ("client-?", "/work/client-x/src", True),
        ("client-?", "/work/client-xy", False),
        ("/work/[ab]", "/work/a", True),
        ("/work/[!ab]", "/work/a", False),
        (r"C:\Users\me\secret\**", "C:/Users/Me/secret/x", True),
        ("/work/a.b", "/work/aXb", False),
    ],
)
def test_globs(own_home: Path, glob: str, path: str, matches: bool) -> None:
    found = glob_regex(glob).fullmatch(path.format(home=own_home.as_posix()))
    assert bool(found) is matches


@pytest.mark.parametrize(
    ("text", "path", "hidden"),
    [
        ("", "/p/x.py", True),
        ("# nothing but a comment\n", "/p/x.py", True),
        ("*\n", "/p/x.py", True),
        ("*.env\n", "/p/a/prod.env", True),
        ("*.env\n", "/p/a/prod.py", False),
        ("secrets/\n", "/p/a/secrets/x", True),
        ("/secrets\n", "/p/secrets/x", True),
        ("/secrets\n", "/p/a/secrets/x", False),
        ("*.env\n!sample.env\n", "/p/sample.env", False),
        ("*.env\n", "/elsewhere/x.env", False),
    ],
)
def test_lines_of_a_file(text: str, path: str, hidden: bool) -> None:
    assert lines_of(text, "/p").hides(path) is hidden


@pytest.mark.parametrize(
    ("text", "private"),
    [
        (MARKER, True),
        (f"do it\n  {MARKER}  \nnow", True),
        (f"what does {MARKER} do?", False),
        (f"{MARKER}ly", False),
    ],
)
def test_the_marker_is_a_line_of_its_own(text: str, private: bool) -> None:
    def turn(role: str, block_type: Any = "text") -> Turn:
        return Turn(
            session_id="s", turn_uuid="u", parent_uuid=None, seq=0, ts="", role=role,
            blocks=(Block(block_type=block_type, text=text),), workdir="", source_path="",
            harness="claude_code", record=0,
        )  # fmt: skip

    assert is_private(turn("user")) is private
    assert not is_private(turn("assistant"))
    assert not is_private(turn("user", "tool_result"))


def test_what_a_glob_names_is_kept_out_and_comes_back(memory: Memory, projects: Path) -> None:
    write(projects / "p" / "s1.jsonl", [said("open words")])
    write(projects / "q" / "s2.jsonl", [said("private words", "/secret/a")])
    report = index(memory, projects, "/secret/**")
    assert (report.sessions, report.excluded, stored(memory)) == (1, 1, ["s1"])
    report = index(memory, projects, "/secret/**")
    assert (report.current, report.excluded, report.sessions) == (1, 1, 0)
    assert excluded.count(memory.catalog) == 1
    report = index(memory, projects)
    assert (report.new, stored(memory)) == (1, ["s1", "s2"])
    assert excluded.count(memory.catalog) == 0


def test_what_is_stored_is_taken_out(memory: Memory, projects: Path, funes_home: Path) -> None:
    write(projects / "p" / "s1.jsonl", [said("open words")])
    write(projects / "q" / "s2.jsonl", [said("zanzibar words", "/secret/a")])
    index(memory, projects)
    assert stored(memory) == ["s1", "s2"]
    report = index(memory, projects, "/secret/**")
    assert (report.removed, report.excluded, stored(memory)) == (1, 1, ["s1"])
    assert memory.session_rows("s2") == []
    assert purge.purge(memory, funes_home, told=lambda *_: None)
    left = [one for one in funes_home.rglob("*") if one.is_file()]
    assert [one for one in left if b"zanzibar" in one.read_bytes()] == []
    assert memory.catalog.tombstones() == frozenset()
    index(memory, projects)
    assert stored(memory) == ["s1", "s2"]


def test_a_project_keeps_itself_out(memory: Memory, projects: Path, own_home: Path) -> None:
    project = own_home / "code" / "thing"
    (project / "deep" / "down").mkdir(parents=True)
    (project / ".git").mkdir()
    write(projects / "p" / "s1.jsonl", [said("hello", project / "deep" / "down")])
    index(memory, projects)
    assert stored(memory) == ["s1"]
    (project / ".funesignore").touch()
    assert index(memory, projects).excluded == 1
    assert stored(memory) == []
    (project / ".funesignore").unlink()
    index(memory, projects)
    assert stored(memory) == ["s1"]


def test_a_file_above_the_repository_does_not_count(
    memory: Memory, projects: Path, own_home: Path
) -> None:
    project = own_home / "code" / "thing"
    (project / ".git").mkdir(parents=True)
    (own_home / "code" / ".funesignore").touch()
    write(projects / "p" / "s1.jsonl", [said("hello", project)])
    index(memory, projects)
    assert stored(memory) == ["s1"]


def test_calls_on_hidden_files_are_left_out(memory: Memory, projects: Path, own_home: Path) -> None:
    project = own_home / "thing"
    project.mkdir()
    (project / ".funesignore").write_text("*.env\n", encoding="utf-8")

    def turn(content: Any, uuid: str, role: str = "user") -> dict[str, Any]:
        return sessions.record(content, uuid=uuid, role=role, cwd=str(project))

    def reads(file: str, id_: str, uuid: str) -> dict[str, Any]:
        return turn(sessions.tool_use("Read", {"file_path": file}, id=id_), uuid, "assistant")

    path = write(
        projects / "p" / "s1.jsonl",
        [
            turn("look", "u1"),
            turn(
                sessions.tool_use("Read", {"file_path": "a/prod.env"}, id="c1"), "u2", "assistant"
            ),
            turn(sessions.tool_use("Read", {"file_path": "a/prod.py"}, id="c2"), "u3", "assistant"),
            turn(sessions.tool_result("shining python", id="c2"), "u4"),
        ],
    )
    index(memory, projects)
    append(path, [turn(sessions.tool_result("hidden answer", id="c1"), "u5")])
    index(memory, projects)
    texts = " ".join(row.text for row in memory.session_rows("s1"))
    assert "prod.py" in texts and "shining python" in texts
    assert "prod.env" not in texts and "hidden answer" not in texts
    assert list(memory.catalog.files("s1")) == ["a/prod.py"]


def test_the_marker_takes_out_what_was_said_before(memory: Memory, projects: Path) -> None:
    path = write(projects / "p" / "s1.jsonl", [said("first words")])
    index(memory, projects)
    append(path, [said(f"{MARKER}\nmore", uuid="u2")])
    report = index(memory, projects)
    assert (report.excluded, report.removed, stored(memory)) == (1, 1, [])
    append(path, [said("and on", uuid="u3")])
    report = index(memory, projects)
    assert (report.excluded, report.new, stored(memory)) == (1, 0, [])
    assert memory.session_rows("s1") == []
    write(path, [said("first words")])
    index(memory, projects)
    assert stored(memory) == ["s1"]


def test_sub_agents_of_a_private_session_are_kept_out(memory: Memory, projects: Path) -> None:
    main = write(projects / "p" / "s1.jsonl", [said("first words")])
    sub = projects / "p" / "s1" / "subagents" / "agent-a1.jsonl"
    side = sessions.record("sub work", uuid="v1", sessionId="s1", isSidechain=True, agentId="a1")
    write(sub, [side])
    index(memory, projects)
    assert len(stored(memory)) == 2
    append(main, [said(MARKER, uuid="u2")])
    index(memory, projects)
    index(memory, projects)
    assert stored(memory) == []
    assert excluded.count(memory.catalog) == 2


def test_the_live_index_obeys(own_home: Path, projects: Path) -> None:
    globs: list[str] = []
    with living(own_home / ".funes", projects, exclusion=lambda: Exclusion(globs)) as live:
        path = write(projects / "p" / "s1.jsonl", [said("marmot words")])
        handle = live.index.run(live.job())
        handle.result(30)
        until(lambda: live.found("marmot"))
        append(path, [said(MARKER, uuid="u2")])
        live.index.touch([path])
        until(lambda: not live.found("marmot"))
        other = write(projects / "p" / "s2.jsonl", [said("heron words", "/secret/x")])
        live.index.touch([other])
        until(lambda: live.found("heron"))
        globs.append("/secret/**")
        live.index.sweep()
        until(lambda: not live.found("heron"))


def test_what_leaves_is_counted_no_more(memory: Memory, projects: Path) -> None:
    write(projects / "q" / "s2.jsonl", [said(f"it is {SECRET}", "/secret/a")])

    def read(*globs: str) -> dict[str, int]:
        exclusion = Exclusion(globs)
        redaction: Any = Hushing()
        tasks, report = plan(list_units([(CLAUDE, projects)]), memory, exclusion=exclusion)
        run_words(tasks, memory, report=report, progress=ignore_progress, exclusion=exclusion,
                  redaction=redaction)  # fmt: skip
        return record.counts(memory.catalog)

    assert read() == {"hush": 1}
    assert read("/secret/**") == {}
    assert read() == {"hush": 1}
