"""Makes up projects whose files agents and people write together, and keeps the truth of each line.

Every change an agent makes has a prompt of its own, which therefore names the turn. What people
write, or had written before, is of nobody. The sessions are written as the harnesses leave them.
"""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct

from tests.traces.script import Script, Step

_SOURCES = Path(__file__).resolve().parents[2]
_HARNESSES = ("claude", "codex", "pi", "hermes")
_START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Line(Struct, frozen=True, kw_only=True):
    """A line of a file; `ask` is the prompt of the turn that wrote it, "" for nobody's."""

    text: str
    ask: str = ""


class File(Struct, kw_only=True):
    """A file of a project as it is in the end.

    Attributes:
        half: Its lines when half of its changes were made.
        half_at: When that was.
    """

    path: str
    lines: list[Line]
    half: list[Line] = []
    half_at: datetime = _START
    changes: int = 0

    @property
    def text(self) -> str:
        """Return the file's text."""
        return text_of(self.lines)


class World(Struct, frozen=True, kw_only=True):
    """Sessions, and the files they made; `cwd` is the folder of all."""

    scripts: list[Script]
    files: list[File]
    cwd: str


def text_of(lines: list[Line]) -> str:
    """Return lines as the text of a file."""
    return "".join(f"{line.text}\n" for line in lines)


def worlds(seed: int, *, count: int, cwd: Callable[[str], str]) -> Iterator[World]:
    """Yield made-up projects, always the same ones for a seed."""
    pool = _pool()
    for number in range(count):
        yield _Author(random.Random(f"{seed}/{number}"), pool, number, cwd).world()


def _pool() -> list[list[str]]:
    """Return real program text to write with: the modules of this very program."""
    modules = sorted(p for top in ("indexer", "retrieval") for p in (_SOURCES / top).glob("*.py"))
    texts = [path.read_text(encoding="utf-8").splitlines() for path in modules]
    return [lines for lines in texts if len(lines) >= 60]


