"""What calls of file tools come to: writes, edits, reads, searches, listings."""

import re
from collections.abc import Iterator
from typing import Any

from funes_ls.indexer.calls.call import Call, number, word
from funes_ls.indexer.calls.numbered import unnumbered, without_reminders
from funes_ls.indexer.calls.outcome import Outcome, changed_nothing
from funes_ls.indexer.calls.paths import settled
from funes_ls.indexer.calls.replaced import searched_and_replaced
from funes_ls.indexer.facts import EventKind, FileEvent

_PATH = (
    "file_path", "path", "notebook_path", "filePath", "filename", "target_file", "file",
    "absolute_path", "AbsolutePath", "TargetFile", "relative_workspace_path",
)  # fmt: skip
_OLD = ("old_string", "oldText", "old_str", "old_text", "oldString", "old")
_NEW = ("new_string", "newText", "new_str", "new_text", "newString", "new", "insert_text")
_WHOLE = ("content", "contents", "file_text", "fileText", "text", "code_edit", "CodeContent")
_EVERY = ("replace_all", "replaceAll", "allow_multiple", "all")
_OFFSET = ("offset", "start_line", "startLine", "start", "line_start")
_LIMIT = ("limit", "end_line", "endLine", "end", "line_end", "lines", "max_lines")
#: Names under which `str_replace_editor` and its kin say what is to be done.
EDITOR_COMMANDS = frozenset(("view", "create", "str_replace", "insert", "undo_edit", "delete"))
#: Tools whose answer to a path alone is no file's text.
_DELETES = re.compile(r"delete|remove|unlink", re.IGNORECASE)
_LISTS = re.compile(r"^ls$|list|glob|find|tree|director", re.IGNORECASE)
_READS = re.compile(r"read|view|cat|open|get|fetch", re.IGNORECASE)
_WRITES = re.compile(r"write|create|save|overwrite", re.IGNORECASE)
_APPENDS = re.compile(r"append", re.IGNORECASE)
#: Words of an answer that shows less than the whole file.
_CUT = re.compile(
    r"\[(?:Showing lines|Truncated|\d+ more lines|Output truncated|Lines? \d|File truncated|"
    r"\.\.\. )|\[trimmed|truncated|more lines in file|Use offset=",
    re.IGNORECASE,
)
_READ_NOTE = re.compile(r"\n+\[(?:Showing lines|\d+ more lines|Truncated)[^\n]*\]\s*\Z")
_NO_TEXT = (
    "File does not exist",
    "File unchanged since",
    "Cannot read",
    "File content (",
    "Read image file",
    "[trimmed",
)
_MOST_READ_LINES = 2_000
_MOST_FOUND = 40
_LONGEST_PATH = 400
_FILE_NAME = re.compile(r"\.?[\w@+()\[\]$-]+(?:\.[\w@+-]+)+|\.\w[\w.-]*|[A-Z]\w*file")


def tool_events(call: Call, args: dict[str, Any], outcome: Outcome) -> Iterator[FileEvent]:
    """Yield what a call of a file tool did or saw; nothing for one that failed."""
    path = settled(word(args, *_PATH), call.cwd)
    if not outcome.ok:
        return
    if isinstance(args.get("pattern"), str) or isinstance(args.get("query"), str):
        yield from _search(call, args, path, outcome)
    elif path or any(isinstance(args.get(key), list) for key in ("edits", "replacements")):
        yield from _on_path(call, args, path, outcome)


def _on_path(call: Call, args: dict[str, Any], path: str, outcome: Outcome) -> Iterator[FileEvent]:
    command = word(args, "command")
    changes = list(_changes(call, args, path, command))
    if changes:
        if not changed_nothing(outcome):
            yield from changes
            yield from _snippet(path, outcome)
    elif path and (command == "view" or not command):
        yield from _without_text(call, args, path, outcome)


def _changes(call: Call, args: dict[str, Any], path: str, command: str) -> Iterator[FileEvent]:
    edits = args.get("edits", args.get("replacements"))
    if isinstance(edits, list):
        for edit in edits:
            if isinstance(edit, dict):
                yield from _edit(edit, settled(word(edit, *_PATH), call.cwd) or path)
    elif pairs := searched_and_replaced(word(args, "diff")):
        for old, new in pairs:
            if path and old != new:
                yield FileEvent(kind="edit", path=path, old=old, new=new)
    elif command in ("create", "insert"):
        kind: EventKind = "write" if command == "create" else "edit"
        yield FileEvent(kind=kind, path=path, new=word(args, "file_text", *_NEW))
    elif "new_source" in args:
        yield from _notebook(args, path)
    elif any(key in args for key in _OLD):
        yield from _edit(args, path)
    elif any(isinstance(args.get(key), str) for key in _WHOLE):
        kind = "append" if _APPENDS.search(call.tool) or args.get("append") is True else "write"
        yield FileEvent(kind=kind, path=path, new=word(args, *_WHOLE))
    elif command == "delete" or (_DELETES.search(call.tool) and not command):
        yield FileEvent(kind="delete", path=path)


