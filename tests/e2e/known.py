"""Files as the sample sessions left them: what their edits made, one after the other."""

import json
from pathlib import Path
from typing import Any

from msgspec import Struct

CLAUDE = Path(__file__).resolve().parents[1] / "traces" / "home" / ".claude" / "projects"
_TIDEWATER = "/home/dev/src/tidewater"


class Known(Struct, frozen=True, kw_only=True):
    """A file of the sample sessions.

    Attributes:
        text: As the last of its edits left it.
        trace: The session that edits it.
    """

    path: str
    text: str
    trace: Path

    @property
    def uri(self) -> str:
        """Return the file's URI."""
        return f"file://{self.path}"

    @property
    def session_id(self) -> str:
        """Return which session that is."""
        return self.trace.stem

    def line(self, words: str) -> int:
        """Return which line (from 0) holds words; one does."""
        [found] = [at for at, line in enumerate(self.text.split("\n")) if words in line]
        return found


def replayed(trace: Path, path: str, *, before: str = "") -> Known:
    """Return a file after all that a session did to it; `before` is what was there already."""
    text = before
    for call in calls_of(trace):
        asked = call["input"]
        if asked.get("file_path") != path:
            continue
        if call["name"] == "Write":
            text = asked["content"]
        elif call["name"] == "Edit":
            assert asked["old_string"] in text, asked["old_string"]
            text = text.replace(asked["old_string"], asked["new_string"], 1)
    assert text != before
    return Known(path=path, text=text, trace=trace)


def calls_of(trace: Path) -> list[dict[str, Any]]:
    """Return the calls of a session of Claude Code."""
    found = []
    for line in trace.read_text(encoding="utf-8").splitlines():
        content = json.loads(line).get("message", {}).get("content")
        if isinstance(content, list):
            found += [one for one in content if one.get("type") == "tool_use"]
    return found


def loader() -> Known:
    """Return a file that one session wrote and then edited: every line is its."""
    trace = CLAUDE / "-home-dev-src-tidewater" / "0156832f-72c7-495d-a631-bf32ff229228.jsonl"
    return replayed(trace, f"{_TIDEWATER}/scripts/load_readings.py")


def client() -> Known:
    """Return a file that was there before, edited by a session and by one that went on from it."""
    trace = CLAUDE / "-home-dev-src-tidewater" / "8845927a-3cb6-420d-ad22-3a9129b12318.jsonl"
    return replayed(trace, f"{_TIDEWATER}/src/tidewater/http.py", before=CLIENT_BEFORE)


#: What nobody of the sessions wrote.
CLIENT_BEFORE = '''\
"""Asks the stations of the upstream service."""

import aiohttp

TIMEOUT = aiohttp.ClientTimeout(total=10)


async def get_json(url: str) -> dict:
    async with session().get(url, timeout=TIMEOUT) as response:
        response.raise_for_status()
        return await response.json()


def station_url(number: int) -> str:
    """Return where a station's readings are."""
    return f"https://stations.example.invalid/api/{number:05d}/water-level"
'''
