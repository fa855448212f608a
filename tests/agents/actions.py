"""What a model may want done to files, and how each agent is told so."""

import shlex
from pathlib import Path

from msgspec import Struct

from tests.agents.agents import Agent
from tests.agents.kinds import CODEX_SHELL, Claude, Codex
from tests.agents.wires import Call


class Read(Struct, frozen=True):
    """Look at a file."""

    path: Path


class Write(Struct, frozen=True):
    """Write a whole file."""

    path: Path
    text: str


class Edit(Struct, frozen=True):
    """Replace texts of whole lines, each of which is there once."""

    path: Path
    pairs: tuple[tuple[str, str], ...]


class Shell(Struct, frozen=True):
    """Run a command."""

    command: str


Action = Read | Write | Edit | Shell


def append(path: Path, text: str) -> Shell:
    """Return a command that adds text at the end of a file."""
    return Shell(f"cat >> {shlex.quote(str(path))} <<'EOF'\n{text}EOF")


def calls(agent: Agent, action: Action) -> tuple[Call, ...]:
    """Return the calls of an agent's own tools that do it."""
    if isinstance(agent, Claude):
        return _claude(action)
    return _codex(agent, action) if isinstance(agent, Codex) else (_pi(action),)


def _claude(action: Action) -> tuple[Call, ...]:
    if isinstance(action, Shell):
        return (Call(name="Bash", given={"command": action.command, "description": "Run it"}),)
    path = str(action.path)
    if isinstance(action, Read):
        return (Call(name="Read", given={"file_path": path}),)
    if isinstance(action, Write):
        return (Call(name="Write", given={"file_path": path, "content": action.text}),)
    edits = [{"file_path": path, "old_string": a, "new_string": b} for a, b in action.pairs]
    return tuple(Call(name="Edit", given=edit) for edit in edits)


def _pi(action: Action) -> Call:
    if isinstance(action, Shell):
        return Call(name="bash", given={"command": action.command})
    path = str(action.path)
    if isinstance(action, Read):
        return Call(name="read", given={"path": path})
    if isinstance(action, Write):
        return Call(name="write", given={"path": path, "content": action.text})
    edits = [{"oldText": old, "newText": new} for old, new in action.pairs]
    return Call(name="edit", given={"path": path, "edits": edits})


def _codex(agent: Codex, action: Action) -> tuple[Call, ...]:
    if isinstance(action, Read):
        return _codex(agent, Shell(f"cat {shlex.quote(action.path.name)}"))
    if isinstance(action, Shell):
        return (Call(name="exec_command", given={"cmd": action.command}),)
    patch = _patch(action)
    if agent == CODEX_SHELL:
        return _codex(agent, Shell(f"apply_patch <<'EOF'\n{patch}EOF"))
    return (Call(name="apply_patch", given=patch),)


def _patch(action: Write | Edit) -> str:
    """Return a patch in Codex's own form; paths are relative to the project."""
    if isinstance(action, Write):
        body = f"*** Add File: {action.path.name}\n{_marked('+', action.text)}"
    else:
        hunks = [f"@@\n{_marked('-', old)}{_marked('+', new)}" for old, new in action.pairs]
        body = f"*** Update File: {action.path.name}\n{''.join(hunks)}"
    return f"*** Begin Patch\n{body}*** End Patch\n"


def _marked(mark: str, text: str) -> str:
    return "".join(f"{mark}{line}\n" for line in text.removesuffix("\n").split("\n"))
