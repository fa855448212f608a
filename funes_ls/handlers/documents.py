"""Read-only `funes:` documents: served by request, or as files for clients that open only those."""

import contextlib
import hashlib
import logging
import os
import time
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from lsprotocol import types
from msgspec import Struct

from funes_ls.handlers.addresses import SCHEME, Address, address_of, slug, uri_of
from funes_ls.handlers.failures import Refused, bad_params
from funes_ls.handlers.pages import Page, file_page, recall_page, turns_page
from funes_ls.handlers.why import changed_page, why_page
from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.home import make_private, shown_dir
from funes_ls.protocol import Params
from funes_ls.uris import path_of

if TYPE_CHECKING:
    from funes_ls.handlers.front import Front

_WINDOW = 3
_MOST_FILES = 50
_MOST_AGE_S = 86_400
_FRESH_S = 60.0
_MOST_RELATED = 100
_MOST_KEPT = 20
_log = logging.getLogger(__name__)


class DocumentParams(Params, frozen=True, kw_only=True):
    """`funes/document`: the text of a `funes:` document."""

    uri: str


class DocumentAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A document; reading begins at `line` (from 0)."""

    uri: str
    language_id: str
    line: int
    text: str


class Documents:
    """Documents written to disk, where the client opens files only."""

    def __init__(self, home: Path) -> None:
        """Keep them in a funes home."""
        self.folder = shown_dir(home)
        self._uris: dict[Path, str] = {}
        self._kept: OrderedDict[str, Page] = OrderedDict()

    def keep(self, uri: str, page: Page) -> None:
        """Keep a document that is about a moment which will be gone when it is asked for."""
        self._kept[uri] = page
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)

    def kept(self, uri: str) -> Page | None:
        """Return a document that was kept, None when it is not (any more)."""
        return self._kept.get(uri)

    def file_of(self, uri: str) -> Path:
        """Return where the file of a document is, or would be."""
        about = address_of(uri)
        name = slug(about.query or about.path.rpartition("/")[2] or about.turn or about.session)
        return self.folder / f"{about.kind}-{name}-{digest_of(uri)}.md"

    def write(self, uri: str, page: Page) -> Path:
        """Return the file of a document, written anew, for this user to read only."""
        make_private(self.folder)
        path = self.file_of(uri)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "wb") as out:
            out.write(page.text.encode("utf-8", "replace"))
        draft.replace(path)
        self._uris[path] = uri
        self.tidy(keep=path)
        return path

    def uri_of_file(self, path: str) -> str:
        """Return which document a file is, "" when it was not written here."""
        return self._uris.get(Path(path), "")

    def holds(self, path: str) -> bool:
        """Return whether a file is a document, written here or by another server of this home."""
        return Path(path).parent == self.folder

    def is_fresh(self, path: Path) -> bool:
        """Return whether a document was written so lately that its text is that of now."""
        try:
            return path.stat().st_mtime > time.time() - _FRESH_S
        except OSError:
            return False

    def tidy(self, *, keep: Path | None = None) -> None:
        """Remove old files, and all but the newest."""
        try:
            files = [path for path in self.folder.iterdir() if path != keep]
            ages = sorted((path.stat().st_mtime, path) for path in files)
        except OSError:
            return
        oldest_s = time.time() - _MOST_AGE_S
        most = _MOST_FILES - (keep is not None)
        for number, (changed_at, path) in enumerate(reversed(ages)):
            if number >= most or changed_at < oldest_s:
                with contextlib.suppress(OSError):
                    path.chmod(0o600)  # Windows removes no read-only file
                    path.unlink()
                self._uris.pop(path, None)


def digest_of(text: str) -> str:
    """Return a short digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


async def page_of(ls: "Front", uri: str) -> Page:
    """Return a document.

    Raises:
        Refused: there is no such document.
        FunesError: see `Front.request`.
    """
    about = address_of(uri)
    memory = {"memory": about.memory} if about.memory else {}
    if about.kind in ("turn", "session"):
        params = {"sessionId": about.session, "turnUuid": about.turn, "window": _WINDOW}
        return turns_page(await _ask(ls, "funes/get", {**params, **memory}))
    if about.kind == "recall":
        answer = await _ask(ls, "funes/recall", {"query": about.query, **memory})
        return recall_page(about.query, answer)
    if about.kind == "why":
        return ls.documents.kept(uri) or await why_of(ls, about)
    related = {"path": about.path, "limit": _MOST_RELATED, **memory}
    return file_page(await _ask(ls, "funes/related", related))


