"""`funes index` and `funes forget` through the engine: the same reports, and nothing half done."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cli import COMMAND, funes, index, recall, status, stored, texts
from tests.e2e.engines import Engines, alive, held_lock, until
from tests.sessions import append, record, write

pytestmark = pytest.mark.skipif(os.name == "nt", reason="processes and signals of POSIX")

SAMPLES = Path(__file__).resolve().parents[1] / "traces"


@pytest.fixture
def engines(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engines]:
    """Lead this test's commands to an engine, which they start themselves."""
    monkeypatch.delenv("FUNES_ENGINE")
    with Engines(own_home / ".funes", os.environ) as kept:
        yield kept


@pytest.fixture
def projects(own_home: Path) -> Path:
    return own_home / ".claude" / "projects"


def one_session(projects: Path, text: str = "the kettle boils at noon") -> Path:
    return write(projects / "p" / "s1.jsonl", [record(text, uuid="u1")])


def test_the_report_is_that_of_a_run_without_an_engine(
    engines: Engines, own_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copytree(SAMPLES / "home", own_home, dirs_exist_ok=True)
    with_engine = index("--yes")
    assert alive(engines.pid)
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "other"))
    without = funes("index", "--yes", "--no-engine", "--json").json
    assert without["sessions"] > 20
    # Once there is a memory the engine looks for sessions by itself, too: what it read meanwhile is
    # current by the time the request gets to it.
    assert with_engine["sessions"] + with_engine["current"] == without["sessions"]
    assert 0 < with_engine["chunks"] <= without["chunks"]
    assert {**with_engine, **_unsteady(without)} == without


def _unsteady(report: dict[str, object]) -> dict[str, object]:
    """Return what depends on the place, the clock, and who was first."""
    names = ("memory", "seconds", "embedded_per_s", "sessions", "current", "chunks")
    return {name: report[name] for name in names}


def test_what_is_said_meanwhile_and_in_the_end(engines: Engines, projects: Path) -> None:
    one_session(projects)
    ran = funes("index", "--yes")
    assert ran.code == 0
    assert ran.out == "1 trace read, 1 new chunk.\n1 chunk embedded with test/tiny.\n"
    assert ran.err.splitlines()[0] == "Looking for sessions"
    assert funes("index", "--yes", "-q").err == ""
    assert funes("index", "--yes").out == "Up to date: 1 trace, nothing new.\n"
    assert len(recall("kettle")) == 1


def test_without_a_terminal_something_must_be_named(engines: Engines, projects: Path) -> None:
    one_session(projects)
    ran = funes("index")
    assert (ran.code, ran.out) == (2, "")
    assert "--yes" in ran.err
    assert engines.pid == 0


@pytest.mark.parametrize(
    "argv", [["--harness", "emacs"], ["/no/such/path"], ["--harness", "pi"]], ids=" ".join
)
def test_errors_are_those_of_a_run_without_an_engine(
    engines: Engines, projects: Path, argv: list[str]
) -> None:
    one_session(projects)
    index()
    ran = funes("index", *argv)
    assert ran == funes("index", *argv, "--no-engine")
    assert ran.code == 2


def test_a_path_is_meant_from_where_the_command_runs(
    engines: Engines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "work" / "mine.jsonl", [record("the boiler hums", uuid="u1")])
    monkeypatch.chdir(tmp_path / "work")
    assert index("mine.jsonl")["chunks"] == 1
    assert len(recall("boiler")) == 1


