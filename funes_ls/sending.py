"""What a front sends to the engine, and how it reads what comes back.

A part of the quick way to the engine: the standard library only, unless settings say something.
"""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from funes_ls.indexer.home import expanded, home_dir

Params = dict[str, Any]
#: Takes a word about a setting that cannot be used.
Warn = Callable[[str], None]

#: Variables that change no setting of an answer.
_NO_SETTINGS = ("FUNES_HOME", "FUNES_RULES_CACHE", "FUNES_SHARED", "FUNES_TEST_MODELS")
#: Fields of answers whose keys are data, not names.
_MAPPINGS = {"harnesses", "legs", "timings_ms", "troubled", "counts", "redacted"}


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
            if is_asked and env.get(variable, "").strip():
                own.setdefault(name, getattr(settings, field))
    if own.get("memory"):
        own["memory"] = _absolute(own["memory"])
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
    """Return a memory's path so that a process elsewhere finds it too."""
    try:
        path = expanded(memory)
        return str(path.absolute()) if memory != "local" and path.exists() else memory
    except (OSError, ValueError, RuntimeError):
        return memory


def as_object(value: Any) -> Any:
    """Return an answer with attributes; a struct is one already."""
    if isinstance(value, dict):
        return SimpleNamespace(
            **{name: one if name in _MAPPINGS else as_object(one) for name, one in value.items()}
        )
    return [as_object(one) for one in value] if isinstance(value, list) else value
