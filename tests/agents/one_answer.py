"""A model on this machine that says what it is told to, for real coding agents.

It speaks as much of three interfaces as they need: Anthropic Messages, OpenAI Responses and OpenAI
Chat Completions, all as streams.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_USAGE = {"input_tokens": 1, "output_tokens": 1}


class Model:
    """What is answered, and the requests that came; `hold` keeps the answers back."""

    def __init__(self, text: str) -> None:
        """Answer this to every request."""
        self.text = text
        self.requests: list[dict[str, Any]] = []
        self.url = ""
        self.asked = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def tools(self) -> list[str]:
        """Return the names of all tools that were offered to it."""
        tools = [tool for request in self.requests for tool in request.get("tools") or []]
        return [
            tool.get("name") or (tool.get("function") or {}).get("name") or tool.get("type")
            for tool in tools
        ]


@contextmanager
def scripted(text: str) -> Iterator[Model]:
    """Yield a model that listens on the loopback address."""
    model = Model(text)

    class Handler(_Handler):
        told = model

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        model.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    told: Model

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Answer that somebody is there."""
        self._answer(b"", "text/plain")

    def do_GET(self) -> None:
        """List no models."""
        self._answer(b'{"object":"list","data":[],"models":[]}', "application/json")

    def do_POST(self) -> None:
        """Answer as told."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        made = {"/messages": _messages, "/responses": _responses, "/completions": _completions}
        events = next((make for end, make in made.items() if path.endswith(end)), None)
        if events is None:
            self._answer(b'{"input_tokens":1}', "application/json")
            return
        self.told.requests.append(json.loads(body))
        self.told.asked.set()
        self.told.go_on.wait(60)
        stream = "".join(
            f"event: {event.get('type', 'message')}\ndata: {json.dumps(event)}\n\n"
            for event in events(self.told.text)
        )
        done = "data: [DONE]\n\n" if events is _completions else ""
        self._answer((stream + done).encode(), "text/event-stream")

    def _answer(self, body: bytes, kind: str) -> None:
        try:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True  # who asked has gone


def _messages(text: str) -> Iterator[dict[str, Any]]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted"}
    start = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": _USAGE}
    block = {"type": "text", "text": ""}
    yield {"type": "message_start", "message": start}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    for half in (text[: len(text) // 2], text[len(text) // 2 :]):
        delta = {"type": "text_delta", "text": half}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def _responses(text: str) -> Iterator[dict[str, Any]]:
    response: dict[str, Any] = {"id": "r_1", "object": "response", "status": "in_progress"}
    content = [{"type": "output_text", "text": text, "annotations": []}]
    item = {"type": "message", "id": "m_1", "role": "assistant", "content": content}
    usage = {
        **_USAGE,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 2,
    }
    whole = {**response, "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.created", "response": response}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": whole}


def _completions(text: str) -> Iterator[dict[str, Any]]:
    base = {"id": "c_1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    for delta, end in (({"role": "assistant", "content": text}, None), ({}, "stop")):
        choice = {"index": 0, "delta": delta, "finish_reason": end}
        yield {**base, "choices": [choice]}
    yield {**base, "choices": [], "usage": usage}