def _edit(args: dict[str, Any], path: str) -> Iterator[FileEvent]:
    old, new = word(args, *_OLD), word(args, *_NEW)
    if not path or old == new:
        return
    yield FileEvent(
        kind="edit", path=path, old=old, new=new, every=any(args.get(key) is True for key in _EVERY)
    )


def _notebook(args: dict[str, Any], path: str) -> Iterator[FileEvent]:
    if word(args, "edit_mode") != "delete":
        yield FileEvent(kind="edit", path=path, new=word(args, "new_source"))


def _snippet(path: str, outcome: Outcome) -> Iterator[FileEvent]:
    """Yield what the answer to an edit shows of the file as it is afterwards."""
    if "cat -n" not in outcome.text[:1000]:
        return
    shown = unnumbered(outcome.text)
    if shown is not None and path:
        yield FileEvent(kind="read", path=path, new=shown.text, first_line=shown.first_line)


def _without_text(
    call: Call, args: dict[str, Any], path: str, outcome: Outcome
) -> Iterator[FileEvent]:
    if _LISTS.search(call.tool):
        yield FileEvent(kind="list", path=path)
    elif _READS.search(call.tool) and not _shows_nothing(outcome):
        yield read_event(
            path, args, outcome.text, is_padded=not isinstance(args.get("file_path"), str)
        )


def _shows_nothing(outcome: Outcome) -> bool:
    """Tell whether the answer to a read is no text of a file."""
    return outcome.text[:200].lstrip().startswith(_NO_TEXT)


def read_event(
    path: str, args: dict[str, Any], output: str, *, is_padded: bool = False
) -> FileEvent:
    """Return what an answer shows of a file.

    Args:
        path: The file.
        args: What was asked for.
        output: The answer.
        is_padded: Numbers before lines are only taken for such where they stand apart.
    """
    offset, limit = number(args, *_OFFSET), number(args, *_LIMIT)
    text = without_reminders(output)
    is_cut = offset not in (None, 0, 1) or limit is not None or bool(_CUT.search(text[-300:]))
    shown = unnumbered(text) if _is_numbered(text, is_padded=is_padded) else None
    if shown is not None:
        lines = shown.text.count("\n") + 1
        whole = not is_cut and shown.first_line == 1 and lines < _MOST_READ_LINES
        return FileEvent(
            kind="read", path=path, new=shown.text, first_line=shown.first_line, whole=whole
        )
    plain = _READ_NOTE.sub("", text)
    return FileEvent(
        kind="read", path=path, new=plain, first_line=max(offset or 1, 1), whole=not is_cut
    )


def _is_numbered(text: str, *, is_padded: bool) -> bool:
    head = text.lstrip("\n")[:40]
    return re.match(r" *\d+→| +\d+[\t|]" if is_padded else r" *\d+(?:→|\t)", head) is not None


def _search(call: Call, args: dict[str, Any], path: str, outcome: Outcome) -> Iterator[FileEvent]:
    if not path and not re.search("grep|glob|search|find|list", call.tool, re.IGNORECASE):
        return
    kind: EventKind = "list" if _LISTS.search(call.tool) else "search"
    yield from found_paths(outcome.text, call.cwd, kind=kind, inside=path)


def found_paths(
    output: str, cwd: str, *, kind: EventKind, inside: str = "", most: int = _MOST_FOUND
) -> Iterator[FileEvent]:
    """Yield the files that a search or listing names, each once, up to a number."""
    seen: set[str] = set()
    if inside and "." in inside.rsplit("/", 1)[-1]:
        seen.add(inside)
    for line in output.split("\n", 4 * most)[: 4 * most]:
        start = 2 if line[1:3] in (":\\", ":/") else 0
        name = line[: _LONGEST_PATH + 1].strip()
        name = name[: end if (end := name.find(":", start)) >= 0 else None]
        if len(name) <= _LONGEST_PATH and _is_file_name(name):
            seen.add(settled(name, cwd))
        if len(seen) >= most:
            break
    for path in sorted(seen - {""}):
        yield FileEvent(kind=kind, path=path)


def _is_file_name(path: str) -> bool:
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    return _FILE_NAME.fullmatch(name) is not None and not path.startswith(("http", "-", "+"))
