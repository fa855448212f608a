"""Runs the command line in this process or in one of its own, and reads what it stored."""

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct

from funes_ls.cli import main
from funes_ls.indexer.memory import Row, open_memory

#: How a process of its own is started: the same entry point as the installed command.
COMMAND = [sys.executable, "-c", "import sys; from funes_ls.cli import main; sys.exit(main())"]


class Ran(Struct, frozen=True, kw_only=True):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return stdout as the one JSON object it is."""
        return json.loads(self.out)


def funes(*argv: str) -> Ran:
    """Run one command in this process; nobody sits at its terminal."""
    out, err = io.StringIO(), io.StringIO()
    stdin, sys.stdin = sys.stdin, io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(argv))
    finally:
        sys.stdin = stdin
    return Ran(code=code, out=out.getvalue(), err=err.getvalue())


def funes_process(*argv: str, timeout_s: float = 120) -> Ran:
    """Run one command as a process of its own."""
    done = subprocess.run(
        [*COMMAND, *argv],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout_s,
        env=os.environ,
    )
    return Ran(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())


def index(*argv: str) -> dict[str, Any]:
    """Index every known place, insist that it went well and return the report."""
    ran = funes("index", *(argv or ("--yes",)), "--json")
    assert ran.code == 0, ran.err
    report: dict[str, Any] = ran.json
    return report


def recall(query: str, *options: str) -> list[dict[str, Any]]:
    """Return the hits of a question."""
    ran = funes("recall", *options, "--json", "--", query)
    assert ran.code == 0, ran.err
    hits: list[dict[str, Any]] = ran.json["hits"]
    return hits


def status() -> dict[str, Any]:
    """Return what the memory says of itself."""
    answer: dict[str, Any] = funes("status", "--json").json
    return answer


def problems() -> list[dict[str, Any]]:
    """Return what could not be read."""
    listed: list[dict[str, Any]] = funes("status", "--problems", "--json").json["problems"]
    return listed


def follow(hit: dict[str, Any]) -> Ran:
    """Run the `get` command that a hit gives."""
    words = hit["get"].split()
    assert words[:2] == ["funes", "get"]
    return funes(*words[1:])


def stored(home: Path) -> list[Row]:
    """Return every row of the memory in a funes home, embedded or not, session by session."""
    with open_memory(home / "memory", derived=home / "derived") as memory:
        sessions = sorted(one.session_id for one in memory.catalog.sessions())
        return [row for session in sessions for row in memory.session_rows(session)]


def texts(hits: list[dict[str, Any]]) -> list[str]:
    """Return the texts of hits, best first."""
    return [hit["text"] for hit in hits]
