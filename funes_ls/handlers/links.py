"""Document links and go-to-definition: from a line of a `funes:` document to what it is about."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from lsprotocol import types

from funes_ls.handlers.addresses import Address, uri_of
from funes_ls.handlers.documents import is_document, page_of, placed
from funes_ls.handlers.failures import bad_params
from funes_ls.handlers.pages import Lead, leads
from funes_ls.handlers.workspaces import opened
from funes_ls.uris import path_of

if TYPE_CHECKING:
    from funes_ls.handlers.front import Front


def register(ls: "Front") -> None:
    """Serve links within our documents."""

    @ls.feature(types.TEXT_DOCUMENT_DOCUMENT_LINK, types.DocumentLinkOptions(resolve_provider=True))
    async def links(params: types.DocumentLinkParams) -> list[types.DocumentLink]:
        text = await _text(ls, params.text_document.uri)
        return [_link(ls, lead) for lead in leads(text)]

    @ls.feature(types.DOCUMENT_LINK_RESOLVE)
    async def resolve(link: types.DocumentLink) -> types.DocumentLink:
        if link.target is None:
            link.target, _ = await placed(ls, _address(link.data))
        return link

    @ls.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: types.DefinitionParams) -> types.Location | None:
        text = await _text(ls, params.text_document.uri)
        for lead in leads(text):
            if lead.line == params.position.line:
                uri, line = await placed(ls, lead.target)
                place = types.Position(line=line, character=0)
                return types.Location(uri=uri, range=types.Range(start=place, end=place))
        return None


async def _text(ls: "Front", uri: str) -> str:
    """Return the text of a document of ours, "" for those of others."""
    path = path_of(uri)
    if not is_document(ls, uri, path):
        return ""
    document = opened(ls, uri)
    if document is not None:
        return document.source
    known = ls.documents.uri_of_file(path) if path else uri
    if not known:  # another server of this home wrote it
        return await asyncio.to_thread(_written, Path(path))
    return (await page_of(ls, known)).text


def _written(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _link(ls: "Front", lead: Lead) -> types.DocumentLink:
    """Return a link; where documents are files, its file is written when it is followed."""
    start = types.Position(line=lead.line, character=lead.start)
    end = types.Position(line=lead.line, character=lead.end)
    virtual = ls.client.virtual_documents
    return types.DocumentLink(
        range=types.Range(start=start, end=end),
        target=uri_of(lead.target) if virtual else None,
        tooltip="Show this turn" if ls.client.link_tooltips else None,
        data=None if virtual else msgspec.to_builtins(lead.target),
    )


def _address(data: Any) -> Address:
    try:
        return msgspec.convert(data, Address)
    except msgspec.ValidationError as exc:
        raise bad_params("This link is none of ours.") from exc
