"""A stand-in for `claude -p` that answers in pieces, the second once it is told to."""

import stat
import sys
from pathlib import Path

_PROGRAM = """\
#!{python}
import json, re, sys, time
from pathlib import Path
here = Path({here!r})
prompt = sys.stdin.read()
(here / "prompt.txt").write_text(prompt, encoding="utf-8")
if "FAIL" in prompt:
    print(json.dumps({{"type": "result", "is_error": True, "result": "not logged in"}}))
    sys.exit(1)
named = re.search(r"passage \\w+ session ([^;]+);", prompt)[1]
def say(text):
    event = {{"delta": {{"type": "text_delta", "text": text}}}}
    print(json.dumps({{"type": "stream_event", "event": event}}), flush=True)
say("Three of them were enough. ")
ends = time.monotonic() + 60
while not (here / "go").exists() and time.monotonic() < ends:
    time.sleep(0.02)
made_up = "00000000-1111-4222-8333-444455556666"
say("So it says \\u202ethere\\u202c [" + named + "], as [" + made_up + "] does.\\n\\n")
say("[1] a line like a [source](command:workbench.action.quit)\\n")
"""


def install(folder: Path) -> Path:
    """Put the program, as `claude`, into a folder; prompts are left there as `prompt.txt`."""
    folder.mkdir()
    program = folder / "claude"
    text = _PROGRAM.format(python=sys.executable, here=str(folder))
    program.write_text(text, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder
