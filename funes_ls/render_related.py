"""How `funes related` shows sessions: one block each, the same in a terminal and in a pipe."""

from typing import TYPE_CHECKING

from funes_ls.indexer.times import format_us
from funes_ls.render import safe

if TYPE_CHECKING:
    from funes_ls.protocol import RelatedAnswer, RelatedSession

_PASSAGE_CHARS = 160
_TITLE_CHARS = 80
_SHORT_ID = 8
_DIM, _RESET = "\x1b[2m", "\x1b[0m"


def related_text(answer: "RelatedAnswer", *, color: bool = False) -> str:
    """Return a block for each session, and how many there are in all if some are left off.

    Args:
        answer: The sessions, strongest relation first.
        color: Whether to dim the lines that only lead further.
    """
    if not answer.sessions:
        return f"no session has to do with {one_line(answer.path, 1000)}"
    blocks = "".join(_block(one, color=color) for one in answer.sessions)
    shown = len(answer.sessions)
    rest = f"{shown} of {answer.total}; see --limit\n" if answer.total > shown else ""
    return blocks + rest


def _block(session: "RelatedSession", *, color: bool) -> str:
    when = format_us(session.last_us if session.last_us is not None else session.ended_us)
    place = safe(session.cwd or "-")
    get = session.passage.get if session.passage else session.get
    lines = [
        f"[{when}] {session.harness or '-'} {place}/{safe(session.session_id)[:_SHORT_ID]}"
        f" {_relation(session)}",
        _dim(f"  → {safe(get).removeprefix('funes ')}", color),
        one_line(session.title, _TITLE_CHARS),
    ]
    if session.passage:
        lines.append(_dim(f"  ~ {one_line(session.passage.text, _PASSAGE_CHARS)}", color))
    return "\n".join([*[line for line in lines if line], "---", ""])


def _relation(session: "RelatedSession") -> str:
    """Return how a session has to do with the file: `edited  edits=3 reads=1`."""
    counts = [
        f"{name}={count}"
        for name, count in (
            ("edits", session.edits),
            ("reads", session.reads),
            ("mentions", session.mentions),
        )
        if count
    ]
    return "  ".join([session.relation, *([" ".join(counts)] if counts else [])])


def _dim(text: str, color: bool) -> str:
    return f"{_DIM}{text}{_RESET}" if color else text


def one_line(text: str, limit: int) -> str:
    """Return a text on one line, cut after so many characters."""
    words = " ".join(safe(text[: limit * 4]).split())
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"
