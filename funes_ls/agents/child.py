"""Runs an agent's command once: prompt in, answer out as it comes, gone when nobody waits."""

import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from typing import IO, NamedTuple

from funes_ls.agents.agent import Agent, program_of

_TICK_S = 0.1
_KILL_AFTER_S = 0.5
#: What is kept of stderr, its end: where the reason of a failure stands.
_REASON_BYTES = 4096
#: Longest answer taken; an agent that floods is ended.
_MAX_CHARS = 2_000_000


class Ended(NamedTuple):
    """How an agent's run ended.

    Attributes:
        code: Its exit code, None when it was ended from here.
        why: `done`, `failed`, `timeout`, `cancelled` or `flood`.
        reason: The last line it wrote to stderr.
    """

    code: int | None
    why: str
    reason: str


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

    Raises:
        OSError: the command cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="funes-ask-") as nowhere:
        process = _start(agent, nowhere, env)
        lines: queue.Queue[str | None] = queue.Queue()
        tail = bytearray()
        threads = [
            threading.Thread(target=_feed, args=(process, prompt), daemon=True),
            threading.Thread(target=_read_lines, args=(process.stdout, lines), daemon=True),
            threading.Thread(target=_keep_tail, args=(process.stderr, tail), daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            why = _pass_on(agent, lines, on_text=on_text, cancelled=cancelled, limit_s=limit_s)
            code = _end(process, patiently=why == "done")
        finally:
            _end(process, patiently=False)
            for thread in threads:
                thread.join(_KILL_AFTER_S)
            for stream in (process.stdin, process.stdout, process.stderr):
                _close(stream)
        reason = bytes(tail).decode("utf-8", "replace").strip().rpartition("\n")[2]
        return Ended(code, "failed" if why == "done" and code else why, reason)


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
        env=dict(env),
        start_new_session=os.name != "nt",
    )


def _feed(process: "subprocess.Popen[bytes]", prompt: str) -> None:
    try:
        assert process.stdin is not None
        process.stdin.write(prompt.encode("utf-8", "replace"))
        process.stdin.close()
    except (OSError, ValueError):
        return  # it has ended without reading; its exit code tells


def _read_lines(stream: IO[bytes] | None, lines: "queue.Queue[str | None]") -> None:
    try:
        for line in stream or ():
            lines.put(line.decode("utf-8", "replace"))
    except (OSError, ValueError):
        pass
    finally:
        lines.put(None)


def _keep_tail(stream: IO[bytes] | None, tail: bytearray) -> None:
    try:
        while part := stream.read1(_REASON_BYTES) if stream else b"":  # type: ignore[attr-defined] # a BufferedReader
            tail += part
            del tail[:-_REASON_BYTES]
    except (OSError, ValueError):
        return


def _pass_on(
    agent: Agent,
    lines: "queue.Queue[str | None]",
    *,
    on_text: Callable[[str], None],
    cancelled: Callable[[], bool],
    limit_s: float,
) -> str:
    deadline = time.monotonic() + limit_s
    written = 0
    while True:
        if cancelled():
            return "cancelled"
        if time.monotonic() >= deadline:
            return "timeout"
        try:
            line = lines.get(timeout=_TICK_S)
        except queue.Empty:
            continue
        if line is None:
            return "done"
        text = agent.text_of(line)
        written += len(text)
        if written > _MAX_CHARS:
            return "flood"
        if text:
            on_text(text)


def _end(process: "subprocess.Popen[bytes]", *, patiently: bool) -> int | None:
    """Return the exit code; a process that goes on is ended with all it has started."""
    try:
        return process.wait(5.0 if patiently else 0.0)
    except subprocess.TimeoutExpired:
        _signal(process, kill=False)
    try:
        process.wait(_KILL_AFTER_S)
    except subprocess.TimeoutExpired:
        _signal(process, kill=True)
        process.wait()
    return None


def _signal(process: "subprocess.Popen[bytes]", *, kill: bool) -> None:
    try:
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL if kill else signal.SIGTERM)
    except OSError:
        return  # it is gone already


def _close(stream: IO[bytes] | None) -> None:
    try:
        if stream is not None:
            stream.close()
    except (OSError, ValueError):
        return
