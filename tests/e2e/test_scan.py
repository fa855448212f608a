"""`funes scan`: finds secrets in memories, traces and files, says where, and never what."""

import json
import re
from pathlib import Path

import pytest

from funes_ls.gate import process
from funes_ls.gate.canaries import canaries
from funes_ls.indexer.errors import ScannerError
from funes_ls.indexer.redaction.base import FoundText
from tests.e2e.cli import funes, index
from tests.sessions import record, tool_use, write


class _None:
    """No first scanner: what is said then is the second one's."""

    def __init__(self, _cache_dir: Path) -> None: ...

    def load(self) -> None:
        raise ScannerError("It is not installed.", kind="scanner_missing")


@pytest.fixture(autouse=True)
def second_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funes_ls.scanning.LocalRedaction", _None)
    monkeypatch.setenv("FUNES_REDACTION", "off")


def secret() -> str:
    return canaries()[0]


def sessions(own_home: Path, made: str) -> Path:
    projects = own_home / ".claude" / "projects" / "p"
    call = tool_use("Bash", {"command": f"export {made}"}, id="t1")
    write(
        projects / "s1.jsonl",
        [record("plain talk", uuid="u1"), record(call, uuid="u2", role="assistant")],
    )
    write(projects / "s2.jsonl", [record("plain talk of kettles", uuid="u3")])
    return projects


def test_a_memory_is_told_by_session_and_turn(own_home: Path) -> None:
    made = secret()
    sessions(own_home, made)
    index()
    ran = funes("scan", "-q")
    assert ran.code == 2
    assert "session s1 turn u2: github-pat (betterleaks)" in ran.out
    assert "s2" not in ran.out
    assert "Run `funes scrub`" in ran.out
    assert made.partition("=")[2] not in ran.out + ran.err
    answer = funes("scan", "local", "--json").json
    assert answer["counts"] == {"github-pat": 1}
    assert answer["kind"] == "memory"
    assert answer["scanners"] == ["betterleaks"]
    assert funes("scan", str(own_home / ".funes"), "-q").code == 2


def test_a_secret_cut_over_chunks_is_found_in_a_memory(own_home: Path) -> None:
    key = canaries()[2]
    text = f"{'word ' * 150}\n{key}\n{'word ' * 400}"
    write(own_home / ".claude" / "projects" / "p" / "s1.jsonl", [record(text, uuid="u1")])
    index()
    assert "session s1 turn u1: private-key" in funes("scan", "-q").out


def test_a_clean_memory_exits_0(own_home: Path) -> None:
    sessions(own_home, "KETTLE=warm")
    index()
    ran = funes("scan", "-q")
    assert ran.code == 0
    assert ran.out.startswith("Clean: ")
    assert funes("scan", "-q", "--json").json["found"] == []


def test_no_memory_and_no_such_path_say_what_to_do(own_home: Path) -> None:
    ran = funes("scan", "-q")
    assert ran.code == 1
    assert "Run `funes index`." in ran.err
    ran = funes("scan", "./nowhere/at-all")
    assert ran.code == 2
    assert "Nothing to scan at ./nowhere/at-all." in ran.err


def test_traces_are_scanned_as_their_reader_has_them(own_home: Path) -> None:
    folder = sessions(own_home, secret())
    ran = funes("scan", str(folder), "-q")
    assert ran.code == 2
    assert "session s1 turn u2: github-pat" in ran.out
    assert "s2" not in ran.out


