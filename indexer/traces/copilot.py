"""Copilot CLI: `~/.copilot/session-state/<session>/events.jsonl`, once `<session>.jsonl` there.

What sub-agents said stands among the events of the session that started them.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from funes_ls.indexer.home import expanded
from funes_ls.indexer.model import Block, Problem, SessionMeta
from funes_ls.indexer.traces import jsonvalue, texts
from funes_ls.indexer.traces.base import Unit
from funes_ls.indexer.traces.document import (
    WaryReading,
    dicts,
    first_title,
    table,
    tool_result,
    tool_use,
)
from funes_ls.indexer.traces.jsonl import Draft, learn_name
from funes_ls.indexer.traces.state import State
from funes_ls.indexer.traces.walk import Found, file_units, units_at

HARNESS = "copilot"
EVENTS = "events.jsonl"
_SUFFIXES = (".jsonl",)
#: Events that say nothing for a memory.
_SILENT = (
    "session.", "assistant.turn", "assistant.usage", "assistant.intent", "assistant.streaming",
    "tool.execution_start", "tool.execution_p", "tool.user_requested", "hook.", "permission.",
    "subagent.", "skill.", "abort", "user_input.", "elicitation.", "command.", "external_tool.",
    "pending_messages.", "system.", "mcp.", "exit_plan_mode.", "capabilities.", "model.",
)  # fmt: skip


class CopilotSource:
    """The reader of Copilot CLI's sessions."""

    harness = HARNESS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """Return the folders of sessions, today's and the one of old versions."""
        named = env.get("COPILOT_HOME", "").strip()
        base = expanded(named) if named else home / ".copilot"
        return [base / "session-state", base / "history-session-state"]

    def units(self, root: Path) -> Iterator[Unit | Problem]:
        """Yield the sessions under a root, newest first."""
        for item in file_units(root, _SUFFIXES, unit_of):
            if isinstance(item, Problem) or _is_session(root, Path(item.key)):
                yield item

    def units_at(self, root: Path, path: Path) -> list[Unit]:
        """Return the sessions under a root that a path below it holds."""
        found = units_at(root, path, _SUFFIXES, unit_of)
        return [unit for unit in found if _is_session(root, Path(unit.key))]

    def read(self, unit: Unit, *, resume: bytes | None = None) -> WaryReading:
        """Return a reading of a session."""
        return WaryReading(unit, _DIALECT, resume=resume)


def unit_of(found: Found) -> Unit:
    """Return a session file as a unit."""
    return found.unit(HARNESS)


def _is_session(root: Path, path: Path) -> bool:
    """Tell a session from other files: agents keep what they like beside their events."""
    return path.name == EVENTS or path.parent == root or path == root


class _Copilot:
    harness = HARNESS

    def fresh(self, unit: Unit) -> State:
        path = Path(unit.key)
        session_id = path.parent.name if path.name == EVENTS else path.stem
        return State(
            harness=HARNESS,
            session_id=session_id,
            declared=True,
            workdir=session_id,
            meta=SessionMeta(session_id=session_id, harness=HARNESS),
        )

    def wanted(self, raw: bytes | bytearray, state: State) -> bool:
        return b'"session.start"' in raw or b'"toolName"' in raw or b'"toolRequests"' in raw

    def scanned(self, state: State) -> bool:
        return False

    def scan(self, record: dict[str, Any], state: State) -> None:
        data = table(record.get("data"))
        if texts.kind_of(record) == "session.start":
            _note_start(data, state)
        learn_name(state, data.get("toolCallId"), data.get("toolName"))
        for call in dicts(data.get("toolRequests")):
            learn_name(state, call.get("toolCallId"), call.get("name"))

    def draft(
        self, record: dict[str, Any], state: State, raw: bytes | bytearray | None
    ) -> Draft | None:
        kind, data = texts.kind_of(record), table(record.get("data"))
        made = _TURNS.get(kind)
        if made is None:
            _note_event(kind, data, state)
            return None
        role, blocks = made(data)
        if not blocks and not _MUST_HAVE.get(kind, set()) & set(data):
            state.skipped[f"{kind} without text"] = state.skipped.get(f"{kind} without text", 0) + 1
        if role == "user" and not state.meta.title and not data.get("parentToolCallId"):
            state.meta.title = first_title(blocks)
        return Draft(
            role=role,
            blocks=blocks,
            uuid=texts.string(record.get("id")) or "",
            parent=texts.string(record.get("parentId")),
            ts=texts.time_text(record.get("timestamp")),
        )

    def uuid(self, draft: Draft, state: State, fallback: str) -> tuple[str, str | None]:
        return draft.uuid or fallback, None


def _user(data: dict[str, Any]) -> tuple[str, list[Block]]:
    return "user", texts.text_block(data.get("content"))


def _assistant(data: dict[str, Any]) -> tuple[str, list[Block]]:
    blocks = texts.text_block(data.get("reasoningText"), "thinking")
    blocks += texts.text_block(data.get("content"))
    for call in dicts(data.get("toolRequests")):
        blocks.append(tool_use(call.get("name"), call.get("arguments"), call.get("toolCallId")))
    return "assistant", blocks


def _reasoning(data: dict[str, Any]) -> tuple[str, list[Block]]:
    return "assistant", texts.text_block(data.get("content"), "thinking")


def _answer(data: dict[str, Any]) -> tuple[str, list[Block]]:
    """Return what a tool answered: what the model got, else what was shown, else the error."""
    given, error = data.get("result"), data.get("error")
    text = given if isinstance(given, str) else ""
    for key in ("content", "detailedContent"):
        text = text or texts.flat_text(table(given).get(key))
    if not text and error:
        message = error if isinstance(error, str) else table(error).get("message")
        text = message if isinstance(message, str) else jsonvalue.dumps(error)
    return "tool", tool_result(text, data.get("toolCallId"), data.get("toolName"))


def _summary(data: dict[str, Any]) -> tuple[str, list[Block]]:
    return "system", texts.text_block(data.get("summaryContent"))


_TURNS = {
    "user.message": _user,
    "assistant.message": _assistant,
    "assistant.reasoning": _reasoning,
    "tool.execution_complete": _answer,
    "session.compaction_complete": _summary,
}
#: Fields of which an event has one, be it empty; one that has none of them was written otherwise.
_MUST_HAVE = {
    "user.message": {"content"},
    "assistant.message": {"content", "toolRequests", "reasoningText"},
    "assistant.reasoning": {"content"},
    "tool.execution_complete": {"result", "error", "success"},
    "session.compaction_complete": {"summaryContent", "success"},
}


def _note_start(data: dict[str, Any], state: State) -> None:
    context = table(data.get("context"))
    workdir = texts.munge(context.get("cwd"))
    if workdir is not None and not state.workdir_known:
        state.workdir, state.workdir_known = workdir, True
        state.meta.cwd = context["cwd"]
    state.meta.branch = state.meta.branch or texts.string(context.get("branch")) or ""


def _note_event(kind: str, data: dict[str, Any], state: State) -> None:
    if kind == "session.title_changed":
        title = data.get("title")
        if isinstance(title, str) and title.strip():
            state.meta.title = " ".join(title.split())[:200]
    elif kind and not kind.startswith(_SILENT):
        state.skipped[kind] = state.skipped.get(kind, 0) + 1


_DIALECT = _Copilot()
