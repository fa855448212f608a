"""Which sessions a listing or a recall is about, as a condition in SQL."""

from typing import Any

from msgspec import Struct


class SessionFilter(Struct, frozen=True, kw_only=True):
    """Which sessions to list; empty values ask for nothing.

    Attributes:
        path: A file touched: exact, by its last components, or a folder above it.
        since_us: Sessions that ended at or after it.
        until_us: Sessions that started before it.
        text: Words that the title must hold.
    """

    harness: str = ""
    branch: str = ""
    path: str = ""
    since_us: int | None = None
    until_us: int | None = None
    text: str = ""
    no_subagents: bool = False


def conditions(wanted: SessionFilter) -> tuple[str, list[Any]]:
    """Return the WHERE clause of a filter, "" for none, and its arguments."""
    parts: list[str] = []
    args: list[Any] = []

    def ask(part: str, *values: Any) -> None:
        parts.append(part)
        args.extend(values)

    if wanted.harness:
        ask("harness = ?", wanted.harness)
    if wanted.branch:
        ask("branch = ?", wanted.branch)
    if wanted.path:
        ask(*_touched(wanted.path))
    if wanted.since_us is not None:
        ask("coalesce(ended_us, started_us) >= ?", wanted.since_us)
    if wanted.until_us is not None:
        ask("coalesce(started_us, ended_us) < ?", wanted.until_us)
    for word in wanted.text.split():
        ask("title LIKE ? ESCAPE '\\'", f"%{like(word)}%")
    if wanted.no_subagents:
        ask("subagent = 0")
    return (f"WHERE {' AND '.join(parts)}" if parts else ""), args


def _touched(path: str) -> tuple[Any, ...]:
    name = path.rstrip("/\\") or path
    return (
        "session_id IN (SELECT session_id FROM session_files "
        "WHERE path = ? OR (name = ? AND path LIKE ? ESCAPE '\\') OR path LIKE ? ESCAPE '\\')",
        name,
        last_name(name),
        "%/" + like(name.lstrip("/")),
        like(name) + "/%",
    )


def last_name(path: str) -> str:
    """Return the last component of a path of any system."""
    return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]


def like(text: str) -> str:
    """Return text as LIKE takes it literally, with a backslash as the escape."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
