"""The examples of `docs/protocol.md`, read out of it and sent."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from funes_ls.handlers.addresses import Address, uri_of
from tests.e2e.known import loader
from tests.e2e.lsp_client import LspClient

DOC = Path(__file__).resolve().parents[2] / "docs" / "protocol.md"
_BLOCK = re.compile(r"^### .*?`([^`]+)`|^```json ([a-z ]+)\n(.*?)^```$", re.M | re.S)
FILE = "/home/dev/src/tidewater/src/tidewater/poller.py"


class Example(Struct, frozen=True, kw_only=True):
    """A request of a method and what comes back: an `answer` or an `error`."""

    method: str
    is_of_engine: bool
    request: Any
    kind: str
    expected: Any


def examples(text: str) -> Iterator[Example]:
    """Yield the examples of a document, in order."""
    method, asked, of_engine = "", None, False
    for found in _BLOCK.finditer(text):
        heading, kind, body = found.groups()
        if heading:
            method = heading
        elif kind.endswith("request"):
            asked, of_engine = json.loads(body), kind.startswith("engine")
        elif kind in ("answer", "error"):
            yield Example(
                method=method,
                is_of_engine=of_engine,
                request=asked,
                kind=kind,
                expected=None if body.strip() == "@@" else json.loads(body),
            )


def notifications(text: str) -> Iterator[Any]:
    """Yield the notifications that a document shows."""
    for found in _BLOCK.finditer(text):
        if found[2] == "notification":
            yield json.loads(found[3])


def filled(value: Any, server: LspClient) -> Any:
    """Return a request with what only a running server knows in place of its `<names>`."""
    if isinstance(value, dict):
        return {key: filled(one, server) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, server) for one in value]
    if value == "<generation>":
        return server.request("funes/related", {"path": FILE})["generation"]
    if value == "<memory path>":
        return server.request("funes/status", {})["path"]
    if value == "<file document>":
        return uri_of(Address(kind="file", path=FILE))
    if value == "<open document>":
        known = loader()
        server.open(known.uri, known.text)
        return known.uri
    return value


def differences(expected: Any, got: Any, where: str = "$") -> list[str]:
    """Return where an answer is not of the shape of an example."""
    if isinstance(expected, dict) and isinstance(got, dict):
        if _is_table_of_names(expected, where):
            return []
        missing = [f"{where}.{key} is in one only" for key in expected.keys() ^ got.keys()]
        both = expected.keys() & got.keys()
        inner = [differences(expected[key], got[key], f"{where}.{key}") for key in sorted(both)]
        return missing + [one for found in inner for one in found]
    if isinstance(expected, list) and isinstance(got, list):
        if bool(expected) != bool(got):
            return [f"{where} has {len(got)} elements"]
        return differences(expected[0], got[0], f"{where}[0]") if expected else []
    if _kind(expected) != _kind(got) and None not in (expected, got):
        return [f"{where} is {type(got).__name__}"]
    return []


def _is_table_of_names(table: dict[str, Any], where: str) -> bool:
    """Return whether the keys are data: stages, harnesses, paths."""
    return where.rpartition(".")[2] in ("timings_ms", "harnesses", "troubled", "redacted")


def _kind(value: Any) -> str:
    return "number" if isinstance(value, int | float) else type(value).__name__


def shortened(value: Any) -> Any:
    """Return an answer as the document shows it: one element of each list, no long texts."""
    if isinstance(value, dict):
        return {key: shortened(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shortened(one) for one in value[:1]]
    if isinstance(value, str) and len(value) > 100:
        return value[:99].rstrip() + "…"
    return value
