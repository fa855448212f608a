"""What counts as a message, and what is sent in its place."""

import json
from typing import Any

import pytest

from funes_ls import protocol
from funes_ls.engine import messages
from funes_ls.engine.framing import Incoming
from funes_ls.indexer.errors import BackendError, FunesError, UsageError


def body_of(data: bytes) -> Any:
    incoming = Incoming()
    incoming.add(data)
    body = incoming.take()
    assert body is not None
    return json.loads(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": "\xff"}',
        b"\xff\xfe{\x00}\x00",
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"a": 1} {"b": 2}',
        b'{"a": "line\nbreak"}',
    ],
)
def test_what_is_no_json_is_refused_as_that(body: bytes) -> None:
    with pytest.raises(messages.BadMessage) as caught:
        messages.decode(body)
    assert caught.value.code == protocol.PARSE_ERROR


@pytest.mark.parametrize("body", [b"[]", b"1", b"null", b'"text"', b'[{"id": 1}]'])
def test_what_is_no_object_is_no_message(body: bytes) -> None:
    with pytest.raises(messages.BadMessage) as caught:
        messages.decode(body)
    assert caught.value.code == protocol.INVALID_REQUEST


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("\\ud800", "\ufffd"),
        ("a\\udc00b", "a\ufffdb"),
        ("\\ud83d\\ude00 and \\ud800", "\U0001f600 and \ufffd"),
        ("\\u0000", "\0"),
    ],
)
def test_halves_of_characters_are_replaced(text: str, meant: str) -> None:
    body = f'{{"params": {{"query": "{text}", "list": ["{text}"]}}}}'.encode()
    assert messages.decode(body) == {"params": {"query": meant, "list": [meant]}}


def test_what_holds_half_a_character_is_still_sent() -> None:
    sent = body_of(messages.response(1, messages.encoded({"path": "a\udcffb"})))
    assert sent == {"jsonrpc": "2.0", "id": 1, "result": {"path": "a\ufffdb"}}
    error = body_of(messages.error(1, -1, "no \udcff", kind="k"))
    assert error["error"]["message"] == "no \ufffd"


@pytest.mark.parametrize(
    ("exc", "code"),
    [
        (UsageError("x"), protocol.INVALID_PARAMS),
        (BackendError("x"), protocol.REQUEST_FAILED),
        (FunesError("x", kind="cancelled"), protocol.REQUEST_CANCELLED),
    ],
)
def test_each_error_has_its_code(exc: FunesError, code: int) -> None:
    assert messages.code_of(exc) == code
