"""What happens to files after agents wrote them: formatters, people, moves, older versions."""

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from benchmarks.blame.author import File, Line, World, text_of

NAMES = ("plain", "script", "tool", "rename", "moved", "human", "unsaved", "stale")
#: Marks of lines that are no agent's, for the score.
HUMAN, EDITED = "human", "edited"
_WORD = re.compile(r"\w")


class Case(Struct, frozen=True, kw_only=True):
    """A file to ask about.

    Attributes:
        path: Below the project's folder.
        truth: By line: the prompt of the turn that wrote it, "" for nobody.
        kinds: By line: "" as agents or nobody left it, `moved`, `human` or `edited`.
        as_of: When the file was like this, None for now.
    """

    variant: str
    path: str
    text: str
    truth: list[str]
    kinds: list[str]
    as_of: datetime | None = None


def cases(world: World, *, seed: int) -> Iterator[Case]:
    """Yield every variant of a world's files."""
    chance = random.Random(seed)
    for file in world.files:
        if not any(line.ask for line in file.lines):
            continue
        yield _case("plain", file.path, file.lines)
        yield _scripted(file)
        yield _formatted(file)
        yield _case("rename", file.path.replace("src/", "lib/new_"), file.lines)
        yield _with_people(file, chance)
        yield _unsaved(file, chance)
        if file.half:
            yield _case("stale", file.path, file.half, as_of=file.half_at)
    yield from _moved(world, chance)


def _case(
    variant: str,
    path: str,
    lines: list[Line],
    *,
    kinds: list[str] | None = None,
    as_of: datetime | None = None,
) -> Case:
    return Case(
        variant=variant,
        path=path,
        text=text_of(lines),
        truth=[line.ask for line in lines],
        kinds=kinds or [""] * len(lines),
        as_of=as_of,
    )


def _scripted(file: File) -> Case:
    """Indent with tabs and use the other quotes, line by line."""
    lines = [
        Line(text=line.text.replace("    ", "\t").replace('"', "'"), ask=line.ask)
        for line in file.lines
    ]
    return _case("script", file.path, lines)


def _formatted(file: File) -> Case:
    """Let a real formatter break the lines anew; letters and digits stay in order."""
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "60", "-"]
    run = subprocess.run(
        command, input=file.text, capture_output=True, text=True, timeout=60, encoding="utf-8"
    )
    text = run.stdout if run.returncode == 0 else file.text
    owners = [line.ask for line in file.lines for _ in _WORD.findall(line.text)]
    lines, at = [], 0
    for one in text.splitlines():
        size = len(_WORD.findall(one))
        mine = owners[at : at + size]
        at += size
        lines.append(Line(text=one, ask=max(mine, key=mine.count) if mine else ""))
    kinds = ["" if _WORD.search(line.text) else "soft" for line in lines]
    return _case("tool", file.path, lines, kinds=kinds)


def _with_people(file: File, chance: random.Random) -> Case:
    """Let people put in lines: about one in seven."""
    lines: list[Line] = []
    kinds: list[str] = []
    for number, line in enumerate(file.lines):
        if chance.random() < 0.15:
            lines.append(Line(text=f"    reviewed_by_hand({number}, {chance.random():.6f})"))
            kinds.append(HUMAN)
        lines.append(line)
        kinds.append("")
    return _case("human", file.path, lines, kinds=kinds)


def _unsaved(file: File, chance: random.Random) -> Case:
    """Change every tenth line a little."""
    lines, kinds = [], []
    for line in file.lines:
        is_changed = chance.random() < 0.1 and len(line.text.strip()) > 8
        text = f"{line.text}  # {chance.random():.6f}" if is_changed else line.text
        lines.append(Line(text=text, ask=line.ask))
        kinds.append(EDITED if is_changed else "")
    return _case("unsaved", file.path, lines, kinds=kinds)


def _moved(world: World, chance: random.Random) -> Iterator[Case]:
    """Put a block of one file into another one, as people do."""
    for target, source in zip(world.files, [*world.files[1:], world.files[0]], strict=True):
        places = [
            n
            for n in range(len(source.lines) - 6)
            if all(line.ask and line.text.strip() for line in source.lines[n : n + 6])
        ]
        if not places or target is source:
            continue
        start = chance.choice(places)
        at = chance.randrange(len(target.lines))
        block = source.lines[start : start + 6]
        lines = [*target.lines[:at], *block, *target.lines[at:]]
        kinds = [""] * at + ["moved"] * len(block) + [""] * (len(target.lines) - at)
        yield _case("moved", target.path, lines, kinds=kinds)
