"""What the server says to what a client sends, with an engine that does as it is told."""

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from funes_ls.mcp.roots import Roots
from funes_ls.mcp.server import Server
from tests.e2e.engines import until
from tests.funes_ls.mcp.fake_engine import Death, FakeEngine, Refusal

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sockets of POSIX")

STATUS = {
    "memory": "local",
    "path": "/m",
    "state": "ready",
    "harnesses": {"codex": 2},
    "size_bytes": 1,
    "token_chunks": 0,
    "token_bytes": 0,
    "sessions": 2,
    "projects": 1,
    "turns": 3,
    "chunks": 4,
    "model": "tiny",
    "words_only": 0,
    "pending_sources": 0,
    "problems": 0,
    "last_indexed_us": None,
    "redaction": "on",
    "redacted": {},
    "scrub_due": False,
    "excluded": 0,
    "remote": None,
    "local": None,
    "note": "",
}


class Client:
    """A server in this process, and what it sent."""

    def __init__(self, home: Path, **options: Any) -> None:
        self.sent: list[Any] = []
        env = {"HOME": str(home), "FUNES_HOME": str(home / ".funes")}
        self.server = Server(self.sent.append, home=home / ".funes", env=env, **options)

    def say(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            self.server.take(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def answer(self, number: Any, seconds: float = 10.0) -> Any:
        def look() -> Any:
            return next((one for one in self.sent if one.get("id") == number), None)

        return until(look, seconds=seconds, what=f"answer {number}")

    def initialize(self, version: str = "2025-06-18", **capabilities: Any) -> Any:
        params = {"protocolVersion": version, "capabilities": capabilities}
        self.say({"id": "hello", "method": "initialize", "params": params})
        return self.answer("hello")["result"]

    def call(self, number: Any, tool: str, **arguments: Any) -> None:
        params = {"name": tool, "arguments": arguments}
        self.say({"id": number, "method": "tools/call", "params": params})

    def text(self, number: Any) -> str:
        return str(self.answer(number)["result"]["content"][0]["text"])


@pytest.fixture
def client(own_home: Path) -> Client:
    return Client(own_home)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_known_revision_is_spoken(client: Client, version: str) -> None:
    assert client.initialize(version)["protocolVersion"] == version


@pytest.mark.parametrize("version", ["2031-01-01", "1", "", None, 7, []])
def test_for_any_other_the_newest_known_one_is_offered(client: Client, version: Any) -> None:
    assert client.initialize(version)["protocolVersion"] == "2025-11-25"


def test_hello_says_what_is_there_and_when_to_use_it(client: Client) -> None:
    result = client.initialize()
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    assert result["serverInfo"]["name"] == "funes"
    assert "recall" in result["instructions"]
    assert len(result["instructions"]) < 1000


def test_tools_say_that_they_only_read_and_that_two_are_always_there(client: Client) -> None:
    client.say({"id": 1, "method": "tools/list"})
    tools = {tool["name"]: tool for tool in client.answer(1)["result"]["tools"]}
    assert list(tools) == ["recall", "get", "status", "related", "blame"]
    for tool in tools.values():
        hints = tool["annotations"]
        assert hints["readOnlyHint"] and hints["idempotentHint"]
        assert not hints["openWorldHint"] and not hints["destructiveHint"]
        assert set(tool["inputSchema"]["required"]) <= set(tool["inputSchema"]["properties"])
    always = [n for n, tool in tools.items() if tool.get("_meta") == {"anthropic/alwaysLoad": True}]
    assert always == ["recall", "get"]


@pytest.mark.parametrize(
    "method", ["server/discover", "resources/list", "prompts/list", "completion/complete", ""]
)
def test_other_methods_are_refused_also_before_hello(client: Client, method: str) -> None:
    client.say({"id": 1, "method": method})
    assert client.answer(1)["error"]["code"] == -32601
    client.initialize()
    client.say({"id": 2, "method": method})
    assert client.answer(2)["error"]["code"] == -32601


def test_ping_and_log_levels_are_answered(client: Client) -> None:
    client.say({"id": "a", "method": "ping"})
    client.say({"id": 0, "method": "logging/setLevel", "params": {"level": "debug"}})
    assert [one["result"] for one in client.sent] == [{}, {}]
    assert [one["id"] for one in client.sent] == ["a", 0]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc":"2.0","id":' + b"1" * 5000 + b',"method":"ping"}', -32700),
        (b"1", -32600),
        (b'"text"', -32600),
        (b"{}", -32600),
        (b'{"id":1,"method":7}', -32600),
        (b'{"id":null,"method":"ping"}', -32600),
        (b'{"id":true,"method":"ping"}', -32600),
        (b'{"id":{},"method":"ping"}', -32600),
        (b'{"id":1,"method":"ping","params":[1]}', -32602),
        (b'{"id":1,"method":"tools/call"}', -32602),
        (b'{"id":1,"method":"tools/call","params":{"name":"forget"}}', -32602),
        (b'{"id":1,"method":"tools/call","params":{"name":["recall"]}}', -32602),
    ],
)
def test_what_is_no_request_is_told_so(client: Client, line: bytes, code: int) -> None:
    client.server.take(line)
    [answer] = client.sent
    assert answer["error"]["code"] == code
    client.say({"id": 2, "method": "ping"})
    assert client.sent[-1] == {"jsonrpc": "2.0", "id": 2, "result": {}}