def test_files_are_told_by_line(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "notes.txt").write_text("line\n" * 90_000 + f"{secret()}\nend\n", encoding="utf-8")
    (folder / "wide.txt").write_text(f"a\n{secret()}\n", encoding="utf-16")
    (folder / "odd.bin").write_bytes(b"\0\xff" * 5000 + secret().encode() + b"\0")
    (folder / "clean.txt").write_text("kettles\n", encoding="utf-8")
    (folder / "rows.jsonl").write_text(
        "\n".join([json.dumps({"a": 1}), json.dumps({"env": f"x\n{secret()}"}), "{broken"]),
        encoding="utf-8",
    )
    ran = funes("scan", str(folder), "-q")
    assert ran.code == 2
    for place in ("notes.txt:90001:", "wide.txt:2:", "odd.bin:1:", "rows.jsonl:2:"):
        assert f"{folder}/{place} github-pat" in ran.out
    assert "clean.txt" not in ran.out
    assert funes("scan", str(folder / "clean.txt"), "-q").code == 0


def test_every_line_of_a_file_is_told_with_its_rules(tmp_path: Path) -> None:
    github, address, key = canaries()[:3]
    path = tmp_path / "many.txt"
    path.write_text(f"plain\n{github} {address}\nplain\n{key}\nplain\n", encoding="utf-8")
    found = funes("scan", str(path), "--json", "-q").json["found"]
    assert [one["place"]["line"] for one in found] == [2, 4]
    rules = [one["rules"]["betterleaks"] for one in found]
    assert rules == [["generic-credential-uri", "github-pat"], ["private-key"]]


class _Sesame(_None):
    """A first scanner: `sesame` is a secret, and so is what `open` says on the next line."""

    def load(self) -> None: ...

    def text(self, text: str) -> FoundText:
        clean, counts = text, {}
        for rule, form in (("word", r"sesame\d"), ("lines", r"(?<=open\n)\w+")):
            clean, count = re.subn(form, "<redacted>", clean)
            counts |= {rule: count} if count else {}
        return FoundText(clean, counts)


def test_finds_of_the_first_scanner_are_told_by_line_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("funes_ls.scanning.LocalRedaction", _Sesame)
    path = tmp_path / "many.txt"
    path.write_text("a\nsesame1\nb\nopen\nbarley\nc\nsesame2 sesame3\n", encoding="utf-8")
    found = funes("scan", str(path), "--json", "-q").json["found"]
    assert [(one["place"]["line"], one["rules"]) for one in found] == [
        (2, {"kingfisher": ["word"]}),
        (5, {"kingfisher": ["lines"]}),
        (7, {"kingfisher": ["word"]}),
    ]


def test_a_secret_in_a_file_name_is_found_and_not_shown(tmp_path: Path) -> None:
    token = secret().partition("=")[2]
    (tmp_path / f"{token}.txt").write_text(f"plain\n{secret()}\n", encoding="utf-8")
    ran = funes("scan", str(tmp_path), "-q", "--json")
    assert ran.code == 2
    assert ran.json["counts"] == {"github-pat": 2}
    assert token not in ran.out + ran.err


def test_a_secret_over_the_seam_of_two_pieces_is_found_once(tmp_path: Path) -> None:
    made = secret()
    path = tmp_path / "long.txt"
    path.write_text(f"{'word ' * 52_424}\n{made}\n{'word ' * 60_000}", encoding="utf-8")
    answer = funes("scan", str(path), "--json", "-q").json
    assert [one["place"]["line"] for one in answer["found"]] == [2]


def test_without_a_scanner_nothing_is_called_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("plain\n", encoding="utf-8")
    monkeypatch.setattr(process, "COMMAND", ("/nowhere/python",))
    ran = funes("scan", str(tmp_path))
    assert ran.code == 1
    assert "Clean" not in ran.out
    assert "betterleaks" in ran.err or "second scanner" in ran.err


def test_a_broken_first_scanner_calls_nothing_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(_None):
        def load(self) -> None:
            raise ScannerError("Its rules cannot be loaded.", kind="scanner_broken")

    monkeypatch.setattr("funes_ls.scanning.LocalRedaction", Broken)
    (tmp_path / "a.txt").write_text("plain\n", encoding="utf-8")
    ran = funes("scan", str(tmp_path), "-q")
    assert ran.code == 1
    assert ran.out == ""
    assert "Nothing can be called clean" in ran.err
