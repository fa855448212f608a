"""Times what git is asked for a blame: `python -m benchmarks.git_evidence [--commits 500]`.

Makes a repository with one long file of many commits and notes of git-ai at every other one.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from funes_ls.git_evidence import Findings, GitEvidence

_FIRST = 1_767_225_600
_NAME = "long.py"


def main() -> None:
    """Print a table of milliseconds."""
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("--lines", type=int, default=5_000)
    wanted.add_argument("--commits", type=int, default=500)
    wanted.add_argument("--rounds", type=int, default=50)
    args = wanted.parse_args()
    with tempfile.TemporaryDirectory(prefix="funes-git-") as folder:
        file = _repository(Path(folder), args.lines, args.commits)
        lines = file.read_text(encoding="utf-8").split("\n")
        print(f"{len(lines) - 1} lines, {args.commits} commits\n")
        print("| what | p50 | max | lines known |\n|---|---|---|---|")
        for what, taken, found in _measured(file, lines, args.rounds):
            known = sum(one is not None for one in found.times)
            print(
                f"| {what} | {statistics.median(taken):.1f} | {max(taken):.1f} "
                f"| {known} of {len(found.times)} |"
            )


def _measured(
    file: Path, lines: list[str], rounds: int
) -> Iterator[tuple[str, list[float], Findings]]:
    impatient = GitEvidence()
    yield "first question, as it is asked", *_timed(lambda: impatient.look(file, lines), 1)
    patient = GitEvidence(patience_s=60)
    yield "first question, waited for", *_timed(lambda: patient.look(file, lines), 1)
    yield "next questions", *_timed(lambda: patient.look(file, lines), rounds)
    yield "of one line", *_timed(lambda: patient.look(file, lines, 2_000, 2_000), rounds)
    typed = iter([[*lines[:2_500], f"typed {n}", *lines[2_500:]] for n in range(rounds)])
    yield "after every change", *_timed(lambda: patient.look(file, next(typed)), rounds)


def _timed(ask: Callable[[], Findings], rounds: int) -> tuple[list[float], Findings]:
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        found = ask()
        taken.append((time.perf_counter() - begun) * 1_000)
    return taken, found


def _repository(folder: Path, count: int, commits: int) -> Path:
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "fast-import", "--quiet", stdin=b"".join(_history(count, commits)))
    _git(folder, "reset", "-q", "--hard", "main")
    return folder / _NAME


def _history(count: int, commits: int) -> Iterator[bytes]:
    """Give a history, as `git fast-import` reads it: each commit changes some lines."""
    rng = random.Random(1)
    lines = [f"value_{n} = {rng.random()}" for n in range(count)]
    for commit in range(commits):
        for _ in range(20):
            lines[rng.randrange(count)] = f"changed_{commit} = {rng.random()}"
        place = rng.randrange(count - 3)
        lines[place:place] = [f"new_{commit}_{n} = {rng.random()}" for n in range(3)]
        del lines[-3:]
        text = "\n".join(lines) + "\n"
        who = f"Ada <ada@example.org> {_FIRST + 3_600 * commit} +0000"
        yield f"commit refs/heads/main\nmark :{commit + 1}\ncommitter {who}\n".encode()
        yield f"data 1\nx\nM 100644 inline {_NAME}\ndata {len(text)}\n{text}\n".encode()
    for commit in range(0, commits, 2):
        yield from _note(commit)


def _note(commit: int) -> Iterator[bytes]:
    key = f"{commit:016x}"
    agent = {"agent_id": {"tool": "claude", "id": f"session-{commit}", "model": "m"}}
    about = json.dumps({"schema_version": "authorship/3.0.0", "prompts": {key: agent}}, indent=1)
    text = f"{_NAME}\n  {key} 1-5000\n---\n{about}"
    who = f"Ada <ada@example.org> {_FIRST} +0000"
    yield f"commit refs/notes/ai\ncommitter {who}\ndata 1\nx\n".encode()
    yield f"N inline :{commit + 1}\ndata {len(text)}\n{text}\n".encode()


def _git(folder: Path, *args: str, stdin: bytes | None = None) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command: Sequence[str] = ["git", *args]
    subprocess.run(command, cwd=folder, input=stdin, env=env, check=True)


if __name__ == "__main__":
    main()