def test_notifications_and_unasked_answers_get_none(client: Client) -> None:
    client.initialize()
    client.sent.clear()
    client.say(
        {"method": "notifications/initialized"},
        {"method": "notifications/whatever", "params": {"x": 1}},
        {"method": "notifications/cancelled", "params": {"requestId": 99}},
        {"method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"method": "notifications/cancelled"},
        {"method": "tools/call", "params": {"name": "recall"}},
        {"id": "funes-roots-1", "result": {"roots": []}},
        {"id": 5, "error": {"code": 1, "message": "x"}},
    )
    assert client.sent == []


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
def test_older_revisions_have_batches(own_home: Path, version: str) -> None:
    client = Client(own_home)
    client.initialize(version)
    client.sent.clear()
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "nothing"},
        {"jsonrpc": "2.0", "id": 3, "method": "initialize"},
        5,
        {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "status"}},
    ]
    client.server.take(json.dumps(batch).encode())
    until(lambda: client.sent, what="the batch is answered")
    [answers] = client.sent
    told = {one["id"]: one.get("error", {}).get("code", "result") for one in answers}
    assert told == {1: "result", 2: -32601, 3: -32600, None: -32600, 4: "result"}


def test_a_batch_of_notifications_is_not_answered_and_an_empty_one_is_none(client: Client) -> None:
    client.initialize("2025-03-26")
    client.sent.clear()
    client.server.take(b'[{"method":"notifications/initialized"},{"id":1,"result":{}}]')
    assert client.sent == []
    client.server.take(b"[]")
    assert client.sent[0]["error"]["code"] == -32600


def test_newer_revisions_have_no_batches(client: Client) -> None:
    client.initialize("2025-06-18")
    client.server.take(b'[{"id":1,"method":"ping"}]')
    assert client.sent[-1]["error"]["code"] == -32600


def test_a_slow_call_holds_up_nothing_else(own_home: Path) -> None:
    late = threading.Event()

    def answer(method: str, params: dict[str, Any]) -> Any:
        if method == "funes/recall":
            late.wait(20)
        return STATUS if method == "funes/status" else {**NOTHING, "note": "late"}

    client = Client(own_home)
    with FakeEngine(own_home / ".funes", answer):
        client.call(1, "recall", query="slow")
        client.call(2, "status")
        client.say({"id": 3, "method": "ping"})
        assert client.answer(3)["result"] == {}
        assert "codex 2" in client.text(2)
        assert not [one for one in client.sent if one["id"] == 1]
        late.set()
        assert "note: late" in client.text(1)


NOTHING: dict[str, Any] = {"memory": "local", "note": "", "hits": [], "asked": None, "weak": False}


def hit(number: int) -> dict[str, Any]:
    """Return a passage that the engine has found."""
    told = {"ts": "2026-03-01T10:00:00Z", "harness": "codex", "cwd": "/w", "workdir": "/w"}
    ids = {"session_id": f"session-{number}", "turn_uuid": f"turn-{number}"}
    more = {"block_type": "text", "score": 0.5, "also_in": [], "neighbors": [], "memory": ""}
    return {**told, **ids, **more, "revisited": None, "text": f"passage {number}"}


def test_a_withdrawn_call_is_withdrawn_from_the_engine_and_not_answered(client: Client) -> None:
    home = client.server._home
    with FakeEngine(home, lambda method, params: None) as engine:
        client.call(1, "recall", query="slow")
        until(lambda: engine.asked, what="the engine is asked")
        client.say({"method": "notifications/cancelled", "params": {"requestId": 1}})
        until(lambda: engine.withdrawn, what="the engine hears of it")
        until(lambda: not client.server._calls, what="the call is over")
    assert client.sent == []


def test_a_withdrawn_call_of_a_batch_is_left_out_of_its_answer(client: Client) -> None:
    client.initialize("2025-03-26")
    client.sent.clear()
    call = {"name": "recall", "arguments": {"query": "slow"}}
    batch = [{"id": 1, "method": "tools/call", "params": call}, {"id": 2, "method": "ping"}]
    with FakeEngine(client.server._home, lambda method, params: None) as engine:
        client.server.take(json.dumps(batch).encode())
        until(lambda: engine.asked, what="the engine is asked")
        assert client.sent == []
        client.say({"method": "notifications/cancelled", "params": {"requestId": 1}})
        until(lambda: client.sent, what="the batch is answered")
    assert client.sent == [[{"jsonrpc": "2.0", "id": 2, "result": {}}]]


