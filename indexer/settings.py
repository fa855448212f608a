"""One struct with every setting, and where its values come from.

Precedence: command-line flags, then `FUNES_*` environment, then what an editor sends, then
`$FUNES_HOME/config.toml`, then the defaults below. A wrong value is reported once and ignored.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.home import home_dir


class Settings(Struct, frozen=True, kw_only=True):
    """Every knob of the product with its default.

    Attributes:
        home: `$FUNES_HOME`; holds the memory, models, settings and logs.
        model: `auto`, an installed model's name, or a model directory.
        memory: Memory to read: `local` or a path.
        k: Hits returned.
        candidates: Size of the fused pool that later stages reorder.
        half_life_days: Age at which the age part of a score has halved; 0 turns it off.
        age_floor: Smallest factor age can give a score, in 0..1.
        neighbors: Sequence steps around a hit that are attached to it.
        vector_weight: Share of the vector leg in the mixed score, in 0..1; words get the rest.
        prior_tool_use: Factor on hits that are tool calls.
        prior_tool_result: Factor on hits that are tool results.
        rerank: What reorders the best candidates: `off`; `late`, for which vectors of the words
            of each text are kept too; `cross`, a model that reads each with the question; `auto`,
            that model where it was measured to help, else `late`.
        budget_s: Wall-clock seconds an unattended first index may embed before it asks.
        threads: Threads that embed.
        thinking: Whether thinking blocks are indexed.
        watch: Whether the engine keeps the memory current while sessions are being written.
        idle_s: Seconds without a client and without work after which the engine ends.
        mcp_tokens: About how many tokens an answer to a coding agent may have.
        redaction: `on`, or `off`: sessions are stored with the secrets in them.
        exclude: Globs; sessions of matching folders, and matching traces, are kept out.
        broken: Why `config.toml` could not be read, "" when it could; what it keeps out is unknown
            then, so nothing is read.
    """

    home: Path
    model: str = "auto"
    memory: str = "local"
    k: int = 8
    candidates: int = 30
    half_life_days: float = 30.0
    age_floor: float = 0.85
    neighbors: int = 1
    vector_weight: float = 0.65
    prior_tool_use: float = 0.9
    prior_tool_result: float = 0.8
    rerank: str = "auto"
    budget_s: float = 60.0
    threads: int = 2
    thinking: bool = True
    watch: bool = True
    idle_s: float = 900.0
    mcp_tokens: int = 6_000
    redaction: str = "on"
    exclude: tuple[str, ...] = ()
    broken: str = ""

    @property
    def memory_dir(self) -> Path:
        """Return the directory of the local memory."""
        return self.home / "memory"

    @property
    def keeps_tokens(self) -> bool:
        """Return whether vectors of the words of texts are kept, which `late` compares."""
        return self.rerank in ("late", "auto")

    @property
    def models_dir(self) -> Path:
        """Return the directory that installed models live in."""
        return self.home / "models"

    @property
    def rules_dir(self) -> Path:
        """Return the directory that the compiled rules for secrets live in."""
        return Path(os.environ.get("FUNES_RULES_CACHE") or self.home / "rules")


#: Key in config.toml (and in an editor's `funes` section) -> field of `Settings`.
CONFIG_KEYS = {
    "model": "model",
    "memory": "memory",
    "recall.k": "k",
    "recall.candidates": "candidates",
    "recall.halfLife": "half_life_days",
    "recall.ageFloor": "age_floor",
    "recall.neighbors": "neighbors",
    "recall.vectorWeight": "vector_weight",
    "recall.priorToolUse": "prior_tool_use",
    "recall.priorToolResult": "prior_tool_result",
    "recall.rerank": "rerank",
    "index.budget": "budget_s",
    "index.threads": "threads",
    "index.thinking": "thinking",
    "index.watch": "watch",
    "engine.idle": "idle_s",
    "mcp.tokens": "mcp_tokens",
    "redaction": "redaction",
    "exclude.paths": "exclude",
}

ENV_KEYS = {
    "FUNES_MODEL": "model",
    "FUNES_MEMORY": "memory",
    "FUNES_K": "k",
    "FUNES_CANDIDATES": "candidates",
    "FUNES_HALF_LIFE": "half_life_days",
    "FUNES_AGE_FLOOR": "age_floor",
    "FUNES_NEIGHBORS": "neighbors",
    "FUNES_VECTOR_WEIGHT": "vector_weight",
    "FUNES_PRIOR_TOOL_USE": "prior_tool_use",
    "FUNES_PRIOR_TOOL_RESULT": "prior_tool_result",
    "FUNES_RERANK": "rerank",
    "FUNES_BUDGET": "budget_s",
    "FUNES_THREADS": "threads",
    "FUNES_THINKING": "thinking",
    "FUNES_WATCH": "watch",
    "FUNES_ENGINE_IDLE": "idle_s",
    "FUNES_MCP_TOKENS": "mcp_tokens",
    "FUNES_REDACTION": "redaction",
    "FUNES_EXCLUDE": "exclude",
}

#: Settings that come with a question -> its name in the params of one; the others are those of
#: whoever answers.
QUESTION_FIELDS = {
    field: key.removeprefix("recall.")
    for key, field in CONFIG_KEYS.items()
    if key == "memory" or key.startswith("recall.")
}

_RANGES: dict[str, tuple[float, float]] = {
    "k": (1, 1000),
    "candidates": (1, 10_000),
    "half_life_days": (0, 100_000),
    "age_floor": (0, 1),
    "neighbors": (0, 50),
    "vector_weight": (0, 1),
    "prior_tool_use": (0, 2),
    "prior_tool_result": (0, 2),
    "budget_s": (0, 1e9),
    "threads": (1, 64),
    "idle_s": (0, 1e9),
    "mcp_tokens": (500, 50_000),
}
_CHOICES = {"redaction": ("on", "off"), "rerank": ("late", "cross", "auto", "off")}


def load_settings(
    env: Mapping[str, str], *, overrides: Mapping[str, Any] | None = None
) -> tuple[Settings, list[str]]:
    """Return the settings in force and one warning for each value that was ignored.

    Args:
        env: The process environment.
        overrides: Values of command-line flags by field name; None values are not set.

    Raises:
        UsageError: a flag's value is out of range.
    """
    home = home_dir(env)
    values, warnings = _from_file(home / "config.toml")
    for name, field in ENV_KEYS.items():
        if env.get(name, "").strip():
            _take(values, field, env[name], f"environment variable {name}", warnings)
    for field, value in (overrides or {}).items():
        if value is not None:
            values[field] = check_setting(field, value)
    return Settings(home=home, **values), warnings


def check_whole(settings: Settings) -> None:
    """Check, before anything is read, that the settings are all there.

    Raises:
        UsageError: kind `broken_settings`: they may say what is to be kept out.
    """
    if settings.broken:
        raise UsageError(
            f"Nothing is read: {settings.broken}, and it may say what is to be kept out.",
            hint="Mend the file, and run the command again.",
            kind="broken_settings",
        )


def check_setting(field: str, value: Any) -> Any:
    """Return a value of a flag or a request.

    Raises:
        UsageError: it is out of range, or none of those there are.
    """
    low, high = _RANGES.get(field, (float("-inf"), float("inf")))
    if isinstance(value, int | float) and not low <= value <= high:
        name = field.removesuffix("_days").replace("_", "-")
        raise UsageError(f"{name} must be between {low:g} and {high:g}, not {value}.")
    if value not in (choices := _CHOICES.get(field, (value,))):
        raise UsageError(f"{field} must be {' or '.join(choices)}, not {value!r}.")
    return value


def _from_file(path: Path) -> tuple[dict[str, Any], list[str]]:
    warnings: list[str] = []
    values: dict[str, Any] = {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return values, warnings
    except (OSError, ValueError) as exc:
        broken = f"{path} could not be read ({exc})"
        return {"broken": broken}, [f"{broken}; its settings are ignored."]
    for key, value in _flat(table):
        field = CONFIG_KEYS.get(key)
        if field is None:
            warnings.append(f"Unknown setting {key} in {path}; it is ignored.")
        else:
            _take(values, field, value, f"setting {key} in {path}", warnings)
    return values, warnings


def _flat(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for key, value in table.items():
        if isinstance(value, dict):
            pairs += _flat(value, f"{prefix}{key}.")
        else:
            pairs.append((f"{prefix}{key}", value))
    return pairs


def _take(values: dict[str, Any], field: str, value: Any, where: str, warnings: list[str]) -> None:
    kind = Settings.__annotations__[field]
    try:
        if kind is bool and isinstance(value, str):
            value = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[
                value.strip().lower()
            ]
        elif field == "exclude" and isinstance(value, str):
            value = [part for part in value.split(os.pathsep) if part]
        converted = msgspec.convert(value, kind, strict=False)
        low, high = _RANGES.get(field, (float("-inf"), float("inf")))
        if isinstance(converted, int | float) and not low <= converted <= high:
            raise ValueError(f"must be between {low:g} and {high:g}")
        if converted not in (choices := _CHOICES.get(field, (converted,))):
            raise ValueError(f"must be {' or '.join(choices)}")
    except (KeyError, ValueError, msgspec.ValidationError) as exc:
        reason = "must be yes or no" if isinstance(exc, KeyError) else str(exc)
        warnings.append(f"The {where} is ignored: {reason}.")
    else:
        values[field] = converted
