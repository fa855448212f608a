"""Codex: rollouts under `~/.codex/sessions` and `archived_sessions`, plain or compressed."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from funes_ls.indexer.home import expanded
from funes_ls.indexer.model import Block, Problem, SessionMeta
from funes_ls.indexer.traces import jsonvalue, texts
from funes_ls.indexer.traces.base import Unit
from funes_ls.indexer.traces.jsonl import Draft, JsonlReading, Kind, learn_name
from funes_ls.indexer.traces.state import State
from funes_ls.indexer.traces.walk import Found, file_units, units_at

HARNESS = "codex"
SUFFIXES = (".jsonl", ".jsonl.zst")
#: Files beside the rollouts that are no traces.
SIDECARS = frozenset({"session_index.jsonl", "history.jsonl"})
_CALLS = frozenset({"function_call", "custom_tool_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_EXTRA_CALLS = {
    "local_shell_call": "local_shell",
    "web_search_call": "web_search",
    "tool_search_call": "tool_search",
}
_ITEMS = _CALLS | _OUTPUTS | _EXTRA_CALLS.keys() | {"message", "reasoning", "agent_message"}
_SILENT = frozenset(
    {"event_msg", "turn_context", "world_state", "token_usage_record", "response_item"}
    | {"inter_agent_communication", "inter_agent_communication_metadata", "compacted"}
)
_CWD = re.compile(r"<cwd>\s*(.*?)\s*</cwd>|Current working directory: ([^\n]+)", re.DOTALL)
_REQUEST = "## My request for Codex:"
_ROLLOUT_ID = re.compile(r"^rollout-.*-([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})$")
_PROMPT, _GIVEN = 2, 3


class CodexSource:
    """The reader of Codex rollouts."""

    harness = HARNESS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """Return where Codex keeps rollouts, current and archived."""
        named = env.get("CODEX_HOME", "").strip()
        base = expanded(named) if named else home / ".codex"
        return [base / "sessions", base / "archived_sessions"]

    def units(self, root: Path) -> Iterator[Unit | Problem]:
        """Yield the rollouts under a root; of a plain and a compressed copy, the plain one."""
        listed = list(file_units(root, SUFFIXES, unit_of))
        plain = {item.key for item in listed if isinstance(item, Unit)}
        for item in listed:
            if isinstance(item, Problem) or not _is_aside(item, plain):
                yield item

    def units_at(self, root: Path, path: Path) -> list[Unit]:
        """Return the rollouts under a root that a path below it holds."""
        found = units_at(root, path, SUFFIXES, unit_of)
        if not found and path.suffix == ".jsonl":  # it may have been compressed just now
            found = units_at(root, path.with_name(f"{path.name}.zst"), SUFFIXES, unit_of)
        return [unit for unit in found if not _is_aside(unit, _plain_beside(unit))]

    def read(self, unit: Unit, *, resume: bytes | None = None) -> JsonlReading:
        """Return a reading of a rollout; the state also fits its compressed or moved file."""
        return JsonlReading(unit, _DIALECT, resume=resume)


def unit_of(found: Found) -> Unit:
    """Return a rollout as a unit."""
    return found.unit(HARNESS)


def _plain_beside(unit: Unit) -> set[str]:
    """Return the key of the plain copy that lies beside a compressed rollout, if there is one."""
    plain = unit.path.with_name(unit.path.name.removesuffix(".zst"))
    return {unit.key.removesuffix(".zst")} if plain != unit.path and plain.is_file() else set()


def _is_aside(unit: Unit, keys: set[str]) -> bool:
    if Path(unit.key).name in SIDECARS:
        return True
    return unit.key.endswith(".zst") and unit.key.removesuffix(".zst") in keys


class _Codex:
    harness = HARNESS

    def fresh(self, unit: Unit) -> State:
        path = Path(unit.key)
        stem = texts.stem_of(path)
        rollout = _ROLLOUT_ID.match(stem)
        return State(
            harness=HARNESS,
            session_id=stem,
            workdir=texts.fallback_workdir(path),
            meta=SessionMeta(
                session_id=stem, harness=HARNESS, inner_id=rollout[1] if rollout else ""
            ),
        )

    def wanted(self, raw: bytes | bytearray, state: State) -> bool:
        if b'_call"' in raw or b"session_meta" in raw:
            return True
        if state.bare:
            return not state.workdir_known and (b"<cwd>" in raw or b"working directory" in raw)
        return not state.declared and b'"payload"' not in raw

    def scanned(self, state: State) -> bool:
        return False

    def scan(self, record: dict[str, Any], state: State) -> None:
        kind, payload = texts.kind_of(record), record.get("payload")
        if kind == "session_meta":
            if isinstance(payload, dict):
                _identify(payload, state)
        elif kind == "response_item":
            if isinstance(payload, dict) and texts.kind_of(payload) in _CALLS:
                learn_name(state, payload.get("call_id"), payload.get("name"))
        elif state.bare:
            _scan_bare(record, state)
        elif not state.declared and is_bare_header(record):
            state.bare = True
            state.base_ts = texts.time_text(record.get("timestamp"))
            state.session_id = state.meta.session_id = record["id"]

    def draft(
        self, record: dict[str, Any], state: State, raw: bytes | bytearray | None
    ) -> Draft | None:
        kind, payload = texts.kind_of(record), record.get("payload")
        if not isinstance(payload, dict):
            return _bare_draft(record, state, raw)
        if not state.meta.cwd:
            state.meta.cwd = texts.string(payload.get("cwd")) or ""
        ts = texts.time_text(record.get("timestamp"))
        if kind == "response_item":
            return _item(payload, state, raw, ts=ts, bare=False)
        if kind == "compacted":
            blocks = texts.text_block(payload.get("message"))
            return Draft(role="system", blocks=blocks, kind="extra", ts=ts)
        if kind == "session_meta":
            _note_session(payload, state)
        elif kind == "event_msg":
            _note_name(payload, state)
        elif kind and kind not in _SILENT:
            state.skipped[kind] = state.skipped.get(kind, 0) + 1
        return None

    def uuid(self, draft: Draft, state: State, fallback: str) -> tuple[str, str | None]:
        return fallback, None


def _identify(payload: dict[str, Any], state: State) -> None:
    """Take the session id and the work directory from the first header that has each."""
    session_id, cwd = payload.get("id"), payload.get("cwd")
    if not state.declared and isinstance(session_id, str):
        state.session_id = state.meta.session_id = session_id
        state.declared = True
        state.meta.inner_id = ""
    if not state.workdir_known and isinstance(cwd, str):
        state.workdir = texts.munge(cwd) or state.workdir
        state.workdir_known = True
        state.meta.cwd = state.meta.cwd or cwd


def is_bare_header(record: dict[str, Any]) -> bool:
    """Tell whether a record is the first of a rollout without envelopes."""
    return (
        "type" not in record
        and isinstance(record.get("id"), str)
        and ("instructions" in record or "git" in record or "timestamp" in record)
    )


def _scan_bare(record: dict[str, Any], state: State) -> None:
    kind = texts.kind_of(record)
    if kind in _CALLS:
        learn_name(state, record.get("call_id"), record.get("name"))
    elif kind == "message" and not state.workdir_known:
        for block in _message_blocks(record.get("content")):
            found = _CWD.search(block.text)
            cwd = (found[1] or found[2] or "").strip() if found else ""
            if texts.munge(cwd):
                state.workdir, state.workdir_known = texts.munge(cwd) or "", True
                state.meta.cwd = cwd
                return


def _bare_draft(
    record: dict[str, Any], state: State, raw: bytes | bytearray | None
) -> Draft | None:
    """Return the turn of a record without envelope, as rollouts were until September 2025."""
    kind = texts.kind_of(record)
    if kind in _ITEMS and "payload" not in record:
        ts = texts.time_text(record.get("timestamp"))
        return _item(record, state, raw, ts=ts, bare=True)
    if state.bare and not state.noted and is_bare_header(record):
        _note_session(record, state)
    elif kind and kind not in _SILENT:
        state.skipped[kind] = state.skipped.get(kind, 0) + 1
    return None


def _item(
    item: dict[str, Any], state: State, raw: bytes | bytearray | None, *, ts: str, bare: bool
) -> Draft | None:
    """Return the turn of a response item."""
    kind = texts.kind_of(item)
    if raw is not None and kind in _OUTPUTS and not isinstance(item.get("output"), str):
        item = _exact_item(item, raw)
    made = _compat_item(item, state)
    draft_kind: Kind = "compat"
    if made is None:
        made = _extra_item(item)
        draft_kind = "extra"
    if made is None:
        return None
    if bare:
        draft_kind = "bare" if state.bare and draft_kind == "compat" else "extra"
    role, blocks = made
    server = texts.string(item.get("namespace")) or ""
    return Draft(role=role, blocks=blocks, kind=draft_kind, ts=ts, server=server)


def _exact_item(item: dict[str, Any], raw: bytes | bytearray) -> dict[str, Any]:
    if not jsonvalue.is_exotic(raw):
        return item
    record = jsonvalue.parse_exact(raw)
    exact = record.get("payload", record)
    return exact if isinstance(exact, dict) else item


def _compat_item(item: dict[str, Any], state: State) -> tuple[str, list[Block]] | None:
    """Return role and blocks of an item that compat keeps, None for others and for empty ones."""
    kind = texts.kind_of(item)
    if kind == "message":
        role = texts.string(item.get("role")) or ""
        blocks = _message_blocks(item.get("content"))
        if role == "user" and state.title_rank < _PROMPT:
            _prompt_title(blocks, state)
        return role, blocks
    if kind == "reasoning":
        blocks = texts.text_block(_joined(item.get("summary"), {"summary_text"}), "thinking")
        return ("assistant", blocks) if blocks else None
    if kind in _CALLS:
        return "assistant", [_call(item)]
    if kind in _OUTPUTS:
        return "tool", _output(item)
    return None


def _message_blocks(content: Any) -> list[Block]:
    if isinstance(content, str):
        return texts.text_block(content)
    blocks: list[Block] = []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and texts.kind_of(part) in ("input_text", "output_text"):
            blocks += texts.text_block(part.get("text"))
    return blocks


def _joined(parts: Any, kinds: set[str]) -> str:
    found = [
        part["text"]
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict)
        and texts.kind_of(part) in kinds
        and isinstance(part.get("text"), str)
    ]
    return "\n".join(found)


def _call(item: dict[str, Any]) -> Block:
    given = texts.string(item.get("arguments"))
    if given is None:
        given = texts.string(item.get("input"))
    return Block(
        block_type="tool_use",
        text="{}" if given is None else given,
        tool_name=texts.string(item.get("name")),
        tool_use_id=texts.string(item.get("call_id")),
    )


def _output(item: dict[str, Any]) -> list[Block]:
    output = item.get("output")
    if output is None:
        return []
    text = output if isinstance(output, str) else jsonvalue.dumps(output)
    if texts.is_blank(text):
        return []
    answered = texts.string(item.get("call_id"))
    return [Block(block_type="tool_result", text=text, tool_use_id=answered)]


def _extra_item(item: dict[str, Any]) -> tuple[str, list[Block]] | None:
    """Return role and blocks of an item that compat loses, None when there is nothing in it."""
    kind = texts.kind_of(item)
    if kind == "reasoning":
        text = _joined(item.get("content"), {"reasoning_text", "text"})
        return "assistant", texts.text_block(text, "thinking")
    if kind == "agent_message":
        content = item.get("content", item.get("message", item.get("text")))
        return "assistant", _message_blocks(content) or texts.text_block(texts.flat_text(content))
    if kind in _EXTRA_CALLS:
        return "assistant", [_extra_call(item, _EXTRA_CALLS[kind])]
    return None


def _extra_call(item: dict[str, Any], name: str) -> Block:
    given = item.get("action", item.get("arguments"))
    text = given if isinstance(given, str) else jsonvalue.dumps({} if given is None else given)
    call_id = texts.string(item.get("call_id")) or texts.string(item.get("id"))
    return Block(block_type="tool_use", text=text, tool_name=name, tool_use_id=call_id)


def _note_session(payload: dict[str, Any], state: State) -> None:
    """Keep what the first header says; forks repeat their parent's header after their own."""
    if state.noted:
        return
    state.noted = True
    meta = state.meta
    git = payload.get("git")
    if isinstance(git, dict):
        meta.branch = texts.string(git.get("branch")) or ""
        remote = texts.string(git.get("repository_url"))
        meta.remotes = [remote] if remote else []
    source = payload.get("source")
    spawned = source.get("subagent") if isinstance(source, dict) else None
    parent = texts.string(payload.get("parent_thread_id")) or _find_parent(spawned)
    forked = texts.string(payload.get("forked_from_id"))
    if parent or spawned:
        meta.link, meta.parent_id = "subagent", parent or forked or ""
    elif forked:
        meta.link, meta.parent_id = "fork", forked


def _find_parent(spawned: Any) -> str:
    """Return the parent thread that a sub-agent's source names, at any depth of it."""
    if not isinstance(spawned, dict):
        return ""
    own = texts.string(spawned.get("parent_thread_id"))
    return own or next(filter(None, map(_find_parent, spawned.values())), "")


def _note_name(payload: dict[str, Any], state: State) -> None:
    name = payload.get("thread_name")
    if texts.kind_of(payload) == "thread_name_updated" and isinstance(name, str) and name.strip():
        state.meta.title = " ".join(name.split())[:200]
        state.title_rank = _GIVEN


def _prompt_title(blocks: list[Block], state: State) -> None:
    for block in blocks:
        text = block.text
        if _REQUEST in text:
            text = text.split(_REQUEST, 1)[1]
        title = texts.title_of(text)
        if title:
            state.meta.title, state.title_rank = title, _PROMPT
            return


_DIALECT = _Codex()
