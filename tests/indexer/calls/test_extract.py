"""From a call and its answer to facts: every shape that harnesses use, and what must give none."""

import json
from typing import Any

import pytest

from funes_ls.indexer.calls.call import Call
from funes_ls.indexer.calls.extract import Found, facts_of
from funes_ls.indexer.facts import FileEvent

PATCH = """*** Begin Patch
*** Add File: docs/new.md
+# Tides
+
+At noon.
*** Update File: src/tide.py
@@ def level():
 import math
-OLD = 1
+NEW = 2
{blank}
@@
-gone = 3
*** Update File: src/old.py
*** Move to: src/renamed.py
@@
 a
+b
*** Delete File: src/dead.py
*** End Patch""".replace("{blank}", " ")
PATCHED = [
    ("write", "/w/docs/new.md", "", "# Tides\n\nAt noon.\n"),
    ("edit", "/w/src/tide.py", "import math\nOLD = 1\n", "import math\nNEW = 2\n"),
    ("edit", "/w/src/tide.py", "gone = 3", ""),
    ("edit", "/w/src/old.py", "a", "a\nb"),
    ("move", "/w/src/renamed.py", "", ""),
    ("delete", "/w/src/dead.py", "", ""),
]


def found(args: Any, output: str, *, tool: str = "T", cwd: str = "/w") -> Found:
    text = args if isinstance(args, str) else json.dumps(args)
    return facts_of(Call(tool=tool, text=text, output=output, cwd=cwd))


def events(args: Any, output: str, *, tool: str = "T") -> list[tuple[str, str, str, str]]:
    return [brief(one) for one in found(args, output, tool=tool).events]


def brief(event: FileEvent) -> tuple[str, str, str, str]:
    return event.kind, event.path, event.old, event.new


@pytest.mark.parametrize(
    ("tool", "args", "output"),
    [
        ("Edit", {"file_path": "/w/a.py", "old_string": "x", "new_string": "y"},
         "The file /w/a.py has been updated."),
        ("edit", {"path": "a.py", "oldText": "x", "newText": "y"},
         "Successfully replaced text in a.py. Changed 1 characters to 1 characters."),
        ("edit", {"path": "/w/a.py", "edits": [{"oldText": "x", "newText": "y"}]},
         "Successfully replaced 1 block(s)"),
        ("edit", {"file_path": "./src/../a.py", "old_string": "x", "new_string": "y"}, "ok"),
        ("MultiEdit", {"file_path": "/w/a.py", "edits": [{"old_string": "x", "new_string": "y"}]},
         "Applied 1 edit to /w/a.py:"),
        ("str_replace_editor",
         {"command": "str_replace", "path": "/w/a.py", "old_str": "x", "new_str": "y"},
         "The file /w/a.py has been edited."),
        ("patch", {"mode": "replace", "path": "a.py", "old_string": "x", "new_string": "y"},
         '{"success": true, "diff": "--- a/a.py", "files_modified": ["a.py"]}'),
    ],
)  # fmt: skip
def test_edits(tool: str, args: dict[str, Any], output: str) -> None:
    assert events(args, output, tool=tool) == [("edit", "/w/a.py", "x", "y")]


@pytest.mark.parametrize(
    ("tool", "args", "output"),
    [
        ("Write", {"file_path": "/w/a.py", "content": "x\n"}, "File created successfully at: /w/a"),
        ("write", {"path": "a.py", "content": "x\n"}, "Successfully wrote 2 bytes to a.py"),
        ("write_file", {"path": "a.py", "content": "x\n"},
         '{"bytes_written": 2, "dirs_created": false}'),
        ("str_replace_editor", {"command": "create", "path": "/w/a.py", "file_text": "x\n"},
         "File created successfully at: /w/a.py"),
        ("Write", {"file_path": r"C:\w\a.py", "content": "x\n"}, "File created successfully"),
    ],
)  # fmt: skip
def test_writes(tool: str, args: dict[str, Any], output: str) -> None:
    [event] = found(args, output, tool=tool).events
    assert (event.kind, event.new) == ("write", "x\n")
    assert event.path in ("/w/a.py", "C:/w/a.py")


