"""The three protocols of a scripted model: what a request says, and a reply as its events."""

import json
from collections.abc import Iterator
from typing import Any, Literal
from uuid import uuid4

from msgspec import Struct

Api = Literal["messages", "responses", "chat"]
API_BY_PATH: dict[str, Api] = {
    "messages": "messages",
    "responses": "responses",
    "completions": "chat",
}
#: Name of a server-sent event ("" for none) and its data.
Event = tuple[str, dict[str, Any] | str]


class Call(Struct, frozen=True, kw_only=True):
    """A tool call: its input is an object, or plain text for a custom tool of Codex.

    Attributes:
        namespace: Of a tool that a Codex offers in one.
    """

    name: str
    given: dict[str, Any] | str
    namespace: str = ""


class Reply(Struct, frozen=True, kw_only=True):
    """One answer of the model.

    Attributes:
        status: An HTTP status to fail with, `text` as the message; 0 for a real answer.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    status: int = 0


class Said(Struct, frozen=True, kw_only=True):
    """A reply that was given, and the ids its calls have in the trace."""

    reply: Reply
    call_ids: tuple[str, ...]


class Asked(Struct, frozen=True, kw_only=True):
    """A request for an answer.

    Attributes:
        tools: Names of the tools that are offered; `namespace/name` where there is one.
        texts: What the user and the tools said, in order.
    """

    api: Api
    tools: tuple[str, ...]
    texts: tuple[str, ...]
    body: dict[str, Any]


def asked(api: Api, body: dict[str, Any]) -> Asked:
    """Return what a request says."""
    told = body.get("input" if api == "responses" else "messages") or []
    turns = [{"role": "user", "content": told}] if isinstance(told, str) else told
    tools = [name for tool in body.get("tools") or [] for name in _tool_names(tool)]
    spoken = [turn for turn in turns if turn.get("role") not in ("system", "developer")]
    texts = tuple(_text(turn) for turn in spoken if turn.get("role") != "assistant")
    return Asked(api=api, tools=tuple(tools), texts=texts, body=body)


def _tool_names(tool: dict[str, Any]) -> list[str]:
    if tool.get("type") == "namespace":
        return [f"{tool['name']}/{one['name']}" for one in tool.get("tools", [])]
    inner = tool.get("function")
    named = inner if isinstance(inner, dict) else tool
    return [str(named.get("name") or named.get("type"))]


def _text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, list):
        return "\n".join(_text(one) for one in part)
    if isinstance(part, dict):
        return next((_text(part[key]) for key in ("text", "content", "output") if key in part), "")
    return ""


def events(asked: Asked, said: Said) -> Iterator[Event]:
    """Yield a reply as the events of the protocol it was asked in."""
    if asked.api == "messages":
        return _messages(asked, said)
    return _responses(asked, said) if asked.api == "responses" else _chat(asked, said)


def whole(asked: Asked, said: Said) -> dict[str, Any]:
    """Return a reply in one piece, for a request that wants no stream."""
    if asked.api == "messages":
        stop = "tool_use" if said.reply.calls else "end_turn"
        return {**_message(asked), "content": _blocks(asked, said), "stop_reason": stop}
    if asked.api == "responses":
        return _response(asked, "completed", output=_items(said))
    message = {"role": "assistant", "content": said.reply.text, "tool_calls": _functions(said)}
    ends = "tool_calls" if said.reply.calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": ends}
    return {**_completion(asked), "object": "chat.completion", "choices": [choice]}


def _new(prefix: str) -> str:
    return f"{prefix}_{uuid4().hex[:24]}"


# Anthropic Messages.


def _message(asked: Asked) -> dict[str, Any]:
    return {
        "id": _new("msg"),
        "type": "message",
        "role": "assistant",
        "model": asked.body.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 20},
    }


def _blocks(asked: Asked, said: Said) -> list[dict[str, Any]]:
    reply = said.reply
    blocks: list[dict[str, Any]] = []
    if reply.thinking and (asked.body.get("thinking") or {}).get("type") in ("enabled", "adaptive"):
        signature = uuid4().hex
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": signature})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for call, call_id in zip(reply.calls, said.call_ids, strict=True):
        use = {"type": "tool_use", "id": call_id, "name": call.name, "input": call.given}
        blocks.append(use)
    return blocks


#: By type of block: what it is when it begins, and the deltas that fill it.
_EMPTY = {"thinking": {"thinking": "", "signature": ""}, "text": {"text": ""}}
_FILLED = {"thinking": ("thinking", "signature"), "text": ("text",)}


def _messages(asked: Asked, said: Said) -> Iterator[Event]:
    yield _typed("message_start", message=_message(asked))
    for index, block in enumerate(_blocks(asked, said)):
        kind = block["type"]
        begun = {**block, **_EMPTY.get(kind, {"input": {}})}
        yield _typed("content_block_start", index=index, content_block=begun)
        for delta in _deltas(block):
            yield _typed("content_block_delta", index=index, delta=delta)
        yield _typed("content_block_stop", index=index)
    stop = {"stop_reason": "tool_use" if said.reply.calls else "end_turn", "stop_sequence": None}
    yield _typed("message_delta", delta=stop, usage={"output_tokens": 20})
    yield _typed("message_stop")


def _deltas(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = block["type"]
    if kind == "tool_use":
        yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    for field in _FILLED.get(kind, ()):
        yield {"type": f"{field}_delta", field: block[field]}


def _typed(kind: str, **more: Any) -> Event:
    return kind, {"type": kind, **more}


# OpenAI Responses.


def _response(asked: Asked, status: str, *, output: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
    return {
        "id": _new("resp"),
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": asked.body.get("model"),
        "output": output,
        "usage": usage if status == "completed" else None,
    }


def _items(said: Said) -> list[dict[str, Any]]:
    reply = said.reply
    items: list[dict[str, Any]] = []
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        items.append({"type": "reasoning", "id": _new("rs"), "summary": summary})
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        message = {"type": "message", "id": _new("msg"), "role": "assistant", "content": content}
        items.append(message)
    calls = zip(reply.calls, said.call_ids, strict=True)
    return [*items, *(_item(call, call_id) for call, call_id in calls)]


def _item(call: Call, call_id: str) -> dict[str, Any]:
    named: dict[str, Any] = {"call_id": call_id, "name": call.name, "status": "completed"}
    if isinstance(call.given, str):
        return {"type": "custom_tool_call", "id": _new("ctc"), **named, "input": call.given}
    if call.namespace:
        named["namespace"] = call.namespace
    given = json.dumps(call.given)
    return {"type": "function_call", "id": _new("fc"), **named, "arguments": given}


def _responses(asked: Asked, said: Said) -> Iterator[Event]:
    items = _items(said)
    yield _typed("response.created", response=_response(asked, "in_progress", output=[]))
    for index, item in enumerate(items):
        yield _typed("response.output_item.added", output_index=index, item=item)
        if item["type"] == "message":
            where = {"item_id": item["id"], "output_index": index, "content_index": 0}
            text = item["content"][0]["text"]
            yield _typed("response.output_text.delta", **where, delta=text)
        yield _typed("response.output_item.done", output_index=index, item=item)
    done = _response(asked, "completed", output=items)
    yield _typed("response.completed", response=done)


# OpenAI Chat Completions.


def _completion(asked: Asked) -> dict[str, Any]:
    return {
        "id": _new("chatcmpl"),
        "object": "chat.completion.chunk",
        "created": 0,
        "model": asked.body.get("model"),
    }


def _functions(said: Said) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            "id": call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.given)},
        }
        for index, (call, call_id) in enumerate(zip(said.reply.calls, said.call_ids, strict=True))
    ]


def _chat(asked: Asked, said: Said) -> Iterator[Event]:
    base, reply, functions = _completion(asked), said.reply, _functions(said)
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": reply.thinking}] if reply.thinking else []
    deltas += [{"content": reply.text}] if reply.text else []
    deltas += [{"tool_calls": [one]} for one in functions]
    for delta in deltas:
        yield "", {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    ends = "tool_calls" if functions else "stop"
    yield "", {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": ends}]}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    yield "", {**base, "choices": [], "usage": usage}
    yield "", "[DONE]"
