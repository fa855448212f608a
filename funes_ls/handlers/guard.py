"""The protocol with its edges guarded: what pygls leaves open is closed here.

pygls dispatches to handlers, keeps documents and counts positions. Order of life, errors, ids and
what goes over the wire are this module's.
"""

import asyncio
import contextvars
import itertools
import logging
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, Protocol

import cattrs
from lsprotocol import types
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    LanguageServerProtocol,
    default_converter,
    lsp_method,
)

from funes_ls import protocol
from funes_ls.engine import messages
from funes_ls.engine.framing import frame
from funes_ls.engine.log import frames
from funes_ls.handlers.failures import Failure, Refused, bad_params, failure_of, told
from funes_ls.handlers.texts import ASKED, State, keep_texts, state_of

_log = logging.getLogger(__name__)
#: A server may say these before it has answered `initialize`.
_BEFORE_INITIALIZE = {
    types.WINDOW_SHOW_MESSAGE,
    types.WINDOW_LOG_MESSAGE,
    types.TELEMETRY_EVENT,
}
_MOST_NAMED = 3


class Out(Protocol):
    """Takes framed messages for the client."""

    def write(self, data: bytes) -> None:
        """Send; never waits."""


class ClientRefused(Exception):
    """The client answered a request of ours with an error."""


def plain_converter() -> cattrs.Converter:
    """Return pygls's converter, but params of methods of our own stay plain dicts."""
    converter: cattrs.Converter = default_converter()  # type: ignore[no-untyped-call]

    def request(raw: dict[str, Any], _type: Any) -> JsonRPCRequestMessage:
        return JsonRPCRequestMessage(
            id=raw["id"], method=raw["method"], jsonrpc="2.0", params=raw.get("params")
        )

    def notification(raw: dict[str, Any], _type: Any) -> JsonRPCNotification:
        return JsonRPCNotification(method=raw["method"], jsonrpc="2.0", params=raw.get("params"))

    converter.register_structure_hook(JsonRPCRequestMessage, request)
    converter.register_structure_hook(JsonRPCNotification, notification)
    return converter


