"""JSON that people wrote keeps its looks: what is put in comes out without a trace."""

import json

import pytest

from funes_ls.install import jsonc

SERVER = {"command": "/opt/a b/funes", "args": ["mcp"]}
TEXTS = [
    '{"mcpServers": {"other": {"command": "x"}}}',
    '{\n  "mcpServers": {\n    "other": {"command": "x"}\n  },\n  "more": [1, 2]\n}\n',
    '{\r\n\t"mcpServers": {\r\n\t\t"other": {}\r\n\t}\r\n}\r\n',
    '{\n    // mine\n    "mcpServers": {\n        "other": {}, // keep\n    },\n}\n',
    '{\n  "mcpServers": {\n    "other": 1 /* a } in it */\n    // the last word\n  }\n}',
    '\ufeff{\n  "mcpServers": {"ö": "ü\\" }{"}\n}\n',
    '{"mcpServers": {"a": 1,}}',
    '{ "mcpServers": { "a": 1, "b": 2 } }',
    '{\n  "mcpServers": {"a": 1, // one\n                 "b": 2}\n}\n',
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_member_comes_and_goes_without_a_trace(text: str) -> None:
    added = jsonc.with_member(text, ("mcpServers", "funes"), SERVER)
    before, after = jsonc.parse(text).value, jsonc.parse(added).value
    assert after.pop("mcpServers") == {**before.pop("mcpServers"), "funes": SERVER}
    assert after == before
    assert jsonc.without_member(added, ("mcpServers", "funes")) == text


@pytest.mark.parametrize(
    "text", ['{"a": [1, {"b": 2}]}', '{\n  "a": [\n    1,\n    2 // two\n  ]\n}', '{"a": [1,]}']
)
def test_an_item_comes_and_goes_without_a_trace(text: str) -> None:
    added = jsonc.with_item(text, ("a",), {"ours": True})
    assert jsonc.parse(added).value["a"] == [*jsonc.parse(text).value["a"], {"ours": True}]
    assert jsonc.without_items(added, ("a",), lambda one: one == {"ours": True}) == text


@pytest.mark.parametrize("text", ["", "  \n", "{}", "{}\n", "{\n}\n", "\ufeff{}"])
def test_what_is_empty_is_filled(text: str) -> None:
    added = jsonc.with_member(text, ("mcpServers", "funes"), SERVER)
    assert jsonc.parse(added).value == {"mcpServers": {"funes": SERVER}}
    left = jsonc.without_member(added, ("mcpServers", "funes"), prune=1)
    assert jsonc.parse(left).value == {}


def test_what_is_written_on_one_line_stays_on_it() -> None:
    added = jsonc.with_member('{"n": 1, "mcpServers": {}}', ("mcpServers", "funes"), SERVER)
    assert "\n" not in added
    assert jsonc.parse(added).value["mcpServers"] == {"funes": SERVER}


def test_a_member_that_is_there_is_replaced_in_its_place() -> None:
    text = '{"a": {"funes": {"command": "old"}, "z": 1}} // end'
    new = jsonc.with_member(text, ("a", "funes"), {"command": "new"})
    assert jsonc.parse(new).value == {"a": {"funes": {"command": "new"}, "z": 1}}
    assert list(jsonc.parse(new).value["a"]) == ["funes", "z"]
    assert new.endswith("// end")
    assert jsonc.with_member(new, ("a", "funes"), {"command": "new"}) == new


@pytest.mark.parametrize(("kept", "gone"), [("b", "a"), ("a", "b")])
def test_a_member_in_the_middle_takes_its_comma_along(kept: str, gone: str) -> None:
    text = '{\n  "x": {\n    "a": 1, // of a\n    "b": 2\n  }\n}\n'
    left = jsonc.without_member(text, ("x", gone))
    assert list(jsonc.parse(left).value["x"]) == [kept]
    strict = "\n".join(line.split(" //")[0] for line in left.splitlines())
    assert json.loads(strict) == {"x": {kept: 1 if kept == "a" else 2}}


def test_only_what_was_made_for_it_is_pruned() -> None:
    text = '{"a": {"b": {"c": 1}}}'
    assert jsonc.without_member(text, ("a", "b", "c")) == '{"a": {"b": {}}}'
    assert jsonc.without_member(text, ("a", "b", "c"), prune=1) == '{"a": {}}'
    assert jsonc.without_member(text, ("a", "b", "c"), prune=2) == "{}"
    kept = '{"a": {"b": {"c": 1}, "d": 2}}'
    assert jsonc.parse(jsonc.without_member(kept, ("a", "b", "c"), prune=2)).value == {
        "a": {"d": 2}
    }


def test_what_is_not_there_changes_nothing() -> None:
    text = '{"a": {"b": 1}}'
    for path in (("a", "x"), ("x", "y"), ("a", "b", "c"), ("x",)):
        assert jsonc.without_member(text, path, prune=2) == text


@pytest.mark.parametrize(
    "text",
    [
        *('{"a": 1', '{"a" 1}', "{'a': 1}", '{"a": 1} x', '{"a": 1 "b": 2}', "[1, 2", "{a: 1}"),
        *('{"a": 1, "a": 2}', '{"a": /* no end', "[" * 5000, '{"a": "\n"}', ",", '{,"a":1}'),
    ],
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(jsonc.Malformed):
        jsonc.parse(text)


def test_what_is_in_the_way_is_refused() -> None:
    with pytest.raises(jsonc.Malformed):
        jsonc.with_member('{"a": [1]}', ("a", "b"), 1)
    with pytest.raises(jsonc.Malformed):
        jsonc.with_item('{"a": {}}', ("a",), 1)
