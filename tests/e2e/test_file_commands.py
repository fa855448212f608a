"""`funes blame` and `funes related` on the sample sessions, and on what is no file."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e import known
from tests.e2e.cli import COMMAND, Ran, funes
from tests.funes_ls.repositories import Repository

LOADER = known.loader()
CLIENT = known.client()


@pytest.fixture
def file(samples: Path, tmp_path: Path) -> Path:
    """Lay a file that a sample session wrote where it is not now; its place is given apart."""
    path = tmp_path / "unsaved.py"
    path.write_text(LOADER.text, encoding="utf-8")
    return path


def blame(place: str, text: Path, *options: str) -> Ran:
    return funes("blame", place, "--text", str(text), *options)


def on_terminal(*argv: str, **env: str) -> str:
    """Run a command on a terminal of its own and return what it shows."""
    pty = pytest.importorskip("pty")
    ours, its = pty.openpty()
    own = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    run = subprocess.Popen([*COMMAND, *argv], stdin=its, stdout=its, env={**own, **env})
    os.close(its)
    shown = b""
    with contextlib.suppress(OSError):  # what it says once nobody writes to it any more
        while piece := os.read(ours, 65536):
            shown += piece
    os.close(ours)
    assert run.wait(timeout=60) == 0
    return shown.decode().replace("\r\n", "\n")


def test_blame(file: Path, golden: Callable[[str, str], None]) -> None:
    ran = blame(LOADER.path, file)
    assert (ran.code, ran.err) == (0, "")
    golden("blame.txt", ran.out)


def test_blame_names_every_line_of_its_session(file: Path) -> None:
    answer = blame(LOADER.path, file, "--json").json
    lines = {n for run in answer["lines"] for n in range(run["start"], run["end"] + 1)}
    assert lines == set(range(1, LOADER.text.count("\n") + 1))
    assert {run["confidence"] for run in answer["lines"]} == {"exact"}
    assert {run["session_id"] for run in answer["lines"]} == {LOADER.session_id}
    named = {(run["session_id"], run["turn_uuid"]) for run in answer["lines"]}
    assert {(turn["session_id"], turn["turn_uuid"]) for turn in answer["turns"]} == named


def test_blame_of_some_lines(file: Path) -> None:
    whole = blame(LOADER.path, file, "--json").json["lines"]
    at = LOADER.line("taken_at = ") + 1
    part = blame(f"{LOADER.path}:{at}-{at + 500}", file, "--json").json["lines"]
    assert part[0]["start"] == at
    assert (
        part[0]["turn_uuid"] == next(r for r in whole if r["start"] <= at <= r["end"])["turn_uuid"]
    )
    one = blame(f"{LOADER.path}:{at}", file).out
    assert f" line {at} exact\n" in one
    assert one.count("---") == 1


def test_lines_of_nobody_are_not_shown(samples: Path, tmp_path: Path) -> None:
    text = tmp_path / "client.py"
    text.write_text(CLIENT.text, encoding="utf-8")
    out = blame(CLIENT.path, text).out
    assert '"""Asks the stations of the upstream service."""' not in out
    assert "---" in out
    other = tmp_path / "other.py"
    other.write_text("nobody = 'wrote this'\n", encoding="utf-8")
    assert blame(CLIENT.path, other).out == f"nothing is known of line 1 of {CLIENT.path}\n"


def test_blame_follows_the_get_of_a_block(file: Path) -> None:
    line = next(one for one in blame(LOADER.path, file).out.splitlines() if "→ get" in one)
    ran = funes("get", *line.split()[2:])
    assert ran.code == 0
    assert "load_readings" in ran.out


def test_a_person_sees_the_lines_with_a_margin(
    file: Path, golden: Callable[[str, str], None]
) -> None:
    argv = ["blame", LOADER.path, "--text", str(file)]
    plain = on_terminal(*argv, COLUMNS="100", NO_COLOR="1", TERM="xterm")
    golden("blame-human.txt", plain)
    assert on_terminal(*argv, COLUMNS="100", TERM="dumb") == plain
    colored = on_terminal(*argv, COLUMNS="100", TERM="xterm")
    assert "\x1b[" in colored
    for paint in ("\x1b[2m", "\x1b[33m", "\x1b[0m"):
        colored = colored.replace(paint, "")
    assert colored == plain
    narrow = on_terminal(*argv, COLUMNS="50", NO_COLOR="1")
    assert max(map(len, narrow.split("\n\n")[0].splitlines())) <= 50


def test_stdin_is_the_unsaved_text(file: Path) -> None:
    run = subprocess.run(
        [*COMMAND, "blame", LOADER.path, "--text", "-", "--json"],
        input=LOADER.text.replace("\n", "\r\n").encode(),
        capture_output=True,
        timeout=60,
        env=os.environ,
    )
    assert (run.returncode, run.stderr) == (0, b"")
    same = blame(LOADER.path, file, "--json").out.encode()
    assert run.stdout.replace(b"\r\n", b"\n") == same


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_and_line_ends_change_nothing(file: Path, end: str, encoding: str) -> None:
    expected = blame(LOADER.path, file, "--json").out
    file.write_bytes(LOADER.text.replace("\n", end).encode(encoding))
    assert blame(LOADER.path, file, "--json").out == expected


@pytest.mark.parametrize("way", ["clone", "worktree", "link"])
def test_a_file_is_known_in_other_checkouts(samples: Path, tmp_path: Path, way: str) -> None:
    clone = Repository(tmp_path / "renamed")
    clone.git("remote", "add", "origin", "https://example.org/lab/tidewater.git")
    rel = "scripts/load_readings.py"
    clone.write(rel, LOADER.text)
    clone.commit(date=1_790_000_000)
    if way == "worktree":
        clone.git("worktree", "add", "-q", str(tmp_path / way))
    if way == "link":
        (tmp_path / way).symlink_to(clone.root)
    file = (clone.root if way == "clone" else tmp_path / way) / rel
    found = funes("blame", str(file), "--json").json["lines"]
    assert {(one["session_id"], one["confidence"]) for one in found} == {
        (LOADER.session_id, "exact")
    }
    assert sum(one["end"] - one["start"] + 1 for one in found) == LOADER.text.count("\n")
    first = funes("related", str(file), "--json").json["sessions"][0]
    assert (first["session_id"], first["relation"]) == (LOADER.session_id, "edited")


def test_what_is_no_utf8_hides_no_other_line(file: Path) -> None:
    file.write_bytes(b"# caf\xe9 \xff\n" + LOADER.text.encode())
    lines = blame(LOADER.path, file, "--json").json["lines"]
    assert lines[0]["start"] == 2


@pytest.mark.parametrize(
    ("data", "place", "code", "said"),
    [
        (b"\x7fELF\0\0", "{}", 1, "is no text"),
        (b"x\n" * (9 << 20), "{}", 1, "more than 16 MB"),
        (b"one\ntwo\n", "{}:3", 2, "has 2 lines; there is no line 3."),
        (b"one\ntwo", "{}:2-9", 0, ""),
        (b"one\n", "{}:0", 2, "names no lines"),
        (b"one\n", "{}:3-2", 2, "names no lines"),
        (b"", "{}", 0, ""),
        (b"", "{}:1", 2, "has 0 lines"),
        (b"x", "{}:12x", 1, "There is no file"),
        (b"x", "{}.gone", 1, "There is no file"),
        (b"x", "{}.gone:7", 1, "`funes related FILE`"),
        (b"x", "{}/below", 1, "cannot be read"),
        (b"x", "nul\0name", 1, "cannot be read"),
        (b"x", "n" * 5000, 1, "cannot be read"),
        (b"x", "/", 2, "is a folder"),
        (b"x", "C:\\no\\where.py:12", 1, "There is no file C:\\no\\where.py."),
    ],
)
def test_what_is_no_file_of_lines(
    samples: Path, tmp_path: Path, data: bytes, place: str, code: int, said: str
) -> None:
    path = tmp_path / "x.py"
    path.write_bytes(data)
    ran = funes("blame", place.format(path))
    assert ran.code == code, ran.err
    assert said in ran.err
    assert "rror" not in ran.err
    assert bool(ran.err) == bool(code)


def test_a_name_with_a_colon_is_a_file(samples: Path, tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("no such names")
    path = tmp_path / "notes:12"
    path.write_text("a\nb\n", encoding="utf-8")
    assert funes("blame", str(path), "--json").json["path"] == str(path)
    assert funes("blame", f"{path}:2", "--json").json["path"] == str(path)
    assert "line 3" in funes("blame", f"{path}:3").err


def test_a_windows_path_is_taken_as_it_is(file: Path) -> None:
    answer = blame("C:\\dev\\x.py:2", file, "--json").json
    assert answer["path"] == "C:\\dev\\x.py"


def test_as_of_leaves_out_what_came_later(file: Path) -> None:
    assert blame(LOADER.path, file, "--as-of", "2026-01-01", "--json").json["lines"] == []
    assert blame(LOADER.path, file, "--as-of", "some day").code == 2


def test_control_characters_never_reach_a_terminal(file: Path) -> None:
    bad = "import sys \x1b]0;x\x07\u202e\x9b31m"
    file.write_text(LOADER.text.replace("import sys", bad), "utf-8")
    argv = ["blame", LOADER.path, "--text", str(file)]
    for out in (funes(*argv).out, on_terminal(*argv, TERM="xterm", COLUMNS="120")):
        assert "import sys ]0;x31m" in out
        assert not [sign for sign in ("\x07", "\u202e", "\x9b", "\x1b]") if sign in out]


def test_related(samples: Path, golden: Callable[[str, str], None]) -> None:
    ran = funes("related", "/home/dev/src/tidewater/src/tidewater/poller.py")
    assert (ran.code, ran.err) == (0, "")
    golden("related.txt", ran.out)


def test_related_by_what_the_file_defines(samples: Path, tmp_path: Path) -> None:
    path = tmp_path / "levels.py"
    path.write_text("def to_navd(x): ...\ndef load_month(x): ...\n", encoding="utf-8")
    found = funes("related", str(path), "--json").json["sessions"]
    assert {one["relation"] for one in found} <= {"symbols", "similar"}
    assert found
    for one in found:
        assert "to_navd" in one["passage"]["text"] or "load_month" in one["passage"]["text"]


def test_related_to_nothing(samples: Path) -> None:
    ran = funes("related", "no/such/file.py")
    assert (ran.code, ran.out) == (0, "no session has to do with no/such/file.py\n")


def test_a_deleted_file_still_has_its_sessions(samples: Path) -> None:
    ran = funes("related", "load_readings.py", "--limit", "1", "--json")
    assert ran.json["sessions"][0]["relation"] == "edited"
    assert ran.json["sessions"][0]["session_id"] == LOADER.session_id
