"""Claude Code: `~/.claude/projects/<folded cwd>/<session>.jsonl` and sub-agent files below it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from funes_ls.indexer.home import expanded
from funes_ls.indexer.model import Block, Problem, SessionMeta
from funes_ls.indexer.traces import jsonvalue, texts
from funes_ls.indexer.traces.base import Unit
from funes_ls.indexer.traces.jsonl import Draft, JsonlReading, learn_name
from funes_ls.indexer.traces.state import State
from funes_ls.indexer.traces.walk import Found, file_units, units_at

HARNESS = "claude_code"
_SUFFIXES = (".jsonl",)
_TURN_TYPES = frozenset({"user", "assistant"})
_KNOWN_TYPES = frozenset(
    {"summary", "ai-title", "custom-title", "attachment", "progress", "system"}
    | {"file-history-snapshot", "queue-operation"}
)
#: How good a title is: one the user gave, the first prompt, one a model made up.
_GIVEN, _PROMPT, _GUESSED = 3, 2, 1


class ClaudeSource:
    """The reader of Claude Code's sessions."""

    harness = HARNESS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """Return the `projects` folders that Claude Code may use."""
        named = env.get("CLAUDE_CONFIG_DIR", "").strip()
        if named:
            return [expanded(named) / "projects"]
        return [home / ".claude" / "projects", home / ".config" / "claude" / "projects"]

    def units(self, root: Path) -> Iterator[Unit | Problem]:
        """Yield the sessions under a root, newest first, sub-agents last."""
        return file_units(root, _SUFFIXES, unit_of)

    def units_at(self, root: Path, path: Path) -> list[Unit]:
        """Return the sessions under a root that a path below it holds."""
        return units_at(root, path, _SUFFIXES, unit_of)

    def read(self, unit: Unit, *, resume: bytes | None = None) -> JsonlReading:
        """Return a reading of a session."""
        return JsonlReading(unit, _DIALECT, resume=resume)


def unit_of(found: Found) -> Unit:
    """Return a trace file as a unit."""
    return found.unit(HARNESS, subagent=_is_subagent(found.path))


def _is_subagent(path: Path) -> bool:
    return path.name.startswith("agent-") or path.parent.name == "subagents"


class _Claude:
    harness = HARNESS

    def fresh(self, unit: Unit) -> State:
        path = Path(unit.key)
        stem = texts.stem_of(path)
        return State(
            harness=HARNESS,
            session_id=stem,
            declared=True,
            workdir=texts.fallback_workdir(path),
            meta=SessionMeta(
                session_id=stem, harness=HARNESS, link="subagent" if unit.subagent else ""
            ),
        )

    def wanted(self, raw: bytes | bytearray, state: State) -> bool:
        return b'tool_use"' in raw or (not state.workdir_known and b'"cwd"' in raw)

    def scanned(self, state: State) -> bool:
        return False

    def scan(self, record: dict[str, Any], state: State) -> None:
        if not state.workdir_known:
            workdir = texts.munge(record.get("cwd"))
            if workdir is not None:
                state.workdir, state.workdir_known = workdir, True
                state.meta.cwd = record["cwd"]
        if texts.kind_of(record) not in _TURN_TYPES:
            return
        for part in _parts(record):
            if isinstance(part, dict) and texts.kind_of(part) == "tool_use":
                learn_name(state, part.get("id"), part.get("name"))

    def draft(
        self, record: dict[str, Any], state: State, raw: bytes | bytearray | None
    ) -> Draft | None:
        kind = texts.kind_of(record)
        if kind in _TURN_TYPES:
            _note_session(record, state)
            return _message(record, state, raw)
        _note_session(record, state)
        if kind == "attachment":
            return _queued_command(record)
        _note_title(record, state)
        if kind and kind not in _KNOWN_TYPES:
            state.skipped[kind] = state.skipped.get(kind, 0) + 1
        return None

    def uuid(self, draft: Draft, state: State, fallback: str) -> tuple[str, str | None]:
        return draft.uuid, None


def _parts(record: dict[str, Any]) -> list[Any]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, list) else []


def _message(record: dict[str, Any], state: State, raw: bytes | bytearray | None) -> Draft:
    message = record.get("message")
    if not isinstance(message, dict):
        message = {}
    content = message.get("content")
    if isinstance(content, list):
        blocks = _blocks(_exact_parts(content, record, raw))
    else:
        blocks = texts.text_block(content)
    draft = Draft(
        role=texts.string(message.get("role")) or _role(message, record),
        blocks=blocks,
        uuid=texts.string(record.get("uuid")) or "",
        parent=texts.string(record.get("parentUuid")),
        ts=texts.time_text(record.get("timestamp")),
    )
    if state.title_rank < _PROMPT and texts.kind_of(record) == "user":
        _prompt_title(record, blocks, state)
    return draft


