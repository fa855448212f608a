"""The folders a client has open: none, one or many, nested ones too; the own cwd counts nothing."""

from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from lsprotocol import types

if TYPE_CHECKING:
    from funes_ls.handlers.front import Front
    from funes_ls.handlers.texts import OpenText


def folders_of(ls: "Front") -> list[str]:
    """Return the URIs of the open folders; a client of old has one root at most."""
    workspace = ls.workspace
    found = [folder.uri for folder in workspace.folders.values()]
    if found or ls.had_folders:
        return found
    return [workspace.root_uri] if workspace.root_uri else []


def innermost(uri: str, folders: Iterable[str]) -> str:
    """Return the folder that a document is in, the deepest of several, "" when it is in none."""
    path = _parts(uri)
    holding = [
        (len(_parts(folder)), folder)
        for folder in folders
        if folder and path[: len(_parts(folder))] == _parts(folder)
    ]
    return max(holding)[1] if holding else ""


def opened(ls: "Front", uri: str) -> "OpenText | None":
    """Return a document that the client has open, None otherwise."""
    found: OpenText | None = ls.workspace.text_documents.get(unquote(uri))
    return found


def _parts(uri: str) -> tuple[str, ...]:
    parts = urlsplit(uri)
    path = unquote(parts.path).rstrip("/")
    if path[2:3] == ":":  # drives of Windows come in either case
        path = path[:2].lower() + path[2:]
    return (parts.scheme, parts.netloc, *PurePath(path).parts)


def register(ls: "Front") -> None:
    """Serve what has to do with folders."""

    @ls.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def changed(params: types.DidChangeWorkspaceFoldersParams) -> None:
        ls.had_folders = True
        ls.configuration.pull(ls)
