"""Calls and answers that are broken in every way: no crash, no endless work, nothing made up."""

import json
import random
import time

from funes_ls.indexer.calls.call import Call
from funes_ls.indexer.calls.extract import facts_of

INPUTS = [
    json.dumps({"file_path": "/w/a.py", "old_string": "x\ny", "new_string": "z", "replace_all": 1}),
    json.dumps({"path": "a.py", "edits": [{"oldText": "x", "newText": "y"}]}),
    json.dumps(
        {"command": "cd /w && cat > a <<'EOF'\nx $y\nEOF\nsed -i 's/a/b/' a | tee \"b $(c)\""}
    ),
    json.dumps(
        {"command": ["bash", "-lc", "apply_patch <<'E'\n*** Begin Patch\n*** End Patch\nE"]}
    ),
    "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** Move to: b\n*** End Patch",
    json.dumps({"pattern": "x", "path": "src", "-n": True}),
]
OUTPUTS = [
    "",
    "     1→x\n     2→y\n",
    '{"output": "x", "metadata": {"exit_code": 0}}',
    "Exit code 1\nx",
    "src/a.py:3:x\nsrc/b.py-4-y",
    '{"content": "1|x", "total_lines": 1}',
]
SIGNS = "\"'`$(){}[]<>|&;\\\n\t *#-+@:,\0\ufffd\u2028é"


def test_broken_calls_do_no_harm() -> None:
    chance = random.Random(5)
    slowest = 0.0
    for _ in range(4_000):
        text, output = broken(chance, chance.choice(INPUTS)), broken(chance, chance.choice(OUTPUTS))
        began = time.monotonic()
        found = facts_of(Call(tool="Edit", text=text, output=output, cwd="/w"))
        slowest = max(slowest, time.monotonic() - began)
        for event in found.events:
            assert event.path
            assert "\0" not in event.path
            assert "\n" not in event.path
    assert slowest < 1.0


def broken(chance: random.Random, text: str) -> str:
    """Return a text with a few signs put in, taken out, doubled or cut off."""
    for _ in range(chance.randint(0, 4)):
        at = chance.randint(0, len(text))
        match chance.randint(0, 3):
            case 0:
                text = text[:at] + chance.choice(SIGNS) + text[at:]
            case 1:
                text = text[:at] + text[at + chance.randint(1, 5) :]
            case 2:
                text = text[:at] + text[max(0, at - 20) : at] * chance.randint(1, 50) + text[at:]
            case _:
                text = text[: max(at, 1)]
    return text
