"""Writes a large, varied, made-up history of coding sessions; seeded, so that it can be repeated.

Prose comes from the sample sessions and from docstrings, code and listings from the standard
library of this Python. Every session swaps a quarter of the words for others of equal length, so
that a hundred sessions over one file do not hold one text a hundred times.
"""

import ast
import datetime as dt
import hashlib
import json
import os
import random
import re
import sysconfig
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from funes_ls.indexer.model import Problem, Turn
from funes_ls.indexer.traces import detect

SAMPLES = Path(__file__).resolve().parents[2] / "tests" / "traces" / "home"

_WORD = re.compile(r"[A-Za-z]{5,}")
_SWAPPED_IN_100 = 25
_END = dt.datetime(2026, 11, 30, tzinfo=dt.UTC)
_DAYS = 365
_PROJECTS = 40
#: Sizes of sessions: the median in bytes, and the spread of their logarithm.
_MEDIAN_BYTES, _SPREAD = 30_000, 1.2
_MOST_BYTES = 6_000_000
_LEAST_FILE = 1500

_PROMPTS = (
    "can you look at {file}? {name} breaks when the list is empty",
    "where do we set {name}, I think it is in {file}",
    "write a test for {name}",
    "why is {file} this slow, should {name} be cached",
    "take {name} out of {file} please, and keep the tests green",
    "the build fails since yesterday: {name} is not defined in {file}",
    "what did we decide about {name}",
    "explain how {file} uses {name}",
)


class Corpus(Struct, frozen=True, kw_only=True):
    """What sessions are made of.

    Attributes:
        prose: Paragraphs.
        files: Path below a project and the lines of it.
        names: Identifiers to ask about.
        words: Words by length, for swapping.
    """

    prose: tuple[str, ...]
    files: tuple[tuple[str, tuple[str, ...]], ...]
    names: tuple[str, ...]
    words: dict[int, tuple[str, ...]]


def write_history(home: Path, *, megabytes: float, seed: int) -> int:
    """Write sessions below `home/.claude/projects` and return how many bytes they have."""
    corpus = gather()
    chance = random.Random(seed)
    projects = [_project(corpus, chance) for _ in range(_PROJECTS)]
    written = number = 0
    while written < megabytes * 1e6:
        size = min(_MOST_BYTES, int(_MEDIAN_BYTES * chance.lognormvariate(0, _SPREAD)))
        cwd = projects[min(int(chance.expovariate(0.12)), _PROJECTS - 1)]
        written += _Session(corpus, seed=f"{seed}-{number}", cwd=cwd).write(home, size)
        number += 1
    return written


def _project(corpus: Corpus, chance: random.Random) -> str:
    return "/home/dev/src/" + "-".join(chance.choice(corpus.words[6]) for _ in range(2))


def gather() -> Corpus:
    """Return what this machine has to make sessions of."""
    files = tuple(_library())
    prose = tuple(dict.fromkeys([*_sample_prose(), *_docstrings(files)]))
    counts: dict[int, set[str]] = defaultdict(set)
    names: set[str] = set()
    for _, lines in files:
        for word in _WORD.findall("\n".join(lines)):
            counts[len(word)].add(word.lower())
        names.update(re.findall(r"def ([a-z_]{6,})\(", "\n".join(lines)))
    words = {length: tuple(sorted(found)) for length, found in counts.items()}
    return Corpus(prose=prose, files=files, names=tuple(sorted(names)), words=words)


def _library() -> Iterator[tuple[str, tuple[str, ...]]]:
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted([*root.glob("*.py"), *root.glob("*/*.py")]):
        if {"site-packages", "test", "idlelib", "__pycache__"} & set(path.parts):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if len(text) > _LEAST_FILE:
            yield f"src/{path.relative_to(root).as_posix()}", tuple(text.split("\n"))


def _sample_prose() -> Iterator[str]:
    for path in sorted(SAMPLES.rglob("*.jsonl")):
        source = detect(path)
        for unit in source.units(path):
            for item in () if isinstance(unit, Problem) else source.read(unit):
                if isinstance(item, Turn):
                    yield from (b.text for b in item.blocks if b.block_type == "text")


def _docstrings(files: tuple[tuple[str, tuple[str, ...]], ...]) -> Iterator[str]:
    kinds = (ast.FunctionDef, ast.ClassDef, ast.Module)
    for _, lines in files:
        for node in ast.walk(ast.parse("\n".join(lines))):
            text = ast.get_docstring(node) if isinstance(node, kinds) else None
            if text and 80 < len(text) < 4000:
                yield text


