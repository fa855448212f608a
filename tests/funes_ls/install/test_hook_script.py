"""The script that hooks run: silent, quick, and no trouble where funes is gone or hangs."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from funes_ls.install import apply, hook_script
from funes_ls.install.plan import Wanted
from tests.e2e.engines import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a shell script")

EVENT = b'{"transcript_path": "/x/y.jsonl"}' + b" " * 300_000


def made(tmp_path: Path, program: Path) -> Wanted:
    """Write the script for a program and return what it was made from."""
    wanted = Wanted(
        agent="claude",
        funes_home=tmp_path / "fu nes' ü",
        user_home=tmp_path,
        env={},
        server=(str(program), "mcp"),
        server_env={"FUNES_HOME": str(tmp_path / "fu nes' ü")},
        program="",
    )
    apply.perform(hook_script.script(wanted), wanted)
    return wanted


def fire(
    wanted: Wanted, *, told: bytes = EVENT, **more: str
) -> tuple[subprocess.CompletedProcess[bytes], float]:
    """Run a hook as an agent does, by a shell, and return how it ended and how long it took."""
    began = time.monotonic()
    ran = subprocess.run(
        hook_script.shell_command(wanted, "Stop"),
        shell=True,
        input=told,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(wanted.user_home), **more},
        timeout=20,
    )
    return ran, time.monotonic() - began


def program(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "funes"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("place", ["its own", "moved to a common folder", "on the path"])
def test_the_event_reaches_the_program(tmp_path: Path, place: str) -> None:
    heard = tmp_path / "heard"
    text = (
        f'printf "%s|" "$@" "$FUNES_HOME" > "{heard}.part"\n'
        f'cat >> "{heard}.part"\nmv "{heard}.part" "{heard}"'
    )
    folders = {
        "its own": tmp_path / "ve nv",
        "moved to a common folder": tmp_path / ".local" / "bin",
        "on the path": tmp_path / "elsewhere",
    }
    program(folders[place], text)
    wanted = made(tmp_path, tmp_path / "ve nv" / "funes")
    path = os.pathsep.join([str(tmp_path / "elsewhere"), "/usr/bin:/bin"])
    ran, _ = fire(wanted, PATH=path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    until(heard.exists, what="the program was run")
    words = f"hook|claude|Stop|{wanted.funes_home}|".encode()
    assert heard.read_bytes() == words + EVENT


@pytest.mark.parametrize(
    "text", ["exit 7", "echo out; echo err >&2", "exec sleep 5", "kill -9 $$", None]
)
def test_nothing_of_a_program_in_trouble_reaches_the_agent(
    tmp_path: Path, text: str | None
) -> None:
    if text is not None:
        program(tmp_path / "bin", text)
    wanted = made(tmp_path, tmp_path / "bin" / "funes")
    # No more than a pipe holds: one of them never reads it.
    ran, seconds = fire(wanted, told=EVENT[:30_000])
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    assert seconds < 2


def test_a_home_that_was_deleted_is_no_trouble(tmp_path: Path) -> None:
    wanted = made(tmp_path, tmp_path / "bin" / "funes")
    hook_script.script_path(wanted).unlink()
    ran, _ = fire(wanted)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_an_agent_that_never_ends_its_event_is_not_waited_for(tmp_path: Path) -> None:
    program(tmp_path / "bin", "cat > /dev/null")
    wanted = made(tmp_path, tmp_path / "bin" / "funes")
    process = subprocess.Popen(
        [str(hook_script.script_path(wanted)), "Stop"],
        stdin=subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert process.stdin is not None
    with process.stdin:
        assert process.wait(5) == 0
