"""Commands through the engine: the same bytes as without it, and next to nothing loaded."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from funes_ls.cli import without_engine
from funes_ls.engine.address import read_address
from funes_ls.indexer.errors import FunesError
from funes_ls.sending import as_object
from tests.e2e.cli import COMMAND, Ran, funes, funes_process, index
from tests.e2e.engines import Engines, alive, until
from tests.e2e.known import loader

pytestmark = pytest.mark.skipif(os.name == "nt", reason="processes and signals of POSIX")

SAMPLES = Path(__file__).resolve().parents[1] / "traces"
SESSION = "8845927a-3cb6-420d-ad22-3a9129b12318"
TURN = "7d88b2a0-8309-40ed-a292-0bce9ac82846"
BIG = "99999999999999999999"
QUESTION = "three attempts with full jitter"


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[Engines]:
    """Index the sample sessions, a part without vectors, and keep an engine on them."""
    home = tmp_path_factory.mktemp("warm")
    shutil.copytree(SAMPLES / "home", home, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _env(home, tiny_model).items():
            patch.setenv(name, value)
        patch.setenv("FUNES_ENGINE", "inline")
        index("--yes")
        patch.delenv("FUNES_ENGINE")
        with Engines(home / ".funes", {**os.environ, "FUNES_WATCH": "no"}) as engines:
            question = {"query": "jitter"}
            until(lambda: engines.ask("funes/recall", **question)["legs"]["vector"] == "ran")
            yield engines


def _env(home: Path, model: Path) -> dict[str, str]:
    return {"HOME": str(home), "FUNES_HOME": str(home / ".funes"), "FUNES_MODEL": str(model)}


@pytest.fixture
def engine(warm: Engines, monkeypatch: pytest.MonkeyPatch) -> Engines:
    """Lead this test's commands to the engine."""
    monkeypatch.setenv("HOME", str(warm.home.parent))
    monkeypatch.setenv("FUNES_HOME", str(warm.home))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FUNES_ENGINE")
    return warm


