"""Shows a long run on stderr: moving bars for a person, a line now and then for a log."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from funes_ls.cli.output import is_terminal, notice
from funes_ls.indexer.progress import IndexEvent, Progress, ignore_progress

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

_LINE_EVERY_S = 5.0
#: Bars that are on the terminal now.
_moving: "RichProgress | None" = None
_TIERS = {1: "text", 2: "tool calls", 3: "tool results"}
#: Phase of an index run -> what it is called.
PHASES = {
    "rules": "Preparing secret rules",
    "scan": "Looking for sessions",
    "words": "Reading sessions (words)",
    "model": "Getting the model",
    "vectors": "Embedding chunks (vectors)",
    "tidy": "Tidying up",
    "search": "Looking through sessions",
    "scrub": "Scanning sessions",
    "rewrite": "Writing the memory anew",
    "fetch": "Fetching the memory",
    "send": "Sending",
}


@contextmanager
def shown(*, quiet: bool) -> Iterator[Progress]:
    """Yield a watcher for a run; what it draws on a terminal is gone or final when it ends."""
    if quiet:
        yield ignore_progress
    elif is_terminal():
        with _bars() as watch:
            yield watch
    else:
        yield _lines()


def duration(seconds: float) -> str:
    """Return a time span as people say it: `8 s`, `3 min`, `1 h 20 min`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _lines() -> Progress:
    phase, said_at = "", 0.0

    def watch(event: IndexEvent) -> None:
        nonlocal phase, said_at
        now = time.monotonic()
        if event.phase == phase and now - said_at < _LINE_EVERY_S:
            return
        if event.total or event.phase not in ("words", "vectors"):
            phase, said_at = event.phase, now
            notice(_line(event))

    return watch


def _line(event: IndexEvent) -> str:
    parts = [PHASES[event.phase]]
    if event.total:
        parts.append(f"{_amount(event, event.done)} of {_amount(event, event.total)}")
    if event.phase == "words" and event.chunks:
        parts.append(f"{event.chunks:,} chunks")
    if event.phase == "vectors" and event.tier:
        parts.append(_TIERS[event.tier])
    if event.rate:
        parts.append(f"{event.rate:,.0f} a second" if event.phase != "model" else "")
    if event.eta_s is not None and event.done < event.total:
        parts.append(f"about {duration(event.eta_s)} left")
    return ", ".join(part for part in parts if part)


def _amount(event: IndexEvent, count: int) -> str:
    is_bytes = event.phase in ("model", "fetch", "send")
    return f"{count / 1e6:.1f} MB" if is_bytes else f"{count:,}"


@contextmanager
def aside() -> Iterator[None]:
    """Take what moves off the terminal, while something is asked there."""
    bars = _moving
    if bars is not None:
        bars.stop()
    try:
        yield
    finally:
        if bars is not None:
            bars.start()


@contextmanager
def _bars() -> "Iterator[Progress]":
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as RichProgress

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.fields[detail]}"),
    )
    global _moving
    with RichProgress(*columns, console=Console(file=sys.stderr), transient=True) as bars:
        tasks: dict[str, TaskID] = {}
        _moving = bars
        try:
            yield lambda event: _draw(bars, tasks, event)
        finally:
            _moving = None


def _draw(bars: "RichProgress", tasks: "dict[str, TaskID]", event: IndexEvent) -> None:
    if event.phase not in tasks:
        for earlier in tasks.values():  # a phase ends where the next one begins
            bars.update(earlier, total=bars.tasks[earlier].total or 1)
            bars.update(earlier, completed=bars.tasks[earlier].total)
        tasks[event.phase] = bars.add_task(PHASES[event.phase], total=None, detail="")
    detail = _line(event).removeprefix(PHASES[event.phase]).removeprefix(", ")
    bars.update(tasks[event.phase], completed=event.done, total=event.total or None, detail=detail)
