"""TOML and YAML that people wrote: lines of ours come and go, and all else stays."""

import tomllib
from typing import Any

import pytest
import yaml as parser

from funes_ls.install import toml, yaml

TABLE = '[mcp_servers.funes]\ncommand = "/opt/a b/funes"\nargs = ["mcp"]\n'
TOMLS = [
    "",
    "# mine\nmodel = 'x' # keep\n",
    "[mcp_servers.other]\ncommand = 'x'\n",
    "model = 'x'\n\n[mcp_servers.other]\nargs = [\n  'a', # one\n  'b',\n]\n",
]


@pytest.mark.parametrize("text", TOMLS)
@pytest.mark.parametrize("more", ["", "\n[mcp_servers.funes.env]\nFUNES_HOME = '/x'\n"])
@pytest.mark.parametrize("after", ["", "\n# of the next\n[z]\nx = 1\n", "\n[z]\nx = '''\n[a]'''\n"])
def test_a_table_is_cut_out_whole(text: str, more: str, after: str) -> None:
    with_it = f"{text}{chr(10) if text else ''}{TABLE}{more}{after}"
    left = toml.without_table(with_it, "mcp_servers", "funes")
    assert tomllib.loads(left) == tomllib.loads(text + after)
    kept = [line for line in (text + after).splitlines() if line.strip()]
    assert [line for line in left.splitlines() if line.strip()] == kept
    if not after:
        assert left == text


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers = { funes = { command = 'x' } }\n",
        "[mcp_servers]\nfunes = { command = 'x' }\n",
        "mcp_servers.funes.command = 'x'\n",
        "[mcp_servers.funes\n",
    ],
)
def test_a_table_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(toml.Malformed):
        toml.without_table(text, "mcp_servers", "funes")


def test_a_table_that_is_not_there_changes_nothing() -> None:
    text = "[mcp_servers.other]\ncommand = 'funes' # [mcp_servers.funes]\n"
    assert toml.without_table(text, "mcp_servers", "funes") == text


SERVER = {"command": "/opt/a b/fünes", "args": ["mcp"], "env": {"FUNES_HOME": "/x"}}
HOOK = {"command": "'/opt/a b/hook' post", "timeout": 10}
YAMLS = [
    "",
    "# mine\nmodel:\n  default: x # keep\n",
    "model: x",
    "mcp_servers:\n  # of others\n  other:\n    command: 'x'\n"
    "hooks:\n  post:\n  - command: a\n# end\n",
    "mcp_servers: {}\nhooks: {}\nz: 1\n",
    "mcp_servers:\nhooks:\n",
    "hooks:\n    post:\n        - command: a\n          timeout: 1\n\n        - {command: b}\n\n"
    "z: |\n  hooks:\n    no\n",
    "a: &x {b: 1}\r\nc: *x\r\nhooks:\r\n  other:\r\n    - command: a\r\n",
]


def said(text: str) -> dict[str, Any]:
    return parser.safe_load(text) or {}


@pytest.mark.parametrize("text", YAMLS)
def test_lines_come_and_only_they_go(text: str) -> None:
    before = said(text)
    servers, hooks = before.get("mcp_servers"), before.get("hooks")
    posts = (hooks or {}).get("post")
    added = yaml.with_member(text, "mcp_servers", "funes", SERVER)
    added = yaml.with_item(added, "hooks", "post", HOOK)
    assert said(added) == {
        **before,
        "mcp_servers": {**(servers or {}), "funes": SERVER},
        "hooks": {**(hooks or {}), "post": [*(posts or []), HOOK]},
    }
    kept = [line for line in text.splitlines() if "{}" not in line]
    assert set(kept) <= set(added.splitlines())
    prune = 0 if posts else 1 if hooks is not None else 2
    left = yaml.without_items(added, "hooks", "post", lambda one: one == HOOK, prune=prune)
    left = yaml.without_member(left, "mcp_servers", "funes", prune="mcp_servers" not in before)
    expected = {key: value for key, value in before.items() if value is not None}
    assert {key: value for key, value in said(left).items() if value} == {
        key: value for key, value in expected.items() if value
    }
    if servers and posts and text.endswith("\n"):
        assert left == text


@pytest.mark.parametrize(
    "text",
    ["a: [", "- a\n", "mcp_servers: [1]\n", "mcp_servers: {other: {command: x}}\n", "a: b: c\n"],
)
def test_yaml_that_lines_cannot_change_is_refused(text: str) -> None:
    with pytest.raises(yaml.Malformed):
        yaml.with_member(text, "mcp_servers", "funes", SERVER)


@pytest.mark.parametrize(
    "text", ["hooks: {post: []}\n", "hooks: {post: [{command: a}]}\n", "hooks: [1]\n"]
)
def test_hooks_that_lines_cannot_change_are_refused(text: str) -> None:
    with pytest.raises(yaml.Malformed):
        yaml.with_item(text, "hooks", "post", HOOK)


def test_a_member_is_replaced() -> None:
    text = yaml.with_member("z: 1\n", "mcp_servers", "funes", SERVER)
    new = yaml.with_member(text, "mcp_servers", "funes", {"command": "y"})
    assert said(new) == {"z": 1, "mcp_servers": {"funes": {"command": "y"}}}