async def why_of(ls: "Front", about: Address) -> Page:
    """Return the page of where lines come from, by the text of now.

    Raises:
        Refused: the document changes meanwhile.
        FunesError: see `Front.request`.
    """
    uri = uri_at(ls, about.path)
    state = ls.lines.state(uri)
    document = state.document
    source = document.text_of(about.line, about.last) if document else ""
    if about.digest and document and digest_of(source) != about.digest:
        return changed_page(about)
    place = {
        "start": {"line": about.line, "character": 0},
        "end": {"line": about.last + 1, "character": 0},
    }
    memory = {"memory": about.memory} if about.memory else {}
    text = {} if state.text is None else {"text": state.text}
    blame = await _ask(ls, "funes/blame", {"path": about.path, "range": place, **text, **memory})
    related: Any = None
    if not blame["lines"]:
        asked = {"path": about.path, "limit": _MOST_RELATED, **memory}
        related = await _ask(ls, "funes/related", asked)
    ls.lines.check(uri, state)
    return why_page(about, blame, related, source=source.split("\n") if document else ())


def uri_at(ls: "Front", path: str) -> str:
    """Return the URI by which the client has a file open, or would."""
    for document in ls.workspace.text_documents.values():
        if path_of(document.uri) == path:
            return str(document.uri)
    return Path(path).absolute().as_uri()


async def _ask(ls: "Front", method: str, params: dict[str, Any]) -> Any:
    return await ls.request(method, ls.with_settings(method, params))


async def placed(ls: "Front", address: Address) -> tuple[str, int]:
    """Return a URI that the client can open for a document, and the line where reading begins.

    Raises:
        FunesError: see `Front.request`.
    """
    uri = uri_of(address)
    page = await page_of(ls, uri)
    if ls.client.virtual_documents:
        return uri, page.line
    return ls.documents.write(uri, page).as_uri(), page.line


def link_to(ls: "Front", address: Address) -> str:
    """Return the URI of the file of a document; it is written in the background."""
    uri = uri_of(address)
    path = ls.documents.file_of(uri)
    if not ls.documents.is_fresh(path):
        ls.spawn(_write(ls, address))
    return path.as_uri()


async def _write(ls: "Front", address: Address) -> None:
    try:
        await placed(ls, address)
    except (FunesError, Refused, OSError) as exc:
        _log.info("a document is not written (%s)", type(exc).__name__)


def is_document(ls: "Front", uri: str, path: str) -> bool:
    """Return whether a document of the editor is one of ours."""
    return uri.startswith(f"{SCHEME}:") or bool(path and ls.documents.holds(path))


async def open_document(ls: "Front", address: Address) -> dict[str, Any]:
    """Show a document in the editor, or say where it lies; return what was done."""
    uri, line = await placed(ls, address)
    shown = False
    if ls.client.show_document:
        place = {"line": line, "character": 0}
        params = {"uri": uri, "takeFocus": True, "selection": {"start": place, "end": place}}
        with contextlib.suppress(Exception):
            answer = await ls.protocol.ask(types.WINDOW_SHOW_DOCUMENT, params, timeout_s=10)
            shown = isinstance(answer, dict) and answer.get("success") is True
    if not shown and not ls.client.virtual_documents:
        ls.show(types.MessageType.Info, f"funes: {path_of(uri) or uri}")
    return {"uri": uri, "line": line, "shown": shown}


def register(ls: "Front") -> None:
    """Serve documents."""

    @ls.feature("funes/document")
    async def document(params: Any) -> dict[str, Any]:
        uri = _document_params(params).uri
        page = await page_of(ls, uri)
        answer = DocumentAnswer(uri=uri, language_id="markdown", line=page.line, text=page.text)
        found: dict[str, Any] = msgspec.to_builtins(answer)
        return found

    @ls.feature(types.WORKSPACE_TEXT_DOCUMENT_CONTENT)
    async def content(
        params: types.TextDocumentContentParams,
    ) -> types.TextDocumentContentResult:
        return types.TextDocumentContentResult(text=(await page_of(ls, params.uri)).text)


def _document_params(raw: Any) -> DocumentParams:
    try:
        return msgspec.convert({} if raw is None else raw, DocumentParams)
    except msgspec.ValidationError as exc:
        raise bad_params(f"{exc}.") from exc
