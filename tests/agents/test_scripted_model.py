"""The scripted model, spoken to without an agent."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.agents.scripted_model import EXHAUSTED, Call, ModelLog, Reply, ScriptedModel

CALL = Call(name="write", given={"path": "a.txt", "content": "tide"})
REPLIES = [Reply(text="I write it.", thinking="A file.", calls=(CALL,)), Reply(text="Done.")]
TOOLS = [{"name": "write"}]
PATHS = {
    "messages": "/v1/messages?beta=true",
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
}


def post(model: ScriptedModel, path: str, body: dict[str, Any]) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", int(model.url.rpartition(":")[2]), timeout=10)
    connection.request("POST", path, json.dumps(body))
    answer = connection.getresponse()
    told = answer.read().decode()
    connection.close()
    return answer.status, told


def streamed(told: str) -> Iterator[dict[str, Any]]:
    """Yield the data of server-sent events."""
    for line in told.splitlines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


@pytest.mark.parametrize("api", PATHS)
def test_replies_come_in_order_with_the_ids_that_are_kept(api: str) -> None:
    with ScriptedModel(REPLIES) as model:
        body = {"stream": True, "tools": TOOLS, "thinking": {"type": "enabled"}, "messages": []}
        first, second = (post(model, PATHS[api], body)[1] for _ in REPLIES)
        [call_id] = model.log.said[0].call_ids
        texts = [json.dumps(event) for event in streamed(first)]
        assert any("A file." in text for text in texts)
        assert any("I write it." in text for text in texts)
        assert any(call_id in text for text in texts)
        assert "tide" in first and "tide" not in second
        assert "Done." in second
        assert model.left == 0
        assert [asked.api for asked in model.log.asked] == [api, api]


@pytest.mark.parametrize("api", PATHS)
def test_a_request_without_tools_takes_no_reply(api: str) -> None:
    with ScriptedModel(REPLIES) as model:
        status, told = post(model, PATHS[api], {"messages": []})
        assert status == 200
        assert "I write it." not in told
        assert model.left == 2


def test_a_request_without_tools_may_be_the_question() -> None:
    with ScriptedModel(REPLIES[1:], without_tools=True) as model:
        assert "Done." in post(model, PATHS["messages"], {"messages": []})[1]


def test_files_are_looked_at_before_each_reply_and_a_late_reply_is_made_then() -> None:
    seen: list[int] = []

    def before(log: ModelLog) -> None:
        seen.append(len(log.said))

    def late() -> Reply:
        return Reply(text=f"Seen: {seen}")

    with ScriptedModel([REPLIES[0], late], before=before) as model:
        for _ in range(3):
            last = post(model, PATHS["chat"], {"stream": True, "tools": TOOLS})[1]
        assert EXHAUSTED in last
        assert model.log.spare == 1
        assert model.log.said[1].reply.text == "Seen: [0, 1]"
    assert seen == [0, 1, 2]


def test_what_it_has_not_is_refused_and_noted() -> None:
    with ScriptedModel([Reply(status=529, text="overloaded")]) as model:
        assert post(model, "/v1/embeddings", {})[0] == 404
        assert model.log.unknown == ["POST /v1/embeddings"]
        assert post(model, PATHS["messages"], {"tools": TOOLS})[0] == 529
