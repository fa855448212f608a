"""Real repositories for the tests that ask git."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path


class Repository:
    """A working tree; its commits have the dates they are given."""

    def __init__(self, root: Path, *, init: bool = True) -> None:
        """Make one at a path that may exist."""
        self.root = root
        if init:
            root.mkdir(parents=True, exist_ok=True)
            self.git("init", "-q", "-b", "main")

    def git(self, *args: str, date: int = 0, author: int = 0, stdin: bytes | None = None) -> str:
        """Run git and return what it prints; dates are seconds since 1970."""
        return run_git(self.root, args, date=date, author=author, stdin=stdin)

    def write(self, path: str, text: str | bytes) -> Path:
        """Write a file, with the line ends the text has."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def commit(self, *, date: int, author: int = 0, message: str = "change") -> str:
        """Commit everything and return the commit's name."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message, date=date, author=author or date)
        return self.head()

    def head(self) -> str:
        """Return the commit that is checked out."""
        return self.git("rev-parse", "HEAD").strip()


def run_git(
    cwd: Path, args: Sequence[str], *, date: int = 0, author: int = 0, stdin: bytes | None = None
) -> str:
    """Run git for a test, with a name of its own and no settings of this machine."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
        "GIT_EDITOR": "true",
    }
    if date:
        env["GIT_COMMITTER_DATE"] = f"@{date} +0000"
    if author:
        env["GIT_AUTHOR_DATE"] = f"@{author} +0000"
    options = ["-c", "protocol.file.allow=always", "-c", "commit.gpgSign=false"]
    run = subprocess.run(
        ["git", *options, *args], cwd=cwd, env=env, input=stdin, capture_output=True, timeout=30
    )
    assert run.returncode == 0, run.stderr.decode()
    return run.stdout.decode("utf-8", "surrogateescape")