def through_engine(monkeypatch: pytest.MonkeyPatch, *argv: str) -> Ran:
    """Run a command that may not answer by itself."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the engine was not asked")

    with monkeypatch.context() as patch:
        patch.setattr(without_engine, "answer_to", refuse)
        return funes(*argv)


def steady(text: str) -> str:
    """Return an answer without what depends on the clock."""
    text = re.sub(r'"timings_ms":\{[^}]*\}', '"timings_ms":{}', text)
    text = re.sub(r'"age_s":\d+', '"age_s":0', text)
    return re.sub(r"\(\S+ \w+ ago\)|\(less than a minute ago\)", "(now)", text)


SAME = [
    ["recall", QUESTION],
    ["recall", QUESTION, "--json"],
    ["recall", QUESTION, "-k", "2", "--explain"],
    ["recall", QUESTION, "--harness", "codex", "--type", "tool_result", "--neighbors", "0"],
    ["recall", QUESTION, "--since", "2026-01-01", "--until", "2026-06-01", "--half-life", "-1"],
    ["recall", QUESTION, "--project", "tidewater", "--no-subagents", "--json"],
    ["recall", QUESTION, "--session", SESSION[:8], "--candidates", "3"],
    ["recall", "鍵", "--json"],
    ["recall", "--no-verify", "in", "the", "hook"],
    ["recall", "zebrafish quokka", "--since", "1d"],
    ["recall", "zebrafish quokka", "--since", "1d", "--json"],
    ["recall", "nul\0in it"],
    ["recall", "half \udcff a character", "-k", "1"],
    ["recall", QUESTION, "--path", "\udcff\0"],
    ["recall", ""],
    ["recall", "?!"],
    ["recall", "x " * 10_001],
    ["recall", QUESTION, "--type", "prose"],
    ["recall", QUESTION, "--harness", "emacs"],
    ["recall", QUESTION, "--since", "the other day"],
    ["recall", QUESTION, "--session", "no-such-session"],
    ["recall", QUESTION, "--memory", "/no/such/memory"],
    ["recall", QUESTION, "--memory", "hf://org/repo"],
    ["recall", QUESTION, "-k", "5000"],
    ["recall", QUESTION, "-k", BIG],
    ["recall", QUESTION, "--half-life", "1e9"],
    ["recall", QUESTION, "--quiet", "-k", "1"],
    ["get", SESSION, TURN],
    ["get", SESSION, TURN, "--json"],
    ["get", SESSION[:8], TURN, "--window", "1", "--format", "human"],
    ["get", SESSION, TURN, "--format", "human", "--highlight", "full jitter"],
    ["get", SESSION, TURN, "--window", BIG],
    ["get", SESSION, "no-such-turn"],
    ["get", SESSION, "no-such-turn", "--json"],
    ["get", "\udcff", "\0", "--json"],
    ["get", "0", "x"],
    ["status"],
    ["status", "--json"],
    ["status", "--problems"],
    ["status", "--problems", "--json"],
    ["status", "--memory", "/no/such/memory"],
    ["sessions"],
    ["sessions", "--json", "--limit", "3"],
    ["sessions", "--limit", "2", "--offset", "1", "--harness", "pi"],
    ["sessions", "--title", "no such title"],
    ["sessions", "--limit", BIG, "--offset", BIG],
    ["sessions", "--until", "never"],
    ["related", "poller.py"],
    ["related", "/home/dev/src/tidewater/src/tidewater/poller.py", "--json"],
    ["related", "poller.py", "--limit", "1"],
    ["related", "src/client.rs"],
    ["related", "/no/such/file", "--json"],
    ["related", "half a \udcff name\0", "--json"],
    ["blame", __file__],
    ["blame", f"{__file__}:3-9", "--json"],
    ["blame", f"{__file__}:{BIG}"],
    ["blame", "/no/such/file:3"],
    ["blame", "half a \udcff name\0"],
    ["memories"],
    ["memories", "--json"],
    ["forget", SESSION, "--dry-run"],
    ["forget", SESSION, "--dry-run", "--json"],
    ["forget", "no-such-session", "--yes"],
    ["forget", "--match", "GAUGE poller", "--dry-run"],
    ["forget", "--match", "gauge poller", "--dry-run", "--json"],
    ["forget", "--project", "tidewater", "--before", "2026-04-01", "--dry-run"],
    ["forget", "--before", "no day", "--dry-run"],
    ["forget", "--match", "no such words", "--yes"],
    ["forget"],
    ["forget", SESSION],
]


@pytest.mark.parametrize("argv", SAME, ids=lambda argv: ascii(" ".join(argv))[1:60])
def test_the_engine_changes_no_byte(
    argv: list[str], engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_engine = through_engine(monkeypatch, *argv)
    without = funes(argv[0], "--no-engine", *argv[1:])
    assert steady(with_engine.out) == steady(without.out)
    assert with_engine.err == without.err
    assert with_engine.code == without.code


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_who_wrote_a_file_is_the_same_with_and_without(
    options: list[str], engine: Engines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    known = loader()
    text = tmp_path / "text.py"
    text.write_text(known.text, encoding="utf-8")
    argv = ["blame", known.path, "--text", str(text), *options]
    with_engine = through_engine(monkeypatch, *argv)
    assert with_engine == funes(*argv, "--no-engine")
    assert known.session_id in with_engine.out


def test_most_of_these_have_an_answer(engine: Engines) -> None:
    """Two empty answers are the same bytes too: what should find something does."""
    for argv in (["recall", QUESTION], ["get", SESSION, TURN], ["sessions"], ["status"]):
        ran = funes(*argv)
        assert (ran.code, ran.err) == (0, "")
        assert len(ran.out) > 100


def test_processes_write_the_same_bytes(engine: Engines) -> None:
    argv = ["recall", QUESTION, "-k", "3", "--half-life", "0"]
    with_engine, without = funes_process(*argv), funes_process(*argv, "--no-engine")
    assert with_engine == without
    assert with_engine.out.count("→ get") == 3


def test_the_environment_and_the_file_set_what_they_set_without_an_engine(
    engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = engine.home / "config.toml"
    config.write_text("[recall]\nk = 2\nneighbors = 0\nwrong = 1\n", encoding="utf-8")
    try:
        for variables in (
            {},
            {"FUNES_K": "3", "FUNES_NEIGHBORS": "1"},
            {"FUNES_K": "many", "FUNES_HALF_LIFE": "0"},
            {"FUNES_MEMORY": str(engine.home)},
            {"FUNES_MEMORY": "/no/such/memory"},
        ):
            with monkeypatch.context() as patch:
                for name, value in variables.items():
                    patch.setenv(name, value)
                with_engine = through_engine(monkeypatch, "recall", QUESTION)
                without = funes("recall", QUESTION, "--no-engine")
            assert with_engine == without, variables
            assert "wrong" in without.err
        assert funes("recall", QUESTION).out.count("→ get") == 2
    finally:
        config.unlink()


def test_a_relative_memory_is_found_from_the_engine_too(
    engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(engine.home)
    ran = through_engine(monkeypatch, "recall", QUESTION, "-k", "1", "--memory", "memory")
    assert ran.out == funes("recall", QUESTION, "-k", "1", "--memory", "memory", "--no-engine").out
    assert f" --memory {engine.home / 'memory'}\n" in ran.out


#: Runs a command and says on stderr what the process has loaded that is not the standard library.
PROGRAM = """
import sys
from funes_ls.cli import main
code = main(sys.argv[1:])
others = {name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)
own = {name for name in sys.modules if name.startswith('funes_ls.')}
sys.stderr.write(repr((sorted(others), sorted(own))))
sys.exit(code)
"""
#: What site-packages adds to every process of this interpreter.
_OF_THE_VENV = {"__main__", "__mp_main__", "_distutils_hack", "sitecustomize", "usercustomize"}


@pytest.mark.parametrize(
    "argv",
    [
        ["recall", QUESTION],
        ["recall", QUESTION, "--json"],
        ["recall", QUESTION, "--stream"],
        ["get", SESSION, TURN, "--format", "human"],
        ["status"],
        ["sessions"],
        ["related", "client.rs"],
        ["blame", __file__],
        ["memories"],
        ["-h"],
        ["recall", "-h"],
        ["get", "-h"],
    ],
    ids=" ".join,
)
def test_statement_45_only_the_standard_library_is_loaded(
    argv: list[str], engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUNES_MODEL")
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *argv], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout
    others, own = eval(run.stderr)
    loaded = {one for one in others if not one.startswith("__editable__")}
    assert loaded - _OF_THE_VENV == {"funes_ls"}
    light = ("cli", "engine", "render", "render_human", "indexer")
    light += ("render_blame", "render_related", "render_report", "sending", "source_text")
    assert {name.split(".")[1] for name in own} <= set(light)
    assert {"funes_ls.service", "funes_ls.protocol", "funes_ls.indexer.model"}.isdisjoint(own)


def test_no_engine_is_started_for_a_memory_that_is_not_there(
    funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUNES_ENGINE")
    ran = funes("recall", "x")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"funes: No memory at {funes_home}")
    assert len(ran.err.splitlines()) == 1
    assert funes("status").code == 0
    assert not funes_home.exists()


@pytest.fixture
def indexed(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engines]:
    """Give a memory of this test alone, without an engine so far."""
    shutil.copytree(SAMPLES / "home" / ".codex", own_home / ".codex")
    index("--yes")
    monkeypatch.delenv("FUNES_ENGINE")
    with Engines(own_home / ".funes", os.environ) as engines:
        yield engines


def expected(engines: Engines) -> str:
    """Return what a recall answers without an engine."""
    return funes("recall", QUESTION, "-k", "1", "--no-engine").out


def fell_back(ran: Ran, engines: Engines) -> None:
    """Insist on the usual answer and on one line that says what is wrong."""
    assert (ran.code, ran.out) == (0, expected(engines))
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith("funes: ")
    assert ran.err.endswith("Answering without it.\n")


def test_a_recall_starts_the_engine(indexed: Engines) -> None:
    ran = funes("recall", QUESTION, "-k", "1")
    assert (ran.code, ran.out.count("→ get")) == (0, 1)
    assert "without it" not in ran.err
    assert alive(indexed.pid)
    answers_in_full(indexed)


def answers_in_full(engines: Engines) -> None:
    """Insist that the engine answers as usual, once its model is loaded."""
    whole = Ran(code=0, out=expected(engines), err="")
    until(lambda: funes("recall", QUESTION, "-k", "1") == whole, what="a whole answer")


def test_an_engine_that_dies_at_once_costs_one_line(
    indexed: Engines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    code = "import sys, os\nif 'funes_ls.engine' in sys.orig_argv: os._exit(3)\n"
    (folder / "sitecustomize.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setattr("funes_ls.cli.asking.START_S", 0.5)
    fell_back(funes("recall", QUESTION, "-k", "1"), indexed)


def test_an_engine_that_hangs_costs_its_patience_and_one_line(
    indexed: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed.connect()
    # Stopped in the midst of a change it would hold the lock of a file for ever.
    until(lambda: not indexed.ask("engine/status")["indexing"], what="the engine is idle")
    monkeypatch.setattr("funes_ls.engine.client._HELLO_S", 0.3)
    os.kill(indexed.pid, signal.SIGSTOP)
    try:
        fell_back(funes("recall", QUESTION, "-k", "1"), indexed)
    finally:
        os.kill(indexed.pid, signal.SIGCONT)


def test_an_engine_that_crashes_again_and_again(indexed: Engines) -> None:
    from funes_ls.engine.starts import MAX_CRASHES, note_start

    (indexed.home / "run").mkdir(exist_ok=True)
    for _ in range(MAX_CRASHES + 1):
        note_start(indexed.home)
    fell_back(funes("recall", QUESTION, "-k", "1"), indexed)
    assert funes("engine", "restart").code == 0
    answers_in_full(indexed)


def test_ctrl_c_ends_a_question(indexed: Engines) -> None:
    indexed.connect()
    engine = indexed.pid
    os.kill(engine, signal.SIGSTOP)
    try:
        command = subprocess.Popen(
            [*COMMAND, "recall", QUESTION], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        until(lambda: _sockets(command.pid), what="the command is connected")
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=20)
    finally:
        os.kill(engine, signal.SIGCONT)
    assert (command.returncode, out) == (130, b"")
    assert b"Traceback" not in err


def _sockets(pid: int) -> list[Path]:
    """Return the sockets that a process holds."""
    held = []
    for entry in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            if str(entry.readlink()).startswith("socket:"):
                held.append(entry)
        except OSError:
            continue
    return held


def test_streamed_off_a_terminal_a_line_of_json_is_a_stage(
    engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = []
    for ran in (
        through_engine(monkeypatch, "recall", QUESTION, "--stream"),
        funes("recall", QUESTION, "--stream", "--no-engine"),
    ):
        assert (ran.code, ran.err) == (0, "")
        lines = [json.loads(line) for line in ran.out.splitlines()]
        assert [line["stage"] for line in lines] == ["words", "final"]
        assert [line["legs"]["vector"] for line in lines] == ["pending", "ran"]
        assert all(line["hits"] for line in lines)
        stages.append(steady(ran.out))
    assert stages[0] == stages[1]
    plain = funes("recall", QUESTION, "--json").out
    assert steady(stages[0].splitlines()[1]) == steady(plain).rstrip("\n").replace(
        "{", '{"stage":"final",', 1
    )


def test_engine_status_says_so_when_none_runs(indexed: Engines) -> None:
    ran = funes("engine", "status", "--json")
    assert (ran.code, ran.json) == (0, {"running": False})
    assert funes("engine", "status").out.startswith("No engine runs")
    assert funes("engine", "stop").out == "No engine runs.\n"
    assert read_address(indexed.home) is None


def test_the_engine_is_seen_restarted_read_and_stopped(indexed: Engines) -> None:
    assert funes("recall", QUESTION).code == 0
    first = indexed.pid
    found = funes("engine", "status", "--json").json
    assert (found["running"], found["pid"]) == (True, first)
    assert f"process {first}," in funes("engine").out
    renewed = funes("engine", "restart", "--json").json
    assert renewed["pid"] != first
    assert not alive(first)
    logged = funes("engine", "logs", "-n", "3", "--json").json
    assert 0 < len(logged["lines"]) <= 3
    assert funes("engine", "stop").out == "The engine has ended.\n"
    assert not alive(renewed["pid"])


def test_an_engine_that_hears_nothing_is_ended_all_the_same(
    indexed: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed.connect()
    pid = indexed.pid
    monkeypatch.setattr("funes_ls.engine.client._HELLO_S", 0.3)
    monkeypatch.setattr("funes_ls.cli.engine._END_S", 0.3)
    os.kill(pid, signal.SIGSTOP)
    assert funes("engine", "stop", "--json").json == {"running": False, "stopped": True}
    assert not alive(pid)


def test_a_stale_record_is_no_engine(indexed: Engines) -> None:
    indexed.connect()
    indexed.kill()
    assert funes("engine", "status", "--json").json == {"running": False}
    assert funes("engine", "stop", "--json").json == {"running": False, "stopped": False}


def test_answers_read_from_json_keep_keys_that_are_data() -> None:
    found = as_object({"harnesses": {"pi": 2}, "hits": [{"explain": {"words": 1}}], "n": None})
    assert found.harnesses == {"pi": 2}
    assert found.hits[0].explain.words == 1
    assert found.n is None


def test_what_is_wrong_with_a_question_is_no_trouble_of_the_engine(engine: Engines) -> None:
    with pytest.raises(FunesError) as refused:
        engine.ask("funes/recall", query="")
    assert refused.value.exit_code == 2
