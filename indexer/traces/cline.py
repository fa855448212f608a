"""Cline, Roo Code and Kilo Code: `tasks/<id>/api_conversation_history.json` below an editor's data.

Messages are those of Anthropic's interface. Where the model has no tools of its own, calls stand in
the text as tags, and answers begin with `[name for '…'] Result:`.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from funes_ls.indexer.home import expanded
from funes_ls.indexer.model import Block, Problem, SessionMeta
from funes_ls.indexer.traces import jsonvalue, texts
from funes_ls.indexer.traces.base import Unit
from funes_ls.indexer.traces.document import (
    DocumentReading,
    OddFormatError,
    Sheet,
    dicts,
    glance_json,
    table,
    tool_result,
    tool_use,
)
from funes_ls.indexer.traces.jsonl import Draft
from funes_ls.indexer.traces.places import user_folders
from funes_ls.indexer.traces.walk import Found, file_units, units_at

HARNESS = "cline"
HISTORY = "api_conversation_history.json"
_ITEM = "history_item.json"
_EXTENSIONS = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline", "kilocode.kilo-code")
_CALL = re.compile(
    r"<(write_to_file|replace_in_file|apply_diff|insert_content|search_and_replace|edit_file"
    r"|execute_command|read_file|list_files|search_files|list_code_definition_names"
    r"|use_mcp_tool|access_mcp_resource|browser_action|ask_followup_question"
    r"|attempt_completion|new_task|switch_mode|plan_mode_respond)>(.*?)</\1>",
    re.DOTALL,
)
_FIELD = re.compile(r"<([a-z_]+)>(.*?)</\1>", re.DOTALL)
_RESULT = re.compile(r"\[(\w+)(?: for [^\n]*)?\] Result:\s*")
_CWD = re.compile(r"# Current (?:Working|Workspace) Directory \(([^\n]{1,1000})\) Files")
_DETAILS = re.compile(r"<environment_details>.*?(?:</environment_details>|\Z)", re.DOTALL)
_TASK = re.compile(r"\A\s*<(task|feedback|user_message)>\s*(.*?)\s*</\1>\s*\Z", re.DOTALL)
_MOST_CHARS = 4_000_000


class ClineSource:
    """The reader of the tasks of Cline and what was made from it."""

    harness = HARNESS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """Return the folders of tasks that are there, and that of Cline's own CLI."""
        found = [
            folder / "globalStorage" / name / "tasks"
            for folder in user_folders(home, env)
            for name in _EXTENSIONS
        ]
        named = env.get("CLINE_DIR", "").strip()
        base = expanded(named) if named else home / ".cline"
        return [root for root in (*found, base / "data" / "tasks") if root.is_dir()]

    def units(self, root: Path) -> Iterator[Unit | Problem]:
        """Yield the tasks under a root, newest first."""
        return file_units(root, (HISTORY,), unit_of)

    def units_at(self, root: Path, path: Path) -> list[Unit]:
        """Return the tasks under a root that a path below it holds."""
        return units_at(root, path, (HISTORY,), unit_of)

    def read(self, unit: Unit, *, resume: bytes | None = None) -> DocumentReading:
        """Return a reading of a task."""
        task = Path(unit.key).parent.name
        sheet = Sheet(meta=SessionMeta(session_id=task, harness=HARNESS), workdir=HARNESS)
        return DocumentReading(unit, sheet, _drafts, resume=resume)


def unit_of(found: Found) -> Unit:
    """Return a task's history as a unit."""
    return found.unit(HARNESS)


def _drafts(document: Any, unit: Unit, sheet: Sheet) -> Iterator[Draft]:
    if not isinstance(document, list):
        raise OddFormatError("It is no list of messages; Cline may write another format.")
    _find_cwd(document, sheet)
    _note_item(table(glance_json(unit.path.parent / _ITEM)), sheet)
    times = _times(unit.path.parent)
    last = sheet.meta.session_id if sheet.meta.session_id.isdecimal() else ""
    open_calls: list[tuple[str, str]] = []
    for index, message in enumerate(document):
        content = message.get("content") if isinstance(message, dict) else None
        role = texts.string(message.get("role")) if isinstance(message, dict) else None
        if role is None or not isinstance(content, (str, list)):
            sheet.skip("message without role or content")
            continue
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else dicts(content)
        last = texts.time_text(message.get("ts")) or times.get(index, "") or last
        if role == "assistant":
            open_calls = []
        blocks = _blocks(parts, role, index, open_calls)
        uuid = f"{sheet.meta.session_id}-{index}"
        yield Draft(role=role, blocks=blocks, uuid=uuid, ts=last)


