"""Hover: who wrote this line and why, in at most three lines; nothing where nothing is known."""

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from lsprotocol import types
from msgspec import Struct

from funes_ls.handlers.addresses import Address, address_of_command, uri_of
from funes_ls.handlers.documents import is_document, link_to
from funes_ls.handlers.line_facts import Table, facts_within, turn_of
from funes_ls.handlers.wording import counted, harness_word, markdown, one_line, since
from funes_ls.uris import path_of

if TYPE_CHECKING:
    from funes_ls.handlers.front import Front

#: Comes within so long, or not at all.
QUICK_S = 1.5
#: A hover that comes later than this is of a place that the cursor has left.
_SYMBOL_S = 0.15
_MOST_CHARS = 120
#: A sentence with fewer characters does not stand alone.
_SAYS_SOMETHING = 16
_SENTENCE = re.compile(r"(?<=[.!?])\s|\n")

Link = Callable[[Address], str]


class Known(Struct, frozen=True, kw_only=True):
    """What a hover tells.

    Attributes:
        turn: Of the answer of `funes/blame`.
        from_path: Where the line was written, if that is elsewhere.
        more: What else is to be said in the first line.
        memory: Whose sessions these are, "" for one's own.
    """

    turn: Mapping[str, Any]
    from_path: str = ""
    more: str = ""
    memory: str = ""


def register(ls: "Front") -> None:
    """Serve hovers."""

    @ls.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        uri, line = params.text_document.uri, params.position.line
        path = path_of(uri)
        if not path or is_document(ls, uri, path):
            return None
        await ls.configuration.settled()
        if not ls.settings(uri).hover:
            return None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(QUICK_S):
                return await _hover(ls, uri, line)
        return None


async def _hover(ls: "Front", uri: str, line: int) -> types.Hover | None:
    known = await _of_line(ls, uri, line) or await _of_symbol(ls, uri, line)
    if known is None:
        return None
    kind = types.MarkupKind.Markdown if ls.client.markdown else types.MarkupKind.PlainText
    memory = ls.settings(uri).memory
    known = msgspec.structs.replace(known, memory="" if memory == "local" else memory)
    text = hover_text(known, is_markdown=ls.client.markdown, link=_linking(ls))
    return types.Hover(contents=types.MarkupContent(kind=kind, value=text))


async def _of_line(ls: "Front", uri: str, line: int) -> Known | None:
    found = await ls.lines.of(uri, line)
    return None if found is None else Known(turn=found[1], from_path=found[0]["from_path"])


async def _of_symbol(ls: "Front", uri: str, line: int) -> Known | None:
    """Return who wrote most of the symbol whose name is on a line that itself is nobody's."""
    state = ls.lines.asked(uri)
    if state.document is None or not state.document.line(line).strip():
        return None
    told = ls.lines.told(uri, line)
    if told is not None:
        return of_symbol(*told)
    try:
        async with asyncio.timeout(_SYMBOL_S):
            table = await ls.lines.table(uri)
    except TimeoutError:
        return None
    ls.lines.check(uri, state)
    return None if table is None else of_symbol(table, line)


def of_symbol(table: Table, line: int) -> Known | None:
    """Return who wrote most of the innermost symbol that is named on a line."""
    symbols = [one for one in table.symbols if one.first <= line <= one.named]
    if not symbols:
        return None
    symbol = symbols[-1]
    counts: Counter[tuple[str, str]] = Counter()
    for lines, count in facts_within(table.lines, symbol.first, symbol.last):
        counts[turn_of(lines)] += count
    known = [(turn, count) for turn, count in counts.most_common() if turn in table.turns]
    if not known:
        return None
    turn, count = known[0]
    of_all = f"{count:,} of {counted(symbol.last - symbol.first + 1, 'line')} of {symbol.name}"
    others = f"{counted(len(known) - 1, 'more turn')}" if len(known) > 1 else ""
    return Known(turn=table.turns[turn], more=" · ".join(filter(None, [of_all, others])))


def hover_text(known: Known, *, is_markdown: bool, link: Link | None = None) -> str:
    """Return three lines at most: who, when and where; what was asked; the reason.

    Args:
        known: What is told; what sessions say is escaped in Markdown.
        is_markdown: Whether the text is Markdown.
        link: Returns the address of a document for the client to open, "" for none; the first
            one is that of the turn.
    """
    turn = known.turn

    def marked(text: str) -> str:
        return markdown(text) if is_markdown else text

    def linked(text: str, command: str) -> str:
        address = address_of_command(command) if link and is_markdown else None
        uri = link(address) if link and address else ""
        return f"[{marked(text)}]({uri})" if uri else marked(text)

    harness = marked(harness_word(turn["harness"]))
    about = [
        f"**{harness}**" if is_markdown else harness,
        since(turn["ts"]),
        linked(one_line(turn["title"]) or "untitled session", turn["get"]),
        marked(f"from {one_line(known.from_path)}") if known.from_path else "",
        marked(known.more),
        marked(f"memory {one_line(known.memory)}") if known.memory else "",
    ]
    lines = [" · ".join(filter(None, about))]
    for name, text, command in (
        ("asked", one_line(turn["ask"], most=_MOST_CHARS), turn["ask_get"]),
        ("reason", first_sentence(turn["reason"]), turn["reason_get"]),
    ):
        if text:
            lines.append(f"{name}: {linked(text, command)}")
    return ("  \n" if is_markdown else "\n").join(lines)


def first_sentence(text: str) -> str:
    """Return the first sentence of a text on one line, and the next after a word like "Done."."""
    found = ""
    for sentence in _SENTENCE.split(text.strip()):
        found = one_line(f"{found} {sentence}", most=_MOST_CHARS)
        if len(found) >= _SAYS_SOMETHING:
            break
    return found


def _linking(ls: "Front") -> Link:
    """Return how documents are named; where they are files, one a hover is enough."""
    if ls.client.virtual_documents:
        return uri_of
    done: list[Address] = []

    def link(address: Address) -> str:
        if done:
            return ""
        done.append(address)
        return link_to(ls, address)

    return link
