"""Hover: which past sessions touched this file, in at most three lines, or nothing."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from funes_ls.handlers.addresses import Address, address_of_command, uri_of
from funes_ls.handlers.documents import is_document
from funes_ls.handlers.wording import ago, counted, harness_word, markdown, one_line
from funes_ls.uris import path_of

if TYPE_CHECKING:
    from funes_ls.handlers.front import Front

_MOST_LINES = 3


def register(ls: "Front") -> None:
    """Serve hovers."""

    @ls.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        path = path_of(uri)
        if not path or is_document(ls, uri, path):
            return None
        await ls.configuration.settled()
        if not ls.settings(uri).hover:
            return None
        asked = ls.with_settings("funes/related", {"path": path, "limit": _MOST_LINES}, uri=uri)
        answer = await ls.quick("funes/related", asked)
        if not answer or not answer["sessions"]:
            return None
        kind = types.MarkupKind.Markdown if ls.client.markdown else types.MarkupKind.PlainText
        text = hover_text(answer, is_markdown=ls.client.markdown, links=ls.client.virtual_documents)
        return types.Hover(contents=types.MarkupContent(kind=kind, value=text))


def hover_text(answer: Mapping[str, Any], *, is_markdown: bool, links: bool) -> str:
    """Return a line per session, newest first; the last line counts those left off.

    Args:
        answer: Of `funes/related`.
        is_markdown: Whether the text is Markdown; what sessions say is escaped in it.
        links: Whether the client opens `funes:` documents.
    """
    sessions = answer["sessions"]
    total = answer["total"]
    shown = sessions if total <= _MOST_LINES else sessions[: _MOST_LINES - 1]
    lines = [
        _line(session, is_markdown=is_markdown, links=links and is_markdown) for session in shown
    ]
    if total > len(shown):
        rest = f"{counted(total - len(shown), 'more past session')}"
        address = Address(kind="file", path=answer["path"])
        lines.append(f"[{rest}]({uri_of(address)})" if links and is_markdown else rest)
    return ("  \n" if is_markdown else "\n").join(lines)


def _line(session: Mapping[str, Any], *, is_markdown: bool, links: bool) -> str:
    title = one_line(session["title"]) or "untitled session"
    harness, when = harness_word(session["harness"]), ago(session["ended_us"])
    if is_markdown:
        title, harness = markdown(title), f"**{markdown(harness)}**"
        address = address_of_command(session["get"])
        if links and address is not None:
            title = f"[{title}]({uri_of(address)})"
    return " · ".join(filter(None, [harness, when, title]))
