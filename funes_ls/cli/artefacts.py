"""What `funes recall` is asked with besides words: a diff, a trace, or a file.

A part of the quick way to the engine: the standard library only.
"""

import argparse
import os
import stat
import sys
import time
from typing import IO, Any

from funes_ls.cli.output import notice
from funes_ls.indexer.errors import FunesError, UsageError
from funes_ls.indexer.home import expanded

#: As much is read, of git, of stdin, of a file; the engine looks at a share of each file of it.
_MOST_BYTES = 12 << 20
#: Characters that fit a message, whatever they are.
_SURE_CHARS = 4 << 20
_GIT_S = 10.0
#: A pipe on stdin that says nothing for so long, beside `--diff`, holds no patch.
_PATCH_S = 0.5
_HEAD_BYTES = 8_000
_GIT = ("git", "-c", "core.quotePath=false", "-c", "core.fsmonitor=false", "--no-pager", "diff")
_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/")

Artefact = dict[str, Any]


def artefact_of(args: argparse.Namespace) -> Artefact | None:
    """Return what the command line asks with, as it is sent; None when words alone ask.

    Raises:
        UsageError: more than one is named, or there is nothing to be had of it.
        FunesError: git is missing or too slow.
    """
    named = [args.diff or args.staged, args.trace, args.file is not None]
    if sum(map(bool, named)) > 1:
        raise UsageError("Only one of --diff, --trace and --file can be asked with.")
    dashed = any(named[:2]) and args.words[:1] == ["-"]
    if dashed:
        args.words = args.words[1:]
    if args.trace:
        return {"kind": "trace", "text": _piped("trace", "cargo test 2>&1 | funes recall --trace")}
    if args.file is not None:
        return _file(args.file)
    if not named[0]:
        return None
    return {"kind": "diff", "text": _diff(args, from_stdin=dashed)}


def _diff(args: argparse.Namespace, *, from_stdin: bool) -> str:
    if from_stdin and args.staged:
        raise UsageError("--staged asks git; a patch on stdin cannot be staged.")
    if from_stdin:
        return _piped("diff", "git show | funes recall --diff -")
    data = b"" if args.staged else _patch_at_hand()
    return _text(data, "stdin") if data.strip() else _git_diff(staged=args.staged)


def _piped(kind: str, example: str) -> str:
    """Return what stands on stdin."""
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(f"A {kind} is read from stdin, which is a terminal.", hint=example)
    stream = getattr(sys.stdin, "buffer", None)
    data = _read(stream) if stream is not None else b""
    if not data.strip():
        raise UsageError(f"There is no {kind} on stdin.", hint=example)
    return _text(data, "stdin")


def _patch_at_hand() -> bytes:
    """Return the patch that was piped in; none when stdin is a terminal, closed, or silent."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return b""
    if stat.S_ISREG(mode):
        return _read(sys.stdin.buffer)
    is_pipe = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    return _read(sys.stdin.buffer) if is_pipe and _speaks(sys.stdin) else b""


def _speaks(stream: IO[str]) -> bool:
    import select

    try:
        return bool(select.select([stream], [], [], _PATCH_S)[0])
    except (OSError, ValueError):  # Windows selects sockets only
        return False


def _read(stream: IO[bytes]) -> bytes:
    """Return what a stream gives, so much of it."""
    data = stream.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        notice(f"funes: only the first {_MOST_BYTES >> 20} MB are asked with.")
    return data[:_MOST_BYTES]


def _file(name: str) -> Artefact:
    path = expanded(name)
    try:
        if path.is_dir():
            raise UsageError(f"{name} is a folder.", hint="`--path` finds what touched a folder.")
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES)
    except (OSError, ValueError, RuntimeError) as exc:
        reason = getattr(exc, "strerror", None) or "no such path"
        raise UsageError(f"{name} cannot be read ({reason}).") from exc
    return {"kind": "file", "text": _text(data, name), "path": str(path.absolute())}


def _text(data: bytes, name: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):  # as PowerShell writes
        return _sendable(data.decode("utf-16", "replace"))
    if b"\0" in data[:_HEAD_BYTES] and name != "stdin":
        raise UsageError(f"{name} is no text.", hint="A question is asked with text.")
    return _sendable(data.decode("utf-8-sig", "replace").replace("\0", " "))


def _sendable(text: str) -> str:
    """Return a text that fits a message: in one, a character may take six bytes."""
    import json

    if len(text) <= _SURE_CHARS or len(json.dumps(text)) <= 6 * _SURE_CHARS:
        return text
    return text[:_SURE_CHARS]


def _git_diff(*, staged: bool) -> str:
    """Return what git calls changed in the folder's repository: since HEAD, or staged."""
    code, out, err = _git("--cached") if staged else _git("HEAD")
    if code and not staged and "HEAD" in err:  # nothing is committed yet
        code, out, err = _git("--cached")
    if code:
        raise _git_failed(err)
    if not out.strip():
        if staged:
            raise UsageError(
                "Nothing is staged.",
                hint="`git add FILE` stages a file; `--diff` asks with all that has changed.",
            )
        raise UsageError(
            "Nothing has changed since the last commit.",
            hint="`git add -N FILE` makes a new file count; "
            "`git show | funes recall --diff` asks with a commit.",
        )
    return _text(out, "stdin")


def _git_failed(err: str) -> FunesError:
    # Where there is none, `git diff` compares two files and has no option for what is staged.
    if "not a git repository" in err.lower() or "unknown option `cached'" in err:
        return UsageError(
            "This folder is in no git repository.",
            hint="Pipe a patch in: funes recall --diff < changes.patch",
        )
    said = next((line for line in err.splitlines() if line.strip()), "it gave no reason")
    return FunesError(f"git could not tell what has changed ({said.strip()[:200]}).", kind="git")


def _git(*what: str) -> tuple[int, bytes, str]:
    """Run `git diff`; return its exit code, its output, cut, and what it said of errors."""
    import subprocess
    import tempfile

    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                [*_GIT, *_PLAIN, *what, "--"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=env,
            )
        except OSError as exc:
            raise FunesError(
                f"git cannot be run ({exc.strerror or 'it is missing'}).",
                hint="Install git, or pipe a patch in: funes recall --diff < changes.patch",
                kind="git",
            ) from exc
        code = _ended(process)
        out.seek(0)
        err.seek(0)
        return code, out.read(_MOST_BYTES), err.read(4_096).decode("utf-8", "replace")


def _ended(process: Any) -> int:
    import subprocess

    began = time.monotonic()
    try:
        return int(process.wait(timeout=_GIT_S))
    except subprocess.TimeoutExpired:
        raise FunesError(
            f"git diff took longer than {time.monotonic() - began:.0f} s.",
            hint="Pipe a smaller one in: git diff -- src | funes recall --diff",
            kind="git",
        ) from None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