class _Author:
    """Writes one project, session after session."""

    def __init__(
        self, chance: random.Random, pool: list[list[str]], number: int, cwd: Callable[[str], str]
    ) -> None:
        self._chance = chance
        self._number = number
        self._clock = _START + timedelta(days=number)
        self._name = f"project{number:02}"
        self._cwd = cwd(self._name)
        self._modules = chance.sample(pool, 5)
        self._prompts = 0
        self._inserted = 0
        self._files: dict[str, File] = {}
        self._steps: list[Step] = []
        self._harness = ""

    def world(self) -> World:
        """Return the project after some sessions of every harness."""
        self._before_all()
        scripts = []
        for session in range(6):
            self._harness = _HARNESSES[(self._number + session) % len(_HARNESSES)]
            self._steps = []
            for _ in range(self._chance.randint(3, 6)):
                self._turn()
            scripts.append(self._script(session))
            self._person()
        return World(scripts=scripts, files=list(self._files.values()), cwd=self._cwd)

    def _script(self, session: int) -> Script:
        head = {
            "harness": self._harness,
            "project": self._name,
            "cwd": self._cwd,
            "start": self._steps[0].at.isoformat(),
        }
        name = f"{self._number:02}-{session}-{self._name}"
        return Script(name=name, head=head, steps=self._steps)

    # What happens

    def _before_all(self) -> None:
        """Leave a file that people wrote before there was any session."""
        lines = [Line(text=text) for text in self._modules.pop()[:80]]
        self._files["src/older.py"] = File(path="src/older.py", lines=lines)

    def _turn(self) -> None:
        ask = self._prompt()
        chosen = self._chance.random()
        if self._modules and (len(self._files) < 3 or chosen < 0.15):
            self._create(ask)
        elif chosen < 0.30:
            self._rewrite(ask)
        elif chosen < 0.42:
            self._fail(ask)
        elif chosen < 0.55:
            self._append(ask)
        else:
            for _ in range(self._chance.randint(1, 3)):
                self._edit(ask)

    def _create(self, ask: str) -> None:
        module = self._modules.pop()
        start = self._chance.randrange(0, max(len(module) - 100, 1))
        lines = [Line(text=text, ask=ask) for text in module[start : start + 90]]
        path = f"src/part{len(self._files)}.py"
        self._files[path] = File(path=path, lines=lines)
        self._do("write", path, new=text_of(lines))

    def _rewrite(self, ask: str) -> None:
        file = self._some_file()
        self._read(file)
        lines = list(file.lines)
        for _ in range(self._chance.randint(1, 4)):
            place = self._chance.randrange(len(lines))
            lines[place : place + 1] = self._new_lines(ask, self._chance.randint(1, 3))
        self._changed(file, lines)
        self._do("write", file.path, new=text_of(lines))

    def _edit(self, ask: str) -> None:
        file = self._some_file()
        if self._chance.random() < 0.4:
            self._read(file)
        place = self._unique_place(file)
        if place is None:
            return
        first, last = place
        middle = self._chance.randrange(first, last)
        gone = self._chance.randint(0, last - middle)
        lines = list(file.lines)
        lines[middle : middle + gone] = self._new_lines(ask, self._chance.randint(1, 6))
        old = [line.text for line in file.lines[first:last]]
        new = [line.text for line in lines[first : last + len(lines) - len(file.lines)]]
        self._changed(file, lines)
        self._do("edit", file.path, old="\n".join(old), new="\n".join(new))

    def _append(self, ask: str) -> None:
        file = self._some_file()
        added = self._new_lines(ask, self._chance.randint(2, 5))
        self._changed(file, [*file.lines, *added])
        command = f"cat >> {file.path} <<'EOF'\n{text_of(added)}EOF"
        self._steps.append(Step(kind="shell", text=command, at=self._at(), answer=""))

    def _fail(self, ask: str) -> None:
        """Try an edit that does not apply: it must not count."""
        file = self._some_file()
        wanted = self._new_lines(ask, 3)
        self._steps.append(
            Step(
                kind="edit",
                text=file.path,
                at=self._at(),
                old="a line that is nowhere in this file",
                new=text_of(wanted).rstrip("\n"),
                answer="String to replace not found in file.",
                failed=True,
            )
        )

    def _person(self) -> None:
        """Change files as people do between sessions, seen by nobody."""
        for file in self._files.values():
            if self._chance.random() < 0.5:
                place = self._chance.randrange(len(file.lines))
                file.lines[place:place] = self._new_lines("", self._chance.randint(1, 3))

    # Pieces

    def _prompt(self) -> str:
        self._prompts += 1
        ask = f"{self._name}: please make change number {self._prompts} of the plan"
        self._clock += timedelta(minutes=3)
        self._steps.append(Step(kind="user", text=ask, at=self._at()))
        self._steps.append(Step(kind="say", text=f"I make change {self._prompts}.", at=self._at()))
        return ask

    def _at(self) -> datetime:
        self._clock += timedelta(seconds=7)
        return self._clock

    def _do(self, kind: str, path: str, *, old: str = "", new: str = "") -> None:
        self._steps.append(Step(kind=kind, text=path, at=self._at(), old=old, new=new))

    def _read(self, file: File) -> None:
        lines = [line.text for line in file.lines]
        if self._harness == "claude":
            lines = [f"{n:6}→{text}" for n, text in enumerate(lines, start=1)]
        answer = "\n".join(lines)
        self._steps.append(Step(kind="read", text=file.path, at=self._at(), answer=answer))

    def _some_file(self) -> File:
        return self._chance.choice(list(self._files.values()))

    def _new_lines(self, ask: str, count: int) -> list[Line]:
        self._inserted += 1
        name = self._chance.choice(["limit", "window", "cursor", "bucket", "ledger", "signal"])
        return [
            # With the project's number: the same line in two projects would be a riddle.
            Line(text=f"    {name}_{self._inserted} = {name}.step_{n}({self._number})", ask=ask)
            for n in range(count)
        ]

    def _unique_place(self, file: File) -> tuple[int, int] | None:
        """Return a stretch of lines that stands once in a file, as an edit must name it."""
        text = file.text
        for _ in range(20):
            first = self._chance.randrange(len(file.lines))
            last = min(first + self._chance.randint(2, 6), len(file.lines))
            part = text_of(file.lines[first:last])
            if part.strip() and text.count(part) == 1:
                return first, last
        return None

    def _changed(self, file: File, lines: list[Line]) -> None:
        file.lines = lines
        file.changes += 1
        if file.changes == 3:
            file.half, file.half_at = list(lines), self._clock