class _Session:
    """Composes one session, in the words of its own."""

    def __init__(self, corpus: Corpus, *, seed: str, cwd: str) -> None:
        self._corpus = corpus
        self._chance = random.Random(seed)
        self._salt = zlib.crc32(seed.encode())
        self._known: dict[str, str] = {}
        self._lines: list[str] = []
        self._size = 0
        self._cwd = cwd
        self._id = self._uuid()
        self._parent: str | None = None
        self._at = _END - dt.timedelta(days=self._chance.random() * _DAYS)

    def write(self, home: Path, size: int) -> int:
        """Write at least so many bytes and return how many."""
        while self._size < size:
            self._step()
        folder = home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", self._cwd)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self._id}.jsonl"
        path.write_text("".join(self._lines), encoding="utf-8")
        os.utime(path, (self._at.timestamp(), self._at.timestamp()))
        return path.stat().st_size

    def _step(self) -> None:
        """Add a prompt and what follows on it."""
        chance = self._chance
        file, lines = chance.choice(self._corpus.files)
        name = chance.choice(self._corpus.names)
        self._add("user", self._vary(chance.choice(_PROMPTS).format(file=file, name=name)))
        for _ in range(1 + int(chance.expovariate(0.3))):
            self._add("assistant", [{"type": "text", "text": self._prose()}])
            self._tool(file, lines)
        self._add("assistant", [{"type": "text", "text": self._prose()}])

    def _prose(self) -> str:
        paragraphs = self._chance.choices(self._corpus.prose, k=1 + int(self._chance.random() * 2))
        return self._vary("\n\n".join(paragraphs))

    def _tool(self, file: str, lines: tuple[str, ...]) -> None:
        """Add a call of a tool on a stretch of a file, and its answer."""
        first = self._chance.randrange(max(1, len(lines) - 20))
        part = lines[first : first + self._chance.randrange(4, 120)]
        path = f"{self._cwd}/{file}"
        kind = self._chance.random()
        if kind < 0.55:
            numbered = (f"{first + n + 1:6d}→{line}" for n, line in enumerate(part))
            self._call("Read", {"file_path": path, "offset": first}, "\n".join(numbered))
        elif kind < 0.75:
            old, new = "\n".join(part[:8]), "\n".join(part[:12])
            edit = {"file_path": path, "old_string": old, "new_string": self._vary(new)}
            self._call("Edit", edit, f"The file {path} has been updated.")
        else:
            found = (f"{path}:{first + n}:{line}" for n, line in enumerate(part) if line.strip())
            word = self._chance.choice(self._corpus.names)
            self._call("Bash", {"command": f"grep -rn {word} {file}"}, "\n".join(found))

    def _call(self, name: str, args: dict[str, Any], answer: str) -> None:
        call = f"toolu_{self._uuid()[:24]}"
        self._add("assistant", [{"type": "tool_use", "id": call, "name": name, "input": args}])
        answered = {"type": "tool_result", "tool_use_id": call, "content": self._vary(answer)}
        self._add("user", [answered])

    def _add(self, role: str, content: str | list[dict[str, Any]]) -> None:
        self._at += dt.timedelta(seconds=1 + self._chance.expovariate(0.05))
        uuid = self._uuid()
        record = {
            "parentUuid": self._parent,
            "isSidechain": False,
            "type": role,
            "uuid": uuid,
            "sessionId": self._id,
            "cwd": self._cwd,
            "gitBranch": "main",
            "timestamp": self._at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "message": {"role": role, "content": content},
        }
        self._parent = uuid
        line = json.dumps(record, ensure_ascii=False) + "\n"
        self._lines.append(line)
        self._size += len(line)

    def _vary(self, text: str) -> str:
        return _WORD.sub(self._other, text)

    def _other(self, found: re.Match[str]) -> str:
        word = found[0]
        other = self._known.get(word)
        if other is None:
            other = self._known[word] = self._swapped(word)
        return other

    def _swapped(self, word: str) -> str:
        number = zlib.crc32(word.lower().encode(), self._salt)
        same_length = self._corpus.words.get(len(word), (word,))
        if number % 100 >= _SWAPPED_IN_100:
            return word
        chosen = same_length[(number // 100) % len(same_length)]
        return chosen.capitalize() if word[0].isupper() else chosen

    def _uuid(self) -> str:
        digits = hashlib.sha256(self._chance.randbytes(16)).hexdigest()
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"
