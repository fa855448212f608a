"""What shell commands show of files: cat, sed -n, head, tail, nl, grep, ls."""

import re
from collections.abc import Iterator

from funes_ls.indexer.calls.numbered import unnumbered
from funes_ls.indexer.calls.paths import settled
from funes_ls.indexer.calls.shell_lex import Word
from funes_ls.indexer.calls.tools import found_paths
from funes_ls.indexer.facts import FileEvent

_RANGE = re.compile(r"(\d+)(?:,(\d+|\$))?p;?")
_SEARCHES = frozenset(("grep", "rg", "egrep", "fgrep", "ag", "ack"))
_LISTS = frozenset(("ls", "find", "fd", "tree"))
_CUT = re.compile(
    r"truncated|tokens omitted|chars omitted|\[\.\.\. |\[Showing lines", re.IGNORECASE
)


def seen(name: str, words: list[Word], cwd: str, output: str | None) -> Iterator[FileEvent]:
    """Yield what a command shows of files.

    Args:
        name: Of the command.
        words: All of it.
        cwd: Where it ran.
        output: What it printed, None when that cannot be told from what others printed.
    """
    if name in _SEARCHES and output is not None:
        yield from found_paths(output, cwd, kind="search")
        return
    if name == "git" and len(words) > 1 and words[1].text == "grep" and output is not None:
        yield from found_paths(output, cwd, kind="search")
        return
    if name in _LISTS and output is not None and name != "ls":
        yield from found_paths(output, cwd, kind="list")
        return
    files = [word for word in _files(name, words) if word.known]
    for word in files:
        path = settled(word.text, cwd)
        if path:
            yield _read(name, words, path, output if len(files) == 1 else None)


def _files(name: str, words: list[Word]) -> list[Word]:
    operands = [word for word in words[1:] if not word.text.startswith("-")]
    if name in ("cat", "nl", "bat", "less", "more", "batcat"):
        return [word for word in operands if not (name == "nl" and word.text in ("a", "t"))]
    if name in ("head", "tail"):
        return [word for word in operands if not word.text.isdecimal()]
    if name == "sed" and any(word.text == "-n" for word in words) and operands:
        return operands[1:] if _RANGE.fullmatch(operands[0].text) else []
    return []


def _read(name: str, words: list[Word], path: str, output: str | None) -> FileEvent:
    if output is None:
        return FileEvent(kind="read", path=path)
    first, whole = _extent(name, words)
    shown = unnumbered(output) if name == "nl" or "-n" in _flags(name, words) else None
    if shown is not None:
        return FileEvent(
            kind="read", path=path, new=shown.text, first_line=shown.first_line, whole=whole
        )
    whole = whole and not _CUT.search(output)
    return FileEvent(kind="read", path=path, new=output, first_line=first, whole=whole)


def _flags(name: str, words: list[Word]) -> set[str]:
    return {word.text for word in words[1:]} if name == "cat" else set()


def _extent(name: str, words: list[Word]) -> tuple[int, bool]:
    """Return the number of the first line that is shown, 0 when unknown, and if all are."""
    if name == "tail":
        return 0, False
    if name == "head":
        return 1, False
    if name != "sed":
        return 1, True
    for word in words[1:]:
        if found := _RANGE.fullmatch(word.text):
            return int(found[1]), found[1] in ("0", "1") and found[2] == "$"
    return 0, False