class Guarded(LanguageServerProtocol):
    """The protocol with one client; everything happens on the loop's thread."""

    _server: Any

    def __init__(self, server: Any, converter: cattrs.Converter) -> None:
        """Wait for `initialize`."""
        super().__init__(server, converter)
        self.out: Out | None = None
        self.exit_code: int | None = None
        self.on_exit: Callable[[], None] = _nothing
        #: Called with method and seconds when a request has been answered.
        self.on_answered: Callable[[str, float], None] = _nothing
        self.raw_initialize: dict[str, Any] = {}
        self.is_initialized = False
        self._open: dict[str | int, tuple[str, float]] = {}
        self._asked: dict[str, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)

    @property
    def is_shut(self) -> bool:
        """Return whether the client has asked to shut down."""
        return self._shutdown

    # What comes in.

    def take(self, body: bytes) -> None:
        """Do what a message says; whatever it is, later ones are taken too."""
        try:
            message = messages.decode(body)
        except messages.BadMessage as exc:
            self.refuse_message(exc.code, exc.message)
            return
        method, number = message.get("method"), message.get("id")
        if "method" not in message:
            self._take_answer(message)
        elif not isinstance(method, str) or isinstance(number, bool | float | list | dict):
            refusal = Refused(
                protocol.INVALID_REQUEST,
                "A request has a method by name and an id.",
                kind="invalid_request",
            )
            self._refuse(None, refusal.failure)
        elif number is None:
            self._take_notification(method, message)
        else:
            self._take_request(number, method, message)

    def refuse_message(self, code: int, text: str) -> None:
        """Answer what is no message, or none that is taken."""
        self._refuse(None, Refused(code, text, kind="bad_message").failure)

    def _take_request(self, number: str | int, method: str, message: dict[str, Any]) -> None:
        refusal = self._out_of_order(number, method)
        if refusal is not None:
            self._refuse(number, refusal.failure, closes=number not in self._open)
            return
        self._open[number] = (method, time.monotonic())
        try:
            if method == types.INITIALIZE:
                self.raw_initialize = _table(message.get("params"))
            params = self._params_of(method, message)
        except Refused as exc:
            self._refuse(number, exc.failure)
            return
        context = contextvars.copy_context()
        context.run(ASKED.set, self._asked_about(message.get("params")))
        context.run(self._handle_request, number, method, params)

    def _asked_about(self, params: Any) -> tuple[str, State] | None:
        """Return the document that params name, and its state: handlers run only later."""
        uri = _table(_table(params).get("textDocument")).get("uri")
        if not isinstance(uri, str) or not self.is_initialized:
            return None
        return uri, state_of(self.workspace, uri)

    def _out_of_order(self, number: str | int, method: str) -> Refused | None:
        if not self.is_initialized and method != types.INITIALIZE:
            text = "The first request is initialize."
            return Refused(protocol.NOT_INITIALIZED, text, kind="not_initialized")
        text = ""
        if self.is_shut:
            text = "The server has been shut down."
        elif self.is_initialized and method == types.INITIALIZE:
            text = "The server has been initialized already."
        elif number in self._open:
            text = "A request of that id is under way."
        if text:
            return Refused(protocol.INVALID_REQUEST, text, kind="invalid_request")
        if method not in self.fm.builtin_features and method not in self.fm.features:
            text = f"There is no method {messages.shown(method)}."
            return Refused(protocol.METHOD_NOT_FOUND, text, kind="no_such_method")
        return None

    def _take_notification(self, method: str, message: dict[str, Any]) -> None:
        if method == types.EXIT:
            self._exit()
            return
        if not self.is_initialized or self.is_shut:
            return
        if (
            method != types.CANCEL_REQUEST
            and method not in self.fm.builtin_features
            and method not in self.fm.features
        ):
            return
        try:
            params = self._params_of(method, message)
        except Refused as exc:
            _log.warning("%s is ignored: %s", method, exc.failure.message)
            return
        contextvars.copy_context().run(self._handle_notification, method, params)

    def _take_answer(self, message: dict[str, Any]) -> None:
        answer = self._asked.pop(str(message.get("id")), None)
        if answer is None or answer.done():
            return
        if message.get("error") is not None:
            answer.set_exception(ClientRefused(str(_table(message["error"]).get("message", ""))))
        else:
            answer.set_result(message.get("result"))

    def _params_of(self, method: str, message: dict[str, Any]) -> Any:
        """Return the params as the handler takes them.

        Raises:
            Refused: they do not fit.
        """
        kind = self.get_message_type(method)
        if kind is None:
            return message.get("params")
        whole = {"jsonrpc": "2.0", **message}
        try:
            return getattr(self._converter.structure(whole, kind), "params", None)
        except Exception as exc:
            if method == types.INITIALIZE:
                return self._forgiving_initialize(whole, exc)
            raise bad_params(_unfit(method, exc)) from exc

    def _forgiving_initialize(self, message: dict[str, Any], exc: Exception) -> Any:
        """Return `initialize` without the capabilities: one of them is of a later protocol."""
        params = _table(message.get("params"))
        general = _table(_table(params.get("capabilities")).get("general"))
        offered = general.get("positionEncodings")
        kept: dict[str, Any] = {"general": {"positionEncodings": offered}} if offered else {}
        try:
            whole = {**message, "params": {**params, "capabilities": kept}}
            found = self._converter.structure(whole, types.InitializeRequest)
        except Exception as again:
            raise bad_params(_unfit(types.INITIALIZE, again)) from exc
        return found.params

    # What goes out.

    def _send_data(self, data: Any) -> None:
        if self.out is not None:
            self.out.write(data)

    def _send_response(self, msg_id: Any, result: Any = None, error: Any = None) -> None:
        """Answer a request that is still open; a second answer to it is not sent."""
        if msg_id not in self._open:
            return
        try:
            data = messages.response(msg_id, messages.encoded(self.plain(result)))
        except Exception as exc:
            self._refuse(msg_id, failure_of(exc, self._open[msg_id][0]))
            return
        self._close(msg_id)
        self._send_data(data)

    def _refuse(self, number: str | int | None, failure: Failure, *, closes: bool = True) -> None:
        if number is not None and closes:
            self._close(number)
        error = {"jsonrpc": "2.0", "id": number, "error": told(failure)}
        self._send_data(_framed(error))

    def _close(self, number: str | int) -> None:
        found = self._open.pop(number, None)
        if found is None:
            return
        method, began = found
        if method == types.INITIALIZE:
            self.is_initialized = hasattr(self, "server_capabilities")
        self.on_answered(method, time.monotonic() - began)

    def _send_handler_result(self, future: Future[Any], *, msg_id: Any) -> None:
        self._request_futures.pop(msg_id, None)
        if msg_id not in self._open:
            return
        if future.cancelled():
            text = "The request was withdrawn."
            withdrawn = Refused(protocol.REQUEST_CANCELLED, text, kind="cancelled")
            self._refuse(msg_id, withdrawn.failure)
            return
        exc = future.exception()
        if exc is not None:
            self._refuse(msg_id, failure_of(exc, self._open[msg_id][0]))
            return
        self._send_response(msg_id, future.result())

    def _check_handler_result(self, future: Future[Any]) -> None:
        exc = None if future.cancelled() else future.exception()
        if exc is not None:
            _log.error("internal error in a notification\n%s", frames(exc))

    def plain(self, value: Any) -> Any:
        """Return a value as JSON has it; what is plain already stays."""
        return value if isinstance(value, dict | str | None) else self._converter.unstructure(value)

    def notify(self, method: str, params: Any = None) -> None:
        """Tell the client something, as far as it may be told yet."""
        if not self.is_initialized and method not in _BEFORE_INITIALIZE:
            return
        self._send_data(messages.notification(method, self.plain(params)))

    async def ask(self, method: str, params: Any, *, timeout_s: float) -> Any:
        """Return the client's answer, as plain JSON.

        Raises:
            ClientRefused: it is an error.
            TimeoutError: there is none.
        """
        number = f"funes-{next(self._numbers)}"
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": self.plain(params)}
        self._send_data(_framed(request))
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        finally:
            self._asked.pop(number, None)

    # The order of life.

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(
        self, params: types.InitializeParams
    ) -> Generator[Any, Any, types.InitializeResult]:
        """Answer with what the server can do, its own capabilities included."""
        result = yield from super().lsp_initialize(params)
        keep_texts(self.workspace)
        self._server.complete(result.capabilities)
        return result

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *_args: Any) -> None:  # type: ignore[override]  # no generator
        """Withdraw what is under way; the process stays until `exit`."""
        for number, future in list(self._request_futures.items()):
            if number != self.msg_id and not future.done():
                future.cancel()
        self._shutdown = True
        self._server.wind_down()

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(  # type: ignore[override]  # no generator
        self, params: types.ExecuteCommandParams
    ) -> Any:
        """Run a command; withdrawing the request ends it."""
        run = self.fm.commands.get(params.command)
        if run is None:
            raise bad_params(f"There is no command {messages.shown(params.command)}.")
        return await run(*(params.arguments or ()))

    @lsp_method(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def lsp_work_done_progress_cancel(self, params: types.WorkDoneProgressCancelParams) -> None:
        """Stop the work of a token, whether it was said to be cancellable or not."""
        work = self._server.works.get(params.token)
        if work is not None:
            work.cancel()

    def _exit(self) -> None:
        self.exit_code = 0 if self.is_shut else 1
        self.on_exit()


def _framed(message: dict[str, Any]) -> bytes:
    return frame(bytes(messages.encoded(message)))


def _nothing(*_args: Any) -> None:
    """Do nothing."""


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _unfit(method: str, exc: Exception) -> str:
    """Return which params do not fit, without their values."""
    if isinstance(exc, cattrs.BaseValidationError):
        named = cattrs.transform_error(exc, "$", _kind_of_misfit)[:_MOST_NAMED]
        return f"The params of {method} do not fit: {'; '.join(named)}."
    return f"The params of {method} do not fit."


def _kind_of_misfit(exc: BaseException, _type: Any) -> str:
    return "is missing" if isinstance(exc, KeyError) else "is of the wrong kind"
