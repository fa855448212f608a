"""Speaks the Model Context Protocol with one client: what it sends in, answers out.

Source: Model Context Protocol, revisions 2024-11-05 to 2025-11-25, and JSON-RPC 2.0.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from funes_ls import __version__
from funes_ls.indexer.errors import FunesError
from funes_ls.mcp.answers import ANSWERS, Asking
from funes_ls.mcp.arguments import given_of
from funes_ls.mcp.call import LIMIT_S, Call, Withdrawn, warm_up
from funes_ls.mcp.fence import DEFAULT_TOKENS, one_line
from funes_ls.mcp.roots import Roots
from funes_ls.mcp.tools import DEFAULT_K, INSTRUCTIONS, TOOLS, listed
from funes_ls.sending import has_settings

_log = logging.getLogger(__name__)

#: Revisions that begin with `initialize`, oldest first. The two oldest know batches.
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_WITH_BATCHES = frozenset(VERSIONS[:2])

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

#: Calls that are worked on at once, and those that may be under way or wait.
_AT_ONCE = 8
_MOST_CALLS = 64
_SHOWN_CHARS = 80
_ROOTS_ID = "funes-roots"

Message = dict[str, Any]
#: Takes the answer to a request, None when there is to be none.
Reply = Callable[[Message | None], None]


class RpcError(Exception):
    """A request that is answered with an error of the protocol."""

    def __init__(self, code: int, message: str) -> None:
        """Keep the code beside the message."""
        super().__init__(message)
        self.code = code


class Server:
    """One client's server; `take` is for one thread, answers come from several."""

    def __init__(
        self,
        send: Callable[[Any], None],
        *,
        home: Path,
        memory: str = "",
        tokens: int | None = None,
        env: Mapping[str, str] = os.environ,
        limit_s: float = LIMIT_S,
        roots: Roots | None = None,
    ) -> None:
        """Prepare to answer.

        Args:
            send: Takes messages, and batches of them, from any thread.
            home: The funes home.
            memory: Which memory is read when a call names none; "" is as the settings have it.
            tokens: Of an answer, about; None is as the settings have it.
            env: The environment.
            limit_s: For each call.
            roots: Where files are looked for.
        """
        self._send = send
        self._home = home
        self._memory = memory
        self._tokens = tokens
        self._env = env
        self._limit_s = limit_s
        self._roots = roots or Roots()
        self._has_roots = False
        self._roots_asked = 0
        self._version = ""
        self._calls: dict[Any, Call] = {}
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()
        self._turns = threading.Semaphore(_AT_ONCE)

    def take(self, line: bytes) -> None:
        """Do what a line says."""
        try:
            message = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            self._send(_error(None, PARSE_ERROR, "This is no JSON in UTF-8."))
            return
        try:
            if isinstance(message, list):
                self._take_batch(message)
            else:
                self._take_one(message, self._answer)
        except Exception as exc:  # one message must not end the session of an agent
            _log.error("internal error\n%s", _frames(exc))
            self._send(_error(None, INTERNAL_ERROR, "Internal error in funes."))

    def refuse_long(self) -> None:
        """Answer a line that was too long to be read."""
        self._send(_error(None, INVALID_REQUEST, "The message is too long."))

    def finish(self, wait_s: float) -> None:
        """Let calls that are under way end, for so long at most; then withdraw them."""
        deadline = time.monotonic() + wait_s
        for thread in self._running():
            thread.join(max(deadline - time.monotonic(), 0.0))
        with self._lock:
            calls = list(self._calls.values())
        for call in calls:
            call.cancel()

    def _running(self) -> list[threading.Thread]:
        with self._lock:
            return list(self._threads)

    def _answer(self, message: Message | None) -> None:
        if message is not None:
            self._send(message)

    def _take_batch(self, messages: list[Any]) -> None:
        if self._version not in _WITH_BATCHES:
            self._send(
                _error(None, INVALID_REQUEST, "This revision of the protocol has no batches.")
            )
            return
        if not messages:
            self._send(_error(None, INVALID_REQUEST, "The batch is empty."))
            return
        batch = _Batch(sum(_is_answered(one) for one in messages), self._send)
        for one in messages:
            if isinstance(one, dict) and one.get("method") == "initialize":
                text = "initialize cannot be part of a batch."
                batch.take(_error(_id_of(one), INVALID_REQUEST, text))
            else:
                self._take_one(one, batch.take)

    def _take_one(self, message: Any, reply: Reply) -> None:
        """Do what a message says; `reply` is called exactly once if it `_is_answered`."""
        if not isinstance(message, dict):
            reply(_error(None, INVALID_REQUEST, "A message is a JSON object."))
        elif "method" not in message and ("result" in message or "error" in message):
            self._answered(message)
        elif not isinstance(message.get("method"), str):
            reply(_error(_id_of(message), INVALID_REQUEST, "A request has a method by name."))
        elif "id" not in message:
            self._notified(message["method"], message.get("params"))
        elif not _is_id(message["id"]):
            reply(_error(None, INVALID_REQUEST, "An id is a text or a number."))
        else:
            self._requested(message["id"], message["method"], message.get("params"), reply)

    def _requested(self, number: Any, method: str, params: Any, reply: Reply) -> None:
        try:
            if params is not None and not isinstance(params, dict):
                raise RpcError(INVALID_PARAMS, "The params of a request are an object.")
            params = params or {}
            if method == "tools/call":
                self._call(number, params, reply)
                return
            reply(_result(number, self._direct(method, params)))
        except RpcError as exc:
            reply(_error(number, exc.code, str(exc)))

    def _direct(self, method: str, params: Message) -> Message:
        """Return the result of a request that needs no engine."""
        if method == "initialize":
            return self._initialized(params)
        if method == "tools/list":
            return {"tools": listed()}
        if method in ("ping", "logging/setLevel"):
            return {}
        raise RpcError(METHOD_NOT_FOUND, f"There is no method {_shown(method)}.")

    def _initialized(self, params: Message) -> Message:
        wanted = params.get("protocolVersion")
        self._version = wanted if wanted in VERSIONS else VERSIONS[-1]
        capabilities = params.get("capabilities")
        self._has_roots = isinstance(capabilities, dict) and isinstance(
            capabilities.get("roots"), dict
        )
        if self._has_roots:
            self._roots.expect()
        warm_up(self._home, self._env)
        return {
            "protocolVersion": self._version,
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": "funes", "version": __version__},
            "instructions": INSTRUCTIONS,
        }

    def _notified(self, method: str, params: Any) -> None:
        if method == "notifications/cancelled":
            self._cancel(params.get("requestId") if isinstance(params, dict) else None)
        elif self._has_roots and method in (
            "notifications/initialized",
            "notifications/roots/list_changed",
        ):
            self._roots_asked += 1
            number = f"{_ROOTS_ID}-{self._roots_asked}"
            self._send({"jsonrpc": "2.0", "id": number, "method": "roots/list"})
        # Others say nothing that this server acts on.

    def _cancel(self, number: Any) -> None:
        with self._lock:
            call = self._calls.get(number) if _is_id(number) else None
        if call is not None:
            call.cancel()

    def _answered(self, message: Message) -> None:
        if message.get("id") == f"{_ROOTS_ID}-{self._roots_asked}":
            self._roots.take(message.get("result"))

    def _call(self, number: Any, params: Message, reply: Reply) -> None:
        """Begin a call of a tool on a thread of its own."""
        name = params.get("name")
        if not isinstance(name, str) or name not in TOOLS:
            raise RpcError(
                INVALID_PARAMS, f"Unknown tool: {_shown(name)}. There are: {', '.join(TOOLS)}."
            )
        call = Call(self._home, self._env, limit_s=self._limit_s)
        given = (number, name, params.get("arguments"), call, reply)
        work = threading.Thread(target=self._work, args=given, daemon=True)
        with self._lock:
            if number in self._calls:
                raise RpcError(INVALID_REQUEST, "A request of that id is under way.")
            is_one_too_many = len(self._calls) >= _MOST_CALLS
            if not is_one_too_many:
                self._calls[number] = call
                self._threads.add(work)
        if is_one_too_many:
            reply(_result(number, _failed("Too many calls are under way. Wait for some.")))
        else:
            work.start()

    def _work(self, number: Any, name: str, arguments: Any, call: Call, reply: Reply) -> None:
        """Answer a call, whatever happens, unless it was withdrawn."""
        try:
            with self._turns:
                result = self._outcome(name, arguments, call)
        except Withdrawn:
            result = None
        except BaseException as exc:
            _log.error("internal error in %s\n%s", name, _frames(exc))
            result = _failed("Internal error in funes; other calls may still work.")
        with self._lock:
            self._calls.pop(number, None)
        reply(None if result is None or call.cancelled else _result(number, result))
        with self._lock:
            self._threads.discard(threading.current_thread())

    def _outcome(self, name: str, arguments: Any, call: Call) -> Message:
        """Return what a call comes to; what a model can put right is told as text."""
        try:
            given = given_of(TOOLS[name].params, arguments)
            tokens, k = _defaults(self._env)
            asking = Asking(
                call,
                given,
                memory=self._memory,
                tokens=self._tokens or tokens,
                k=k,
                roots=self._roots,
                env=self._env,
            )
            text = ANSWERS[name](asking)
        except FunesError as exc:
            return _failed(one_line(str(exc)))
        if given.unknown:
            names = ", ".join(_shown(one) for one in given.unknown[:5])
            known = ", ".join(TOOLS[name].params)
            text += f"\nnote: left out, as {name} has no such argument: {names}. It has: {known}."
        return {"content": [{"type": "text", "text": _whole(text)}], "isError": False}


