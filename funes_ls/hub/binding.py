"""Which memory elsewhere each agent's sessions are published to; the standard library only."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from funes_ls.indexer.errors import BackendError
from funes_ls.indexer.home import make_private

_NAME = "bindings.json"
#: Events of agents at which a session begins or ends, as their hooks name them.
_BOUNDARIES = {
    "SessionStart",
    "SessionEnd",
    "on_session_start",
    "on_session_finalize",
    "session_start",
    "session_shutdown",
}


def bind(home: Path, agent: str, memory: str) -> None:
    """Publish an agent's sessions to a memory from now on; another one is no longer meant.

    Raises:
        BackendError: kind `disk`.
    """
    found = bindings(home)
    if found.get(agent) != memory:
        _write(home, {**found, agent: memory})


def unbind(home: Path, agent: str) -> str:
    """Publish an agent's sessions no more, and return the memory they went to, "" for none.

    Raises:
        BackendError: kind `disk`.
    """
    found = bindings(home)
    memory = found.pop(agent, "")
    if memory:
        _write(home, found)
    return memory


def bound(home: Path, agent: str) -> str:
    """Return the memory that an agent's sessions are published to, "" for none."""
    return bindings(home).get(agent, "")


def bindings(home: Path) -> dict[str, str]:
    """Return the memory of every agent that has one; nothing where that cannot be read."""
    with suppress(OSError, ValueError):
        found: Any = json.loads((home / _NAME).read_text(encoding="utf-8"))
        if isinstance(found, Mapping):
            return {
                agent: memory
                for agent, memory in found.items()
                if isinstance(memory, str) and memory and not memory.startswith("-")
            }
    return {}


def is_boundary(event: str) -> bool:
    """Tell whether an event of an agent is the beginning or the end of a session."""
    return event in _BOUNDARIES


def _write(home: Path, found: dict[str, str]) -> None:
    path = home / _NAME
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        make_private(home)
        if found:
            part.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")
            part.replace(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as exc:
        raise BackendError(
            f"Cannot write {path} ({exc.strerror or exc}).",
            hint="Make it writable and run the command again.",
            kind="disk",
        ) from exc
