"""Entries of ours in JSON files of agents: put in, found, and taken out again."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from funes_ls.install import files, jsonc
from funes_ls.install.plan import Change, Plan


class Entry(NamedTuple):
    """An entry of ours.

    Attributes:
        at: Names down to the member, or to the array that holds items of ours.
        is_ours: Which items of the array are; None for a member.
    """

    path: Path
    at: tuple[str, ...]
    is_ours: Callable[[Any], bool] | None = None


def decoded(path: Path, data: bytes | None) -> str:
    """Return the text of a JSON file, "" for one that is not there.

    Raises:
        ConfigError: it is no UTF-8.
    """
    try:
        return (data or b"").decode("utf-8")
    except UnicodeDecodeError as exc:
        raise _malformed(path) from exc


def value_of(path: Path) -> Any:
    """Return what a JSON file says, {} for one that is empty or not there.

    Raises:
        ConfigError: it cannot be read, or is no JSON.
    """
    text = decoded(path, files.read(path))
    if not text.strip("\ufeff \t\r\n"):
        return {}
    try:
        return jsonc.parse(text).value
    except jsonc.Malformed as exc:
        raise _malformed(path) from exc


def value_at(path: Path, at: tuple[str, ...]) -> Any:
    """Return the value at a path of names in a file, None when there is none.

    Raises:
        ConfigError: as `value_of`, or something on the way is no object.
    """
    value = value_of(path)
    for name in at:
        if not isinstance(value, dict):
            raise _malformed(path)
        value = value.get(name)
        if value is None:
            return None
    return value


def _malformed(path: Path) -> files.ConfigError:
    return files.ConfigError(f"{path} is not what it should be (JSON); it was left alone.")


def editing(path: Path, edit: Callable[[str], str]) -> Change:
    """Return the change of a JSON file by a function from text to text."""

    def changed(now: bytes | None) -> bytes | None:
        text = decoded(path, now)
        try:
            new = edit(text)
        except jsonc.Malformed as exc:
            raise _malformed(path) from exc
        return now if new == text else new.encode("utf-8")

    return Change(path, changed)


def planned(change: Change, *, by_hand: str = "", note: str = "") -> Plan:
    """Return the plan of one change: none where all is there already, else what stands in its way.

    Args:
        change: What is wanted.
        by_hand: What a person puts in where it cannot be done.
        note: What he should know where it is done.
    """
    try:
        now = files.read(change.path)
        if change.edit(now) == now:
            return Plan()
    except files.ConfigError as exc:
        return Plan(problems=(str(exc),), by_hand=(by_hand,) if by_hand else ())
    return Plan(steps=(change,), notes=(note,) if note else ())


def items(path: Path, text: str, at: tuple[str, ...]) -> list[Any]:
    """Return the items of an array in the text of a JSON file, none where it is not there.

    Raises:
        ConfigError: something else stands there.
        jsonc.Malformed: the text is no JSON.
    """
    node = jsonc.at_path(jsonc.parse(text), at) if text.strip("\ufeff \t\r\n") else None
    if node is None:
        return []
    if not isinstance(node.value, list):
        raise files.ConfigError(f"{path} has no list at {'.'.join(at)}; it was left alone.")
    return node.value


def setting(path: Path, at: tuple[str, ...], value: Any) -> Change:
    """Return the setting of a member."""
    return editing(path, lambda text: jsonc.with_member(text, at, value))


def containers(entries: Iterable[Entry], read: Callable[[Path], bytes | None]) -> set[str]:
    """Return what around entries is not there, so that it is ours when it is made."""
    missing: set[str] = set()
    for entry in entries:
        text = decoded(entry.path, read(entry.path))
        is_empty = not text.strip("\ufeff \t\r\n")
        try:
            root = None if is_empty else jsonc.parse(text)
        except jsonc.Malformed:
            continue
        for count in range(len(entry.at) + (entry.is_ours is not None)):
            if root is None or jsonc.at_path(root, entry.at[:count]) is None:
                missing.add(_name(entry.path, entry.at[:count]))
    return missing


def removing(entries: Iterable[Entry], created: frozenset[str]) -> Plan:
    """Return what takes entries out, with the containers that were made for them."""
    steps: list[Change] = []
    problems: list[str] = []
    for entry in entries:
        change = editing(entry.path, lambda text, entry=entry: without(text, entry, created))  # type: ignore[misc]  # a default keeps the entry of this round
        if _name(entry.path, ()) in created:
            change = change._replace(edit=_gone_when_empty(change.edit))
        try:
            now = files.read(entry.path)
            if now is not None and change.edit(now) != now:
                steps.append(change)
        except files.ConfigError as exc:
            problems.append(str(exc))
    return Plan(steps=tuple(steps), problems=tuple(dict.fromkeys(problems)))


def without(text: str, entry: Entry, created: frozenset[str]) -> str:
    """Return a text without an entry of ours."""
    if not text.strip("\ufeff \t\r\n"):
        return text
    inner = len(entry.at) - (entry.is_ours is None)
    prune = 0
    while inner - prune > 0 and _name(entry.path, entry.at[: inner - prune]) in created:
        prune += 1
    if entry.is_ours is None:
        return jsonc.without_member(text, entry.at, prune=prune)
    return jsonc.without_items(text, entry.at, entry.is_ours, prune=prune)


def _gone_when_empty(
    edit: Callable[[bytes | None], bytes | None],
) -> Callable[[bytes | None], bytes | None]:
    def changed(now: bytes | None) -> bytes | None:
        new = edit(now)
        return None if new is not None and new.strip() == b"{}" else new

    return changed


def _name(path: Path, at: tuple[str, ...]) -> str:
    return f"{path}#{'.'.join(at)}"
