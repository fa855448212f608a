"""Copilot chat in VS Code: `chatSessions/<id>.json`, or a log of changes to such a document.

Each line of the log is `{kind, k, v}`: 0 the whole, 1 a value set at a path, 2 items added to a
list at a path (from index `i` on), 3 a value taken away.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from funes_ls.indexer.model import Block, Problem, SessionMeta
from funes_ls.indexer.traces import lines, texts
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
from funes_ls.indexer.traces.places import user_folders
from funes_ls.indexer.traces.walk import Found, file_units, units_at

HARNESS = "vscode"
_SUFFIXES = (".json", ".jsonl")
_SAID = frozenset({"", "markdownContent", "markdown"})
_MOST_ITEMS = 1_000_000


class VscodeCopilotSource:
    """The reader of Copilot chat's sessions in VS Code."""

    harness = HARNESS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """Return the folders of sessions, one for each workspace, and that of empty windows.

        The rest of a workspace's storage is large and changes all the time: it is not looked at.
        """
        found: list[Path] = []
        for folder in user_folders(home, env):
            found += sorted(folder.glob("workspaceStorage/*/chatSessions"))
            found += sorted(folder.glob("globalStorage/emptyWindowChatSessions"))
        return found

    def units(self, root: Path) -> Iterator[Unit | Problem]:
        """Yield the sessions under a root, newest first."""
        return file_units(root, _SUFFIXES, unit_of)

    def units_at(self, root: Path, path: Path) -> list[Unit]:
        """Return the sessions under a root that a path below it holds."""
        return units_at(root, path, _SUFFIXES, unit_of)

    def read(self, unit: Unit, *, resume: bytes | None = None) -> DocumentReading:
        """Return a reading of a session."""
        path = Path(unit.key)
        meta = SessionMeta(session_id=path.stem, harness=HARNESS)
        sheet = Sheet(meta=meta, workdir=HARNESS)
        sheet.live_in(_folder_of(path.parent.parent))
        return DocumentReading(unit, sheet, _drafts, resume=resume, load=_load)


def unit_of(found: Found) -> Unit:
    """Return a session file as a unit."""
    return found.unit(HARNESS)


def _folder_of(storage: Path) -> str:
    """Return the folder a workspace's storage belongs to, "" when it is of none or of several."""
    return path_of(table(glance_json(storage / "workspace.json")).get("folder"))


def path_of(uri: Any) -> str:
    """Return the path in a `file:` or `vscode-remote:` address, "" for any other value."""
    if not isinstance(uri, str) or "://" not in uri:
        return ""
    try:
        path = unquote(urlsplit(uri).path)
    except ValueError:
        return ""
    return path[1:] if path[2:3] == ":" else path


def _load(path: Path) -> Any:
    if path.suffix != ".jsonl":
        return load_json(path)
    document: Any = None
    bad = 0
    for raw in read_bytes(path).split(b"\n"):
        content = lines.content(raw)
        for record in content.records if content is not None else ():
            if not isinstance(record, dict):
                continue
            try:
                document = _changed(document, record)
            except (KeyError, IndexError, TypeError, ValueError):
                bad += 1  # a change of what is not there
        bad += content is not None and content.lost
    if isinstance(document, dict):
        document["bad"] = bad
    return document


def _changed(document: Any, record: dict[str, Any]) -> Any:
    """Return a document after one change of the log."""
    kind, path, value = record.get("kind"), record.get("k"), record.get("v")
    if kind == 0:
        return value
    if not isinstance(path, list) or not path:
        raise ValueError("a change without a place")
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    key = path[-1]
    if kind == 1:
        holder[key] = value
    elif kind == 2:
        items = holder.setdefault(key, []) if isinstance(holder, dict) else holder[key]
        if isinstance(start := record.get("i"), int):
            del items[start:]
        items.extend(value or [])
        if len(items) > _MOST_ITEMS:
            raise ValueError("too many items")
    elif kind == 3:
        del holder[key]
    return document


