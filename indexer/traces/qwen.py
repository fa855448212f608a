"""Qwen Code: `~/.qwen/projects/<folded cwd>/chats/<session>.jsonl`, parts as Gemini has them.

Sub-agents have files of their own, `subagents/<session>/agent-<id>.jsonl` beside `chats`.

Source: records as written by version 0.15.10; sub-agents by the program's source.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from funes_ls.indexer.home import expanded
from funes_ls.indexer.model import Block, Problem, SessionMeta
from funes_ls.indexer.traces import texts
from funes_ls.indexer.traces.base import Unit
from funes_ls.indexer.traces.document import (
    WaryReading,
    dicts,
    first_title,
    glance_json,
    table,
    tool_result,
    tool_use,
)
from funes_ls.indexer.traces.gemini import response_text
from funes_ls.indexer.traces.jsonl import Draft, learn_name
from funes_ls.indexer.traces.state import State
from funes_ls.indexer.traces.walk import Found, file_units, units_at

HARNESS = "qwen"
_SUFFIXES = (".jsonl",)
_SUBAGENTS = "subagents"
#: What stands as `_` in the name of a sub-agent's file.
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_ROLES = {"user": "user", "assistant": "assistant", "tool_result": "tool"}
TYPES = frozenset(_ROLES)


class QwenSource:
    """The reader of Qwen Code's sessions."""

    harness = HARNESS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """Return the folders of chats and of sub-agents, one each for each project."""
        named = env.get("QWEN_RUNTIME_DIR", "").strip() or env.get("QWEN_HOME", "").strip()
        base = expanded(named) if named else home / ".qwen"
        return sorted([*base.glob("projects/*/chats"), *base.glob(f"projects/*/{_SUBAGENTS}")])

    def units(self, root: Path) -> Iterator[Unit | Problem]:
        """Yield the sessions under a root, newest first."""
        return file_units(root, _SUFFIXES, unit_of)

    def units_at(self, root: Path, path: Path) -> list[Unit]:
        """Return the sessions under a root that a path below it holds."""
        return units_at(root, path, _SUFFIXES, unit_of)

    def read(self, unit: Unit, *, resume: bytes | None = None) -> WaryReading:
        """Return a reading of a session."""
        return WaryReading(unit, _DIALECT, resume=resume)


def unit_of(found: Found) -> Unit:
    """Return a session file as a unit."""
    return found.unit(HARNESS, subagent=found.path.parent.parent.name == _SUBAGENTS)


class _Qwen:
    harness = HARNESS

    def fresh(self, unit: Unit) -> State:
        path = Path(unit.key)
        meta = SessionMeta(session_id=path.stem, harness=HARNESS)
        if unit.subagent:
            meta.link, meta.parent_id = "subagent", _parent_of(path)
        return State(
            harness=HARNESS,
            session_id=path.stem,
            declared=True,
            workdir=texts.fallback_workdir(path),
            meta=meta,
        )

    def wanted(self, raw: bytes | bytearray, state: State) -> bool:
        return not state.workdir_known and b'"cwd"' in raw

    def scanned(self, state: State) -> bool:
        return state.workdir_known

    def scan(self, record: dict[str, Any], state: State) -> None:
        workdir = texts.munge(record.get("cwd"))
        if workdir is not None and not state.workdir_known:
            state.workdir, state.workdir_known = workdir, True
            state.meta.cwd = record["cwd"]

    def draft(
        self, record: dict[str, Any], state: State, raw: bytes | bytearray | None
    ) -> Draft | None:
        kind, meta = texts.kind_of(record), state.meta
        meta.branch = meta.branch or texts.string(record.get("gitBranch")) or ""
        session_id = texts.string(record.get("sessionId"))
        if session_id and session_id != meta.session_id and not meta.link:
            meta.inner_id = meta.inner_id or session_id
        if kind == "system":
            _note_title(record, state)
            return None
        message = table(record.get("message"))
        if kind not in _ROLES or not isinstance(message.get("parts"), list):
            name = kind if kind not in _ROLES else f"{kind} without parts"
            state.skipped[name] = state.skipped.get(name, 0) + 1
            return None
        blocks = _blocks(message["parts"], state)
        if kind == "user" and not meta.title:
            meta.title = first_title(blocks)
        return Draft(
            role=_ROLES[kind],
            blocks=blocks,
            uuid=texts.string(record.get("uuid")) or "",
            parent=texts.string(record.get("parentUuid")),
            ts=texts.time_text(record.get("timestamp")),
        )

    def uuid(self, draft: Draft, state: State, fallback: str) -> tuple[str, str | None]:
        return draft.uuid or fallback, None


def _parent_of(path: Path) -> str:
    """Return what started a sub-agent: a session, or another sub-agent of it."""
    agent = table(glance_json(path.with_suffix(".meta.json"))).get("parentAgentId")
    if not isinstance(agent, str) or not agent:
        return path.parent.name
    return f"agent-{_NOT_IN_NAMES.sub('_', agent)}"


def _blocks(parts: list[Any], state: State) -> list[Block]:
    blocks: list[Block] = []
    for part in dicts(parts):
        call, answer = part.get("functionCall"), part.get("functionResponse")
        if isinstance(call, dict):
            learn_name(state, call.get("id"), call.get("name"))
            blocks.append(tool_use(call.get("name"), call.get("args"), call.get("id")))
        elif isinstance(answer, dict):
            text = response_text(answer.get("response"))
            blocks += tool_result(text, answer.get("id"), answer.get("name"))
        else:
            kind = "thinking" if part.get("thought") is True else "text"
            blocks += texts.text_block(part.get("text"), kind)  # type: ignore[arg-type]  # a str
    return blocks


def _note_title(record: dict[str, Any], state: State) -> None:
    payload = table(record.get("systemPayload"))
    title = payload.get("customTitle")
    if isinstance(title, str) and title.strip():
        state.meta.title = " ".join(title.split())[:200]


_DIALECT = _Qwen()