@pytest.mark.parametrize(
    ("args", "output"),
    [
        (PATCH, "Success. Updated the following files:\nA docs/new.md"),
        (PATCH, '{"output":"Success. Updated the following files:","metadata":{"exit_code":0}}'),
        ({"input": PATCH}, "Success. Updated the following files:"),
        ({"patch": PATCH}, '{"success": true, "diff": ""}'),
        ({"command": ["apply_patch", PATCH], "workdir": "/w"}, '{"output":"ok","metadata":'
         '{"exit_code":0,"duration_seconds":0.1}}'),
        ({"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}, "Exit code: 0\nWall "
         "time: 0 seconds\nOutput:\nSuccess."),
        ({"cmd": f"cd /w && apply_patch <<'EOF'\n{PATCH}\nEOF\n"}, "Chunk ID: 1\nProcess exited "
         "with code 0\nOutput:\nSuccess."),
    ],
)  # fmt: skip
def test_patches(args: Any, output: str) -> None:
    given = found(args, output).events
    assert [brief(one) for one in given] == PATCHED
    assert [one.source for one in given if one.kind == "move"] == ["/w/src/old.py"]


@pytest.mark.parametrize(
    "output",
    [
        "<tool_use_error>String to replace not found in file.\nString: x</tool_use_error>",
        "String to replace not found in file.",
        "File has not been read yet. Read it first before writing to it.",
        "File has been modified since read, either by the user or by a linter.",
        "Found 2 matches of the string to replace, but replace_all is false.",
        "Edit operation blocked by hook:\n- not in this folder",
        "PreToolUse:Edit hook error: not in this folder",
        "MCP error -32603: it broke",
        "The user doesn't want to proceed with this tool use. The tool use was rejected",
        "Claude requested permissions to write to /w/a.py, but you haven't granted it yet.",
        "Could not find the exact text in a.py. The old text must match exactly",
        "No changes made to a.py. The replacement produced identical content.",
        "Error: EACCES: permission denied, open '/w/a.py'",
        "Operation aborted",
        '{"success": false, "error": "Could not find match for old_string"}',
        '{"success": true, "no_change": true, "note": "already there"}',
        '{"error": "Permission denied"}',
    ],
)
def test_what_failed_did_nothing(output: str) -> None:
    edit = {"file_path": "/w/a.py", "old_string": "x", "new_string": "y"}
    assert events(edit, output, tool="Edit") == []
    assert events({"file_path": "/w/a.py", "content": "x"}, output, tool="Write") == []


@pytest.mark.parametrize(
    "output",
    [
        "apply_patch verification failed: Failed to find expected lines in /w/src/tide.py",
        '{"output":"verification failed","metadata":{"exit_code":1}}',
        "Exit code: 1\nWall time: 0 seconds\nOutput:\napply_patch verification failed",
        "patch rejected by user",
        "aborted by user after 2s",
    ],
)
def test_a_patch_that_does_not_apply_did_nothing(output: str) -> None:
    assert events(PATCH, output) == []
    assert events({"command": ["apply_patch", PATCH]}, output) == []


def test_words_of_failure_in_what_was_written_are_none() -> None:
    shown = "     1→raise Error('does not exist')\n     2→# String not found"
    output = "The file /w/a.py has been updated. Here's the result of running `cat -n`:\n" + shown
    args = {"file_path": "/w/a.py", "old_string": "x", "new_string": "y", "replace_all": True}
    edit, read = found(args, output, tool="Edit").events
    assert (edit.kind, edit.every) == ("edit", True)
    assert (read.kind, read.first_line, read.whole) == ("read", 1, False)
    assert read.new == "raise Error('does not exist')\n# String not found"


@pytest.mark.parametrize(
    ("args", "output", "expected"),
    [
        ({"file_path": "/w/a"}, "     1→one\n     2→\n     3→  two", ("one\n\n  two", 1, True)),
        ({"file_path": "/w/a"}, "1\tone\n2\ttwo\n", ("one\ntwo", 1, True)),
        ({"file_path": "/w/a", "offset": 7, "limit": 2}, "     7→x\n     8→y", ("x\ny", 7, False)),
        ({"file_path": "/w/a"}, "     1→x\n\n<system-reminder>\nnote\n</system-reminder>\n",
         ("x", 1, True)),
        ({"path": "a"}, "one\ntwo", ("one\ntwo", 1, True)),
        ({"path": "a"}, "1\tone\n2\ttwo", ("1\tone\n2\ttwo", 1, True)),
        ({"path": "a", "offset": 5}, "one", ("one", 5, False)),
        ({"path": "a"}, "one\n\n[Showing lines 1-1 of 9. Use offset=2 to continue.]",
         ("one", 1, False)),
        ({"path": "a"}, '{"content": "     1|x\\n     2|  y", "total_lines": 2}',
         ("x\n  y", 1, True)),
        ({"path": "a"}, '{"name": "demo", "error": null}', ('{"name": "demo", "error": null}',
                                                            1, True)),
    ],
)  # fmt: skip
def test_reads(args: dict[str, Any], output: str, expected: tuple[str, int, bool]) -> None:
    [event] = found(args, output, tool="Read").events
    assert (event.kind, event.path) == ("read", "/w/a")
    assert (event.new, event.first_line, event.whole) == expected


def test_a_read_that_failed_saw_nothing() -> None:
    assert events({"file_path": "/w/a"}, "<tool_use_error>File does not exist.", tool="Read") == []
    assert events({"path": "a"}, "ENOENT: no such file or directory, access '/w/a'") == []


def test_searches_and_listings() -> None:
    output = "Found 2 files\n/w/src/a.py\n/w/src/b.py"
    given = events({"pattern": "level", "path": "/w/src"}, output, tool="Grep")
    assert [(kind, path) for kind, path, _, _ in given] == [
        ("search", "/w/src/a.py"),
        ("search", "/w/src/b.py"),
    ]
    [(kind, path, _, _)] = events({"pattern": "*.py"}, "/w/src/a.py", tool="Glob")
    assert (kind, path) == ("list", "/w/src/a.py")
    given = events({"pattern": "x", "path": "src"}, "src/a.py:12:x = 1\nsrc/a.py:40:x", tool="grep")
    assert [path for _, path, _, _ in given] == ["/w/src/a.py"]


@pytest.mark.parametrize(
    "args",
    ["", "null", "[1, 2]", "not json", '{"file_path": 3, "content": "x"}', '{"edits": "none"}',
     '{"edits": [1, null]}', '{"command": 5}', '{"command": []}', "[" * 5000],
)  # fmt: skip
def test_inputs_that_say_nothing(args: str) -> None:
    assert found(args, "ok") == Found()


def test_commands_and_their_status() -> None:
    assert found({"command": "make check"}, "all good") == Found(
        command="make check", exit_status=0
    )
    failed = found({"command": "make check"}, "Exit code 2\nno rule")
    assert (failed.command, failed.exit_status) == ("make check", 2)
    running = found(
        {"cmd": "make watch"}, "Chunk ID: 1\nProcess running with session ID 4\nOutput:\n"
    )
    assert (running.command, running.exit_status) == ("make watch", None)
    assert found({"command": "rm -rf /"}, "The user doesn't want to proceed").command == ""


def test_of_huge_files_only_the_reading_is_kept() -> None:
    [event] = found({"path": "a"}, "x\n" * 300_000, tool="read").events
    assert (event.kind, event.new, event.whole) == ("read", "", False)
    [event] = found({"command": "cat a"}, "x\n" * 300_000).events
    assert (event.kind, event.new, event.whole) == ("read", "", False)


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ("Exit code 3\nx", 3),
        ("Exit code: 3\nWall time: 1 seconds\nOutput:\nx", 3),
        ("Chunk ID: 1\nWall time: 1 seconds\nProcess exited with code 3\nOutput:\nx", 3),
        ("x\n\nCommand exited with code 3", 3),
        ('{"output": "x", "exit_code": 3, "error": null}', 3),
        ('[{"type": "text", "text": "Exit code 3\\nx"}]', 3),
        ("the manual says:\nExit code 3 is an error\n", 0),
        ("Command exited with code 3\nis what it printed once", 3),
        ("Error: no such thing", None),
        ("", 0),
    ],
)
def test_statuses(output: str, status: int | None) -> None:
    assert found({"command": "make"}, output).exit_status == status
    assert found({"command": "make"}, output).command == "make"


def test_a_program_that_broke_was_written_all_the_same() -> None:
    trace = "Traceback (most recent call last):\n" + '  File "a.py", line 1\n' * 60
    script = "cat > a.py <<'E'\nraise SystemError\nE\npython a.py"
    shown = f"{trace}\n\nCommand exited with code 1"
    [wrote, *_] = facts_of(
        Call(tool="bash", text=json.dumps({"command": script}), output=shown)
    ).events
    assert (wrote.kind, wrote.new) == ("write", "raise SystemError\n")
