"""`funes ask` as a person meets it, with a stand-in for an agent; `tests/agents` has real ones."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from funes_ls.protocol import AskAnswer
from tests.e2e.cli import COMMAND, funes, funes_process
from tests.e2e.engines import alive, until

pytestmark = pytest.mark.skipif(os.name == "nt", reason="processes and signals of POSIX")

QUESTION = "three attempts with full jitter"
SESSION = "8845927a-3cb6-420d-ad22-3a9129b12318"
NOWHERE = "/no/such/folder"
_CLAUDE = """\
#!{python}
import json, os, sys, time
from pathlib import Path
here = Path({here!r})
(here / "prompt").write_text(sys.stdin.read())
(here / "pid").write_text(str(os.getpid()))
def say(text):
    delta = {{"type": "text_delta", "text": text}}
    print(json.dumps({{"type": "stream_event", "event": {{"delta": delta}}}}), flush=True)
{body}
"""


@pytest.fixture
def bin_dir(tmp_path: Path, samples: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder on the path; the sample sessions are indexed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def install(folder: Path, body: str) -> None:
    program = folder / "claude"
    text = _CLAUDE.format(python=sys.executable, here=str(folder), body=body)
    program.write_text(text, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_the_answer_then_what_it_rests_on(bin_dir: Path) -> None:
    install(bin_dir, f"say('Three, '); say('with jitter [{SESSION[:8]}].')")
    ran = funes("ask", "claude", QUESTION)
    assert ran.code == 0, ran.err
    answer, _, sources = ran.out.partition("\n\n")
    assert answer == f"Three, with jitter [{SESSION[:8]}]."
    assert sources.startswith(f"sources:\n  [{SESSION[:8]}] ")
    assert f"funes get {SESSION} " in sources
    assert "reading" not in ran.err  # nobody waits at a terminal
    assert "\r" not in ran.err


def test_a_session_that_was_not_handed_over_is_told(bin_dir: Path) -> None:
    install(bin_dir, "say('As in [deadbeef].\\n')")
    ran = funes("ask", QUESTION)
    assert ran.code == 0, ran.err
    assert "not handed over, do not rely on it: [deadbeef]" in ran.out
    assert "deadbeef" in ran.err
    found = funes("ask", QUESTION, "--json").json
    assert found["unknown"] == ["deadbeef"]
    assert not any(one["cited"] for one in found["sources"])


def test_json_is_one_object(bin_dir: Path) -> None:
    install(bin_dir, f"say('So it was [{SESSION[:8]}].')")
    found = funes("ask", QUESTION, "--json").json
    assert list(found) == list(AskAnswer.__struct_fields__)
    assert found["answer"] == f"So it was [{SESSION[:8]}]."
    assert {one["session_id"] for one in found["sources"] if one["cited"]} == {SESSION}
    assert found["prompt"] == (bin_dir / "prompt").read_text(encoding="utf-8")


def test_escapes_of_an_agent_do_not_reach_the_terminal(bin_dir: Path) -> None:
    install(bin_dir, "say('red \\x1b[31m and \\u202e back')")
    ran = funes("ask", QUESTION)
    assert ran.out.startswith("red [31m and  back\n")


def test_a_dry_run_shows_what_would_go_and_to_whom(bin_dir: Path) -> None:
    install(bin_dir, "say('I was asked.')")
    ran = funes("ask", "claude", QUESTION, "--dry-run")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("This would be sent to claude:\n")
    assert SESSION[:8] in ran.out
    assert ran.out.rstrip().endswith(f"Question: {QUESTION}")
    assert not (bin_dir / "prompt").exists()


def test_nobody_to_ask_is_said_and_what_would_go_can_be_seen(bin_dir: Path) -> None:
    ran = funes("ask", QUESTION)
    assert (ran.code, ran.out) == (2, "")
    assert "No agent to ask is installed" in ran.err
    ran = funes("ask", QUESTION, "--dry-run")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("This would be sent to claude, which is not installed here:\n")


def test_nothing_found_is_said_without_asking(bin_dir: Path) -> None:
    install(bin_dir, "say('I was asked.')")
    ran = funes("ask", QUESTION, "--cwd", NOWHERE)
    assert (ran.code, ran.out) == (0, "")
    assert "Nothing in the memory fits" in ran.err
    assert not (bin_dir / "prompt").exists()


@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [
        (("codex", QUESTION), 2, "codex is not installed"),
        (("claude",), 2, "What do you want to ask claude?"),
        ((), 2, "empty"),
        ((QUESTION, "--memory", NOWHERE), 2, NOWHERE),
    ],
)
def test_what_cannot_be_asked(bin_dir: Path, argv: tuple[str, ...], code: int, told: str) -> None:
    install(bin_dir, "say('I was asked.')")
    ran = funes("ask", *argv)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert not (bin_dir / "prompt").exists()


def test_a_failing_agent(bin_dir: Path) -> None:
    install(bin_dir, "print('secret prompt\\n' * 99 + 'Not logged in', file=sys.stderr); exit(3)")
    ran = funes("ask", QUESTION)
    assert (ran.code, ran.out) == (1, "")
    assert "claude ended with code 3: Not logged in" in ran.err
    assert "secret prompt" not in ran.err


def test_a_question_may_begin_with_a_dash(bin_dir: Path) -> None:
    install(bin_dir, "say('Yes.')")
    ran = funes("ask", "--", "--three attempts with jitter")
    assert ran.code == 0, ran.err
    assert "Question: --three attempts" in (bin_dir / "prompt").read_text(encoding="utf-8")


@pytest.mark.parametrize("number", [signal.SIGINT])
def test_ctrl_c_ends_the_agent_too(bin_dir: Path, number: signal.Signals) -> None:
    install(bin_dir, "say('So far')\ntime.sleep(600)")
    asked = subprocess.Popen(
        [*COMMAND, "ask", QUESTION], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert asked.stdout is not None
        until(lambda: (bin_dir / "pid").exists() and (bin_dir / "pid").read_text())
        assert asked.stdout.read(6) == b"So far"
        asked.send_signal(number)
        _, err = asked.communicate(timeout=10)
    finally:
        asked.kill()
        asked.wait()
    assert asked.returncode == 130
    assert b"Traceback" not in err
    assert not alive(int((bin_dir / "pid").read_text()))


def test_a_reader_that_goes_away(bin_dir: Path) -> None:
    install(bin_dir, "say('x' * 100 + '\\n')\ntime.sleep(0.2)\nfor _ in range(999): say('y' * 999)")
    asked = subprocess.Popen(
        [*COMMAND, "ask", QUESTION], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert asked.stdout is not None
        assert asked.stderr is not None
        assert asked.stdout.read(1) == b"x"
        asked.stdout.close()
        err = asked.stderr.read()
        asked.wait(timeout=20)
    finally:
        asked.kill()
        asked.wait()
        asked.stderr.close()
    assert b"Traceback" not in err
    assert not alive(int((bin_dir / "pid").read_text()))


def test_it_works_as_a_process_of_its_own(bin_dir: Path) -> None:
    install(bin_dir, "say('Yes.')")
    ran = funes_process("ask", QUESTION)
    assert (ran.code, ran.out.partition("\n")[0]) == (0, "Yes."), ran.err
