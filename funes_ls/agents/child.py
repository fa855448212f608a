"""Runs an agent's command once: prompt in, answer out as it comes, gone when nobody waits."""

import codecs
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, NamedTuple

from funes_ls.agents.agent import Agent, program_of

_TICK_S = 0.1
_KILL_AFTER_S = 0.5
#: What is kept of stderr, its end: where the reason of a failure stands.
_REASON_BYTES = 4096
_REASON_CHARS = 200
#: Longest answer taken, and most output of any kind; an agent that floods is ended.
_MAX_CHARS = 2_000_000
_MAX_BYTES = 64_000_000
#: A line is passed on in pieces of this, so that one without an end fills no memory.
_LINE_BYTES = 4_000_000
_LINES_AHEAD = 64
_SIGKILL = getattr(signal, "SIGKILL", signal.SIGTERM)


class Ended(NamedTuple):
    """How an agent's run ended.

    Attributes:
        code: Its exit code, None when it was ended from here.
        why: `done`, `failed`, `timeout`, `cancelled` or `flood`.
        reason: One line of its own on a failure, short.
    """

    code: int | None
    why: str
    reason: str


class _Output:
    """What the threads that read a child have so far; bounded in every direction."""

    def __init__(self) -> None:
        self.lines: queue.Queue[str | None] = queue.Queue(_LINES_AHEAD)
        self.is_wanted = True
        self.is_flood = False
        self.stderr_tail = bytearray()
        self.reason = ""

    def put(self, line: str | None) -> None:
        while self.is_wanted:
            with suppress(queue.Full):
                self.lines.put(line, timeout=_TICK_S)
                return


def run(
    agent: Agent,
    prompt: str,
    *,
    env: Mapping[str, str],
    on_text: Callable[[str], None],
    cancelled: Callable[[], bool],
    limit_s: float,
) -> Ended:
    """Ask an agent and pass on its answer piece by piece.

    It runs in an empty directory, so that it finds no project to read and none to write to.
    Whatever it has started is ended with it.

    Raises:
        OSError: the command cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="funes-ask-", ignore_cleanup_errors=True) as nowhere:
        process = _start(agent, nowhere, env)
        output = _Output()
        threads = [
            threading.Thread(target=_feed, args=(process, prompt), daemon=True),
            threading.Thread(target=_read_lines, args=(process.stdout, output), daemon=True),
            threading.Thread(target=_keep_tail, args=(process.stderr, output), daemon=True),
        ]
        try:
            for thread in threads:
                thread.start()
            why = _pass_on(
                agent, process, output, on_text=on_text, cancelled=cancelled, limit_s=limit_s
            )
            code = _end(process, patiently=why == "done")
        finally:
            output.is_wanted = False
            _end(process, patiently=False)
            _join(threads, process)
        return Ended(code, "failed" if why == "done" and code else why, _reason(agent, output))


def _start(agent: Agent, folder: str, env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    program = program_of(agent, env)
    if program is None:
        raise FileNotFoundError(agent.program)
    return subprocess.Popen(
        [program, *agent.arguments(env)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={**env, "PWD": folder},
        start_new_session=os.name != "nt",
    )


def _feed(process: "subprocess.Popen[bytes]", prompt: str) -> None:
    # One that ends without reading is no trouble here: its exit code tells.
    with suppress(OSError, ValueError):
        if process.stdin is not None:
            process.stdin.write(prompt.encode("utf-8", "replace"))
            process.stdin.close()


def _read_lines(stream: IO[bytes] | None, output: _Output) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    size_bytes = 0
    with suppress(OSError, ValueError):
        while output.is_wanted and (line := stream.readline(_LINE_BYTES) if stream else b""):
            size_bytes += len(line)
            if size_bytes > _MAX_BYTES:
                output.is_flood = True
                break
            output.put(decoder.decode(line))
    output.put(decoder.decode(b"", final=True) or None)
    output.put(None)


def _keep_tail(stream: IO[bytes] | None, output: _Output) -> None:
    with suppress(OSError, ValueError):
        while part := os.read(stream.fileno(), _REASON_BYTES) if stream else b"":
            output.stderr_tail += part
            del output.stderr_tail[:-_REASON_BYTES]


def _pass_on(
    agent: Agent,
    process: "subprocess.Popen[bytes]",
    output: _Output,
    *,
    on_text: Callable[[str], None],
    cancelled: Callable[[], bool],
    limit_s: float,
) -> str:
    deadline = time.monotonic() + limit_s
    written = 0
    is_last = False
    while True:
        if cancelled():
            return "cancelled"
        if time.monotonic() >= deadline:
            return "timeout"
        try:
            line = output.lines.get(timeout=_TICK_S)
        except queue.Empty:
            if is_last:
                return "done"  # it has ended, and what it left behind keeps its stdout open
            is_last = process.poll() is not None
            continue
        if line is None:
            return "flood" if output.is_flood else "done"
        output.reason = agent.reason_of(line) or output.reason
        text = agent.text_of(line)
        written += len(text)
        if written > _MAX_CHARS:
            return "flood"
        if text:
            on_text(text)


def _end(process: "subprocess.Popen[bytes]", *, patiently: bool) -> int | None:
    """Return the exit code; a process that goes on is ended with all it has started."""
    try:
        code = process.wait(5.0 if patiently else 0.0)
        _signal(process, _SIGKILL)  # what it has started may go on without it
        return code
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_KILL_AFTER_S)
    _signal(process, _SIGKILL)
    process.wait()
    return None


def _signal(process: "subprocess.Popen[bytes]", number: int) -> None:
    with suppress(OSError):  # it is gone already
        if os.name != "nt":
            os.killpg(process.pid, number)
        elif process.returncode is None:
            process.kill()


def _join(threads: list[threading.Thread], process: "subprocess.Popen[bytes]") -> None:
    for thread in threads:
        if thread.ident is not None:
            thread.join(_KILL_AFTER_S)
    for stream in (process.stdin, process.stdout, process.stderr):
        # One that is being read still belongs to something that left the group: not waited for.
        if stream is not None and not any(thread.is_alive() for thread in threads):
            with suppress(OSError, ValueError):
                stream.close()


def _reason(agent: Agent, output: _Output) -> str:
    said = output.reason or bytes(output.stderr_tail).decode("utf-8", "replace")
    lines = said.strip().splitlines()
    at = 0 if agent.tells_first and not output.reason else -1
    shown = " ".join(lines[at].split()) if lines else ""
    return shown if len(shown) <= _REASON_CHARS else f"{shown[: _REASON_CHARS - 1]}…"
