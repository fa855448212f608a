"""Single settings, what clients offer, and folders."""

from typing import Any

import msgspec
import pytest

from funes_ls.handlers.client import client_of
from funes_ls.handlers.configuration import checked
from funes_ls.handlers.workspaces import innermost
from funes_ls.indexer.errors import UsageError
from funes_ls.uris import path_of


@pytest.mark.parametrize(
    ("key", "value"),
    [("recall.k", 3), ("recall.halfLife", 0), ("memory", "/m"), ("index.thinking", False)],
)
def test_settings_of_editors(key: str, value: object) -> None:
    assert checked(key, value) == value


@pytest.mark.parametrize(
    ("key", "value"),
    [("recall.k", 0), ("recall.k", "3"), ("recall.nope", 1), ("model", "x"), ("log.level", "loud")],
)
def test_wrong_settings(key: str, value: object) -> None:
    with pytest.raises((UsageError, msgspec.ValidationError)):
        checked(key, value)


@pytest.mark.parametrize(
    "initialize",
    [
        {},
        {"capabilities": None},
        {"capabilities": {"workspace": 1, "window": [], "textDocument": {"hover": "x"}}},
        {"capabilities": {"workspace": {"configuration": "yes"}}},
    ],
)
def test_odd_capabilities_offer_nothing(initialize: dict[str, Any]) -> None:
    client = client_of(initialize)
    assert not any(getattr(client, name) for name in client.__struct_fields__)


@pytest.mark.parametrize(
    "initialize",
    [
        {"capabilities": {"experimental": {"funes": {"virtualDocuments": True}}}},
        {"capabilities": {"workspace": {"textDocumentContent": {}}}},
        {"initializationOptions": {"virtualDocuments": True}},
        {"initializationOptions": {"funes": {"virtualDocuments": True}}},
    ],
)
def test_ways_to_ask_for_virtual_documents(initialize: dict[str, Any]) -> None:
    assert client_of(initialize).virtual_documents


@pytest.mark.parametrize(
    ("uri", "folder"),
    [
        ("file:///a/b/c.py", "file:///a/b"),
        ("file:///a/bc.py", "file:///a"),
        ("file:///a%20x/y", "file:///a x/"),
        ("file:///elsewhere/y", ""),
        ("untitled:a/b", ""),
        ("file:///C%3A/work/x.py", "file:///c:/work"),
    ],
)
def test_the_innermost_folder(uri: str, folder: str) -> None:
    folders = ["", "file:///a", "file:///a/b", "file:///a x/", "file:///c:/work"]
    assert innermost(uri, folders) == folder


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a%20b/c", "/a b/c"),
        ("file:///c%3A/x", "c:/x"),
        ("untitled:x", ""),
        ("funes:/turn/a/b.md", ""),
        ("", ""),
    ],
)
def test_paths_of_uris(uri: str, path: str) -> None:
    assert path_of(uri) == path