def _drafts(document: Any, unit: Unit, sheet: Sheet) -> Iterator[Draft]:
    given = table(document)
    if not isinstance(given.get("requests"), list):
        raise OddFormatError("It has no list of requests; VS Code may write another format.")
    bad = given.get("bad")
    sheet.bad = bad if isinstance(bad, int) else 0
    sheet.entitle(given.get("customTitle"))
    for number, request in enumerate(given["requests"]):
        if not isinstance(request, dict):
            sheet.skip("no request")
            continue
        message = request.get("message")
        prompt = message if isinstance(message, str) else table(message).get("text")
        if not isinstance(prompt, str) and not isinstance(request.get("response"), list):
            sheet.skip("request without message and response")
        uuid = texts.string(request.get("requestId")) or f"{sheet.meta.session_id}-{number}"
        ts = texts.time_text(request.get("timestamp"))
        yield Draft(role="user", blocks=texts.text_block(prompt), uuid=uuid, ts=ts)
        rounds = _rounds(request)
        blocks = _of_rounds(rounds, request) if rounds else []
        said = _of_response(request, bare=bool(rounds))
        told = {block.text.strip() for block in blocks}
        blocks += [one for one in said if one.text.strip() not in told] if rounds else said
        yield Draft(role="assistant", blocks=blocks, uuid=f"{uuid}-answer", parent=uuid, ts=ts)


def _metadata(request: dict[str, Any]) -> dict[str, Any]:
    return table(table(request.get("result")).get("metadata"))


def _rounds(request: dict[str, Any]) -> list[dict[str, Any]]:
    return dicts(_metadata(request).get("toolCallRounds"))


def _of_rounds(rounds: list[dict[str, Any]], request: dict[str, Any]) -> list[Block]:
    """Return what the model said and called, with the answers that were kept."""
    answers = table(_metadata(request).get("toolCallResults"))
    blocks: list[Block] = []
    for one in rounds:
        thinking = table(one.get("thinking")).get("text")
        joined = "\n".join(texts_in(thinking))
        blocks += texts.text_block(joined, "thinking")
        blocks += texts.text_block(one.get("response"))
        for call in dicts(one.get("toolCalls")):
            call_id = texts.string(call.get("id")) or ""
            blocks.append(tool_use(call.get("name"), call.get("arguments"), call_id))
            text = "\n".join(texts_in(table(answers.get(call_id)).get("content")))
            blocks += tool_result(text, call_id, call.get("name"))
    return blocks


def texts_in(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the texts of an answer: strings, values of parts, and texts of rendered trees."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item, depth)
    elif isinstance(value, dict) and depth < 40:
        for key in ("value", "text", "node", "children"):
            yield from texts_in(value.get(key), depth + 1)


def _of_response(request: dict[str, Any], *, bare: bool) -> list[Block]:
    """Return what was shown as the answer; with `bare`, only the texts in it.

    Pieces of markdown that follow one another are one text.
    """
    blocks: list[Block] = []
    shown: list[str] = []

    def close() -> None:
        blocks.extend(texts.text_block("".join(shown)))
        shown.clear()

    for part in dicts(request.get("response")):
        kind = texts.string(part.get("kind")) or ""
        if kind in _SAID:
            value = part.get("value", part.get("content"))
            text = value if isinstance(value, str) else table(value).get("value")
            shown.append(text if isinstance(text, str) else "")
            continue
        if kind == "inlineReference":
            shown.append(texts.string(part.get("name")) or "")
        elif kind == "thinking" and not bare:
            close()
            blocks += texts.text_block("\n".join(texts_in(part.get("value"))), "thinking")
        elif kind == "toolInvocationSerialized":
            close()
            blocks += [] if bare else _invocation(part)
    close()
    return blocks


def _invocation(part: dict[str, Any]) -> list[Block]:
    """Return the call of a tool as far as it was shown: its command, its input, its message."""
    data, call_id = table(part.get("toolSpecificData")), texts.string(part.get("toolCallId"))
    details = table(part.get("resultDetails"))
    lines_ = table(data.get("commandLine"))
    command = next(
        (one for one in (lines_.get(k) for k in ("toolEdited", "userEdited", "original")) if one),
        data.get("command"),
    )
    given: Any = {"command": command} if isinstance(command, str) else details.get("input")
    if given is None:
        message = part.get("pastTenseMessage") or part.get("invocationMessage")
        given = {"message": "\n".join(texts_in(message))}
    output = "\n".join(texts_in(details.get("output")))
    output = output or "\n".join(texts_in(table(data.get("terminalCommandOutput"))))
    name = texts.string(part.get("toolId"))
    return [tool_use(name, given, call_id), *tool_result(output, call_id, name)]
