"""Lines in, lines out."""

import io
import json
import os
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
