"""Lines in, lines out."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from funes_ls.mcp import stdio


def test_lines_end_as_they_do_on_any_system_and_blank_ones_are_none() -> None:
    stream = io.BytesIO(b'{"a":1}\r\n\n  \n{"b":2}\n{"c":3}')
    assert list(stdio.lines_of(stream)) == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


def test_a_line_that_is_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "MAX_LINE_BYTES", 10)
    stream = io.BytesIO(b"x" * 10 + b"\n" + b"y" * 95 + b"\nz\n" + b"y" * 25)
    found = [line if isinstance(line, bytes) else None for line in stdio.lines_of(stream)]
    assert found == [b"x" * 10, None, b"z", None]


def test_a_stream_that_is_closed_has_no_lines(tmp_path: Path) -> None:
    stream = (tmp_path / "x").open("wb+")
    stream.close()
    assert list(stdio.lines_of(stream)) == []


def test_messages_of_many_threads_are_whole_lines() -> None:
    read, write = os.pipe()
    answers = stdio.Answers(write)
    told = [{"id": number, "text": f"line\n{'é' * 20_000}\u2028"} for number in range(20)]
    threads = [threading.Thread(target=answers.send, args=(one,)) for one in told]
    for thread in threads:
        thread.start()
    with os.fdopen(read, "rb") as out:
        heard = [json.loads(out.readline()) for _ in told]
        for thread in threads:
            thread.join()
        answers.close()
        os.close(write)
        assert out.read() == b""
    assert sorted(heard, key=lambda one: int(one["id"])) == told


def test_a_reader_that_is_gone_is_no_failure() -> None:
    read, write = os.pipe()
    os.close(read)
    answers = stdio.Answers(write)
    for number in range(3_000):
        answers.send({"id": number})
    answers.close()
    os.close(write)


@pytest.mark.skipif(sys.platform == "win32", reason="signals threads")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_though_the_main_thread_waits_and_is_not_woken(
    number: signal.Signals,
) -> None:
    # As when the signal comes in the moment before the main thread begins to wait: what it waits
    # in is not interrupted, so no handler of Python runs.
    code = (
        "import os, signal, threading, time\n"
        "from funes_ls.mcp.stdio import on_signal_to_end\n"
        "on_signal_to_end(lambda: os._exit(7))\n"
        "other = threading.Thread(target=time.sleep, args=(60,), daemon=True)\n"
        "other.start()\n"
        "def tell():\n"
        "    time.sleep(0.2)\n"
        f"    signal.pthread_kill(other.ident, {int(number)})\n"
        "threading.Thread(target=tell, daemon=True).start()\n"
        "os.read(0, 1)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        try:
            assert process.wait(10) == 7
        finally:
            process.kill()
