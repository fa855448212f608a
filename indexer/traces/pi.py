"""pi: `~/.pi/agent/sessions/<folder>/<time>_<id>.jsonl`, versions 1 to 3 and its descendants."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from funes_ls.indexer.home import expanded
from funes_ls.indexer.model import Block, Problem, SessionMeta
from funes_ls.indexer.traces import jsonvalue, texts
from funes_ls.indexer.traces.base import Unit
from funes_ls.indexer.traces.jsonl import Draft, JsonlReading
from funes_ls.indexer.traces.state import State
from funes_ls.indexer.traces.walk import Found, file_units, units_at

HARNESS = "pi"
_SUFFIXES = (".jsonl",)
_SILENT = frozenset({"model_change", "thinking_level_change", "label", "custom", "session"})
_NOTES = frozenset({"custom", "hookMessage"})
_SUMMARIES = frozenset({"compactionSummary", "branchSummary"})
_SEPARATOR = re.compile(r"[/\\]")
_PROMPT, _GIVEN = 2, 3


class PiSource:
    """The reader of pi's sessions."""

    harness = HARNESS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """Return where pi and oh-my-pi keep sessions."""
        named = env.get("PI_CODING_AGENT_DIR", "").strip()
        pi = expanded(named) if named else home / ".pi" / "agent"
        return [pi / "sessions", home / ".omp" / "agent" / "sessions"]

    def units(self, root: Path) -> Iterator[Unit | Problem]:
        """Yield the sessions under a root, newest first."""
        return file_units(root, _SUFFIXES, unit_of)

    def units_at(self, root: Path, path: Path) -> list[Unit]:
        """Return the sessions under a root that a path below it holds."""
        return units_at(root, path, _SUFFIXES, unit_of)

    def read(self, unit: Unit, *, resume: bytes | None = None) -> JsonlReading:
        """Return a reading of a session."""
        return JsonlReading(unit, _DIALECT, resume=resume)


def unit_of(found: Found) -> Unit:
    """Return a session file as a unit."""
    return found.unit(HARNESS)


class _Pi:
    harness = HARNESS

    def fresh(self, unit: Unit) -> State:
        path = Path(unit.key)
        stem = texts.stem_of(path)
        return State(
            harness=HARNESS,
            session_id=stem,
            declared=True,
            workdir=texts.fallback_workdir(path),
            meta=SessionMeta(session_id=stem, harness=HARNESS),
        )

    def wanted(self, raw: bytes | bytearray, state: State) -> bool:
        return b'"session"' in raw

    def scanned(self, state: State) -> bool:
        return state.workdir_known

    def scan(self, record: dict[str, Any], state: State) -> None:
        workdir = texts.munge(record.get("cwd")) if texts.kind_of(record) == "session" else None
        if workdir is not None and not state.workdir_known:
            state.workdir, state.workdir_known = workdir, True
            state.meta.cwd = record["cwd"]

    def draft(
        self, record: dict[str, Any], state: State, raw: bytes | bytearray | None
    ) -> Draft | None:
        kind = texts.kind_of(record)
        if kind == "message":
            made = _message(record, state, raw)
        elif kind in ("compaction", "branch_summary"):
            made = Draft(
                role="system", blocks=texts.text_block(record.get("summary")), kind="extra"
            )
        elif kind == "custom_message":
            made = _note(record.get("content"))
        else:
            _note_entry(record, state)
            return None
        if made is not None:
            made.uuid = texts.string(record.get("id")) or ""
            made.parent = texts.string(record.get("parentId"))
            made.ts = texts.time_text(record.get("timestamp"))
        return made

    def uuid(self, draft: Draft, state: State, fallback: str) -> tuple[str, str | None]:
        """Return the entry's id; version 1 has none, and compat then has the empty one."""
        return (draft.uuid, None) if draft.uuid else (fallback, "")


def _message(record: dict[str, Any], state: State, raw: bytes | bytearray | None) -> Draft | None:
    message = record.get("message")
    if not isinstance(message, dict):
        return None
    role, content = texts.string(message.get("role")) or "", message.get("content")
    if role in ("user", "assistant") and isinstance(content, str):
        draft = Draft(role=role, blocks=texts.text_block(content), kind="extra")
    elif role == "user":
        draft = Draft(role=role, blocks=_text_parts(content))
    elif role == "assistant":
        draft = Draft(role=role, blocks=_assistant_parts(_exact_content(content, raw)))
    elif role == "toolResult":
        draft = Draft(role="tool", blocks=_tool_result(message))
    else:
        return _extra_message(role, message, record, state)
    if role == "user" and state.title_rank < _PROMPT:
        _prompt_title(draft.blocks, state)
    return draft


