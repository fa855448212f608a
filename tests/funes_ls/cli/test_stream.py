"""What `funes recall --stream` draws: never more than a screen, one row a line."""

import os
import sys
from pathlib import Path

import pytest

from funes_ls.cli.stream import can_redraw, clipped, fitted
from tests.e2e.cli import COMMAND, index
from tests.sessions import record, write


@pytest.mark.parametrize(
    ("line", "columns", "shown"),
    [
        ("abc", 10, "abc"),
        ("abcdef", 4, "abc"),
        ("日本語", 6, "日本"),
        ("e\u0301e\u0301e", 4, "e\u0301e\u0301e"),
        ("a\tb", 20, "a       b"),
        ("", 5, ""),
    ],
)
def test_a_line_is_cut_to_a_row(line: str, columns: int, shown: str) -> None:
    assert clipped(line, columns) == shown


def test_no_more_lines_than_rows() -> None:
    assert fitted("a\nb\nc\n", columns=80, rows=2) == ["a", "b"]
    assert fitted("a\nb\n", columns=80, rows=0) == ["a"]


@pytest.mark.skipif(os.name == "nt", reason="needs pseudo-terminals")
@pytest.mark.parametrize(("term", "redraws"), [("xterm", True), ("dumb", False), ("", False)])
def test_a_terminal_is_redrawn_only_if_it_can_be(
    term: str, redraws: bool, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    projects = own_home / ".claude" / "projects"
    long = "the kettle boils at noon " + "and sings " * 40
    write(projects / "p" / "s1.jsonl", [record(long, uuid="u1")])
    index()
    monkeypatch.setenv("TERM", term)
    shown = on_a_terminal("recall", "--stream", "-k", "1", "kettle")
    first, _, rest = shown.partition("\x1b[5A\r\x1b[J")
    if not redraws:
        assert '"stage":"words"' in shown
        assert "\x1b" not in shown
        return
    assert "by words so far" in first
    assert all(len(line.replace("\x1b[2m", "").replace("\x1b[0m", "")) < 40
               for line in first.split("\r\n"))  # fmt: skip
    assert long.strip() in rest.replace("\r\n", "\n")
    assert "by words so far" not in rest
    assert "\x1b" not in rest


def on_a_terminal(*argv: str) -> str:
    """Run a command on a small pseudo-terminal and return what it wrote there."""
    import pty
    import termios

    pid, terminal = pty.fork()
    if pid == 0:
        termios.tcsetwinsize(0, (24, 40))
        os.execv(sys.executable, [*COMMAND, *argv])
    written = bytearray()
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # Linux ends a terminal so
            break
        if not data:
            break
        written += data
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, written
    return written.decode()


def test_a_pipe_cannot_be_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert not can_redraw()
