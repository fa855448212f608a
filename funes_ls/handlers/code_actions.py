"""Code actions and the commands behind them; a command's answer is a document that is shown."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec
from lsprotocol import types
from msgspec import Struct

from funes_ls.handlers.addresses import MOST_QUERY_CHARS, Address, uri_of
from funes_ls.handlers.documents import digest_of, is_document, open_document, why_of
from funes_ls.handlers.failures import bad_params, changed
from funes_ls.handlers.progress import begun
from funes_ls.handlers.recall import watched
from funes_ls.handlers.workspaces import opened
from funes_ls.protocol import Range
from funes_ls.uris import path_of

if TYPE_CHECKING:
    from funes_ls.handlers.front import Front

SHOW_RELATED = "funes.showRelated"
RECALL_SELECTION = "funes.recallSelection"
WHY_LINE = "funes.whyLine"
INDEX = "funes.index"
#: A kind of our own: neither a fix nor a refactoring.
KIND = "funes"


class Target(Struct, frozen=True, kw_only=True):
    """What a command is about: a document and, for some, a place in it.

    Attributes:
        moment: Of the text that the place is in; None for that of now.
    """

    uri: str
    range: Range | None = None
    moment: int | None = None


def register(ls: "Front") -> None:
    """Serve code actions and commands."""
    options = types.CodeActionOptions(code_action_kinds=[KIND])

    @ls.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    async def actions(params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
        uri, wanted = params.text_document.uri, params.context.only
        if wanted is not None and not any(_covers(str(kind), KIND) for kind in wanted):
            return []
        if is_document(ls, uri, path_of(uri)):
            return []
        place = ls.protocol.plain(params.range)
        found = []
        if params.range.start != params.range.end:
            found.append(_action(ls, "Recall for this selection", RECALL_SELECTION, uri, place))
        if path_of(uri) and await _is_known(ls, uri, params.range.start.line):
            found.append(_action(ls, "Why is this line here?", WHY_LINE, uri, place))
        return found

    for name, run in COMMANDS.items():
        ls.command(name)(_command(ls, run))


def _covers(wanted: str, kind: str) -> bool:
    return wanted == "" or kind == wanted or kind.startswith(f"{wanted}.")


async def _is_known(ls: "Front", uri: str, line: int) -> bool:
    """Return whether sessions touched a file, or wrote a line of it elsewhere."""
    params = {"path": path_of(uri), "limit": 1, "factsOnly": True}
    answer = await ls.quick("funes/related", ls.with_settings("funes/related", params, uri=uri))
    if answer and answer["total"]:
        return True
    return await ls.lines.of(uri, line) is not None


def _action(
    ls: "Front", title: str, name: str, uri: str, place: Any
) -> types.CodeAction | types.Command:
    moment = ls.lines.asked(uri).moment
    about = {"uri": uri, "range": place, "moment": moment}
    command = types.Command(title=title, command=name, arguments=[about])
    if not ls.client.action_literals:
        return command
    return types.CodeAction(title=title, kind=KIND, command=command)


Run = Callable[["Front", Any], Awaitable[Any]]


def _command(ls: "Front", run: Run) -> Callable[..., Awaitable[Any]]:
    async def handle(*arguments: Any) -> Any:
        return await run(ls, arguments[0] if arguments else None)

    return handle


async def _show_related(ls: "Front", argument: Any) -> Any:
    path = _path(_target(argument))
    return await open_document(ls, Address(kind="file", path=path, memory=ls.settings().memory))


async def _recall_selection(ls: "Front", argument: Any) -> Any:
    target = _target(argument)
    query = _selected(ls, target)[:MOST_QUERY_CHARS].strip()
    if not query:
        raise bad_params("Nothing is selected.")
    memory = ls.settings(target.uri).memory
    return await open_document(ls, Address(kind="recall", query=query, memory=memory))


async def _why_line(ls: "Front", argument: Any) -> Any:
    target = _target(argument)
    first, last = _lines(ls, target)
    document = opened(ls, target.uri)
    about = Address(
        kind="why",
        path=_path(target),
        line=first,
        last=last,
        digest=digest_of(document.text_of(first, last)) if document else "",
        memory=ls.settings(target.uri).memory,
    )
    ls.documents.keep(uri_of(about), await why_of(ls, about))
    return await open_document(ls, about)


def _lines(ls: "Front", target: Target) -> tuple[int, int]:
    """Return the first and the last line that a command is about, as they are now.

    Raises:
        Refused: they are no more.
    """
    if target.range is None:
        return 0, 0
    start, end = target.range.start, target.range.end
    first, last = max(start.line, 0), max(start.line, end.line - (end.character == 0), 0)
    document = opened(ls, target.uri)
    if document is None:
        return first, last
    moment = document.moment if target.moment is None else target.moment
    try:
        now = [document.now(line, moment=moment) for line in (first, last)]
    except LookupError:
        now = []
    first_now, last_now = now if len(now) == 2 else (None, None)
    if first_now is None:
        raise changed()
    most = len(document.starts) - 1
    last_now = first_now if last_now is None else max(first_now, last_now)
    return min(first_now, most), min(last_now, most)


async def _index(ls: "Front", _argument: Any) -> Any:
    work = await begun(ls, None, title="Indexing sessions")
    return await watched(ls, "funes/index", ls.with_settings("funes/index", {}), work)


COMMANDS: dict[str, Run] = {
    SHOW_RELATED: _show_related,
    RECALL_SELECTION: _recall_selection,
    WHY_LINE: _why_line,
    INDEX: _index,
}


def _target(argument: Any) -> Target:
    try:
        return msgspec.convert(argument, Target)
    except msgspec.ValidationError as exc:
        raise bad_params(f"The command's argument does not fit: {exc}.") from exc


def _path(target: Target) -> str:
    path = path_of(target.uri)
    if not path:
        raise bad_params("The command is for files.")
    return path


def _selected(ls: "Front", target: Target) -> str:
    """Return the selected text of an open document; positions count as was agreed."""
    document = opened(ls, target.uri)
    if document is None or target.range is None:
        raise bad_params("The document is not open.")
    return document.within(target.range)
