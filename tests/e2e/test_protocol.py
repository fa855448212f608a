"""`docs/protocol.md` is what the server does, and the schema is what the code has."""

import json
from typing import Any

import msgspec
import pytest

from funes_ls import protocol
from scripts import protocol_schema
from tests.e2e.engines import Engines, until
from tests.e2e.lsp_client import LspError, Server, Servers
from tests.e2e.protocol_examples import DOC, Example, differences, examples, filled, notifications

pytestmark = pytest.mark.timeout(90)
TEXT = DOC.read_text(encoding="utf-8")
EXAMPLES = list(examples(TEXT))


def answered(example: Example, server: Server, served: Engines, servers: Servers) -> Any:
    request = filled(example.request, server)
    if example.method == "initialize":
        return servers.start().initialize(**request)
    if example.method == "engine/hello":
        return served.connect().hello
    if example.is_of_engine:
        return served.ask(example.method, **request)
    return server.request(example.method, request)


@pytest.mark.parametrize("example", EXAMPLES, ids=[f"{one.method}-{one.kind}" for one in EXAMPLES])
def test_an_example_is_answered_as_shown(
    example: Example, server: Server, served: Engines, servers: Servers
) -> None:
    if example.kind == "error":
        with pytest.raises(LspError) as caught:
            server.request(example.method, filled(example.request, server))
        assert differences(example.expected, caught.value.error) == []
        assert caught.value.code == example.expected["code"]
        return
    # What is answered at once or not at all may come late on a busy machine.
    is_empty = example.expected in (None, {})
    found = until(
        lambda: (
            [answered(example, server, served, servers)]
            if is_empty
            else [one for one in [answered(example, server, served, servers)] if one]
        )
    )[0]
    assert differences(example.expected, found) == []
    server.waiting("$/progress")


def test_every_method_has_an_example() -> None:
    shown = {example.method for example in EXAMPLES}
    wanted = {*protocol.METHODS, "funes/document"} - {"engine/stop"}
    assert wanted - shown == set()


def test_notifications_are_as_shown() -> None:
    shown = {one["method"]: one["params"] for one in notifications(TEXT)}
    for method, kind in protocol_schema.NOTIFICATIONS.items():
        found = msgspec.convert(shown[method], kind)
        assert json.loads(msgspec.json.encode(found)) == shown[method]


def test_the_schema_is_current() -> None:
    assert protocol_schema.PATH.read_text(encoding="utf-8") == protocol_schema.schema()


def test_the_schema_names_every_method_and_type_it_uses() -> None:
    schema = json.loads(protocol_schema.PATH.read_text(encoding="utf-8"))
    assert set(protocol.METHODS) < set(schema["methods"])
    refs = {
        ref.rpartition("/")[2]
        for ref in protocol_schema.PATH.read_text(encoding="utf-8").split('"')
        if ref.startswith("#/$defs/")
    }
    assert refs <= set(schema["$defs"])
