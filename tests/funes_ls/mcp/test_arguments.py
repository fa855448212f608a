"""What a model gives a tool, and the slips that are put right."""

import json
from typing import Any

import pytest

from funes_ls.indexer.errors import UsageError
from funes_ls.mcp.arguments import given_of
from funes_ls.mcp.tools import TOOLS, listed

RECALL = TOOLS["recall"].params
GET = TOOLS["get"].params
BLAME = TOOLS["blame"].params


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        ({"query": "x", "k": 5}, {"query": "x", "k": 5}),
        ({"query": "x", "k": "5"}, {"query": "x", "k": 5}),
        ({"query": "x", "k": " +5 "}, {"query": "x", "k": 5}),
        ({"query": "x", "k": 5.0}, {"query": "x", "k": 5}),
        ({"query": "x", "k": "5.0"}, {"query": "x", "k": 5}),
        ({"query": "x", "k": 0}, {"query": "x", "k": 1}),
        ({"query": "x", "k": 10**30}, {"query": "x", "k": 50}),
        ({"query": "x", "k": "9" * 9999}, {"query": "x", "k": 50}),
        ({"query": "x", "k": "-" + "9" * 9999}, {"query": "x", "k": 1}),
        ({"query": "x", "k": None, "since": "", "path": "  ", "project": []}, {"query": "x"}),
        ({"query": 404}, {"query": "404"}),
        ({"query": ["two", "words"]}, {"query": "two words"}),
        ({"query": " kept as it is "}, {"query": " kept as it is "}),
        ({"query": "x", "block_type": " Text "}, {"query": "x", "block_type": "text"}),
        ({"query": "x", "blockType": "text"}, {"query": "x", "block_type": "text"}),
        ({"query": "x", "type": "text", "limit": 2}, {"query": "x", "block_type": "text", "k": 2}),
        ('{"query": "encoded twice"}', {"query": "encoded twice"}),
    ],
)
def test_recall_takes(raw: Any, values: dict[str, Any]) -> None:
    given = given_of(RECALL, raw)
    assert given.values == values
    assert given.unknown == ()


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (None, "`query`"),
        ({}, "`query`"),
        ("", "`query`"),
        ({"query": ""}, "`query`"),
        ({"query": "   "}, "`query`"),
        ({"query": None}, "`query`"),
        ({"query": {"text": "x"}}, "a text"),
        ({"query": [1, 2]}, "a text"),
        ({"query": "x", "k": "many"}, "a whole number"),
        ({"query": "x", "k": 2.5}, "a whole number"),
        ({"query": "x", "k": True}, "a whole number"),
        ({"query": "x", "k": float("inf")}, "a whole number"),
        ({"query": "x", "block_type": "prose"}, "text, thinking, tool_use, tool_result"),
        ([1], "JSON object"),
        ("{", "JSON object"),
        ("[" * 99_999, "JSON object"),
        (5, "JSON object"),
    ],
)
def test_recall_refuses_and_says_what_it_takes(raw: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        given_of(RECALL, raw)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300


def test_all_that_is_missing_is_named_at_once() -> None:
    with pytest.raises(UsageError, match="`session_id` and `turn_uuid`"):
        given_of(GET, {})


def test_other_spellings() -> None:
    given = given_of(GET, {"sessionId": "s", "turn": "t", "window": "0"})
    assert given.values == {"session_id": "s", "turn_uuid": "t", "window": 0}
    assert given_of(BLAME, {"file_path": "a.py", "endLine": 3}).values == {
        "file": "a.py",
        "end_line": 3,
    }


def test_the_right_name_wins_over_another_spelling() -> None:
    assert given_of(RECALL, {"query": "x", "k": 3, "limit": 9}).values["k"] == 3


def test_what_a_tool_has_not_is_named() -> None:
    given = given_of(RECALL, {"query": "x", "rerank": True, "session": "s"})
    assert given.unknown == ("rerank", "session")


def test_schemas_are_plain_enough_for_every_client() -> None:
    for tool in listed():
        schema = tool["inputSchema"]
        assert set(schema) == {"type", "properties", "required"}
        for about in schema["properties"].values():
            assert set(about) <= {"type", "description", "minimum", "maximum", "enum"}
            assert about["type"] in ("string", "integer")
            assert about["description"]
    assert len(json.dumps(listed())) < 8_000