def _defaults(env: Mapping[str, str]) -> tuple[int, int]:
    """Return about how many tokens and passages an answer may have, as the settings have it."""
    if not has_settings(env):
        return DEFAULT_TOKENS, DEFAULT_K
    from funes_ls.indexer.settings import load_settings

    settings, _ = load_settings(env)
    return settings.mcp_tokens, settings.k


class _Batch:
    """Collects the answers to a batch and sends them together."""

    def __init__(self, expected: int, send: Callable[[Any], None]) -> None:
        self._left = expected
        self._send = send
        self._answers: list[Message] = []
        self._lock = threading.Lock()

    def take(self, message: Message | None) -> None:
        """Take one answer, None for a request that was withdrawn; the last one sends all."""
        with self._lock:
            self._left -= 1
            if message is not None:
                self._answers.append(message)
            is_whole = not self._left
        if is_whole and self._answers:
            self._send(self._answers)


def _is_answered(message: Any) -> bool:
    """Return whether a message gets an answer: a request does, and what is no message at all."""
    if not isinstance(message, dict):
        return True
    if "method" not in message:
        return not ("result" in message or "error" in message)
    return "id" in message or not isinstance(message["method"], str)


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _id_of(message: Message) -> Any:
    return message.get("id") if _is_id(message.get("id")) else None


def _result(number: Any, result: Message) -> Message:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _error(number: Any, code: int, message: str) -> Message:
    error = {"code": code, "message": _whole(message)}
    return {"jsonrpc": "2.0", "id": number, "error": error}


def _failed(text: str) -> Message:
    return {"content": [{"type": "text", "text": _whole(text)}], "isError": True}


def _whole(text: str) -> str:
    """Return a text without halves of characters, which some clients take for broken JSON."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _frames(exc: BaseException) -> str:
    """Return a traceback without the message, which may quote a session."""
    import traceback

    return "".join(traceback.format_tb(exc.__traceback__)) + type(exc).__name__


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
