"""`funes blame`: who wrote the lines of a file, beside the lines."""

import argparse
import os
import re
import sys
from pathlib import Path, PureWindowsPath
from typing import Any

from funes_ls import render
from funes_ls.cli.asking import answer_to
from funes_ls.cli.output import notice, use_color
from funes_ls.cli.related import exists
from funes_ls.indexer.errors import FunesError, UsageError
from funes_ls.indexer.home import expanded
from funes_ls.sending import Params, as_object
from funes_ls.source_text import MAX_BYTES, decoded, lines_of, read_text

_PLACE = re.compile(r"(?P<file>.+?):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?", re.DOTALL)


def blame(args: argparse.Namespace) -> int:
    """Print who wrote the lines of a file."""
    path, wanted = _place(args.file)
    text = _text_of(path, args.text)
    source = lines_of(text)
    first, last = _within(wanted, len(source), path)
    params: Params = {
        "path": _absolute(path),
        "text": text,
        "asOf": args.as_of,
        "memory": args.memory,
        "range": _range(first, last) if source else None,
    }
    answer = answer_to("funes/blame", params, args)
    if args.json:
        render.write_json(answer)
    else:
        _show(as_object(answer), source, (first, last), args)
    return 0


def _show(found: Any, source: list[str], lines: tuple[int, int], args: argparse.Namespace) -> None:
    from funes_ls.render_blame import blame_human, blame_text

    notice(found.note, quiet=args.quiet)
    if not sys.stdout.isatty():
        render.write(blame_text(found, source, lines))
        return
    width = _width()
    render.write(blame_human(found, source, lines, color=use_color(True), width=width))


def _width() -> int:
    try:
        return max(40, int(os.environ.get("COLUMNS") or os.get_terminal_size(1).columns))
    except (ValueError, OSError):
        return 100


def _place(named: str) -> tuple[Path, tuple[int, int] | None]:
    """Return the file that is meant, and from which to which line; None is all of it.

    A file whose very name ends like a place is that file.
    """
    if exists(path := _path(named)) or not (found := _PLACE.fullmatch(named)):
        return path, None
    first = int(found["first"])
    last = int(found["last"] or first)
    if not 1 <= first <= last:
        raise UsageError(
            f"{render.safe(named)!r} names no lines.",
            hint="Lines count from 1: FILE:12 or FILE:12-20.",
        )
    return _path(found["file"]), (first, last)


def _absolute(path: Path) -> str:
    """Return a path so that the engine finds it; one of another system stays as it is."""
    return str(path if PureWindowsPath(path).drive else path.absolute())


def _path(named: str) -> Path:
    return expanded(named) if named.startswith("~") else Path(named)


def _within(wanted: tuple[int, int] | None, count: int, path: Path) -> tuple[int, int]:
    """Return the first and the last of the lines that are asked about and there."""
    if wanted is None:
        return 1, count
    if wanted[0] > count:
        lines = "1 line" if count == 1 else f"{count:,} lines"
        raise UsageError(f"{_shown(path)} has {lines}; there is no line {wanted[0]:,}.")
    return wanted[0], min(wanted[1], count)


def _range(first: int, last: int) -> Params:
    """Return lines as LSP has them: from 0, the end not included."""
    return {"start": {"line": first - 1, "character": 0}, "end": {"line": last, "character": 0}}


def _text_of(path: Path, unsaved: str | None) -> str:
    """Return the text that is asked about: the file's, or what an editor holds of it.

    Raises:
        UsageError: it is a folder.
        FunesError: it is not there, cannot be read or is no text.
    """
    if unsaved == "-":
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
        text, path = (decoded(data) if len(data) <= MAX_BYTES else None), Path("stdin")
    else:
        path = _path(unsaved) if unsaved else path
        text = _read(path)
    if text is None:
        limit = f"no text, or more than {MAX_BYTES >> 20} MB of it"
        raise FunesError(f"{_shown(path)} is {limit}; it has no lines to tell of.", kind="no_text")
    return text


def _read(path: Path) -> str | None:
    try:
        return read_text(path)
    except FileNotFoundError:
        raise FunesError(
            f"There is no file {_shown(path)}.",
            hint="If it was deleted: `funes related FILE` lists the sessions that had to do with "
            "it, and --text takes a text it once had.",
            kind="no_such_file",
        ) from None
    except IsADirectoryError:
        raise UsageError(f"{_shown(path)} is a folder.", hint="Name a file in it.") from None
    except (OSError, ValueError) as exc:
        if path.is_dir() if exists(path) else False:  # as Windows says it
            raise UsageError(f"{_shown(path)} is a folder.", hint="Name a file in it.") from None
        reason = getattr(exc, "strerror", None) or "there can be no such name"
        raise FunesError(f"{_shown(path)} cannot be read ({reason}).", kind="unreadable") from exc


def _shown(path: Path) -> str:
    return render.safe(str(path)).replace("\n", " ")
