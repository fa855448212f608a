"""A model on loopback that says what a test wrote down, in the protocols real agents speak.

Anthropic Messages, OpenAI Responses and OpenAI Chat Completions, all of them streamed.
"""

import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from uuid import uuid4

from msgspec import Struct

from tests.agents import wires
from tests.agents.wires import Asked, Call, Reply, Said

#: What an agent hears when it asks more often than the script has answers for.
EXHAUSTED = "There is nothing more to say."


class ModelLog(Struct, kw_only=True):
    """What happened at a scripted model, in order.

    Attributes:
        asked: All requests for an answer.
        said: The replies of the script that were given, with the ids of their calls.
        unknown: Requests for what this model has not, as "METHOD path".
        spare: How many requests came after the script's end.
        failures: What went wrong while a request was answered.
    """

    asked: list[Asked] = []
    said: list[Said] = []
    unknown: list[str] = []
    spare: int = 0
    failures: list[Exception] = []


class ScriptedModel:
    """A server for one run of an agent; `with` starts and ends it."""

    def __init__(
        self,
        replies: Sequence[Reply | Callable[[], Reply]],
        *,
        beside: Mapping[str, Sequence[Reply]] | None = None,
        before: Callable[[ModelLog], None] = lambda log: None,
        without_tools: bool = False,
    ) -> None:
        """Prepare the server.

        Args:
            replies: What the model says, one after another; a function is asked when its turn is.
            beside: What it says to sub-agents, which ask at the same time: words of their task
                -> replies.
            before: Called before each of them: all calls of the replies before are done then.
            without_tools: Also a request that offers no tools gets the next reply. Otherwise
                such requests are an agent's own (for titles and the like) and take none.
        """
        self.log = ModelLog()
        self._replies: dict[str, list[Reply | Callable[[], Reply]]] = {
            **{task: list(told) for task, told in (beside or {}).items()},
            "": list(replies),  # last, since every text holds it
        }
        self._before = before
        self._without_tools = without_tools
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._server.failures = self.log.failures
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Return the address of the server, without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def left(self) -> int:
        """Return how many replies nobody has asked for."""
        return sum(map(len, self._replies.values()))

    def answer(self, asked: Asked) -> Said:
        """Return the next reply of the script, or a few words to a question that takes none."""
        with self._lock:
            self.log.asked.append(asked)
            if not asked.tools and not self._without_tools:
                return Said(reply=Reply(text="Harbour dues"), call_ids=())
            self._before(self.log)
            first = asked.texts[0] if asked.texts else ""
            replies = next(told for task, told in self._replies.items() if task in first)
            if not replies:
                self.log.spare += 1
                return Said(reply=Reply(text=EXHAUSTED), call_ids=())
            reply = replies.pop(0)
            if not isinstance(reply, Reply):
                reply = reply()
            said = Said(reply=reply, call_ids=tuple(_call_id(asked) for _ in reply.calls))
            self.log.said.append(said)
            return said

    def __enter__(self) -> Self:
        """Start."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the server; answers under way are cut off."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    failures: list[Exception]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep what went wrong for the test; an agent that hangs up is no failure."""
        failure = sys.exception()
        if isinstance(failure, Exception) and not isinstance(failure, OSError):
            self.failures.append(failure)


def _call_id(asked: Asked) -> str:
    return f"{'toolu_01' if asked.api == 'messages' else 'call_'}{uuid4().hex[:22]}"


def _handler(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    """Return a class of handlers that ask a model; http.server wants a class."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing on the terminal."""

        def do_HEAD(self) -> None:
            self._plain({})

        def do_GET(self) -> None:
            if self.path.split("?")[0].endswith("/models"):
                self._plain({"object": "list", "data": [], "models": [], "has_more": False})
                return
            self._unknown()

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or "{}")
            path = self.path.split("?")[0]
            if path.endswith("/count_tokens"):
                self._plain({"input_tokens": len(json.dumps(body)) // 4})
                return
            api = wires.API_BY_PATH.get(path.rsplit("/", 1)[-1])
            if api is None:
                self._unknown()
                return
            self._answer(wires.asked(api, body))

        def _answer(self, asked: Asked) -> None:
            said = model.answer(asked)
            if said.reply.status:
                error = {"type": "api_error", "message": said.reply.text}
                self._plain({"type": "error", "error": error}, status=said.reply.status)
            elif not asked.body.get("stream"):
                self._plain(wires.whole(asked, said))
            else:
                self._stream(asked, said)

        def _stream(self, asked: Asked, said: Said) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            self.close_connection = True
            for name, data in wires.events(asked, said):
                told = data if isinstance(data, str) else json.dumps(data)
                head = f"event: {name}\n" if name else ""
                self.wfile.write(f"{head}data: {told}\n\n".encode())

        def _plain(self, answer: dict[str, Any], *, status: int = 200) -> None:
            told = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(told)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(told)

        def _unknown(self) -> None:
            model.log.unknown.append(f"{self.command} {self.path}")
            self._plain({"error": {"type": "not_found_error", "message": "No."}}, status=404)

    return Handler


__all__ = ["EXHAUSTED", "Call", "ModelLog", "Reply", "ScriptedModel"]