def _role(message: dict[str, Any], record: dict[str, Any]) -> str:
    """Return an empty role as it is, and the record's type for one that is missing."""
    return "" if message.get("role") == "" else str(texts.kind_of(record))


def _exact_parts(
    content: list[Any], record: dict[str, Any], raw: bytes | bytearray | None
) -> list[Any]:
    """Return the parts, with numbers of tool inputs exactly as compat serialises them."""
    if raw is None or b'tool_use"' not in raw or not jsonvalue.is_exotic(raw):
        return content
    return _parts(jsonvalue.parse_exact(raw))


def _blocks(parts: list[Any]) -> list[Block]:
    blocks: list[Block] = []
    for part in parts:
        if not isinstance(part, dict):
            continue
        kind = texts.kind_of(part)
        if kind == "text":
            blocks += texts.text_block(part.get("text"))
        elif kind == "thinking":
            blocks += texts.text_block(part.get("thinking"), "thinking")
        elif kind == "tool_use":
            blocks.append(_tool_use(part))
        elif kind == "tool_result":
            text = texts.flat_text(part.get("content"))
            if not texts.is_blank(text):
                answered = texts.string(part.get("tool_use_id"))
                blocks.append(Block(block_type="tool_result", text=text, tool_use_id=answered))
    return blocks


def _tool_use(part: dict[str, Any]) -> Block:
    return Block(
        block_type="tool_use",
        text=jsonvalue.dumps(part["input"]) if "input" in part else "{}",
        tool_name=texts.string(part.get("name")),
        tool_use_id=texts.string(part.get("id")),
    )


def _queued_command(record: dict[str, Any]) -> Draft | None:
    """Return the prompt a user typed while the agent was busy."""
    attachment = record.get("attachment")
    if not isinstance(attachment, dict) or texts.kind_of(attachment) != "queued_command":
        return None
    prompt = attachment.get("prompt")
    if isinstance(prompt, list):
        blocks = [block for block in _blocks(prompt) if block.block_type == "text"]
    else:
        blocks = texts.text_block(prompt)
    return Draft(
        role="user",
        blocks=blocks,
        kind="extra",
        uuid=texts.string(record.get("uuid")) or "",
        parent=texts.string(record.get("parentUuid")),
        ts=texts.time_text(record.get("timestamp")),
    )


def _note_session(record: dict[str, Any], state: State) -> None:
    """Keep what a record says of its session and nobody said before."""
    meta = state.meta
    if not meta.cwd and texts.munge(record.get("cwd")):
        meta.cwd = record["cwd"]  # of a line that compat refuses
    if not meta.branch:
        meta.branch = texts.string(record.get("gitBranch")) or ""
    session_id = texts.string(record.get("sessionId"))
    if meta.link == "subagent":
        if session_id and not meta.parent_id and session_id != meta.session_id:
            meta.parent_id = session_id
        return
    if session_id and not meta.inner_id and session_id != meta.session_id:
        meta.inner_id = session_id
    forked = record.get("forkedFrom")
    if forked and not meta.parent_id:
        parent = forked.get("sessionId") if isinstance(forked, dict) else forked
        if isinstance(parent, str) and parent != meta.session_id:
            meta.parent_id, meta.link = parent, "fork"


def _note_title(record: dict[str, Any], state: State) -> None:
    kind = texts.kind_of(record)
    if kind == "custom-title":
        rank, title = _GIVEN, record.get("customTitle") or record.get("title")
    elif kind == "ai-title":
        rank, title = _GUESSED, record.get("aiTitle") or record.get("title")
    else:
        return
    if isinstance(title, str) and title.strip() and rank >= state.title_rank:
        state.meta.title = " ".join(title.split())[:200]
        state.title_rank = rank


def _prompt_title(record: dict[str, Any], blocks: list[Block], state: State) -> None:
    is_subagent = state.meta.link == "subagent"
    # A sub-agent may replay its parent's turns first; elsewhere a side chain is a sub-agent's.
    aside = record.get("forkedFrom") if is_subagent else record.get("isSidechain") is True
    if aside or record.get("isMeta") is True or record.get("isCompactSummary") is True:
        return
    for block in blocks:
        title = texts.title_of(block.text) if block.block_type == "text" else ""
        if title:
            state.meta.title, state.title_rank = title, _PROMPT
            return


_DIALECT = _Claude()
