"""Who wrote a line: what was told is told again while it holds, and asked again when it may not."""

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec

from funes_ls.handlers.front import Front
from funes_ls.handlers.line_facts import LineFacts
from funes_ls.handlers.texts import OpenText

URI = "file:///work/pump.notes"
TEXT = "import boiler\nboiler.whistle()\n"


class Editor:
    """Stands for the server: one open document, and an engine that knows who wrote its lines."""

    def __init__(self) -> None:
        codec = PositionCodec(types.PositionEncodingKind.Utf16)
        self.document = OpenText(URI, source=TEXT, version=1, position_codec=codec)
        self.workspace = self
        self.text_documents = {URI: self.document}
        self.generation = 1
        self.is_indexing = False
        self.author = "s1"
        self.asked = 0
        self.tasks: list[asyncio.Task[Any]] = []
        self.lines = LineFacts(cast(Front, self))

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        self.tasks.append(asyncio.ensure_future(work))
        return self.tasks[-1]

    def with_settings(self, method: str, params: Any, *, uri: str) -> Any:
        return params

    async def quick(self, method: str, params: Any) -> Any:
        self.asked += 1
        turn = {"session_id": self.author, "turn_uuid": "t1"}
        lines = [{**turn, "start": 2, "end": 2, "confidence": "exact", "from_path": ""}]
        return {"lines": lines, "turns": [turn], "note": ""}

    async def author_of(self, line: int) -> str | None:
        """Return who is said to have written a line, and how often the engine was asked for it."""
        claim = await self.lines.of(URI, line)
        return None if claim is None else claim[1]["session_id"]

    async def settled(self) -> None:
        await asyncio.gather(*self.tasks)

    def changed(self, *sessions: str) -> None:
        self.generation += 1
        self.lines.heard(self.generation, sessions)


async def _known() -> Editor:
    editor = Editor()
    assert await editor.author_of(1) == "s1"
    await editor.settled()
    editor.asked = 0
    assert await editor.author_of(1) == "s1"
    assert editor.asked == 0
    return editor


async def _others_change() -> None:
    editor = await _known()
    editor.changed("s2", "s3")
    editor.author = "s2"
    assert await editor.author_of(1) == "s1"
    assert editor.asked == 0  # told at once,
    await editor.settled()
    assert editor.asked == 1  # and asked again:
    assert await editor.author_of(1) == "s2"


def test_what_another_session_changes_keeps_no_hover_waiting() -> None:
    asyncio.run(_others_change())


async def _changes(*sessions: str) -> None:
    editor = await _known()
    editor.changed(*sessions)
    editor.author = "s2"
    assert await editor.author_of(1) == "s2"
    editor.changed("s9")
    assert editor.asked == 1


def test_what_is_told_of_a_session_is_asked_again_once_it_changed() -> None:
    asyncio.run(_changes("s1"))
    asyncio.run(_changes("s0", "s1"))
    asyncio.run(_changes())  # many sessions: any may be among them


async def _nobody() -> None:
    editor = await _known()
    assert await editor.author_of(0) is None
    editor.changed("s2")
    asked = editor.asked
    assert await editor.author_of(0) is None
    assert editor.asked == asked + 1


def test_a_line_of_nobody_is_asked_again_after_every_change() -> None:
    asyncio.run(_nobody())


async def _a_history_is_read() -> None:
    editor = await _known()
    editor.is_indexing = True
    for number in range(20):
        editor.changed(f"read-{number}")
        assert await editor.author_of(1) == "s1"
    await asyncio.sleep(0.05)
    assert editor.asked == 0
    editor.author = "s2"
    editor.is_indexing = False
    await editor.settled()
    assert editor.asked == 1
    assert await editor.author_of(1) == "s2"


def test_while_a_history_is_read_a_document_is_not_looked_at_with_every_hover() -> None:
    asyncio.run(_a_history_is_read())


async def _a_long_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funes_ls.handlers.line_facts._PASS_S", 0.1)
    editor = await _known()
    editor.is_indexing = True
    editor.changed("s2")
    editor.author = "s2"
    assert await editor.author_of(1) == "s1"
    await asyncio.wait_for(editor.settled(), 10)
    assert await editor.author_of(1) == "s2"


def test_a_pass_that_goes_on_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(_a_long_pass(monkeypatch))
