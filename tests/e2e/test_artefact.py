"""`funes recall` asked with a diff, a trace or a file, by real git on the sample sessions."""

import os
import pty
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cli import COMMAND, Ran
from tests.e2e.engines import Engines
from tests.e2e.lsp_client import Server
from tests.funes_ls.repositories import Repository

ERROR = (
    "tests/fakes.py:31: in sleep\n    heapq.heappush(self.waiting, (due, future))\n"
    "E   TypeError: '<' not supported between instances of 'Future' and 'Future'\n"
)
CAUSE = "Two sleepers with the same wake-up time"
FAKES = (
    "import heapq\n\n\ndef sleep(self, seconds, future):\n    heapq.heappush(self._sleepers, {})\n"
)
BEFORE, AFTER = (
    "(self.now_s + seconds, future)",
    "(self.now_s + seconds, next(self._order), future)",
)


def recall(
    *argv: str,
    stdin: bytes | int = subprocess.DEVNULL,
    cwd: Path | None = None,
    **env: str,
) -> Ran:
    """Run `funes recall` as a process of its own, in a folder."""
    done = subprocess.run(
        [*COMMAND, "recall", *argv],
        **({"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}),  # type: ignore[call-overload]
        capture_output=True,
        timeout=60,
        cwd=cwd,
        env={**os.environ, "FUNES_ENGINE": "inline", **env},
    )
    return Ran(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Make a working tree with a file that was committed and has changed since."""
    found = Repository(tmp_path / "tree")
    found.write("tests/fakes.py", FAKES.format(BEFORE))
    found.write("notes.txt", "calm\n")
    found.commit(date=1_770_000_000)
    found.write("tests/fakes.py", FAKES.format(AFTER))
    return found


def around(answer: dict[str, Any]) -> str:
    """Return what the best hit and its neighbours say."""
    best = answer["hits"][0]
    return " ".join([best["text"], *(near["text"] for near in best["neighbors"])])


def test_a_trace_on_stdin_finds_who_had_the_error_and_mended_it(samples: Path) -> None:
    answer = recall("--trace", "--json", stdin=ERROR.encode()).json
    assert CAUSE in around(answer)
    assert answer["asked"]["kind"] == "trace"
    assert answer["asked"]["said"].startswith("TypeError: '<' not supported")
    assert answer["asked"]["files"] == ["tests/fakes.py"]


def test_the_text_answer_begins_with_what_was_asked(samples: Path) -> None:
    ran = recall("--trace", "-k", "1", stdin=ERROR.encode())
    first, second, third, *_ = ran.out.splitlines()
    assert first.startswith("? trace: TypeError: '<' not supported between instances of")
    assert "tests/fakes.py" in first
    assert (second, third[:1]) == ("---", "[")


def test_plain_questions_are_answered_as_before(samples: Path) -> None:
    assert recall("jitter").out.startswith("[")
    assert recall("--json", "jitter").json["asked"] is None


def test_the_diff_of_the_working_tree_finds_where_it_was_made(
    samples: Path, repository: Repository
) -> None:
    answer = recall("--diff", "--json", cwd=repository.root / "tests").json
    assert CAUSE in around(answer)
    assert answer["asked"]["files"] == ["tests/fakes.py"]
    assert "_order" in " ".join(answer["asked"]["names"]) or "order" in answer["asked"]["names"]


def test_staged_changes_are_asked_apart_from_others(samples: Path, repository: Repository) -> None:
    nothing = recall("--diff", "--staged", cwd=repository.root)
    assert (nothing.code, "Nothing is staged." in nothing.err) == (2, True)
    repository.write("notes.txt", "jitter\n")
    repository.git("add", "notes.txt")
    staged = recall("--staged", "--json", cwd=repository.root).json
    assert staged["asked"]["files"] == ["notes.txt"]
    both = recall("--diff", "--json", cwd=repository.root).json
    assert set(both["asked"]["files"]) == {"notes.txt", "tests/fakes.py"}


def test_a_tree_without_a_commit_has_a_diff_too(samples: Path, tmp_path: Path) -> None:
    fresh = Repository(tmp_path / "fresh")
    fresh.write("tests/fakes.py", FAKES.format(AFTER))
    fresh.git("add", "-A")
    assert recall("--diff", "--json", cwd=fresh.root).json["asked"]["files"] == ["tests/fakes.py"]


@pytest.mark.parametrize("argv", [["--diff"], ["--diff", "-"]])
def test_a_patch_on_stdin_goes_before_the_working_tree(
    argv: Sequence[str], samples: Path, repository: Repository
) -> None:
    repository.commit(date=1_770_000_100, message="Sleepers keep their order")
    patch = repository.git("show").encode()
    answer = recall(*argv, "--json", stdin=patch, cwd=repository.root).json
    assert answer["asked"]["said"] == "Sleepers keep their order"
    assert CAUSE in around(answer)


def test_a_pipe_that_says_nothing_does_not_hold_up_a_diff(
    samples: Path, repository: Repository
) -> None:
    silent, held_open = os.pipe()
    try:
        answer = recall("--diff", "--json", stdin=silent, cwd=repository.root).json
    finally:
        os.close(silent)
        os.close(held_open)
    assert answer["asked"]["files"] == ["tests/fakes.py"]


def test_settings_of_a_repository_run_nothing(samples: Path, repository: Repository) -> None:
    trap = repository.root.parent / "sprung"
    for key in ("diff.external", "core.fsmonitor", "core.pager", "diff.trap.textconv"):
        repository.git("config", key, f"touch {trap};")
    repository.write(".git/info/attributes", "*.py diff=trap\n")
    assert recall("--diff", "--json", cwd=repository.root).code == 0
    assert not trap.exists()


def test_a_file_asks_and_words_narrow_it(samples: Path, repository: Repository) -> None:
    file = str(repository.root / "tests" / "fakes.py")
    answer = recall("--file", file, "--json", "sleepers heap").json
    assert answer["asked"]["files"] == [file]
    assert CAUSE in around(answer)


@pytest.mark.parametrize(
    ("argv", "stdin", "said"),
    [
        (["--trace"], b"", "no trace on stdin"),
        (["--trace"], b" \n\t\n", "no trace on stdin"),
        (["--trace"], b"\0" * 3_000, "The trace is empty"),
        (["--diff", "-"], b"", "no diff on stdin"),
        (["--diff"], b"just some words\n", "This is no diff"),
        (["--diff", "--staged", "-"], b"x", "cannot be staged"),
        (["--diff", "--trace"], b"x", "Only one of"),
        (["--trace", "--file", "x"], b"x", "Only one of"),
        (["--file", "nowhere.py"], b"", "nowhere.py cannot be read"),
        (["--file", "."], b"", "is a folder"),
        (["--file", "blob.bin"], b"", "blob.bin is no text"),
        (["--file", "a\udcffb"], b"", "cannot be read"),
        (["--diff"], b"", "in no git repository"),
        (["--staged"], b"", "in no git repository"),
    ],
)
def test_what_cannot_be_asked_with_is_a_usage_error(
    argv: Sequence[str], stdin: bytes, said: str, samples: Path, tmp_path: Path
) -> None:
    (tmp_path / "blob.bin").write_bytes(b"\x7fELF\0\0\1")
    ran = recall(*argv, stdin=stdin, cwd=tmp_path, GIT_CEILING_DIRECTORIES=str(tmp_path.parent))
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_an_empty_file_asks_with_its_name(samples: Path, tmp_path: Path) -> None:
    file = tmp_path / "tests" / "fakes.py"
    file.parent.mkdir()
    file.touch()
    assert "tests/fakes.py" in around(recall("--file", str(file), "--json").json)


def test_an_unchanged_tree_says_so(samples: Path, repository: Repository) -> None:
    repository.commit(date=1_770_000_100)
    ran = recall("--diff", cwd=repository.root)
    assert (ran.code, "Nothing has changed" in ran.err) == (2, True)


def test_a_binary_change_asks_with_its_file(samples: Path, repository: Repository) -> None:
    repository.commit(date=1_770_000_100)
    repository.write("logo.bin", b"\0\1\2" * 100)
    repository.git("add", "-A")
    assert recall("--diff", "--json", cwd=repository.root).json["asked"]["files"] == ["logo.bin"]


@pytest.mark.parametrize("option", ["--trace", "--diff"])
def test_a_terminal_on_stdin_is_not_waited_for(option: str, samples: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        ran = recall(option, "-", stdin=theirs, cwd=tmp_path)
    finally:
        os.close(ours)
        os.close(theirs)
    assert (ran.code, "which is a terminal" in ran.err) == (2, True)


def test_without_git_a_diff_says_what_else_would_do(
    samples: Path, repository: Repository, tmp_path: Path
) -> None:
    ran = recall("--diff", cwd=repository.root, PATH=str(tmp_path / "nothing"))
    assert (ran.code, "git cannot be run" in ran.err) == (1, True)


@pytest.mark.slow
def test_a_slow_git_is_ended(samples: Path, repository: Repository, tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexec sleep 300\n", encoding="utf-8")
    fake.chmod(0o755)
    ran = recall("--diff", cwd=repository.root, PATH=f"{fake.parent}:{os.environ['PATH']}")
    assert (ran.code, "took longer than 10 s" in ran.err) == (1, True)


def test_a_text_of_powershell_and_one_in_latin_1_ask(samples: Path) -> None:
    for data in (ERROR.encode("utf-16"), ERROR.encode() + b"\xe9\xff broken\n"):
        assert CAUSE in around(recall("--trace", "--json", stdin=data).json)


def test_a_stream_of_stages_names_what_was_asked(samples: Path) -> None:
    ran = recall("--trace", "--stream", stdin=ERROR.encode())
    assert ran.out.count('"asked":{"kind":"trace"') == 2


def test_the_engine_answers_the_same_and_takes_a_path(served: Engines, tmp_path: Path) -> None:
    file = tmp_path / "fakes.py"
    file.write_text(FAKES.format(AFTER), encoding="utf-8")
    by_path = served.ask("funes/recall", artefact={"kind": "file", "path": str(file)})
    text = file.read_text(encoding="utf-8")
    by_text = served.ask("funes/recall", artefact={"kind": "file", "path": str(file), "text": text})
    assert by_path["asked"] == by_text["asked"]
    assert by_path["hits"][0]["get"] == by_text["hits"][0]["get"]


def test_ten_megabytes_are_answered_by_the_engine(served: Engines) -> None:
    log = "INFO all is well here\n" * 450_000 + ERROR
    answer = served.ask("funes/recall", artefact={"kind": "trace", "text": log})
    assert CAUSE in around(answer)


@pytest.mark.parametrize("byte", [b"\x01", b"\x1b", b"\xff"])
def test_what_grows_in_a_message_still_fits_one(byte: bytes, served: Engines) -> None:
    ran = with_engine(served, "--trace", stdin=byte * 11_000_000)
    assert (ran.code, "no words to look for" in ran.err) == (2, True)
    assert "without it" not in ran.err


def test_ten_megabytes_that_git_tells_are_answered(served: Engines, repository: Repository) -> None:
    repository.write("a_large.txt", "filler of the tide table\n" * 420_000)
    repository.git("add", "-N", "a_large.txt")
    ran = with_engine(served, "--diff", "--json", cwd=repository.root)
    assert set(ran.json["asked"]["files"]) == {"a_large.txt", "tests/fakes.py"}
    assert "without it" not in ran.err


def with_engine(served: Engines, *argv: str, stdin: bytes = b"", cwd: Path | None = None) -> Ran:
    """Run `funes recall` as a process of its own that asks the engine."""
    done = subprocess.run(
        [*COMMAND, "recall", *argv],
        input=stdin,
        capture_output=True,
        timeout=60,
        cwd=cwd,
        env=served.env,
    )
    return Ran(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())


@pytest.mark.parametrize(
    "artefact",
    [
        {"kind": "poem", "text": "roses"},
        {"kind": "trace"},
        {"kind": "diff", "text": "  "},
        {"kind": "file", "path": "relative.py"},
        {"kind": "file", "path": "/no/such/file.py"},
        {"kind": "file", "path": "/"},
        {"kind": "trace", "text": "x y", "more": 1},
        "trace",
    ],
)
def test_bad_artefacts_are_refused(artefact: Any, server: Server) -> None:
    from tests.e2e.lsp_client import LspError

    with pytest.raises(LspError) as caught:
        server.request("funes/recall", {"artefact": artefact})
    assert caught.value.code in (-32602, -32803)