def _exact_content(content: Any, raw: bytes | bytearray | None) -> Any:
    """Return the parts, with numbers of tool inputs exactly as compat serialises them."""
    if raw is None or b'"toolCall"' not in raw or not jsonvalue.is_exotic(raw):
        return content
    return jsonvalue.parse_exact(raw)["message"]["content"]


def _parts(content: Any) -> list[dict[str, Any]]:
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _text_parts(content: Any) -> list[Block]:
    blocks: list[Block] = []
    for part in _parts(content):
        if texts.kind_of(part) == "text":
            blocks += texts.text_block(part.get("text"))
    return blocks


def _assistant_parts(content: Any) -> list[Block]:
    blocks: list[Block] = []
    for part in _parts(content):
        kind = texts.kind_of(part)
        if kind == "text":
            blocks += texts.text_block(part.get("text"))
        elif kind == "thinking":
            blocks += texts.text_block(part.get("thinking"), "thinking")
        elif kind == "toolCall":
            blocks.append(
                Block(
                    block_type="tool_use",
                    text=jsonvalue.dumps(part["arguments"]) if "arguments" in part else "{}",
                    tool_name=texts.string(part.get("name")),
                    tool_use_id=texts.string(part.get("id")),
                )
            )
    return blocks


def _tool_result(message: dict[str, Any]) -> list[Block]:
    text = texts.flat_text(message.get("content"))
    if texts.is_blank(text):
        return []
    return [
        Block(
            block_type="tool_result",
            text=text,
            tool_name=texts.string(message.get("toolName")),
            tool_use_id=texts.string(message.get("toolCallId")),
        )
    ]


def _extra_message(
    role: str, message: dict[str, Any], record: dict[str, Any], state: State
) -> Draft | None:
    """Return the turn of a message in a role that compat loses."""
    if role == "bashExecution":
        call_id = texts.string(record.get("id")) or f"bash-{state.records}"
        return Draft(role="user", blocks=_bash(message, call_id), kind="extra")
    if role in _NOTES:
        return _note(message.get("content"))
    if role in _SUMMARIES:
        blocks = texts.text_block(message.get("summary")) or _note(message.get("content")).blocks
        return Draft(role="system", blocks=blocks, kind="extra")
    return None


def _bash(message: dict[str, Any], call_id: str) -> list[Block]:
    """Return the command a user ran with `!`, and what it printed."""
    command, output = texts.string(message.get("command")), texts.string(message.get("output"))
    blocks: list[Block] = []
    if command:
        text = jsonvalue.dumps({"command": command})
        blocks.append(
            Block(block_type="tool_use", text=text, tool_name="bash", tool_use_id=call_id)
        )
    if output and not texts.is_blank(output):
        blocks.append(
            Block(block_type="tool_result", text=output, tool_name="bash", tool_use_id=call_id)
        )
    return blocks


def _note(content: Any) -> Draft:
    """Return the text an extension put into the session."""
    blocks = texts.text_block(content) if isinstance(content, str) else _text_parts(content)
    return Draft(role="system", blocks=blocks, kind="extra")


def _note_entry(record: dict[str, Any], state: State) -> None:
    kind = texts.kind_of(record)
    if kind == "session":
        _note_session(record, state)
    elif kind == "session_info":
        name = record.get("name")
        if isinstance(name, str) and name.strip():
            state.meta.title, state.title_rank = " ".join(name.split())[:200], _GIVEN
    elif kind and kind not in _SILENT:
        state.skipped[kind] = state.skipped.get(kind, 0) + 1


def _note_session(record: dict[str, Any], state: State) -> None:
    meta = state.meta
    if not meta.cwd and texts.munge(record.get("cwd")):
        meta.cwd = record["cwd"]
    inner_id = texts.string(record.get("id"))
    if inner_id and not meta.inner_id and inner_id != meta.session_id:
        meta.inner_id = inner_id
    parent = texts.string(record.get("parentSession")) or texts.string(record.get("branchedFrom"))
    if parent and not meta.parent_id:
        name = _SEPARATOR.split(parent)[-1].removesuffix(".jsonl")
        if name != meta.session_id:
            meta.parent_id, meta.link = name, "fork"


def _prompt_title(blocks: list[Block], state: State) -> None:
    for block in blocks:
        title = texts.title_of(block.text)
        if title:
            state.meta.title, state.title_rank = title, _PROMPT
            return


_DIALECT = _Pi()
