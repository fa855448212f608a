"""Secrets wherever a trace may have them: no byte of the home holds one after an index."""

import json
import os
import random
import string
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from funes_ls.index_run import IndexReport, IndexRequest, run_index
from funes_ls.indexer import readahead
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.settings import load_settings
from tests import sessions
from tests.indexer.making import reading

_LETTERS = string.ascii_letters + string.digits


def made(size: int) -> str:
    """Return random characters, new ones every time."""
    source = random.SystemRandom()
    return "".join(source.choice(_LETTERS) for _ in range(size - 3)) + "x7Q"


def token() -> str:
    """Return what looks like a token of GitHub and is none."""
    return f"ghp_{made(36)}"


@pytest.fixture(params=[False, True], ids=["here", "ahead"])
def index(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., IndexReport]:
    """Return what indexes everything, reading here or in the process that reads ahead."""
    if request.param:
        monkeypatch.setattr(readahead, "WORTH_BYTES", 0)

    def run() -> IndexReport:
        settings, _ = load_settings(os.environ)
        return run_index(IndexRequest(finish=True), settings, env=os.environ)

    return run


def said(text: Any, uuid: str = "u1", **more: Any) -> dict[str, Any]:
    return sessions.record(text, uuid=uuid, **more)


def calls(name: str, args: dict[str, Any], uuid: str = "u2") -> dict[str, Any]:
    return said(sessions.tool_use(name, args, id=f"c-{uuid}"), uuid, role="assistant")


def clean(home: Path, *secrets: str) -> None:
    """Check that no file of a home holds any of some secrets, and no row does."""
    for path in home.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        held = [secret for secret in secrets if secret.encode() in data]
        assert not held, f"{path.relative_to(home)} holds a secret"
        assert not [secret for secret in secrets if secret in path.name]
    with reading(home) as memory:
        for row in _rows(memory):
            assert not [secret for secret in secrets if secret in repr(row)], row.turn_uuid


def _rows(memory: Memory) -> Iterator[Any]:
    for session in memory.catalog.sessions():
        yield from memory.session_rows(session.session_id)


def texts(home: Path) -> str:
    with reading(home) as memory:
        return "\n".join(row.text for row in _rows(memory))


def test_one_line_of_a_megabyte(projects: Path, funes_home: Path, index: Any) -> None:
    secret = token()
    words = "lorem ipsum dolor " * 40_000
    line = said(f"{words} export GITHUB_TOKEN={secret} {words}")
    sessions.write(projects / "p" / "s1.jsonl", [line])
    report = index()
    clean(funes_home, secret)
    assert report.failed == 0 and sum(report.redacted.values()) == 1


def test_garbage_around_it(projects: Path, funes_home: Path, index: Any) -> None:
    secrets = [token() for _ in range(4)]
    path = projects / "p" / "s1.jsonl"
    sessions.write(
        path,
        [
            said(f"\x00\x01GITHUB_TOKEN={secrets[0]}\x00\ufffd"),
            said(f"\ud800GITHUB_TOKEN={secrets[1]}\udfff \x1b[31m{secrets[2]}\x1b[0m", "u2"),
        ],
    )
    with path.open("ab") as file:
        file.write(b"\xff\xfe\x00" + secrets[3].encode() + b'\x80\x00{"a\n')
        file.write(json.dumps(said("sound end", "u3")).encode() + b"\n")
    index()
    clean(funes_home, *secrets)
    assert "sound end" in texts(funes_home)


def test_half_escaped_json(projects: Path, funes_home: Path, index: Any) -> None:
    secrets = [token() for _ in range(4)]
    inner = json.dumps({"env": {"GITHUB_TOKEN": secrets[0]}})
    sessions.write(
        projects / "p" / "s1.jsonl",
        [
            said(f"got {json.dumps(inner)} back"),
            said(f"got {json.dumps(json.dumps(inner.replace(secrets[0], secrets[1])))}", "u2"),
            said('{\\"token\\": \\"' + secrets[2] + "\\\\n, and then", "u3"),
            said(f"line\\nGITHUB_TOKEN={secrets[3]}\\nline", "u4"),
        ],
    )
    index()
    clean(funes_home, *secrets)


def test_on_the_borders_of_chunks(projects: Path, funes_home: Path, index: Any) -> None:
    secrets = [token() for _ in range(60)]
    text = ""
    for n, secret in enumerate(secrets):
        text += "plain words of no interest " * (3 + n % 7) + f"{secret} "
    sessions.write(projects / "p" / "s1.jsonl", [said(text), calls("Bash", {"command": text})])
    index()
    with reading(funes_home) as memory:
        assert len(memory.session_rows("s1")) > 4
    clean(funes_home, *secrets, *(secret[:24] for secret in secrets))