def test_a_call_ends_when_its_time_is_up(own_home: Path) -> None:
    client = Client(own_home, limit_s=0.5)
    with FakeEngine(own_home / ".funes", lambda method, params: None):
        began = time.monotonic()
        client.call(1, "status")
        result = client.answer(1)["result"]
        assert time.monotonic() - began < 5
    assert result["isError"]
    assert "in time" in result["content"][0]["text"]


@pytest.mark.parametrize("kind", ["engine_stopping", "locked", "fetching"])
def test_what_passes_is_asked_again(client: Client, kind: str) -> None:
    told = iter([Refusal(kind), Refusal(kind), STATUS])
    with FakeEngine(client.server._home, once(told)) as engine:
        client.call(1, "status")
        assert "codex 2" in client.text(1)
        assert len(engine.asked) == 3


def test_a_memory_that_is_long_in_coming_is_waited_for_and_then_told(own_home: Path) -> None:
    client = Client(own_home, limit_s=3.0)
    said = "acme/kb is being fetched (3 of 90 MB)."

    def fetching(method: str, params: dict[str, Any]) -> Any:
        raise Refusal("fetching", said, "Ask again in a moment.")

    with FakeEngine(own_home / ".funes", fetching) as engine:
        began = time.monotonic()
        client.call(1, "recall", query="slow", memory="acme/kb")
        result = client.answer(1)["result"]
        assert 0.5 < time.monotonic() - began < 5
        assert len(engine.asked) > 2
    assert result["isError"]
    assert said in result["content"][0]["text"] and "Ask again" in result["content"][0]["text"]


def test_an_engine_that_dies_over_a_call_is_asked_once_more(client: Client) -> None:
    with FakeEngine(client.server._home, once(iter([Death(), STATUS]))):
        client.call(1, "status")
        assert "codex 2" in client.text(1)


def test_an_engine_that_dies_twice_is_told_of(client: Client) -> None:
    with FakeEngine(client.server._home, once(iter([Death(), Death(), STATUS]))) as engine:
        client.call(1, "status")
        result = client.answer(1)["result"]
        assert result["isError"]
        assert "The engine" in result["content"][0]["text"]
        assert len(engine.asked) == 2


def once(told: Any) -> Callable[[str, dict[str, Any]], Any]:
    """Answer with one thing after another."""

    def answer(method: str, params: dict[str, Any]) -> Any:
        one = next(told)
        if isinstance(one, Exception):
            raise one
        return one

    return answer


def test_a_refusal_is_a_text_with_its_hint_on_one_line(client: Client) -> None:
    refusal = Refusal("usage", "No such\n harness\x1b[31m.", "Use codex.")
    with FakeEngine(client.server._home, once(iter([refusal]))):
        client.call(1, "recall", query="x", harness="emacs")
        result = client.answer(1)["result"]
    assert result["isError"]
    assert result["content"] == [{"type": "text", "text": "No such harness[31m. Use codex."}]


def test_an_answer_that_is_none_is_a_fault_of_ours_and_the_next_call_works(client: Client) -> None:
    with FakeEngine(client.server._home, once(iter([{"no": "status"}, STATUS]))):
        client.call(1, "status")
        assert client.answer(1)["result"]["isError"]
        assert "Internal error" in client.text(1)
        client.call(2, "status")
        assert "codex 2" in client.text(2)


def test_without_a_memory_no_engine_is_started(client: Client, own_home: Path) -> None:
    client.initialize()
    for number, (tool, given) in enumerate([("recall", {"query": "x"}), ("status", {})]):
        client.call(number, tool, **given)
        result = client.answer(number)["result"]
        assert result["isError"]
        assert "funes index" in result["content"][0]["text"]
    assert not (own_home / ".funes").exists()


def test_ids_that_are_under_way_are_not_taken_twice(client: Client) -> None:
    with FakeEngine(client.server._home, lambda method, params: None) as engine:
        client.call(1, "status")
        until(lambda: engine.asked, what="the engine is asked")
        client.call(1, "status")
        assert client.answer(1)["error"]["code"] == -32600
        client.server.finish(0)


def test_too_many_calls_at_once_are_refused_and_not_lost(client: Client) -> None:
    with FakeEngine(client.server._home, lambda method, params: None):
        for number in range(70):
            client.call(number, "status")
        refused = [one for one in client.sent if one["result"]["isError"]]
        assert [one["id"] for one in refused] == list(range(64, 70))
        client.server.finish(0)
        until(lambda: not client.server._calls, what="all calls are over")


