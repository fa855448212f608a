"""Settings that an editor sends: what it starts the server with, and its section `funes`.

Environment variables outrank the section, which outranks `initializationOptions`. What none of
them says is as the engine's own settings have it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from lsprotocol import types
from msgspec import Struct

from funes_ls.handlers.guard import ClientRefused
from funes_ls.handlers.workspaces import folders_of, innermost
from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.settings import (
    CONFIG_KEYS,
    ENV_KEYS,
    QUESTION_FIELDS,
    Settings,
    check_setting,
)

if TYPE_CHECKING:
    from funes_ls.handlers.front import Front

_log = logging.getLogger(__name__)
SECTION = "funes"
_PULL_S = 10.0
#: How long a request waits for settings that were asked for and have not come.
_WAIT_S = 0.5
LEVELS = {
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}
#: Settings of this server alone, and their kinds.
_OWN: dict[str, Any] = {
    "hover.enabled": bool,
    "codeLens": bool | str,
    "codeLens.enabled": bool,
    "log.level": str,
    "virtualDocuments": bool,
}
#: Where lenses are: nowhere, at the top of a file, also at its symbols.
LENSES = ("off", "file", "symbols")
#: What clients keep in the same section for themselves.
_OF_CLIENTS = ("server", "trace")
_RECALL = "recall."


class EditorSettings(Struct, frozen=True, kw_only=True):
    """Settings for one document.

    Attributes:
        recall: Params of `funes/recall` that the editor has set, by their name there.
        memory: Which memory answers; "" for the engine's own.
        thinking: Whether thinking blocks are indexed; None as the engine has it.
    """

    recall: dict[str, Any] = {}
    memory: str = ""
    thinking: bool | None = None
    hover: bool = True
    code_lens: str = "file"
    log_level: str = "warning"


class Configuration:
    """The settings of one client, by scope."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """Know what the environment says."""
        self._warnings: list[str] = []
        self._warned: set[str] = set()
        self._env = self._checked(_from_env(env), where="environment")
        self._initial: dict[str, Any] = {}
        self._scopes: dict[str, dict[str, Any]] = {}
        self._pulling: asyncio.Task[None] | None = None

    def begin(self, options: Any) -> None:
        """Take `initializationOptions`: the section itself, or a table that holds it."""
        self._initial = self._section(options, where="initializationOptions")

    def pull(self, ls: "Front") -> None:
        """Ask the client for every folder's settings, if it can be asked."""
        if not ls.client.configuration:
            self.warn(ls)
            return
        if self._pulling is not None:
            self._pulling.cancel()
        self._pulling = ls.spawn(self._pull(ls))

    async def _pull(self, ls: "Front") -> None:
        scopes = ["", *folders_of(ls)]
        items = [{"section": SECTION, **({"scopeUri": scope} if scope else {})} for scope in scopes]
        try:
            params = {"items": items}
            found = await ls.protocol.ask(types.WORKSPACE_CONFIGURATION, params, timeout_s=_PULL_S)
        except (ClientRefused, TimeoutError) as exc:
            _log.warning("the client has not told its settings (%s)", type(exc).__name__)
            found = []
        sections = found if isinstance(found, list) else []
        self._scopes = {
            scope: self._section(section, where="settings")
            for scope, section in zip(scopes, sections, strict=False)
        }
        self.warn(ls)
        ls.apply_settings()

    def pushed(self, ls: "Front", settings: Any) -> None:
        """Take what `workspace/didChangeConfiguration` says, or ask when the client is asked."""
        if ls.client.configuration:
            self.pull(ls)
        elif isinstance(settings, dict) and SECTION in settings:
            self._scopes = {"": self._section(settings, where="settings")}
            self.warn(ls)
            ls.apply_settings()

    async def settled(self) -> None:
        """Wait for settings that are on their way, but not for long."""
        if self._pulling is not None and not self._pulling.done():
            await asyncio.wait({self._pulling}, timeout=_WAIT_S)

    def of(self, ls: "Front", uri: str) -> EditorSettings:
        """Return the settings of a document, "" for those of no document."""
        scope = innermost(uri, self._scopes) if uri else ""
        values = {**self._initial, **self._scopes.get(scope, {}), **self._env}
        recall = {
            name.removeprefix(_RECALL): value
            for name, value in values.items()
            if name.startswith(_RECALL)
        }
        return EditorSettings(
            recall=recall,
            memory=values.get("memory", ""),
            thinking=values.get("index.thinking"),
            hover=values.get("hover.enabled", True),
            code_lens=_lenses(values),
            log_level=values.get("log.level", "warning"),
        )

    def warn(self, ls: "Front") -> None:
        """Tell of every wrong setting, once and in one message."""
        new = [text for text in dict.fromkeys(self._warnings) if text not in self._warned]
        self._warnings.clear()
        if new:
            self._warned.update(new)
            ls.show(types.MessageType.Warning, f"funes: {' '.join(new)}")

    def _section(self, value: Any, *, where: str) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._warnings.append(f"The {where} are ignored: they are no table.")
            return {}
        own = value.get(SECTION, value)
        return (
            self._section(own, where=where)
            if own is not value
            else self._checked(_flat(value), where=where)
        )

    def _checked(self, pairs: Iterable[tuple[str, Any]], *, where: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if value is None or key.split(".")[0] in _OF_CLIENTS:
                continue
            try:
                found[key] = checked(key, value)
            except (UsageError, msgspec.ValidationError, KeyError) as exc:
                reason = exc.message if isinstance(exc, UsageError) else str(exc)
                self._warnings.append(f"Setting {SECTION}.{key} ({where}) is ignored: {reason}")
        return found


def checked(key: str, value: Any) -> Any:
    """Return a setting's value.

    Raises:
        UsageError: there is no such setting, it is not the editor's, or out of range.
        msgspec.ValidationError: it is of the wrong kind.
    """
    if key in _OWN:
        found: Any = msgspec.convert(value, _OWN[key])
        if key == "log.level" and found not in LEVELS:
            raise UsageError(f"it is one of {', '.join(LEVELS)}.")
        if key == "codeLens":
            return lens_mode(found)
        return found
    field = CONFIG_KEYS.get(key)
    if field is None:
        raise UsageError("there is no such setting.")
    if not key.startswith(_RECALL) and key not in ("memory", "index.thinking"):
        raise UsageError("it is one of the engine; put it into config.toml of the funes home.")
    return check_setting(field, msgspec.convert(value, Settings.__annotations__[field]))


def lens_mode(value: bool | str) -> str:
    """Return where lenses are to be; True and False stand for `file` and `off`.

    Raises:
        UsageError: there is no such place.
    """
    found = value if isinstance(value, str) else ("file" if value else "off")
    if found not in LENSES:
        raise UsageError(f"it is one of {', '.join(LENSES)}.")
    return found


def _lenses(values: Mapping[str, Any]) -> str:
    mode: str = values.get("codeLens", "file")
    return mode if values.get("codeLens.enabled", True) else "off"


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _from_env(env: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Yield the settings of questions that the environment has."""
    keys = {field: key for key, field in CONFIG_KEYS.items()}
    for name, field in ENV_KEYS.items():
        key, text = keys[field], env.get(name, "").strip()
        if text and field in QUESTION_FIELDS:
            with contextlib.suppress(msgspec.ValidationError):
                kind = Settings.__annotations__[field]
                yield key, msgspec.convert(text, kind, strict=False)


def register(ls: "Front") -> None:
    """Serve what has to do with settings."""

    @ls.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def changed(params: types.DidChangeConfigurationParams) -> None:
        ls.configuration.pushed(ls, params.settings)


async def watch_changes(ls: "Front") -> None:
    """Ask to be told of changed settings, where the client tells only who asks."""
    if not ls.client.configuration_registration:
        return
    registration = {
        "id": "funes-configuration",
        "method": types.WORKSPACE_DID_CHANGE_CONFIGURATION,
        "registerOptions": {"section": SECTION},
    }
    with contextlib.suppress(ClientRefused, TimeoutError):
        await ls.protocol.ask(
            types.CLIENT_REGISTER_CAPABILITY, {"registrations": [registration]}, timeout_s=_PULL_S
        )
