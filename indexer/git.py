"""Runs git to ask it something: bounded in time, and never a program that a repository names."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

#: Of the variables git reads, those by which a person says where git may look and what to trust.
#: All others go: `GIT_DIR` and its like speak of another repository than the one asked about.
_KEPT = frozenset(
    {
        "GIT_CEILING_DIRECTORIES",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_SYSTEM",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
        "GIT_EXEC_PATH",
    }
)
_SET = {
    "GIT_ALLOW_PROTOCOL": "none",  # what a partial clone lacks is not fetched
    "GIT_ASKPASS": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_TRACE2": "0",
    "GIT_TRACE2_EVENT": "0",
    "GIT_TRACE2_PERF": "0",
    "LANGUAGE": "",
    "LC_ALL": "C",
    "SSH_ASKPASS": "",
}
_OPTIONS = (
    "--no-pager",
    "--literal-pathspecs",
    "-c",
    "core.fsmonitor=false",
    "-c",
    f"core.hooksPath={os.devnull}",
    "-c",
    "core.quotePath=false",
    "-c",
    "protocol.allow=never",
)


def ask_git(
    *args: str, cwd: Path | str, deadline: float, stdin: bytes = b"", pathspecs: bool = False
) -> bytes | None:
    """Return what git prints, None on any trouble: no git, no repository, no answer in time.

    Args:
        args: The command and its arguments. No command may be asked that runs filters, textconv
            or external diffs on its own (`blame` needs `--no-textconv` and a revision).
        cwd: Where it is asked; must exist.
        deadline: On `time.monotonic()`'s clock.
        stdin: What the command reads.
        pathspecs: Paths may hold patterns.
    """
    program = _program(os.environ.get("PATH", ""))
    left = deadline - time.monotonic()
    if program is None or left <= 0:
        return None
    options = [one for one in _OPTIONS if not (pathspecs and one == "--literal-pathspecs")]
    try:
        with subprocess.Popen(
            [program, *options, *args],
            cwd=cwd,
            env=environment(os.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        ) as process:
            return _answer(process, stdin, left)
    except (OSError, ValueError):  # ValueError: a path with a NUL
        return None


def _answer(process: subprocess.Popen[bytes], stdin: bytes, limit_s: float) -> bytes | None:
    with _running(process):
        try:
            out, _ = process.communicate(stdin, timeout=limit_s)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.communicate()
            return None
        except BaseException:
            _kill(process)
            raise
    return out if process.returncode == 0 else None


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables git runs with, from those of this process."""
    kept = {
        name: value
        for name, value in given.items()
        if not name.upper().startswith("GIT_") or name.upper() in _KEPT
    }
    return kept | _SET


@lru_cache(maxsize=8)
def _program(path: str) -> str | None:
    """Return where git is; never what lies in the current directory, as Windows would take."""
    names = ("git.exe",) if sys.platform == "win32" else ("git",)
    for folder in path.split(os.pathsep):
        for name in names:
            file = Path(folder) / name
            with contextlib.suppress(OSError):
                if file.is_absolute() and file.is_file() and os.access(file, os.X_OK):
                    return str(file)
    return None


_processes: set[subprocess.Popen[bytes]] = set()
_guard = threading.Lock()


@contextlib.contextmanager
def _running(process: subprocess.Popen[bytes]) -> Iterator[None]:
    with _guard:
        _processes.add(process)
    try:
        yield
    finally:
        with _guard:
            _processes.discard(process)


def end_running() -> None:
    """End every git that still runs; what waits for it gets no answer."""
    with _guard:
        processes = list(_processes)
    for process in processes:
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it may have started."""
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            process.kill()
        elif process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