def _find_cwd(document: list[Any], sheet: Sheet) -> None:
    """Take the work directory from what the extension told the model of its surroundings."""
    for message in dicts(document)[:6]:
        found = _CWD.search(texts.flat_text(message.get("content")))
        if found:
            sheet.live_in(found[1])
            return


def _note_item(item: dict[str, Any], sheet: Sheet) -> None:
    """Take what a list of tasks says of this one: its folder, and the task it is a part of."""
    sheet.live_in(item.get("workspace"))
    parent = texts.string(item.get("parentTaskId"))
    if parent:
        sheet.meta.link, sheet.meta.parent_id = "subagent", parent


def _times(folder: Path) -> dict[int, str]:
    """Return when messages were made, by index, as far as the shown ones tell."""
    found: dict[int, str] = {}
    for shown in dicts(glance_json(folder / "ui_messages.json", 64 << 20)):
        index, at = shown.get("conversationHistoryIndex"), shown.get("ts")
        if isinstance(index, int) and isinstance(at, int):
            found.setdefault(index + 1, str(at))
    return found


def _blocks(
    parts: list[dict[str, Any]], role: str, index: int, open_calls: list[tuple[str, str]]
) -> list[Block]:
    blocks: list[Block] = []
    for part in parts:
        kind = texts.kind_of(part)
        if kind in ("thinking", "reasoning"):
            blocks += texts.text_block(part.get("thinking") or part.get("text"), "thinking")
        elif kind == "tool_use":
            blocks.append(tool_use(part.get("name"), part.get("input"), part.get("id")))
        elif kind == "tool_result":
            answer = _DETAILS.sub("", texts.flat_text(part.get("content")))
            blocks += tool_result(answer, part.get("tool_use_id"))
        elif kind == "text" and isinstance(text := part.get("text"), str):
            if role == "assistant":
                blocks += _said(text, index, open_calls)
            else:
                blocks += _told(text, blocks, open_calls)
    return blocks


def _said(text: str, index: int, open_calls: list[tuple[str, str]]) -> Iterator[Block]:
    """Yield what a model said, calls that stand in it as tags as calls."""
    start = 0
    for found in _CALL.finditer(text) if len(text) <= _MOST_CHARS else ():
        yield from _spoken(text[start : found.start()])
        start = found.end()
        name, call_id = found[1], f"{index}-{len(open_calls)}"
        open_calls.append((name, call_id))
        fields = {one[1]: one[2].strip("\n") for one in _FIELD.finditer(found[2])}
        yield tool_use(name, jsonvalue.dumps(fields or {"input": found[2]}), call_id)
    yield from _spoken(text[start:])


def _spoken(text: str) -> Iterator[Block]:
    opening = text.lstrip()
    if opening.startswith("<thinking>") and "</thinking>" in opening:
        thought, _, text = opening.removeprefix("<thinking>").partition("</thinking>")
        yield from texts.text_block(thought, "thinking")
    yield from texts.text_block(text)


def _told(text: str, before: list[Block], open_calls: list[tuple[str, str]]) -> list[Block]:
    """Return what stands in a user's name: a prompt, or what a tool answered."""
    text = _DETAILS.sub("", text)
    found = _RESULT.match(text)
    if found:
        call = next((one for one in open_calls if one[0] == found[1]), None)
        if call is not None:
            open_calls.remove(call)
        rest = text[found.end() :]
        if texts.is_blank(rest):  # the answer is the next part
            open_calls.insert(0, ("", call[1] if call else ""))
            return []
        return tool_result(rest, call[1] if call else None, found[1])
    if open_calls and open_calls[0][0] == "":
        return tool_result(text, open_calls.pop(0)[1] or None)
    task = _TASK.match(text)
    return texts.text_block(task[2] if task else text)
