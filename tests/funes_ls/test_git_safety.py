"""Asking git runs no program, writes nothing and goes nowhere, whatever a repository says."""

import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from funes_ls.git_evidence import GitEvidence
from funes_ls.indexer.git import ask_git, end_running, environment
from tests.funes_ls.repositories import Repository

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform == "win32", reason="the traps are shell scripts"),
]

MON = 1_767_225_600


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


class Trap:
    """A program that leaves a mark when it is run, by every way git knows to run one."""

    def __init__(self, repo: Repository, folder: Path) -> None:
        self.sprung = folder / "sprung"
        self.program = folder / "trap.sh"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> "{self.sprung}"\ncat "$@"\n')
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)
        program = str(self.program)
        for key in (
            *("filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.evil.command"),
            *("diff.external", "core.fsmonitor", "core.pager", "pager.blame", "pager.log"),
            *("core.sshCommand", "core.gitProxy", "core.askPass", "credential.helper"),
            *("gpg.program", "core.editor", "sequence.editor", "uploadpack.packObjectsHook"),
        ):
            repo.git("config", key, program)
        for key in ("blame", "rev-parse", "cat-file", "ls-tree"):
            repo.git("config", f"alias.{key}", f"!{program}")
        repo.git("config", "log.showSignature", "true")
        hooks = folder / "hooks"
        hooks.mkdir()
        for name in ("fsmonitor-watchman", "post-index-change", "reference-transaction"):
            (hooks / name).symlink_to(self.program)
        repo.git("config", "core.hooksPath", str(hooks))


def test_no_program_of_the_repository_is_run(
    repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n".join(f"a line that is long enough {n}" for n in range(20)) + "\n"
    repo.write(".gitattributes", "* filter=evil diff=evil\n")
    repo.write("a", text)
    repo.commit(date=MON)
    repo.git("mv", "a", "b")
    repo.commit(date=MON + 60)
    repo.git("notes", "--ref=ai", "add", "-m", "b\n  h_1 1\n---\n{}", date=MON)
    trap = Trap(repo, tmp_path)
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_ASKPASS", "GIT_SSH_COMMAND", "PAGER"):
        monkeypatch.setenv(name, str(trap.program))
    (repo.root / "b").write_text("changed\n" + text)
    found = GitEvidence(patience_s=30).look(repo.root / "b").times
    assert found[:2] == (None, (MON + 1) * 1_000_000 - 1)
    assert not trap.sprung.exists()
    # The trap is a good one: asked as anybody would, git runs it.
    subprocess.run(["git", "blame", "b"], cwd=repo.root, capture_output=True, timeout=30)
    assert trap.sprung.exists()


def test_nothing_is_written(repo: Repository) -> None:
    file = repo.write("a", "one\n")
    repo.commit(date=MON)
    os.utime(file, (MON, MON))  # git would refresh its index
    before = {one: one.stat().st_mtime_ns for one in repo.root.rglob("*")}
    assert GitEvidence(patience_s=30).look(file).times[0]
    assert {one: one.stat().st_mtime_ns for one in repo.root.rglob("*")} == before


def test_a_program_beside_the_file_is_not_taken_for_git(
    repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = repo.write("a", "one\n")
    repo.commit(date=MON)
    trap = Trap(repo, tmp_path)
    (repo.root / "git").symlink_to(trap.program)
    monkeypatch.chdir(repo.root)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.pathsep}{os.environ['PATH']}")
    assert GitEvidence(patience_s=30).look(file).times[0]
    assert not trap.sprung.exists()


def test_what_takes_too_long_is_ended(repo: Repository) -> None:
    begun = time.monotonic()
    repo.git("config", "alias.wait", "!sleep 20")
    assert ask_git("wait", cwd=repo.root, deadline=begun + 0.3) is None
    assert time.monotonic() - begun < 10
    assert ask_git("version", cwd=repo.root, deadline=begun) is None


def test_what_runs_can_be_ended(repo: Repository) -> None:
    repo.git("config", "alias.wait", "!sleep 20")
    answers: list[bytes | None] = []

    def wait() -> None:
        deadline = time.monotonic() + 25
        answers.append(ask_git("wait", cwd=repo.root, deadline=deadline))

    thread = threading.Thread(target=wait)
    begun = time.monotonic()
    thread.start()
    while thread.is_alive() and time.monotonic() < begun + 15:
        end_running()
        thread.join(0.05)
    assert answers == [None]
    assert time.monotonic() - begun < 15


def test_variables_of_git_stay_out_but_those_of_trust() -> None:
    given = {
        "PATH": "/bin",
        "GIT_DIR": "x",
        "GIT_CONFIG_PARAMETERS": "x",
        "GIT_CEILING_DIRECTORIES": "/home",
        "GIT_CONFIG_GLOBAL": "/own",
        "LC_ALL": "de_DE.UTF-8",
    }
    found = environment(given)
    assert not {"GIT_DIR", "GIT_CONFIG_PARAMETERS"} & set(found)
    assert found["GIT_CEILING_DIRECTORIES"] == "/home"
    assert found["GIT_CONFIG_GLOBAL"] == "/own"
    assert (found["PATH"], found["LC_ALL"]) == ("/bin", "C")
