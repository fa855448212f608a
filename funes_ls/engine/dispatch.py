"""Takes messages of clients apart, runs what they ask, and answers each request exactly once."""

import asyncio
import hmac
import logging
import os
import time
from collections.abc import Callable
from typing import Any

import msgspec

from funes_ls import __version__, protocol
from funes_ls.engine import messages
from funes_ls.engine.clients import Client
from funes_ls.engine.core import Core
from funes_ls.engine.log import frames
from funes_ls.engine.methods import METHODS, Asked, Method
from funes_ls.indexer.errors import FunesError

_log = logging.getLogger(__name__)
#: Requests of one client that may be under way at once.
MOST_ASKED = 64
_HELLO_FIELDS = {field.encode_name for field in msgspec.structs.fields(protocol.HelloParams)}


class Request:
    """A request under way."""

    def __init__(self, client: Client, number: str | int, params: protocol.Params) -> None:
        """Begin a request of a client."""
        self.client = client
        self.number = number
        self.params = params
        self.withdrawn = False
        self.done = False
        self.job: asyncio.Future[Any] | None = None
        self.cancelled = asyncio.Event()

    def is_withdrawn(self) -> bool:
        """Return whether nobody waits for the answer any more; asked from other threads."""
        return self.withdrawn

    def withdraw(self) -> None:
        """Tell whoever works on it that nobody waits any more."""
        self.withdrawn = True
        self.cancelled.set()