def test_a_key_over_two_turns(projects: Path, funes_home: Path, index: Any) -> None:
    lines = [made(64) for _ in range(24)]
    head = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *lines[:12]])
    tail = "\n".join([*lines[12:], "-----END RSA PRIVATE KEY-----"])
    sessions.write(
        projects / "p" / "s1.jsonl",
        [said(head), said(tail, "u2", role="assistant")],
    )
    index()
    clean(funes_home, *lines)


def begins_with_digits() -> str:
    while True:
        drawn = token()
        if sum(map(str.isdigit, drawn[4:24])) >= 2:
            return drawn


def test_a_token_over_two_turns(projects: Path, funes_home: Path, index: Any) -> None:
    # Half of one without a digit may be a name: no rule can tell.
    first, second = (begins_with_digits() for _ in range(2))
    sessions.write(
        projects / "p" / "s1.jsonl",
        [
            said(f"export GITHUB_TOKEN={first[:24]}"),
            said(first[24:], "u2"),
            said(f"it prints\n{second[:28]}", "u3", role="assistant"),
            said(f"{second[28:]}\nand ends", "u4", role="assistant"),
        ],
    )
    index()
    clean(funes_home, first[:24], second[:28])


def test_in_names_of_tools_and_files(projects: Path, funes_home: Path, index: Any) -> None:
    secrets = [token() for _ in range(3)]
    sessions.write(
        projects / "p" / "s1.jsonl",
        [
            said("go", cwd=f"/work/{secrets[2]}/src"),
            calls(f"mcp__{secrets[0]}__get", {"x": 1}),
            said(sessions.tool_result("an answer", id="c-u2"), "u3"),
            calls("Write", {"file_path": f"/work/{secrets[1]}/a.py", "content": "x = 1\n"}, "u4"),
            said(sessions.tool_result("written", id="c-u4"), "u5"),
            calls("Bash", {"command": f"cat /work/{secrets[1]}/a.py"}, "u6"),
            said(sessions.tool_result("x = 1", id="c-u6"), "u7"),
        ],
    )
    index()
    clean(funes_home, *secrets)
    assert "an answer" in texts(funes_home)


def test_in_the_name_of_a_trace(projects: Path, funes_home: Path, index: Any) -> None:
    secret, folder = token(), token()
    cwd = f"/work/{folder}"
    munged = "".join(one if one.isalnum() else "-" for one in cwd)
    path = projects / munged / f"{secret}.jsonl"
    sessions.write(path, [said("hello", cwd=cwd)])
    index()
    clean(funes_home, secret, folder, folder.replace("_", "-"))
    sessions.append(path, [said("more of it", "u2", cwd=cwd)])
    report = index()
    assert (report.sessions, report.chunks, report.removed) == (1, 1, 0)
    assert index().current == 1
    clean(funes_home, secret, folder, folder.replace("_", "-"))


def test_in_a_remote_a_branch_and_a_title(
    projects: Path, funes_home: Path, own_home: Path, index: Any
) -> None:
    password, secret, other = made(20), token(), token()
    project = own_home / "src"
    address = f"https://bot:{password}@git.example.org/acme/{other}.git"
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    subprocess.run(["git", "-C", str(project), "remote", "add", "origin", address], check=True)
    sessions.write(
        projects / "p" / "s1.jsonl",
        [
            said(
                f"{'word ' * 36}the token is {secret}", cwd=str(project), gitBranch=f"fix/{secret}"
            ),
            calls("Bash", {"command": "git remote -v"}),
            said(sessions.tool_result(f"origin\t{address} (fetch)", id="c-u2"), "u3"),
        ],
    )
    index()
    clean(funes_home, password, secret, secret[:12], other)
    with reading(funes_home) as memory:
        session = memory.catalog.session("s1")
    assert session is not None and session.repo.startswith("acme/")


def test_codex_notes_the_remote(own_home: Path, funes_home: Path, index: Any) -> None:
    password = made(20)
    stamp = "2026-03-02T10:00:00.000Z"
    meta = {
        "id": "0196a1b2-0000-7000-8000-000000000001",
        "timestamp": stamp,
        "cwd": "/work/demo",
        "git": {"repository_url": f"https://bot:{password}@git.example.org/acme/app.git"},
    }
    message = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "hello there"}],
    }
    path = own_home / ".codex" / "sessions" / "2026" / "03" / "02"
    name = "rollout-2026-03-02T10-00-00-0196a1b2-0000-7000-8000-000000000001.jsonl"
    records = [
        {"timestamp": stamp, "type": "session_meta", "payload": meta},
        {"timestamp": stamp, "type": "response_item", "payload": message},
    ]
    sessions.write(path / name, records)
    assert index().chunks == 1
    clean(funes_home, password)


def test_without_redaction_everything_stays(
    projects: Path, funes_home: Path, index: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUNES_REDACTION", "off")
    secret = token()
    sessions.write(projects / "p" / "s1.jsonl", [said(f"GITHUB_TOKEN={secret}")])
    assert index().redacted == {}
    assert secret in texts(funes_home)
