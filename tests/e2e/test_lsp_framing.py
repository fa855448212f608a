"""Framing, and one request's failure that is no other's."""

import json

import pytest

from tests.e2e.lsp_client import LspError, Server, Servers

pytestmark = pytest.mark.timeout(90)


@pytest.mark.parametrize(
    "stray",
    [
        "print('stray', flush=True)",
        "os.write(1, b'stray')",
        "sys.stdout.write('stray'); sys.stdout.flush()",
        "subprocess.run([sys.executable, '-c', 'print(\"stray\")'], check=True)",
    ],
)
def test_s11_what_writes_to_stdout_does_not_reach_the_client(servers: Servers, stray: str) -> None:
    server = servers.extended(
        f"""
    @ls.feature("test/stray")
    async def stray(params):
        {stray}
        return "fine"
"""
    )
    server.initialize()
    assert server.request("test/stray", {}) == "fine"
    assert server.request("funes/status", {})["state"] == "ready"
    assert server.shut() == 0
    assert "stray" in server.log


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"jsonrpc": "2.0", "id": 7, "method": ', -32700),
        (b"\xff\xfe nonsense", -32700),
        (b"[" * 5000, -32700),
        (b"[]", -32600),
        (b'"text"', -32600),
        (b'{"jsonrpc": "2.0", "id": [1], "method": "funes/status"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 7, "method": 9}', -32600),
    ],
)
def test_s12_a_bad_body_is_told_and_the_session_goes_on(
    server: Server, body: bytes, code: int
) -> None:
    server.send_bytes(framed(body))
    with pytest.raises(LspError) as caught:
        server.answer(None)
    assert caught.value.code == code
    assert server.request("funes/status", {})["state"] == "ready"


def test_s12_a_body_that_is_too_long_is_skipped(server: Server) -> None:
    size = (32 << 20) + 1
    server.send_bytes(b"Content-Length: %d\r\n\r\n" % size + b" " * size)
    with pytest.raises(LspError, match="33,554,433 bytes"):
        server.answer(None)
    assert server.request("funes/status", {})["state"] == "ready"


def test_s12_a_message_that_cannot_be_told_apart_ends_the_session(servers: Servers) -> None:
    server = servers.ready()
    server.send_bytes(b"Content-Length: many\r\n\r\n{}")
    with pytest.raises(LspError) as caught:
        server.answer(None)
    assert caught.value.code == -32700
    assert server.process.wait(10) == 1


@pytest.mark.parametrize(
    "header",
    [
        "content-length: {}\r\n\r\n",
        "CONTENT-LENGTH:{}\r\n\r\n",
        "Content-Length: {}\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        "Content-Type: application/vscode-jsonrpc; charset=utf8\r\ncontent-Length: {}\r\n\r\n",
        "X-Other: 1\r\nContent-Length:   {}  \r\n\r\n",
    ],
)
def test_s13_headers_in_any_case_and_with_a_content_type(server: Server, header: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 77, "method": "funes/status", "params": {}})
    server.send_bytes((header.format(len(body)) + body).encode())
    assert server.answer(77)["state"] == "ready"


def test_s13_a_message_in_single_bytes(server: Server) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 77, "method": "funes/status", "params": {}})
    for byte in framed(body.encode()):
        server.send_bytes(bytes([byte]))
    assert server.answer(77)["state"] == "ready"


@pytest.mark.parametrize("method", ["$/unheardOf", "funes/unheardOf", "textDocument/rename", ""])
def test_s14_an_unknown_request_is_refused(server: Server, method: str) -> None:
    with pytest.raises(LspError) as caught:
        server.request(method, {})
    assert (caught.value.code, caught.value.kind) == (-32601, "no_such_method")


def test_s14_an_unknown_notification_is_ignored(server: Server) -> None:
    server.notify("$/unheardOf", {"x": 1})
    server.notify("funes/unheardOf", {"x": 1})
    assert server.request("funes/status", {})["state"] == "ready"
    assert server.is_silent()


def test_s15_an_exception_nobody_foresaw(servers: Servers) -> None:
    server = servers.extended(
        """
    @ls.feature("test/bug")
    async def bug(params):
        raise ValueError("SECRET of /home/somebody")
    @ls.feature("test/unsendable")
    async def unsendable(params):
        return {"it": object()}
    @ls.feature("test/note")
    def note(params):
        raise ValueError("SECRET of /home/somebody")
"""
    )
    server.initialize()
    server.unheard.add("window/logMessage")
    server.notify("test/note", {})
    for method in ("test/bug", "test/unsendable"):
        with pytest.raises(LspError) as caught:
            server.request(method, {})
        assert (caught.value.code, caught.value.kind) == (-32603, "internal")
        said = json.dumps(caught.value.error)
        assert not any(word in said for word in ("SECRET", "/home", "Traceback", "ValueError"))
    assert server.request("funes/status", {})["state"] == "ready"
    assert server.shut() == 0
    assert "SECRET" not in server.log
    assert server.log.count("ValueError") == 2  # where it was is logged, what it said is not


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("funes/get", {}),
        ("funes/recall", {"query": 5}),
        ("funes/recall", {"query": "x", "nonsense": 1}),
        ("funes/recall", [1]),
        ("funes/recall", "text"),
        ("funes/get", {"sessionId": "x"}),
        ("funes/document", {}),
        ("funes/document", {"uri": "funes:/nothing"}),
        ("funes/document", {"uri": "file:///etc/passwd"}),
        ("funes/document", {"uri": "funes:/recall/x.md?####"}),
        ("textDocument/hover", {"textDocument": {"uri": 5}}),
        ("textDocument/hover", None),
        ("codeLens/resolve", {"range": {}}),
        ("workspace/executeCommand", {"command": "funes.unheardOf"}),
        ("workspace/executeCommand", {"command": "funes.showRelated", "arguments": [7]}),
    ],
)
def test_bad_params_are_refused_by_name(server: Server, method: str, params: object) -> None:
    with pytest.raises(LspError) as caught:
        server.request(method, params)
    assert (caught.value.code, caught.value.kind) == (-32602, "params")
    assert server.request("funes/status", {})["state"] == "ready"


@pytest.mark.parametrize(
    "query",
    ["poller\x00 station", "poller \ud83d station", "poller station " * 700_000, '"poller" AND ('],
)
def test_odd_questions_are_answered_or_refused(server: Server, query: str) -> None:
    try:
        answer = server.request("funes/recall", {"query": query})
    except LspError as exc:
        assert exc.code in (-32602, -32803), exc.error
    else:
        assert answer["hits"]
    assert server.request("funes/status", {})["state"] == "ready"


def test_an_engine_that_says_no_is_a_failed_request(server: Server) -> None:
    with pytest.raises(LspError) as caught:
        server.request("funes/recall", {"query": "poller", "memory": "/nowhere/at/all"})
    assert caught.value.code in (-32602, -32803)
    assert caught.value.error["data"]["hint"]


def test_a_later_clients_capabilities_do_not_keep_it_out(servers: Servers) -> None:
    server = servers.start()
    capabilities = {
        "textDocument": {"hover": {"contentFormat": ["markdown", "holograms"]}},
        "general": {"positionEncodings": ["utf-8"]},
        "workspace": {"symbol": {"symbolKind": {"valueSet": [1, 999]}}},
    }
    answer = server.initialize(capabilities)
    assert answer["capabilities"]["positionEncoding"] == "utf-8"
    assert server.request("funes/status", {})["state"] == "ready"
