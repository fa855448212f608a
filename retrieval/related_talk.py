"""Finds the sessions in which names of a file come up, its own and those in it; words only."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct

from funes_ls.indexer.catalog import Session
from funes_ls.indexer.identifiers import humps
from funes_ls.indexer.lexical_search import LexicalQuery
from funes_ls.indexer.memory import MemoryView, Row
from funes_ls.retrieval.paths import is_under, normal
from funes_ls.retrieval.related import Related, ranked
from funes_ls.retrieval.same_file import Asked, places_of, with_places

#: Names that are asked for, and rows that are looked at.
_MOST_NAMES = 12
_MOST_ROWS = 40
_TALK = ("text", "thinking")
#: A plain word is a name where at most one row in so many has it.
_RARE = 200
_MOST_LINES = 20_000
#: Definitions as most languages write them: a word for the kind, then the name.
_DEFINED = re.compile(
    r"^[ \t]*(?:(?:export|default|pub(?:\([^)\n]{0,80}\))?|public|private|protected|internal|static"
    r"|async|abstract|final|sealed|open|override|virtual|inline|unsafe|extern|const|local)"
    r"[ \t]+){0,6}"
    r"(?:def|class|fn|func|fun|function\*?|struct|enum|trait|interface|type|module|macro_rules!"
    r"|impl|object|record|protocol|const|let|var|val|defn?|sub)[ \t]+"
    r"(?:\([^)\n]{0,200}\)[ \t]*)?([A-Za-z_$][\w$]{3,60})",
    re.MULTILINE,
)
_WORD = re.compile(r"[A-Za-z_$][\w$]{4,60}")


#: The names a row holds, whether it is talk, its place from the back, and the row.
_Found = tuple[list[str], bool, int, Row]


class Names(Struct, frozen=True, kw_only=True):
    """What a file can be called in talk.

    Attributes:
        file: Its last name, "" when others have the same one everywhere.
        inside: Names that its text defines, or that stand in the lines that are asked about.
    """

    file: str
    inside: tuple[str, ...]


#: File names that say nothing about which file it is.
_EVERYWHERE = re.compile(
    r"(?:__init__|__main__|main|index|mod|lib|app|setup|conftest|utils?|types?|test|readme|license"
    r"|changelog|makefile|dockerfile|package|settings|config)(?:\.\w+)*",
    re.IGNORECASE,
)


def names_of(path: str, text: str = "", *, lines: tuple[int, int] | None = None) -> Names:
    """Return the names of a file.

    Args:
        path: Of the file.
        text: What is in it, "" when that is not known.
        lines: First and last line (from 0, both included) that are asked about.
    """
    name = path.rsplit("/", 1)[-1]
    rows = text.split("\n", _MOST_LINES)[:_MOST_LINES]
    part = "\n".join(rows if lines is None else rows[lines[0] : lines[1] + 1])
    inside = _DEFINED.findall(part)
    if lines is not None:
        inside += filter(_is_compound, _WORD.findall(part))
    return Names(
        file="" if _EVERYWHERE.fullmatch(name) else name,
        inside=tuple(dict.fromkeys(inside)),
    )


def _is_compound(name: str) -> bool:
    """Tell whether a name is made of several words, so that it hardly stands by chance."""
    return "_" in name.strip("_") or len(humps(name)) > 1


def by_talk(memory: MemoryView, asked: Asked, names: Names) -> list[Related]:
    """Return the sessions in which names of a file come up, strongest first.

    In the file's own repository one name tells (`symbols`); elsewhere it takes two, one alone is
    only `similar`, and a plain word is nothing.
    """
    wanted = _telling(memory, names)
    if not wanted:
        return []
    ids = [id_ for id_, _ in _search(memory, " ".join(wanted))]
    patterns = {name: re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])") for name in wanted}
    rows: dict[str, list[_Found]] = defaultdict(list)
    for rank, row in enumerate(memory.rows(ids)):
        held = [
            name
            for name, pattern in patterns.items()
            if name in row.text and pattern.search(row.text)
        ]
        if held:
            rows[row.session_id].append((held, row.block_type in _TALK, -rank, row))
    if rows and not asked.repos:
        asked = with_places(asked, places_of(memory.catalog))
    found = (
        _related(session, rows[session_id], is_near=_is_near(session, asked))
        for session_id in rows
        if (session := memory.catalog.session(session_id)) is not None
    )
    return ranked(one for one in found if one is not None)


def _search(memory: MemoryView, text: str) -> list[tuple[str, float]]:
    return memory.search_words(LexicalQuery(text=text), _MOST_ROWS)


def _telling(memory: MemoryView, names: Names) -> list[str]:
    """Return the names that hardly stand anywhere by chance."""
    often = max(memory.words.count() // _RARE, 2)
    inside = [
        name for name in names.inside if _is_compound(name) or memory.words.frequency(name) <= often
    ]
    return list(filter(None, [names.file, *inside[:_MOST_NAMES]]))


def _related(session: Session, found: Sequence[_Found], *, is_near: bool) -> Related | None:
    held, _, rank, row = max(found, key=lambda one: (len(one[0]), *one[1:3]))
    if not is_near and not any(_is_compound(name) or "." in name for name in held):
        return None
    return Related(
        session_id=session.session_id,
        relation="symbols" if is_near or len(held) > 1 else "similar",
        last_us=_latest(one.ts_us for *_, one in found) or session.ended_us,
        turn_uuid=row.turn_uuid,
        text=row.text,
        score=len(held) + 1 / (2 - rank),
    )


def _is_near(session: Session, asked: Asked) -> bool:
    """Tell whether a session ran in the repository or the folder of a file."""
    if asked.repos & set(session.repo.lower().split()):
        return True
    return bool(asked.root and session.cwd) and is_under(normal(session.cwd), asked.root)


def _latest(times: Iterable[int | None]) -> int | None:
    return max((time for time in times if time is not None), default=None)
