"""A program that is asked once: what it prints comes through, and nothing of it stays behind."""

import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from funes_ls.agents import child
from funes_ls.agents.agent import Agent
from funes_ls.agents.child import Ended

Start = Callable[[str], Agent]
PROGRAM = "asked"


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Return what makes an agent of the lines of a program; it prints its answer as it is."""

    def make(body: str) -> Agent:
        program = tmp_path / PROGRAM
        head = f"#!{sys.executable}\nimport os, subprocess, sys, time\nhere = {str(tmp_path)!r}\n"
        program.write_text(head + body, encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return Agent(
            name=PROGRAM,
            program=PROGRAM,
            arguments=lambda _env: [],
            text_of=lambda line: line,
            reason_of=lambda _line: "",
            install="",
        )

    return make


def ask(
    agent: Agent,
    folder: Path,
    *,
    prompt: str = "?",
    limit_s: float = 30.0,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[Ended, list[str]]:
    heard: list[str] = []
    ended = child.run(
        agent,
        prompt,
        env={"PATH": str(folder), "HOME": str(folder)},
        on_text=heard.append,
        cancelled=cancelled,
        limit_s=limit_s,
    )
    return ended, heard


def gone_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_pieces_come_as_they_are_written(start: Start, tmp_path: Path) -> None:
    agent = start(
        "print('one', flush=True)\n"
        "deadline = time.monotonic() + 20\n"
        "while not os.path.exists(here + '/heard') and time.monotonic() < deadline:\n"
        "    time.sleep(0.02)\n"
        "print('two' if os.path.exists(here + '/heard') else 'never heard')\n"
    )
    heard: list[str] = []

    def hear(text: str) -> None:
        heard.append(text)
        (tmp_path / "heard").touch()

    env = {"PATH": str(tmp_path)}
    child.run(agent, "?", env=env, on_text=hear, cancelled=lambda: False, limit_s=30)
    assert heard == ["one\n", "two\n"]


def test_a_long_prompt_and_much_stderr_do_not_block(start: Start, tmp_path: Path) -> None:
    agent = start("sys.stderr.write('e' * 3_000_000)\nprint(len(sys.stdin.read()))\n")
    ended, heard = ask(agent, tmp_path, prompt="p" * 2_000_000)
    assert (ended.why, heard) == ("done", ["2000000\n"])


def test_a_program_that_does_not_read_its_prompt(start: Start, tmp_path: Path) -> None:
    ended, heard = ask(start("print('no need')\n"), tmp_path, prompt="p" * 2_000_000)
    assert (ended.why, heard) == ("done", ["no need\n"])


def test_half_a_character_is_no_error(start: Start, tmp_path: Path) -> None:
    agent = start("sys.stdout.buffer.write('gr\\u00fc\\u00dfe \\u20ac'.encode()[:-1])\n")
    assert ask(agent, tmp_path)[1] == ["grüße ", "\ufffd"]


def test_a_line_without_an_end_is_ended(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "_MAX_BYTES", 3_000_000)
    agent = start("while True:\n    os.write(1, b'x' * 65536)\n")
    agent = agent._replace(text_of=lambda _line: "")
    assert ask(agent, tmp_path)[0].why == "flood"


def test_an_answer_without_an_end_is_ended(start: Start, tmp_path: Path) -> None:
    assert ask(start("while True:\n    print('and so on' * 1000)\n"), tmp_path)[0].why == "flood"


def test_an_agent_may_tell_the_reason_first(start: Start, tmp_path: Path) -> None:
    agent = start("sys.stderr.write('No key.\\n\\nSee:\\n  /docs/a.md\\n'); sys.exit(1)")
    assert ask(agent, tmp_path)[0].reason == "/docs/a.md"
    assert ask(agent._replace(tells_first=True), tmp_path)[0].reason == "No key."


def test_the_reason_is_one_short_line(start: Start, tmp_path: Path) -> None:
    agent = start("sys.stderr.write('first\\nthen ' + 'x' * 999 + '\\n')\nsys.exit(7)\n")
    ended, _ = ask(agent, tmp_path)
    assert (ended.code, ended.why) == (7, "failed")
    assert ended.reason.startswith("then xx")
    assert len(ended.reason) == 200


def test_what_an_agent_started_ends_with_it(start: Start, tmp_path: Path) -> None:
    sleeper = f"[{sys.executable!r}, '-c', 'import time; time.sleep(600)']"
    agent = start(f"print(subprocess.Popen({sleeper}).pid, flush=True)\n")
    started = time.monotonic()
    ended, heard = ask(agent, tmp_path)
    assert ended.why == "done"
    assert time.monotonic() - started < 10  # its stdout is still open in the one it left behind
    assert gone_within(int(heard[0]), 5)


@pytest.mark.parametrize("deaf", [False, True])
def test_withdrawn_it_is_gone_within_a_second(start: Start, tmp_path: Path, deaf: bool) -> None:
    ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" if deaf else ""
    inner = f"[{sys.executable!r}, '-c', {ignore + 'import time; time.sleep(600)'!r}]"
    agent = start(
        f"{ignore}print(os.getpid(), subprocess.Popen({inner}).pid, flush=True)\ntime.sleep(600)\n"
    )
    pids: list[int] = []
    withdrawn_at: list[float] = []

    def hear(text: str) -> None:
        pids.extend(map(int, text.split()))
        withdrawn_at.append(time.monotonic())

    ended = child.run(
        agent,
        "?",
        env={"PATH": str(tmp_path)},
        on_text=hear,
        cancelled=lambda: bool(withdrawn_at),
        limit_s=60,
    )
    assert time.monotonic() - withdrawn_at[0] < 1.0 + (1.0 if deaf else 0.5)
    assert (ended.why, ended.code) == ("cancelled", None)
    assert [gone_within(pid, 1) for pid in pids] == [True, True]


def test_a_listener_that_fails_ends_it_too(start: Start, tmp_path: Path) -> None:
    pids: list[int] = []

    def hear(text: str) -> None:
        pids.append(int(text))
        raise BrokenPipeError

    agent = start("print(os.getpid(), flush=True)\ntime.sleep(600)\n")
    with pytest.raises(BrokenPipeError):
        child.run(
            agent,
            "?",
            env={"PATH": str(tmp_path)},
            on_text=hear,
            cancelled=lambda: False,
            limit_s=60,
        )
    assert gone_within(pids[0], 1)


def test_it_runs_in_an_empty_folder_that_goes_away(start: Start, tmp_path: Path) -> None:
    agent = start("print(os.getcwd(), os.environ['PWD'], os.listdir())\nopen('left', 'w')\n")
    folder, pwd, listed = ask(agent, tmp_path)[1][0].split()
    assert (folder, listed) == (pwd, "[]")
    assert not Path(folder).exists()


def test_a_program_that_cannot_be_started(start: Start, tmp_path: Path) -> None:
    agent = start("")
    (tmp_path / PROGRAM).write_text("#!/no/such/interpreter\n", encoding="utf-8")
    with pytest.raises(OSError, match="No such file"):
        ask(agent, tmp_path)
