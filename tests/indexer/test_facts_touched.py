"""Which files a tool call names."""

import json
from typing import Any

import pytest

from funes_ls.indexer.facts_touched import touched_paths
from funes_ls.indexer.model import Block

PATCH = (
    "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: b.md\n+z\n*** End Patch"
)


def call(args: Any) -> Block:
    text = args if isinstance(args, str) else json.dumps(args)
    return Block(block_type="tool_use", text=text, tool_name="T")


@pytest.mark.parametrize(
    ("args", "paths"),
    [
        ({"file_path": "/w/a.py", "old_string": "x"}, ["/w/a.py"]),
        ({"notebook_path": "/w/n.ipynb"}, ["/w/n.ipynb"]),
        ({"path": "src", "pattern": "x"}, ["src"]),
        ({"edits": [{"file_path": "a"}, {"file_path": "b"}, {"file_path": "a"}]}, ["a", "b"]),
        (PATCH, ["src/a.py", "b.md"]),
        ({"input": PATCH}, ["src/a.py", "b.md"]),
        ({"command": ["bash", "-lc", f"apply_patch <<'E'\n{PATCH}\nE"]}, ["src/a.py", "b.md"]),
        (
            "*** Begin Patch\n*** Update File: a\n*** Move to: c d.py\n*** End Patch",
            ["a", "c d.py"],
        ),
        ({"command": "ls /tmp"}, []),
        ({"file_path": 3}, []),
        ({"edits": "not a list of edits"}, []),
        ({"edits": 5, "path": "a"}, ["a"]),
        ({"edits": True, "path": "a"}, ["a"]),
        ({"edits": [None, 3, {"path": "b"}], "path": "a"}, ["a", "b"]),
        ('{"path": ' * 3000 + "1" + "}" * 3000, []),
        ("not json with a path", []),
        ([1, 2], []),
    ],
)
def test_paths_as_written(args: Any, paths: list[str]) -> None:
    assert touched_paths(call(args)) == paths


def test_only_calls_touch() -> None:
    block = Block(block_type="tool_result", text='{"file_path": "/w/a.py"}')
    assert touched_paths(block) == []
