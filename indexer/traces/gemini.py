"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json`, since 0.40 a log of changes in JSONL.

In the log a message is written again, under its id, each time something is added to it; the last
one counts. What was rewound, or left out of the model's context, was said all the same: it stays.

Source: sessions as written by version 0.61.0, and by older ones as published.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from funes_ls.indexer.home import expanded
from funes_ls.indexer.model import Block, Problem, SessionMeta
from funes_ls.indexer.traces import jsonvalue, lines, texts
from funes_ls.indexer.traces.base import Unit
from funes_ls.indexer.traces.document import (
    DocumentReading,
    OddFormatError,
    Sheet,
    dicts,
    glance_json,
    load_json,
    read_bytes,
    table,
    tool_result,
    tool_use,
)
from funes_ls.indexer.traces.jsonl import Draft
from funes_ls.indexer.traces.walk import Found, find_files, found_at, in_order, refuse_odd

HARNESS = "gemini"
_SUFFIXES = (".json", ".jsonl")
_ROLES = {"user": "user", "gemini": "assistant"}
_NOTES = frozenset({"info", "warning", "error"})


class GeminiSource:
    """The reader of Gemini CLI's sessions."""

    harness = HARNESS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """Return the folders of chats, one for each project: beside them lies much else."""
        named = env.get("GEMINI_CLI_HOME", "").strip()
        base = (expanded(named) if named else home) / ".gemini" / "tmp"
        return sorted(base.glob("*/chats"))

    def units(self, root: Path) -> Iterator[Unit | Problem]:
        """Yield the sessions under a root, newest first, sub-agents last."""
        refuse_odd(root)
        units: list[Unit] = []
        for item in find_files(root, _SUFFIXES):
            if isinstance(item, Problem):
                yield item
            elif item.path == root or _is_session(item.path):
                units.append(unit_of(item))
        yield from in_order(units)

    def units_at(self, root: Path, path: Path) -> list[Unit]:
        """Return the sessions under a root that a path below it holds."""
        found = found_at(root, path, _SUFFIXES)
        return in_order(
            [unit_of(one) for one in found if one.path == root or _is_session(one.path)]
        )

    def read(self, unit: Unit, *, resume: bytes | None = None) -> DocumentReading:
        """Return a reading of a session."""
        path = Path(unit.key)
        meta = SessionMeta(session_id=path.stem, harness=HARNESS)
        if unit.subagent:
            meta.link, meta.parent_id = "subagent", path.parent.name
        sheet = Sheet(meta=meta, workdir=_project(path).name)
        return DocumentReading(unit, sheet, _drafts, resume=resume, load=_load)


def unit_of(found: Found) -> Unit:
    """Return a session file as a unit; sub-agents have a folder of their own below the chats."""
    return found.unit(HARNESS, subagent=found.path.parent.parent.name == "chats")


def _is_session(path: Path) -> bool:
    return path.name.startswith("session-") or path.parent.parent.name == "chats"


def _project(path: Path) -> Path:
    """Return the folder of a session's project."""
    for folder in path.parents:
        if folder.name == "chats":
            return folder.parent
    return path.parent


def _load(path: Path) -> Any:
    if path.suffix != ".jsonl":
        return load_json(path)
    head: dict[str, Any] = {}
    messages: dict[str, Any] = {}
    bad = 0
    for raw in read_bytes(path).split(b"\n"):
        content = lines.content(raw)
        for record in content.records if content is not None else ():
            if isinstance(record, dict):
                _fold(record, head, messages)
        bad += content is not None and content.lost
    return {**head, "messages": list(messages.values()), "bad": bad}


def _fold(record: dict[str, Any], head: dict[str, Any], messages: dict[str, Any]) -> None:
    """Take a line of the log: a message, or a change of what is said of the session."""
    if isinstance(record.get("id"), str):
        messages[record["id"]] = record
    elif "$rewindTo" not in record:
        patch = record.get("$set", record)
        patch = patch if isinstance(patch, dict) else {}
        head.update({key: value for key, value in patch.items() if key != "messages"})
        for message in dicts(patch.get("messages")):
            if isinstance(message.get("id"), str):
                messages[message["id"]] = message


def _drafts(document: Any, unit: Unit, sheet: Sheet) -> Iterator[Draft]:
    head = table(document)
    if not isinstance(head.get("messages"), list):
        raise OddFormatError("It has no list of messages; Gemini CLI may write another format.")
    bad = head.get("bad")
    sheet.bad = bad if isinstance(bad, int) else 0
    _describe(head, Path(unit.key), sheet)
    for message in head["messages"]:
        kind = texts.kind_of(message) if isinstance(message, dict) else ""
        if kind in _ROLES:
            yield _turn(message, kind, sheet)
        elif kind not in _NOTES:
            sheet.skip(kind or "no message")


def _describe(head: dict[str, Any], path: Path, sheet: Sheet) -> None:
    session_id = texts.string(head.get("sessionId"))
    if session_id:
        sheet.meta.inner_id = session_id
    sheet.entitle(head.get("summary"))
    for folder in (*_listed(head.get("directories"))[:1], _root_of(_project(path))):
        sheet.live_in(folder)


def _listed(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _root_of(project: Path) -> str:
    """Return the folder a project's name or hash stands for, "" when nothing tells it."""
    try:
        return read_bytes(project / ".project_root", 10_000).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        pass
    known = table(table(glance_json(project.parent.parent / "projects.json")).get("projects"))
    for folder, name in known.items():
        digest = hashlib.sha256(folder.encode("utf-8", "replace")).hexdigest()
        if project.name in (name, digest):
            return folder
    return ""


def _turn(message: dict[str, Any], kind: str, sheet: Sheet) -> Draft:
    blocks: list[Block] = []
    for thought in dicts(message.get("thoughts")):
        parts = [texts.string(thought.get(key)) or "" for key in ("subject", "description")]
        blocks += texts.text_block("\n".join(part for part in parts if part), "thinking")
    blocks += texts.text_block(parts_text(message.get("content")))
    for call in dicts(message.get("toolCalls")):
        blocks.append(tool_use(call.get("name"), call.get("args"), call.get("id")))
        blocks += tool_result(_answer(call), call.get("id"), call.get("name"))
    if not blocks and "content" not in message:
        sheet.skip(f"{kind} without content")
    return Draft(
        role=_ROLES[kind],
        blocks=blocks,
        uuid=texts.string(message.get("id")) or "",
        ts=texts.time_text(message.get("timestamp")),
    )


def parts_text(content: Any) -> str:
    """Return the texts of content in Gemini's form: a string, a part, or a list of both."""
    found: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        text = (
            part.get("text") if isinstance(part, dict) and part.get("thought") is not True else part
        )
        if isinstance(text, str):
            found.append(text)
    return "\n".join(found)


def response_text(response: Any) -> str:
    """Return what a tool answered: its output or error, else the whole answer as JSON."""
    if isinstance(response, str):
        return response
    fields = table(response)
    for key in ("output", "error", "content", "result"):
        if isinstance(fields.get(key), str):
            return str(fields[key])
    return jsonvalue.dumps(response) if response else ""


def _answer(call: dict[str, Any]) -> str:
    result = call.get("result")
    found: list[str] = []
    for part in result if isinstance(result, list) else [result]:
        given = table(part).get("functionResponse")
        found.append(
            response_text(given.get("response")) if isinstance(given, dict) else parts_text(part)
        )
    text = "\n".join(one for one in found if one)
    return text or texts.string(call.get("resultDisplay")) or ""
