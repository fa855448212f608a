"""The server's state: the client, its settings, the engine, and what all features need of them."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import msgspec
from lsprotocol import types
from pygls.lsp.server import LanguageServer

from funes_ls import __version__, protocol
from funes_ls.engine.async_client import Engine
from funes_ls.engine.client import EngineError
from funes_ls.handlers.client import Client, client_of
from funes_ls.handlers.configuration import (
    Configuration,
    EditorSettings,
    lens_mode,
    watch_changes,
)
from funes_ls.handlers.documents import Documents
from funes_ls.handlers.failures import bad_params
from funes_ls.handlers.guard import Guarded, plain_converter
from funes_ls.handlers.line_facts import LineFacts
from funes_ls.handlers.logs import Logs
from funes_ls.handlers.progress import Work
from funes_ls.indexer.errors import FunesError, UsageError
from funes_ls.indexer.home import home_dir

_log = logging.getLogger(__name__)
#: What an editor shows while somebody moves the cursor comes soon, or not at all.
QUICK_S = 1.5
#: The engine has limits of its own, which are shorter.
ASKED_S = 15.0
_CLOSE_S = 2.0
#: The engine is not there, as opposed to: it says no.
_DOWN = {"engine_down", "engine_timeout", "engine_newer", "engine_crashing"}
_CONTENT_SCHEMES = ["funes"]

Watch = Callable[[Any], None]


class Front(LanguageServer):
    """One editor's language server: a thin front of the engine."""

    protocol: Guarded

    def __init__(self, env: Mapping[str, str]) -> None:
        """Serve the home that the environment names; nothing is connected yet."""
        super().__init__(
            "funes-ls",
            __version__,
            protocol_cls=Guarded,
            converter_factory=plain_converter,
            max_workers=1,
        )
        self.home: Path = home_dir(env).absolute()
        self.client = Client()
        self.configuration = Configuration(env)
        self.documents = Documents(self.home)
        self.lines = LineFacts(self)
        self.logs = Logs(self)
        self.engine = Engine(self.home, client="lsp", notify=True, env=env)
        #: The newest state of the memory that was told of.
        self.generation = 0
        #: Whether the engine is indexing, as far as it has said.
        self.is_indexing = False
        #: Work that the client may cancel, by its token.
        self.works: dict[protocol.Token, Work] = {}
        #: Called when the memory has changed.
        self.on_index: list[Callable[[], None]] = []
        #: Whether the client has ever told of folders, so that none is none.
        self.had_folders = False
        self._lens_mode = ""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_down = False

    # Life.

    def begin(self, params: types.InitializeParams) -> None:
        """Take what `initialize` says."""
        raw = self.protocol.raw_initialize
        self.client = client_of(raw)
        self.had_folders = bool(params.workspace_folders)
        self.protocol.trace = params.trace or types.TraceValue.Off
        self.configuration.begin(raw.get("initializationOptions"))
        self.apply_settings()

    def complete(self, capabilities: types.ServerCapabilities) -> None:
        """Add what the server can do beyond LSP to the answer of `initialize`."""
        capabilities.experimental = {
            "funes": {
                "protocol": protocol.PROTOCOL,
                "methods": sorted(name for name in self.protocol.fm.features if _is_own(name)),
                "notifications": ["funes/didIndex"],
                "documents": {"schemes": _CONTENT_SCHEMES},
                "partialResults": ["funes/recall"],
            }
        }
        if self.client.text_document_content and capabilities.workspace is not None:
            capabilities.workspace.text_document_content = types.TextDocumentContentOptions(
                schemes=_CONTENT_SCHEMES
            )

    def started(self) -> None:
        """Begin to work, once the client is ready."""
        self.configuration.pull(self)
        self.spawn(watch_changes(self))
        self.spawn(self._meet_engine())

    def wind_down(self) -> None:
        """End what goes on in the background."""
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Let the engine go, within a time."""
        self.wind_down()
        self.documents.tidy()
        with contextlib.suppress(TimeoutError, EngineError, OSError):
            async with asyncio.timeout(_CLOSE_S):
                await self.lines.outlines.close()
                await self.engine.close()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do something beside the requests."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # The client.

    def show(self, kind: types.MessageType, text: str) -> None:
        """Show a message to a person, who is to do something."""
        self.window_show_message(types.ShowMessageParams(type=kind, message=text))

    def settings(self, uri: str = "") -> EditorSettings:
        """Return the settings of a document, or those of none."""
        return self.configuration.of(self, uri)

    def lens_mode(self, uri: str) -> str:
        """Return where a document's lenses are, see `LENSES`; who has toggled them is right."""
        return self._lens_mode or self.settings(uri).code_lens

    def toggle_lenses(self, wanted: Any) -> str:
        """Set where lenses are until the end, or turn them off, or on again; return where.

        Raises:
            Refused: there is no such place.
        """
        if wanted is not None:
            try:
                self._lens_mode = lens_mode(msgspec.convert(wanted, bool | str))
            except (UsageError, msgspec.ValidationError) as exc:
                raise bad_params(f"The argument does not fit: {exc}") from exc
            return self._lens_mode
        usual = self.settings().code_lens
        is_on = (self._lens_mode or usual) != "off"
        self._lens_mode = "off" if is_on else ("file" if usual == "off" else usual)
        return self._lens_mode

    def apply_settings(self) -> None:
        """Apply what settings change here and now."""
        self.logs.use_level(self.settings().log_level)

    # The engine.

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        timeout_s: float = ASKED_S,
        on_partial: Watch | None = None,
        on_progress: Watch | None = None,
    ) -> Any:
        """Return what the engine answers.

        Raises:
            FunesError: it says no, or is not there; that is told to a person, once.
        """
        try:
            answer = await self.engine.request(
                method,
                params,
                timeout_s=timeout_s,
                on_partial=on_partial,
                on_progress=on_progress,
            )
        except FunesError as exc:
            if exc.kind in _DOWN or not isinstance(exc, EngineError):
                self._tell_down(exc)
            raise
        self._is_down = False
        return answer

    async def quick(self, method: str, params: Mapping[str, Any]) -> Any:
        """Return what the engine answers at once, None when it does not."""
        try:
            return await self.request(method, params, timeout_s=QUICK_S)
        except FunesError as exc:
            _log.info("%s has no answer (%s)", method, exc.kind)
            return None

    def with_settings(
        self, method: str, raw: Mapping[str, Any], *, uri: str = ""
    ) -> dict[str, Any]:
        """Return params with an editor's settings where they say nothing themselves.

        Raises:
            Refused: they do not fit.
        """
        checked_params(method, raw)
        params = dict(raw)
        settings = self.settings(uri)
        if method == "funes/recall":
            params = {**settings.recall, **params}
        if settings.memory and "memory" in _fields(method):
            params = {"memory": settings.memory, **params}
        if method == "funes/index" and settings.thinking is not None:
            params = {"thinking": settings.thinking, **params}
        return params

    async def _meet_engine(self) -> None:
        try:
            await self.engine.ready()
        except FunesError as exc:
            self._tell_down(exc)

    def _tell_down(self, exc: FunesError) -> None:
        _log.info("the engine cannot be had (%s)", exc.kind)
        if not self._is_down and exc.kind != "engine_timeout":
            self.show(types.MessageType.Warning, f"funes: {exc}")
        self._is_down = self._is_down or exc.kind != "engine_timeout"


def checked_params(method: str, raw: Any) -> protocol.Params:
    """Return the params of a method of ours.

    Raises:
        Refused: they do not fit.
    """
    try:
        return protocol.params_of(method, raw)
    except msgspec.ValidationError as exc:
        raise bad_params(f"{exc}.") from exc


def _fields(method: str) -> set[str]:
    fields = msgspec.structs.fields(protocol.METHODS[method])
    return {field.encode_name for field in fields}


def _is_own(method: str) -> bool:
    return method.startswith("funes/")
