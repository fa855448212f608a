"""Which calls ask funes itself."""

import json

import pytest

from funes_ls.indexer.traces.own import own_answer, own_call
from funes_ls.mcp.fence import fenced


def shell(command: object) -> str:
    return json.dumps({"command": command})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mcp__funes__recall", "{}"),
        ("mcp__funes-ls__status", "{}"),
        ("mcp__plugin_funes_funes__get", "{}"),
        ("mcp_funes_recall", "{}"),
        ("funes.recall", "{}"),
        ("funes_recall", "{}"),
        ("mcp__funes__related", "{}"),
        ("mcp__funes__blame", "{}"),
        ("funes/recall", "{}"),
        ("Bash", shell("funes recall 'the kiln'")),
        ("Bash", shell("cd /work && FUNES_MEMORY=x funes -q recall 'a; b' 2>/dev/null | head -5")),
        ("Bash", shell("/usr/local/bin/funes get a b")),
        ("Bash", shell("timeout 20s funes ask hi; funes sessions")),
        ("Bash", shell("uv run funes related x")),
        ("Bash", shell("python3 -m funes_ls blame a.py")),
        ("shell", shell(["bash", "-lc", "funes recall x"])),
        ("shell", shell(["funes", "recall", "x"])),
        ("exec_command", json.dumps({"cmd": "funes recall x"})),
    ],
)
def test_whole(name: str, text: str) -> None:
    assert own_call(name, text) == "whole"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Bash", shell("make; funes get a b")),
        ("Bash", shell("make\nfunes recall x")),
        ("Bash", shell('echo "$(funes recall x)"; make')),
        ("Bash", shell("it's unbalanced; funes recall x")),
        ("shell", shell(["bash", "-c", "ls && funes recall x"])),
        ("exec", 'await tools.exec_command({cmd: "funes recall x"})'),
    ],
)
def test_part(name: str, text: str) -> None:
    assert own_call(name, text) == "part"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Bash", shell("ls")),
        ("Bash", shell("grep 'funes recall' README.md")),
        ("Bash", shell("git commit -m 'funes get it'")),
        ("Bash", shell("funes index --yes")),
        ("Bash", shell("vim funes.toml")),
        ("Read", json.dumps({"file_path": "/work/funes/recall.py"})),
        ("Write", json.dumps({"content": "run `funes recall x`"})),
        ("apply_patch", "*** Begin Patch\n+funes recall x"),
        ("mcp__other__recall", json.dumps({"query": "funes"})),
        (None, "{}"),
        ("Bash", "[" * 5000 + "funes"),
    ],
)
def test_other(name: str | None, text: str) -> None:
    assert own_call(name, text) == ""


def test_a_server_named_apart() -> None:
    assert own_call("recall", "{}", server="funes") == "whole"
    assert own_call("recall", "{}", server="mcp__funes__") == "whole"
    assert own_call("recall", "{}", server="other") == ""


def test_an_answer_is_known_by_its_fence_whatever_the_tool_is_called() -> None:
    text = fenced("Rates are rounded up.", lead="1 passage.")
    assert own_answer("mcp__memory__search", text)
    assert own_answer(None, f"Wall time: 0.1 seconds\nOutput:\n{text}")
    assert own_answer("recall", json.dumps([{"type": "text", "text": text}]))
    assert own_answer("mcp__funes__recall", "no results")
    assert not own_answer("mcp__memory__search", "Rates are rounded up.")
    assert not own_answer("Read", f"{'x' * 5000}\n{text}")
    mark = text.split("<<<")[1][:16]
    other = "0" * 16 if mark != "0" * 16 else "1" * 16
    assert not own_answer("Read", text.replace(f"<<<{mark}", f"<<<{other}"))
