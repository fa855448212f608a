"""Makes a question of an artefact: a diff, a stack trace or log of errors, or a file.

An artefact is not prose: of its thousands of words a few dozen tell what it is about. Those become
names with weights for the words leg, which asks for the rarest of them, and a short text, what
most likely was talked of, for the vector.
"""

import itertools
import re

from msgspec import Struct

from funes_ls.indexer.errors import UsageError
from funes_ls.retrieval.artefact_diff import diff_pieces, parts_of_diff
from funes_ls.retrieval.artefact_file import parts_of_file
from funes_ls.retrieval.artefact_names import file_words, most_telling, names_in
from funes_ls.retrieval.artefact_trace import parts_of_trace

KINDS = ("diff", "trace", "file")
#: As much of an artefact is looked at.
MOST_CHARS = {"diff": 400_000, "trace": 100_000, "file": 200_000}
#: Of a larger diff each file gives a share, of more files the first.
_MOST_PIECES = 200
#: Names among which the rarest are looked for.
_MOST_NAMES = 200
#: Characters of the text; 900 find nothing more and take the model half as long again.
_TEXT_CHARS = 600
_MOST_SAID_CHARS = 300
#: How much of it is shown to the asker.
_SHOWN_FILES, _SHOWN_NAMES, _SHOWN_CHARS = 5, 8, 160
#: What no text has; line ends are kept, and the escape that begins a colour.
_UNTEXT = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ud800-\udfff]")


class Artefact(Struct, frozen=True, kw_only=True):
    """What is asked with instead of, or besides, words.

    Attributes:
        kind: One of `KINDS`.
        path: Of the file; for the other kinds "".
    """

    kind: str
    text: str
    path: str = ""


class Asked(Struct, frozen=True, kw_only=True):
    """What an artefact was understood to ask; a part of the answer.

    Attributes:
        said: The error, or what the diff's author or the file says of itself, "" if nothing.
        files: Files it names, at most some; the file itself for a file.
        names: The names that weigh most, besides those in `said`.
        files_total: How many files it names, of a large one how many were looked at.
    """

    kind: str
    said: str
    files: tuple[str, ...]
    names: tuple[str, ...]
    files_total: int


class Inquiry(Struct, frozen=True, kw_only=True):
    """An artefact as a question.

    Attributes:
        text: What the vector is of.
        names: For the words leg, each with what it weighs against a word that was typed.
        files: Every file it names, as it names it.
    """

    text: str
    names: tuple[tuple[str, float], ...]
    files: tuple[str, ...]
    asked: Asked


def inquiry_of(artefact: Artefact) -> Inquiry:
    """Return what an artefact asks.

    Raises:
        UsageError: it is of no kind that is known, or has nothing to look for.
    """
    make = {"diff": _of_diff, "trace": _of_trace, "file": _of_file}.get(artefact.kind)
    if make is None:
        raise UsageError(
            f"There is no artefact {artefact.kind!r}.", hint=f"One of: {', '.join(KINDS)}."
        )
    text = _UNTEXT.sub(" ", fitted(artefact.text, artefact.kind))
    found = make(text, artefact.path)
    if not found.names and not any(char.isalnum() for char in found.text):
        raise UsageError(
            f"The {artefact.kind} has no words to look for.",
            hint='Ask with words: funes recall "why did the build fail"',
        )
    return found


def fitted(text: str, kind: str) -> str:
    """Return as much of an artefact as is looked at.

    Of a diff every file gives its beginning, a fair share of the limit; of a trace the beginning
    and the end count, where errors stand.
    """
    limit = MOST_CHARS[kind]
    if len(text) <= limit:
        return text
    if kind == "diff":
        pieces = list(itertools.islice(diff_pieces(text), _MOST_PIECES))
        share = _fair_share([len(piece) for piece in pieces], limit)
        return "".join(_cut(piece, share) for piece in pieces)
    if kind == "trace":
        return text[: limit // 3] + "\n" + text[-(limit - limit // 3) :]
    return text[:limit]


def _cut(piece: str, share: int) -> str:
    return piece if len(piece) <= share else piece[: piece.rfind("\n", 0, share) + 1]


def _fair_share(sizes: list[int], limit: int) -> int:
    """Return the largest share with which pieces of these sizes, each cut to it, fit the limit."""
    left = limit
    for place, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - place)
        if size > share:
            return share
        left -= size
    return limit


def _of_diff(text: str, _path: str) -> Inquiry:
    parts = parts_of_diff(text)
    if not parts.found:
        raise UsageError(
            "This is no diff: it has neither a file's header nor a hunk.",
            hint="Give what `git diff` or `diff -u` prints; errors and logs go to `--trace`.",
            kind="no_diff",
        )
    said = _clipped(parts.message, _MOST_SAID_CHARS)
    files = " ".join(file_words(path) for path in parts.files[:_SHOWN_FILES])
    left = _TEXT_CHARS - len(said) - len(files)
    changed = most_telling(parts.lines, parts.weights, chars=left)
    names = parts.weights.heaviest(_MOST_NAMES)
    return _inquiry("diff", said, parts.files, names, f"{said}\n{files}\n{changed}")


def _of_trace(text: str, _path: str) -> Inquiry:
    parts = parts_of_trace(text)
    messages = _joined(parts.messages, _TEXT_CHARS * 2 // 3)
    said = parts.messages[0] if parts.messages else ""
    functions = " ".join(parts.functions[-_SHOWN_NAMES:])
    left = _TEXT_CHARS - len(messages) - len(functions)
    rest = most_telling(parts.lines, parts.weights, chars=left) if not messages else ""
    names = parts.weights.heaviest(_MOST_NAMES)
    return _inquiry("trace", said, parts.files, names, f"{messages}\n{functions}\n{rest}")


def _of_file(text: str, path: str) -> Inquiry:
    parts = parts_of_file(path, text)
    said = _joined(parts.about, _MOST_SAID_CHARS)
    left = _TEXT_CHARS - len(said) - len(file_words(path))
    lines = parts.definitions or tuple(text.splitlines())
    told = most_telling(lines, parts.weights, chars=left)
    names = parts.weights.heaviest(_MOST_NAMES)
    about = parts.about[0] if parts.about else ""
    return _inquiry("file", about, (path,) if path else (), names, f"{path}\n{said}\n{told}")


def _inquiry(
    kind: str,
    said: str,
    files: tuple[str, ...],
    names: tuple[tuple[str, float], ...],
    text: str,
) -> Inquiry:
    shown = [name for name, _ in names if next(names_in(name), "") == name and name not in said]
    return Inquiry(
        text="\n".join(line for line in text.splitlines() if line.strip()),
        names=names,
        files=files,
        asked=Asked(
            kind=kind,
            said=_clipped(said, _SHOWN_CHARS),
            files=files[:_SHOWN_FILES],
            names=tuple(shown[:_SHOWN_NAMES]),
            files_total=len(files),
        ),
    )


def _joined(lines: tuple[str, ...], chars: int) -> str:
    """Return whole lines, in order, that together have at most so many characters."""
    kept: list[str] = []
    for line in lines:
        part = _clipped(line, chars)
        kept.append(part)
        chars -= len(part) + 1
        if chars < 20:
            break
    return "\n".join(kept)


def _clipped(text: str, chars: int) -> str:
    """Return a text's beginning on one line, cut between words."""
    line = " ".join(text.split())
    if len(line) <= chars:
        return line
    return line[: max(line.rfind(" ", 0, chars), chars // 2)].rstrip()
