"""pi: an extension that can recall, and that tells when a turn is over.

Source: commands and events as observed on version 0.73.1; the same extension runs on 1.6.0.
"""

import json
import re
import shlex
import subprocess
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

from funes_ls.indexer.home import expanded
from funes_ls.install import entries, files
from funes_ls.install.entries import Entry
from funes_ls.install.plan import Change, Command, Plan, Wanted, holding

PROGRAM = "pi"
INSTALL = "npm install -g @mariozechner/pi-coding-agent"
_EXTENSION = "funes.ts"
_OLDEST = (0, 50)
_VERSION_S = 15


def _settings(wanted: Wanted) -> Path:
    return wanted.place("PI_CODING_AGENT_DIR", ".pi", "agent") / "settings.json"


def tracked(wanted: Wanted) -> list[Path]:
    """Return pi's settings."""
    return [_settings(wanted)]


def trees(_wanted: Wanted) -> list[Path]:
    """Return nothing: no folder in pi's place is ours."""
    return []


def our_entries(wanted: Wanted) -> list[Entry]:
    """Return our package in the list of packages."""
    return [Entry(_settings(wanted), ("packages",), lambda value: _is_ours(value, wanted))]


def _is_ours(value: Any, wanted: Wanted) -> bool:
    source = value.get("source") if isinstance(value, dict) else value
    if not isinstance(source, str) or ":" in source[2:]:
        return False
    with suppress(OSError, RuntimeError, ValueError):
        folder = _settings(wanted).parent / expanded(source)
        return folder.resolve() == wanted.folder.resolve()
    return False


def containers(wanted: Wanted, read: Callable[[Path], bytes | None]) -> set[str]:
    """Return what around our entries is not there yet."""
    return entries.containers(our_entries(wanted), read)


def add(wanted: Wanted) -> Plan:
    """Return what installs the extension, as far as that is still to be done."""
    own = tuple(_own_files(wanted))
    try:
        listed = entries.value_at(_settings(wanted), ("packages",)) or []
        if not isinstance(listed, list):
            raise files.ConfigError(
                f"{_settings(wanted)} has no list of packages; it was left alone."
            )
    except files.ConfigError as exc:
        block = json.dumps({"packages": [str(wanted.folder)]}, indent=2, ensure_ascii=False)
        return Plan(problems=(str(exc),), by_hand=(block,))
    if any(_is_ours(one, wanted) for one in listed):
        return Plan(steps=own)
    words = ("install", str(wanted.folder))
    if not wanted.program:
        note = f"pi is not installed here (`{INSTALL}`); once it is, run what is below."
        return Plan(steps=own, by_hand=(shlex.join((PROGRAM, *words)),), notes=(note,))
    command = Command((wanted.program, *words), (_settings(wanted),))
    return Plan(steps=(*own, command), notes=_word_on_age(wanted))


def _own_files(wanted: Wanted) -> list[Change]:
    text = resources("funes_ls.install").joinpath("data", _EXTENSION).read_text(encoding="utf-8")
    package = {
        "name": "funes-memory",
        "version": "1.0.0",
        "private": True,
        "pi": {"extensions": [f"./{_EXTENSION}"]},
    }
    at = wanted.server.index("mcp")
    called = {
        "command": list(wanted.server[:at]),
        "memory": list(wanted.server[at + 1 :]),
        "env": dict(wanted.server_env),
    }
    changes = [
        holding(wanted.folder / _EXTENSION, text),
        holding(wanted.folder / "package.json", json.dumps(package, indent=2) + "\n"),
        holding(wanted.folder / "funes.json", json.dumps(called, indent=2) + "\n"),
    ]
    return [one for one in changes if wanted.force or one.edit(None) != files.read(one.path)]


def _word_on_age(wanted: Wanted) -> tuple[str, ...]:
    """Return a warning about a pi that is older than what the extension is made for."""
    found = _version(wanted.program, frozenset(wanted.env.items()))
    if found is None or (int(found[1]), int(found[2])) >= _OLDEST:
        return ()
    return (f"pi {found[0]} is old and may not load the extension; `{INSTALL}` gets a newer one.",)


@cache
def _version(program: str, env: frozenset[tuple[str, str]]) -> re.Match[str] | None:
    """Return the version that a pi says it is; it takes a second to, so it is asked once."""
    try:
        ran = subprocess.run(
            [program, "--version"],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=_VERSION_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return re.search(r"(\d+)\.(\d+)", ran.stdout + ran.stderr)


def remove(wanted: Wanted) -> Plan:
    """Return what takes our package out of the list."""
    return entries.removing(our_entries(wanted), wanted.created)
