"""What each tool answers: one question to the engine, and its answer as the command line prints it.

Recalled text is fenced and cut to a budget; how to get the rest stands below it.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from funes_ls import render
from funes_ls.indexer.errors import FunesError, UsageError
from funes_ls.indexer.home import expanded
from funes_ls.mcp import fence
from funes_ls.mcp.arguments import Given
from funes_ls.mcp.call import Call
from funes_ls.mcp.roots import Roots
from funes_ls.sending import as_object, prepared
from funes_ls.source_text import lines_of, read_text

_SESSIONS = 20
_WINDOW = 3
_FILTERS = ("harness", "project", "since", "until", "path")


class Asking:
    """What a call may ask with.

    Attributes:
        given: Its arguments.
        tokens: Of the answer.
        k: How many passages.
    """

    def __init__(
        self,
        call: Call,
        given: Given,
        *,
        memory: str,
        tokens: int,
        k: int,
        roots: Roots,
        env: Mapping[str, str],
    ) -> None:
        """Ask as part of a call; `memory`, `tokens` and `k` are those of the server."""
        self.given = given
        self.tokens = given.number("max_tokens", tokens)
        self.k = given.number("k", k)
        self._memories = _named(given.text("memory")) or _named(memory)
        self._call = call
        self._roots = roots
        self._env = env

    @property
    def room(self) -> float:
        """Return how many tokens are for what is recalled."""
        return fence.room_of(self.tokens)

    def ask(self, method: str, **params: Any) -> Any:
        """Return what the engine answers, with attributes."""
        names = self._memories
        if len(names) > 1 and method != "funes/recall":
            raise UsageError("This reads one memory at a time.", hint="Name one of them.")
        which = {"memories": list(names)} if len(names) > 1 else {"memory": "".join(names) or None}
        wanted = {**params, **which}
        sent = prepared(method, wanted, self._env, warn=lambda _: None)
        return as_object(self._call.ask(method, sent))

    def origin(self, memory: str) -> str:
        """Return whose the memory is that answered, or what the several are that did."""
        several = len(self._memories) > 1 and "," in memory
        return f"the memories {fence.one_line(memory)}" if several else fence.origin(memory)

    def sent_path(self, name: str) -> str:
        """Return a path that was given, for the engine."""
        return self._roots.sent(self.given.text(name).strip())

    def file(self, name: str) -> Path | None:
        """Return the path of a file that is there."""
        return self._roots.file(self.given.text(name).strip())


def _named(memories: str) -> list[str]:
    """Return the memories that are named, with commas between; a path may have some of its own."""
    if "," in memories and not expanded(memories.strip()).exists():
        return list(filter(None, map(str.strip, memories.split(","))))
    return [memories.strip()] if memories.strip() else []


def recall(asking: Asking) -> str:
    """Return the passages that answer a question, as many as fit."""
    given, skipped = asking.given, asking.given.number("offset", 0)
    filters = {name: given.text(name).strip() for name in _FILTERS}
    filters |= {"project": asking.sent_path("project"), "path": asking.sent_path("path")}
    found = asking.ask(
        "funes/recall",
        query=given.text("query"),
        type=given.text("block_type"),
        k=skipped + asking.k + 1,  # one more than is shown tells whether there are more
        **filters,
    )
    hits = found.hits[skipped : skipped + asking.k]
    if not hits:
        return _with_note(_no_hits(filters, given, skipped), found.note)
    pieces = [render.recall_text(_like(found, hits=[hit], asked=None, weak=False)) for hit in hits]
    count = fence.fitting(pieces, asking.room)
    shown = fence.cut("".join(pieces[:count]), asking.room)
    origin = asking.origin(found.memory)
    lead = (
        f"{render.counted(count, 'passage')} from past coding-agent sessions, from {origin}, "
        "best first. `get` shows the turns around one."
    )
    if found.weak:
        lead = f"Weak match: perhaps nothing here answers; these are the nearest. {lead}"
    text = _with_note(fence.fenced(shown, lead=lead), found.note)
    left, seen = len(hits) - count, skipped + count
    if seen == len(found.hits):
        return text
    rest = f"{render.counted(left, 'further passage')} did not fit" if left else "there are others"
    return f"{text}\nmore: {rest}; call recall again with offset={seen}."


def _no_hits(filters: Mapping[str, str], given: Given, skipped: int) -> str:
    if skipped:
        return "no results: there are no further passages."
    named = [name for name, value in filters.items() if value]
    named += ["block_type"] if given.text("block_type") else []
    if named:
        return f"no results. Ask again without {' or '.join(named)}, or in other words."
    return "no results. Ask again in other words; `status` tells what the memory holds."


def get(asking: Asking) -> str:
    """Return a turn with those around it, as many as fit; the turn itself in parts if need be."""
    given = asking.given
    session_id, turn_uuid = given.text("session_id").strip(), given.text("turn_uuid").strip()
    offset = given.number("offset", 0)
    found = asking.ask(
        "funes/get",
        sessionId=session_id,
        turnUuid=turn_uuid,
        window=given.number("window", _WINDOW),
    )
    if not found.found:
        hint = "The two ids stand in the `→ get` line of a passage of recall."
        return f"{render.get_text(found).strip()}. {hint}"
    pieces = [render.get_text(_like(found, turns=[turn])) for turn in found.turns]
    at = next((at for at, turn in enumerate(found.turns) if turn.asked), 0)
    if offset or fence.tokens_of(pieces[at]) > asking.room:
        part = fence.cut(pieces[at][offset:], asking.room) if offset < len(pieces[at]) else ""
        shown, first, last = part, at, at
        end = offset + len(part)
        more = [f"call get again with offset={end} for the rest of this turn"]
        more = more if end < len(pieces[at]) else []
    else:
        first, last = _around(pieces, at, asking.room)
        shown, more = "".join(pieces[first : last + 1]), []
    if first > 0:
        more.append(f"turn_uuid={fence.name(found.turns[first - 1].turn_uuid)} for what was before")
    if last + 1 < len(pieces):
        more.append(f"turn_uuid={fence.name(found.turns[last + 1].turn_uuid)} for what came after")
    lead = (
        f"{render.counted(last - first + 1, 'turn')} of session {fence.name(found.session_id)} of "
        f"{fence.name(found.harness)}, from {fence.origin(found.memory)}."
    )
    text = fence.fenced(shown, lead=lead)
    return f"{text}\nmore: {'; '.join(more)}." if more else text


def _around(pieces: Sequence[str], at: int, room: float) -> tuple[int, int]:
    """Return the first and last of the pieces that fit together with one of them, nearest first."""
    first = last = at
    left = room - fence.tokens_of(pieces[at])
    grows = {1: True, -1: True}
    while grows[1] or grows[-1]:
        for step in (1, -1):
            near = last + 1 if step > 0 else first - 1
            cost = fence.tokens_of(pieces[near]) if 0 <= near < len(pieces) else left + 1
            grows[step] = grows[step] and cost <= left
            if grows[step]:
                left -= cost
                first, last = min(first, near), max(last, near)
    return first, last


def status(asking: Asking) -> str:
    """Return what the memory holds."""
    from funes_ls.render_report import status_text

    found = asking.ask("funes/status")
    if found.state == "missing":
        return status_text(found).strip()
    return fence.fenced(status_text(found), lead=f"What is in {fence.origin(found.memory)}.")


def related(asking: Asking) -> str:
    """Return the sessions that have to do with a file, as many as fit."""
    from funes_ls.render_related import related_text

    skipped, limit = asking.given.number("offset", 0), asking.given.number("limit", _SESSIONS)
    path = asking.file("file")
    named = str(path) if path is not None else asking.given.text("file").strip()
    found = asking.ask("funes/related", path=named, limit=skipped + limit)
    sessions = found.sessions[skipped:]
    if not sessions:
        none = "no further session" if skipped else "no session"
        return _with_note(f"{none} has to do with {render.safe(named)}", found.note)
    pieces = [related_text(_like(found, sessions=[one], total=1)) for one in sessions]
    count = fence.fitting(pieces, asking.room)
    lead = (
        f"{render.counted(count, 'session')} of {found.total:,} that have to do with the file, "
        f"from {fence.origin(found.memory)}, the strongest relation first."
    )
    text = fence.fenced(fence.cut("".join(pieces[:count]), asking.room), lead=lead)
    seen = skipped + count
    if seen < found.total:
        text += f"\nmore: {found.total - seen:,} further: call related again with offset={seen}."
    return _with_note(text, found.note)


def blame(asking: Asking) -> str:
    """Return which sessions wrote lines of a file."""
    from funes_ls.render_blame import blame_blocks, blame_text

    path, source = _source(asking)
    first, last = _lines(asking.given, len(source), path)
    lines = {"start": {"line": first - 1, "character": 0}, "end": {"line": last, "character": 0}}
    found = asking.ask(
        "funes/blame",
        path=str(path),
        text="\n".join([*source, ""]),
        range=lines if source else None,
    )
    if not found.lines:
        return _with_note(blame_text(found, source, (first, last)).strip(), found.note)
    pieces = blame_blocks(found, source)
    count = fence.fitting(pieces, asking.room)
    lead = (
        f"Who wrote {'line' if first == last else 'lines'} of {render.safe(str(path))}, from "
        f"{fence.origin(found.memory)}; lines that are not named are nobody's."
    )
    text = fence.fenced(fence.cut("".join(pieces[:count]), asking.room), lead=lead)
    if count < len(found.lines):
        text += f"\nmore: call blame again with line={found.lines[count].start}, end_line={last}."
    return _with_note(text, found.note)


def _source(asking: Asking) -> tuple[Path, list[str]]:
    named = render.safe(asking.given.text("file").strip())
    path = asking.file("file")
    if path is None:
        raise FunesError(
            f"There is no file {named}.",
            hint="Give its whole path. If it was deleted or moved, `related` still knows it.",
            kind="no_such_file",
        )
    if path.is_dir():
        raise UsageError(f"{named} is a folder.", hint="Name a file in it.")
    try:
        text = read_text(path)
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or "it has no such name"
        raise FunesError(f"{named} cannot be read ({reason}).", kind="unreadable") from exc
    if text is None:
        raise FunesError(f"{named} is no text, or too long.", kind="no_text")
    return path, lines_of(text)


def _lines(given: Given, count: int, path: Path) -> tuple[int, int]:
    """Return the first and the last of the lines that are asked about."""
    first = given.number("line", 1)
    last = given.number("end_line", first if "line" in given.values else count)
    if first < 1 or last < first > 1:
        raise UsageError("Lines count from 1, and end_line is not before line.")
    if first > max(count, 1):
        raise UsageError(f"{render.safe(path.name)} has {render.counted(count, 'line')}.")
    return first, min(last, count)


def _like(answer: Any, **changed: Any) -> Any:
    """Return an answer with other values for some of its fields."""
    return SimpleNamespace(**{**vars(answer), **changed})


def _with_note(text: str, note: str) -> str:
    return f"{text}\nnote: {fence.one_line(note)}" if note else text


ANSWERS: dict[str, Callable[[Asking], str]] = {
    "recall": recall,
    "get": get,
    "status": status,
    "related": related,
    "blame": blame,
}