class Dispatcher:
    """Knows what each message means; everything here runs on the loop's thread."""

    def __init__(self, core: Core, *, token: str, end: Callable[[str], None]) -> None:
        """Answer from a core.

        Args:
            core: What answers come from.
            token: What `engine/hello` must show; "" where the socket's mode guards it.
            end: Called when a client asks the engine to end.
        """
        self._core = core
        self._token = token
        self._end = end
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    def take(self, client: Client, body: bytes) -> None:
        """Do what a message says."""
        self._core.note_activity()
        try:
            message = messages.decode(body)
        except messages.BadMessage as exc:
            client.send(messages.error(None, exc.code, exc.message, kind="bad_message"))
            return
        method, number = message.get("method"), message.get("id")
        if "method" not in message:
            if "id" not in message:
                self._refuse(client, None, "A message has a method or an id.")
            return  # an answer to something that was never asked
        if not isinstance(method, str) or not isinstance(number, str | int | None):
            self._refuse(client, None, "A request has a method by name and an id.")
        elif number is None or isinstance(number, bool):
            self._notified(client, method, message.get("params"))
        else:
            self._requested(client, number, method, message.get("params"))

    def forget(self, client: Client) -> None:
        """Withdraw what a client has asked that is gone."""
        for request in list(client.asked.values()):
            request.withdraw()

    def _refuse(self, client: Client, number: Any, message: str) -> None:
        client.send(
            messages.error(number, protocol.INVALID_REQUEST, message, kind="invalid_request")
        )

    def _notified(self, client: Client, method: str, params: Any) -> None:
        if method == "$/cancelRequest" and isinstance(params, dict):
            wanted = params.get("id")
            request = client.asked.get(wanted) if isinstance(wanted, str | int) else None
            if request is not None:
                request.withdraw()
        elif method == "engine/touch" and client.greeted:
            self._core.touch(params)
        # Others are not for the engine, or of a later version.

    def _requested(self, client: Client, number: str | int, method: str, raw: Any) -> None:
        if number in client.asked:
            self._refuse(client, number, "A request of that id is under way.")
        elif method == "engine/hello":
            self._greet(client, number, raw)
        elif not client.greeted:
            text = "The first request is engine/hello."
            client.send(messages.error(number, protocol.NOT_INITIALIZED, text, kind="no_hello"))
        elif len(client.asked) >= MOST_ASKED:
            self._busy(client, number)
        else:
            self._begin(client, number, method, raw)

    def _busy(self, client: Client, number: str | int) -> None:
        text = f"{MOST_ASKED} requests of this client are under way already."
        hint = "Wait for some of them."
        client.send(messages.error(number, protocol.REQUEST_FAILED, text, kind="busy", hint=hint))

    def _greet(self, client: Client, number: str | int, raw: Any) -> None:
        params = self._hello(raw)
        if params is None:
            self._refuse(client, number, "The params of engine/hello do not fit.")
        elif self._token and not hmac.compare_digest(self._token.encode(), params.token.encode()):
            _log.warning("client %d showed a wrong token", client.number)
            text = "The token is not this engine's."
            client.send(messages.error(number, protocol.INVALID_REQUEST, text, kind="token"))
            client.drop("has no token")
        elif client.greeted:
            self._refuse(client, number, "Hello has been said.")
        else:
            client.greeted = True
            client.kind = params.client[:20]
            client.wants_news = params.notify
            client.env = params.env
            self._core.know_env(params.env)
            answer = protocol.HelloAnswer(
                version=__version__,
                protocol=protocol.PROTOCOL,
                pid=os.getpid(),
                home=str(self._core.home),
            )
            client.send(messages.response(number, messages.encoded(answer)))

    def _hello(self, raw: Any) -> protocol.HelloParams | None:
        """Return the params of hello; what a later version adds to them is left out."""
        if not isinstance(raw, dict):
            return None
        known = {name: value for name, value in raw.items() if name in _HELLO_FIELDS}
        try:
            return msgspec.convert(known, protocol.HelloParams)
        except msgspec.ValidationError:
            return None

    def _begin(self, client: Client, number: str | int, method: str, raw: Any) -> None:
        try:
            params = protocol.params_of(method, raw)
            how = METHODS[method]
        except KeyError:
            text = f"There is no method {messages.shown(method)}."
            client.send(
                messages.error(number, protocol.METHOD_NOT_FOUND, text, kind="no_such_method")
            )
            return
        except msgspec.ValidationError as exc:
            client.send(
                messages.error(number, protocol.INVALID_PARAMS, str(exc), kind="invalid_params")
            )
            return
        request = Request(client, number, params)
        client.asked[number] = request
        task = self._loop.create_task(self._run(request, method, how))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, request: Request, method: str, how: Method) -> None:
        """Do a request and answer it, or say why not; whatever happens, once."""
        client, started = request.client, time.monotonic()
        try:
            answer = await self._outcome(request, method, how)
        finally:
            request.done = True
        client.send(answer)
        await client.drained()
        client.asked.pop(request.number, None)
        self._core.note_activity()
        if method == "engine/stop":
            self._end("a client asked for it")
        took_s = time.monotonic() - started
        if how.limit_s and took_s > how.limit_s / 2:
            _log.info("%s took %.1f s", method, took_s)

    async def _outcome(self, request: Request, method: str, how: Method) -> bytes:
        number = request.number
        job = self._start(request, how)
        if how.is_question:
            self._core.answering += 1
            job.add_done_callback(self._answered)
        withdrawn = self._loop.create_task(request.cancelled.wait())
        try:
            either: set[asyncio.Future[Any]] = {job, withdrawn}
            await asyncio.wait(either, timeout=how.limit_s, return_when=asyncio.FIRST_COMPLETED)
            if not job.done() and request.withdrawn and how.ends_when_withdrawn:
                await asyncio.wait({job})
        finally:
            withdrawn.cancel()
        if job.done() and not job.cancelled():
            return self._answer(number, method, job)
        timed_out = not request.withdrawn
        request.withdraw()
        job.cancel()
        job.add_done_callback(_ignore_outcome)
        if timed_out:
            text = f"{method} took longer than {how.limit_s:g} s and was given up."
            hint = "Ask again, or see `funes engine logs`."
            return messages.error(number, protocol.REQUEST_FAILED, text, kind="timeout", hint=hint)
        return _withdrawn(number)

    def _answered(self, _job: "asyncio.Future[Any]") -> None:
        self._core.answering -= 1
        if not self._core.answering:
            self._core.indexing.wake()

    def _start(self, request: Request, how: Method) -> "asyncio.Future[msgspec.Raw]":
        asked = Asked(
            params=request.params,
            core=self._core,
            env=request.client.env,
            cancelled=request.is_withdrawn,
            partial=self._told(request, request.params.partial_result_token),
            progress=self._told(request, request.params.work_done_token),
        )

        def work() -> msgspec.Raw:
            if request.withdrawn:
                raise FunesError("The request was withdrawn.", kind="cancelled")
            return messages.encoded(how.run(asked))

        return self._loop.run_in_executor(self._core.lane(how.lane), work)

    def _told(self, request: Request, token: protocol.Token | None) -> Callable[[Any], None] | None:
        """Return what sends values under a token, from any thread, until the answer is out."""
        if token is None:
            return None

        def send(data: bytes) -> None:
            if not request.done:
                request.client.send(data)

        def tell(value: Any) -> None:
            params = {"token": token, "value": messages.encoded(value)}
            data = messages.notification("$/progress", params)
            self._loop.call_soon_threadsafe(send, data)

        return tell

    def _answer(self, number: str | int, method: str, job: "asyncio.Future[msgspec.Raw]") -> bytes:
        exc = job.exception()
        if exc is None:
            return messages.response(number, job.result())
        if isinstance(exc, FunesError):
            return messages.error(
                number, messages.code_of(exc), exc.message, kind=exc.kind, hint=exc.hint
            )
        _log.error("internal error in %s\n%s", method, frames(exc))
        return messages.error(
            number,
            protocol.INTERNAL_ERROR,
            "Internal error in the engine.",
            kind="internal",
            hint="See `funes engine logs`.",
        )


def _withdrawn(number: str | int) -> bytes:
    return messages.error(
        number, protocol.REQUEST_CANCELLED, "The request was withdrawn.", kind="cancelled"
    )


def _ignore_outcome(job: "asyncio.Future[Any]") -> None:
    if not job.cancelled():
        job.exception()
