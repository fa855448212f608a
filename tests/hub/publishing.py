"""What the tests of publishing share: sessions with and without secrets, and how they are sent."""

import contextlib
import io
import secrets
import string
import sys
from pathlib import Path
from typing import Any

import lancedb
import pytest

from funes_ls.cli import main
from tests.e2e.cli import Ran, funes
from tests.hub.fakehub import FakeHub
from tests.sessions import record

NAME = "acme/kb"


def trace(home: Path, session: str = "s1") -> Path:
    """Return where Claude Code keeps a session."""
    return home / ".claude" / "projects" / "-home-dev-api" / f"{session}.jsonl"


def talk(session: str, count: int, *, start: int = 0, **more: Any) -> list[dict[str, Any]]:
    """Return turns without secrets."""
    return [
        record(f"the kettle number {n} of {session} boils over", uuid=f"{session}-{n}", **more)
        for n in range(start, start + count)
    ]


class Canary:
    """A credential that opens nothing, made now; where it stands, something has leaked."""

    def __init__(self) -> None:
        signs = string.ascii_letters + string.digits
        self.secret = "".join(secrets.choice(signs) for _ in range(34)) + "a7"
        self.value = "gh" + "p_" + self.secret

    def turn(self, uuid: str) -> dict[str, Any]:
        """Return a turn in which it is printed."""
        return record(f"$ env\nGITHUB_TOKEN={self.value}\nPORT=80", uuid=uuid)

    def places(self, hub: FakeHub) -> list[str]:
        """Return where it is in what ever reached the Hub, rows and facts opened, too."""
        pieces = [self.secret[at : at + 12] for at in range(0, len(self.secret) - 12, 6)]
        found = hub.holding(*pieces)
        for name, text in opened(hub):
            if any(piece in text for piece in pieces):
                found.append(name)
        return found


def opened(hub: FakeHub) -> list[tuple[str, str]]:
    """Return all that rows and facts say in every file that ever reached the Hub."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    told = []
    for name, data in hub.disk.everything():
        if data[:4] == data[-4:] == b"PAR1":
            table = pq.read_table(pa.BufferReader(data))
            told.append((name, f"{table.to_pylist()} {table.schema.metadata}"))
    for repo in hub.repos.values():
        for commit in repo.commits.values():
            told += _rows(hub, commit.tree)
    return told


def _rows(hub: FakeHub, tree: dict[str, Any]) -> list[tuple[str, str]]:
    import tempfile

    if not any("_versions/" in path for path in tree):
        return []
    with tempfile.TemporaryDirectory() as folder:
        for path, entry in tree.items():
            file = Path(folder) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(hub.disk.read(entry))
        table = lancedb.connect(folder).open_table("chunks").to_arrow().drop_columns(["vector"])
        return [("rows", str(table.to_pylist()))]


def push_ran(*options: str, name: str = NAME) -> Ran:
    """Run `funes push` and return how it ended."""
    return funes("push", name, *options)


class Person(io.StringIO):
    """Somebody at a terminal who answers each question in turn."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


def asked(monkeypatch: pytest.MonkeyPatch, answers: str, *argv: str) -> tuple[int, str]:
    """Run a command with somebody at its terminal; return the code and all that was said."""
    said = Person()
    monkeypatch.setattr(sys, "stdin", Person(answers))
    monkeypatch.setattr(sys, "stderr", said)
    with contextlib.redirect_stdout(said):
        code = main(list(argv))
    return code, said.getvalue()


def push(*options: str, name: str = NAME) -> dict[str, Any]:
    """Publish, insist that it went well, and return the answer."""
    ran = funes("push", name, "--json", *options)
    assert ran.code == 0, ran.err
    answer: dict[str, Any] = ran.json
    return answer
