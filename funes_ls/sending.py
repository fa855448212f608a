"""What a front sends to the engine, and how it reads what comes back.

A part of the quick way to the engine: the standard library only, unless settings say something.
"""

import re
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from funes_ls.indexer.home import expanded, home_dir

Params = dict[str, Any]
#: Takes a word about a setting that cannot be used.
Warn = Callable[[str], None]

#: Variables that change no setting of an answer.
_NO_SETTINGS = ("FUNES_HOME", "FUNES_RULES_CACHE", "FUNES_SHARED", "FUNES_TEST_MODELS")
#: What tells a memory's directory from any other, and what may be a repository.
_MEMORY_FILES = ("chunks.lance", "catalog.db", "memory", "_versions")
_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
#: Fields of answers whose keys are data, not names.
_MAPPINGS = {"harnesses", "legs", "timings_ms", "troubled", "counts", "redacted", "withheld"}


def prepared(method: str, params: Params, env: Mapping[str, str], *, warn: Warn) -> Params:
    """Return params with what the environment sets, as text that can be sent; warn of the rest."""
    own = {name: sendable(value) for name, value in params.items() if value is not None}
    if has_settings(env):
        from funes_ls.indexer.settings import ENV_KEYS, QUESTION_FIELDS, load_settings

        settings, warnings = load_settings(env)
        for warning in warnings:
            warn(warning)
        for variable, field in ENV_KEYS.items():
            name = QUESTION_FIELDS.get(field, "")
            is_asked = name == "memory" or (name and method == "funes/recall")
            if name == "memory" and own.get("memories"):
                continue
            if is_asked and env.get(variable, "").strip():
                own.setdefault(name, getattr(settings, field))
    if own.get("memory"):
        own["memory"] = _absolute(own["memory"])
    if own.get("memories"):
        own["memories"] = [_absolute(memory) for memory in own["memories"]]
    return own


def has_settings(env: Mapping[str, str]) -> bool:
    """Return whether settings differ from the defaults for all that can be seen from here."""
    own = (
        name
        for name, value in env.items()
        if name.startswith("FUNES_") and not name.startswith("FUNES_ENGINE") and value.strip()
    )
    return (
        any(name not in _NO_SETTINGS for name in own) or (home_dir(env) / "config.toml").is_file()
    )


def sendable(value: Any) -> Any:
    """Return text without halves of characters, as names that are no UTF-8 give them."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _absolute(memory: str) -> str:
    """Return a memory's path so that a process elsewhere finds it too.

    `a/b` is a path only where it is a memory; see `funes_ls.hub.spec.parse_spec`.
    """
    try:
        path = expanded(memory)
        if memory == "local" or not path.exists():
            return memory
        if _REPO.fullmatch(memory) and not any((path / name).exists() for name in _MEMORY_FILES):
            return memory
        return str(path.absolute())
    except (OSError, ValueError, RuntimeError):
        return memory


def as_object(value: Any) -> Any:
    """Return an answer with attributes; a struct is one already."""
    if isinstance(value, dict):
        return SimpleNamespace(
            **{name: one if name in _MAPPINGS else as_object(one) for name, one in value.items()}
        )
    return [as_object(one) for one in value] if isinstance(value, list) else value