def test_thinking_stays_out_when_it_is_to(
    engines: Engines, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(SAMPLES / "home" / ".codex", own_home / ".codex")
    monkeypatch.setenv("FUNES_THINKING", "no")
    monkeypatch.setenv("FUNES_WATCH", "no")
    index("--yes", "--words-only")
    kinds = {row.block_type for row in stored(engines.home)}
    assert "text" in kinds
    assert "thinking" not in kinds


def many_sessions(projects: Path, count: int) -> None:
    for session in range(count):
        turns = [
            record(
                f"session {session} turn {turn} speaks of valve {turn}", uuid=f"s{session}t{turn}"
            )
            for turn in range(40)
        ]
        write(projects / "p" / f"s{session}.jsonl", turns, mtime_s=1_700_000_000 + session)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
def test_interrupted_what_is_stored_stays(
    engines: Engines, projects: Path, number: signal.Signals
) -> None:
    many_sessions(projects, 60)
    run = subprocess.Popen(
        [*COMMAND, "index", "--yes"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert run.stderr is not None
    for line in run.stderr:
        if b"Reading sessions" in line:
            break
    run.send_signal(number)
    out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (130, b"")
    assert b"interrupted; what is stored stays" in err
    assert b"Traceback" not in err
    assert alive(engines.pid)
    report = index()
    assert (report["words_only"], report["problems"]) == (0, 0)
    rows = stored(engines.home)
    assert len(rows) == len({row.id for row in rows}) == 60 * 40


def test_when_time_is_up_the_engine_goes_on(
    engines: Engines, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_sessions(projects, 10)
    monkeypatch.setenv("FUNES_BUDGET", "0")
    ran = funes("index", "--harness", "claude")
    assert ran.code == 0, ran.err
    assert "400 chunks are findable by words only. The engine goes on with them" in ran.out
    until(lambda: not status()["words_only"], seconds=60, what="all have their vector")


def test_an_engine_that_cannot_be_had_is_done_without(
    engines: Engines, projects: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one_session(projects)
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, os\nif 'funes_ls.engine' in sys.orig_argv: os._exit(3)\n", encoding="utf-8"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr("funes_ls.cli.index.START_S", 0.5)
    ran = funes("index", "--yes")
    assert ran.code == 0
    assert ran.err.splitlines()[0].endswith("Indexing without it.")
    assert ran.out.startswith("1 trace read, 1 new chunk.")


def test_new_turns_are_found_without_indexing_again(engines: Engines, projects: Path) -> None:
    path = one_session(projects)
    index()
    append(path, [record("the samovar sings", uuid="u2")])
    until(lambda: "the samovar sings" in texts(recall("samovar")), what="the new turn is found")


def test_forgetting(engines: Engines, projects: Path) -> None:
    one_session(projects)
    index()
    would = funes("forget", "s1", "--dry-run")
    assert would.code == 0
    assert "would go" in would.out
    assert "the kettle boils at noon" in would.out
    refused = funes("forget", "s1")
    assert (refused.code, refused.out) == (2, "")
    assert len(recall("kettle")) == 1
    gone = funes("forget", "s1", "--yes", "--json").json
    assert [one["session_id"] for one in gone["sessions"]] == ["s1"]
    assert (gone["total"], gone["chunks"], gone["forgotten"], gone["pure"]) == (1, 1, True, True)
    assert recall("kettle") == []
    again = funes("forget", "s1", "--yes")
    assert again.code == 0 and "It was forgotten before." in again.out
    assert funes("forget", "s9", "--yes").code == 2


def test_forgetting_without_an_engine(projects: Path) -> None:
    one_session(projects)
    index()
    assert funes("forget", "s1", "--yes").out.startswith("1 session with 1 chunk forgotten.")
    assert recall("kettle") == []


def test_forgetting_asks_a_person(projects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one_session(projects)
    index()
    monkeypatch.setattr("funes_ls.cli.forget.is_terminal", lambda: True)
    answers = iter([False, True])
    monkeypatch.setattr("funes_ls.cli.forget.confirm", lambda *_, **__: next(answers))
    assert funes("forget", "s1").code == 1
    assert len(recall("kettle")) == 1
    assert funes("forget", "s1").code == 0
    assert recall("kettle") == []


def test_another_writer_is_named(engines: Engines, projects: Path) -> None:
    one_session(projects)
    index()
    funes("engine", "stop")
    with held_lock(engines.home) as holder:
        ran = funes("index", "--yes", "--no-engine")
        assert ran.code == 1
        assert str(holder) in ran.err


def test_what_is_kept_out_stays_out_while_the_settings_are_broken(
    engines: Engines, own_home: Path, projects: Path
) -> None:
    config = own_home / ".funes" / "config.toml"
    config.parent.mkdir()
    config.write_text('[exclude]\npaths = ["/work/secret/**"]\n', encoding="utf-8")
    write(projects / "p" / "s1.jsonl", [record("the kettle boils", uuid="u1")])
    write(projects / "q" / "s2.jsonl", [record("a hidden kettle", uuid="v1", cwd="/work/secret/a")])
    index("--yes")
    assert len(recall("kettle")) == 1
    config.write_text('[exclude]\npaths = ["/work/secret/**"\n', encoding="utf-8")
    funes("index", "--yes")
    assert len(recall("kettle")) == 1
    funes("engine", "stop")
    ran = funes("index", "--yes")  # one that has not known them before
    assert ran.code == 2 and "may say what is to be kept out" in ran.err
    write(projects / "p" / "s3.jsonl", [record("a third kettle", uuid="w1")])
    assert len(recall("kettle")) == 1


@pytest.mark.parametrize("command", ["index", "scan", "parse", "blame", "related"])
def test_a_home_of_nobody_is_a_path_like_any_other(engines: Engines, command: str) -> None:
    ran = funes(command, "~nobody-at-all/x")
    assert "internal error" not in ran.err