def test_halves_of_characters_do_not_break_the_answer(client: Client) -> None:
    answer = {**NOTHING, "note": "half \ud800 of one"}
    with FakeEngine(client.server._home, lambda method, params: answer) as engine:
        client.call(1, "recall", query="half \udcff of one")
        text = client.text(1)
        text.encode()
        assert engine.asked[0][1]["query"] == "half \ufffd of one"


def test_a_client_with_roots_is_asked_for_them(own_home: Path) -> None:
    project = own_home / "a b"
    project.mkdir()
    (project / "x.py").touch()
    roots = Roots(own_home)
    client = Client(own_home, roots=roots)
    client.initialize(roots={"listChanged": True})
    client.say({"method": "notifications/initialized"})
    asked = client.sent[-1]
    assert asked["method"] == "roots/list"
    told = {"roots": [{"uri": project.as_uri()}, {"uri": "https://x/y"}, {}, 5]}
    client.say({"id": asked["id"], "result": told})
    assert roots.file("x.py") == project / "x.py"
    client.say({"method": "notifications/roots/list_changed"})
    again = client.sent[-1]
    assert again["id"] != asked["id"]
    client.say({"id": again["id"], "result": {"roots": []}})
    assert roots.file("x.py") is None


def test_a_client_that_never_names_its_roots_costs_a_second_once(own_home: Path) -> None:
    roots = Roots(own_home)
    roots.expect()
    assert roots.file("nothing.py") is None
    began = time.monotonic()
    assert roots.file("nothing.py") is None
    assert time.monotonic() - began < 0.5


def test_settings_of_the_server_go_with_the_question(own_home: Path) -> None:
    home = own_home / ".funes"
    with FakeEngine(home, lambda method, params: NOTHING) as engine:
        client = Client(own_home, memory="/team")
        client.server._env = {**client.server._env, "FUNES_K": "3", "FUNES_HALF_LIFE": "7"}
        client.call(1, "recall", query="x")
        client.answer(1)
        client.call(2, "recall", query="x", k=5, memory="/other", harness="codex")
        client.answer(2)
    first, second = (params for _, params in engine.asked)
    # One more than is shown is asked for: it tells whether there are more.
    assert (first["memory"], first["k"], first["halfLife"]) == ("/team", 3 + 1, 7.0)
    assert (second["memory"], second["k"], second["harness"]) == ("/other", 5 + 1, "codex")


@pytest.mark.parametrize(("there", "offset"), [(3, 0), (5, 2), (4, 0), (6, 2)])
def test_more_is_told_only_where_there_is_more(client: Client, there: int, offset: int) -> None:
    """Each call is for three passages."""

    def answer(_method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {**NOTHING, "hits": [hit(number) for number in range(min(there, params["k"]))]}

    with FakeEngine(client.server._home, answer):
        client.call(1, "recall", query="x", k=3, offset=offset)
        text = client.text(1)
    assert text.count("passage ") == 3
    assert ("more: " in text) == (there > offset + 3)
    assert f"offset={offset + 3}" in text or there == offset + 3


def test_a_weak_match_is_told_once_and_before_the_passages(client: Client) -> None:
    found = {**NOTHING, "hits": [hit(1), hit(2)], "weak": True}
    with FakeEngine(client.server._home, lambda method, params: found):
        client.call(1, "recall", query="anything")
        until(lambda: client.sent, what="the call is answered")
    text = client.text(1)
    assert text.casefold().count("weak match") == 1
    assert text.index("Weak match") < text.index("passage 1") < text.index("passage 2")


@pytest.mark.parametrize("named", ["local, acme/kb", ["local", "acme/kb"], "local,acme/kb,"])
def test_several_memories_are_recalled_from_at_once(client: Client, named: Any) -> None:
    answer = {**NOTHING, "memory": "local, acme/kb", "hits": [hit(1)]}
    with FakeEngine(client.server._home, lambda method, params: answer) as engine:
        client.call(1, "recall", query="x", memory=named)
        assert "from the memories local, acme/kb, best first" in client.text(1)
        client.call(2, "status", memory=named)
        assert client.answer(2)["result"]["isError"]
        assert "one memory at a time" in client.text(2)
    [(_, asked)] = engine.asked
    assert asked["memories"] == ["local", "acme/kb"]
    assert "memory" not in asked


def test_a_path_with_a_comma_is_one_memory(client: Client, own_home: Path) -> None:
    folder = own_home / "a, b"
    folder.mkdir()
    with FakeEngine(client.server._home, lambda method, params: NOTHING) as engine:
        client.call(1, "recall", query="x", memory=str(folder))
        client.text(1)
    assert engine.asked[0][1]["memory"] == str(folder)
