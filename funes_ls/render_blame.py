"""How `funes blame` shows who wrote a file's lines: blocks for programs, a margin for people."""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from funes_ls.render import safe
from funes_ls.render_related import one_line

if TYPE_CHECKING:
    from funes_ls.protocol import BlameAnswer, BlameLines, BlameTurn

_ASK_CHARS = 160
_SHORT_ID = 8
_TAB = 4
#: Lines of the margin that an ask may take.
_MOST_ROWS = 3
_DIM, _YELLOW, _RESET = "\x1b[2m", "\x1b[33m", "\x1b[0m"
#: How sure a line's origin is, in one sign of the margin.
_SIGNS = {"exact": "=", "moved": ">", "similar": "~", "mentioned": "?"}
_LEGEND = "= written so   > moved here   ~ changed since, not a fact   ? mentioned"


def blame_text(answer: "BlameAnswer", source: Sequence[str], lines: tuple[int, int]) -> str:
    """Return a block for each run of lines that one turn wrote; lines nobody claims are left out.

    Args:
        answer: Who wrote them.
        source: The whole file, line by line.
        lines: First and last line that were asked about, from 1.
    """
    return "".join(blame_blocks(answer, source)) or _nothing(answer, lines)


def blame_blocks(answer: "BlameAnswer", source: Sequence[str]) -> list[str]:
    """Return the block of each run of lines, in the order of the answer; see `blame_text`."""
    turns = {(turn.session_id, turn.turn_uuid): turn for turn in answer.turns}
    blocks: list[str] = []
    told: set[tuple[str, str]] = set()
    for run in answer.lines:
        whose = (run.session_id, run.turn_uuid)
        blocks.append(_block(run, turns.get(whose), source, is_new=whose not in told))
        told.add(whose)
    return blocks


def _block(
    run: "BlameLines", turn: "BlameTurn | None", source: Sequence[str], *, is_new: bool
) -> str:
    """Return a run of lines; what its turn was asked stands with the first run of it only."""
    place = safe(turn.cwd if turn else "") or "-"
    whence = f" from {one_line(run.from_path, 1000)}" if run.from_path else ""
    head = (
        f"[{safe(run.ts)}] {run.harness or '-'} {place}/{safe(run.session_id)[:_SHORT_ID]}"
        f" {_named((run.start, run.end))} {run.confidence}{whence}{_evidence(run)}"
    )
    parts = [head]
    if turn is not None:
        parts.append(f"  → {safe(turn.get).removeprefix('funes ')}")
        parts += [
            f"  {name}: {one_line(text, _ASK_CHARS)}"
            for name, text in (("ask", turn.ask), ("why", turn.reason))
            if text and is_new
        ]
    shown = [
        f"{number}\t{_plain(source[number - 1])}".rstrip()
        for number in range(run.start, min(run.end, len(source)) + 1)
    ]
    return "\n".join([*parts, *shown, "---", ""])


def _nothing(answer: "BlameAnswer", lines: tuple[int, int]) -> str:
    path = one_line(answer.path, 1000)
    return f"nothing is known of {_named(lines)} of {path}" if lines[1] else f"{path} has no lines"


def _evidence(run: "BlameLines") -> str:
    """Return what says so, where that is not the session's trace alone."""
    return f" by {run.evidence}" if run.evidence != "trace" else ""


def _named(lines: tuple[int, int]) -> str:
    first, last = lines
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _plain(line: str) -> str:
    return safe(line).replace("\n", " ")


def blame_human(
    answer: "BlameAnswer",
    source: Sequence[str],
    lines: tuple[int, int],
    *,
    color: bool,
    width: int,
) -> str:
    """Return lines with who wrote them in a margin, and below it what each of the turns was.

    Args:
        answer: Who wrote them.
        source: The whole file, line by line.
        lines: First and last line to show, from 1.
        color: Whether escapes may be written.
        width: Columns there are.
    """
    numbers = {
        (turn.session_id, turn.turn_uuid): number for number, turn in enumerate(answer.turns, 1)
    }
    margin = _Margin(answer, numbers, lines, color=color, width=width)
    shown = [margin.beside(number, source[number - 1]) for number in range(lines[0], lines[1] + 1)]
    if not answer.turns:
        return "\n".join([*shown, "", _nothing(answer, lines)])
    below = [
        part
        for turn in answer.turns
        for part in _turn(turn, numbers[turn.session_id, turn.turn_uuid], color=color, width=width)
    ]
    return "\n".join([*shown, "", _paint(fit(_LEGEND, width), _DIM, color), "", *below])


class _Margin:
    """What stands left of a line: who, when, the ask; only where it changes."""

    def __init__(
        self,
        answer: "BlameAnswer",
        numbers: dict[tuple[str, str], int],
        lines: tuple[int, int],
        *,
        color: bool,
        width: int,
    ) -> None:
        self._asks = {(turn.session_id, turn.turn_uuid): turn.ask for turn in answer.turns}
        self._numbers = numbers
        self._color = color
        self._columns = max(16, min(44, width * 2 // 5))
        self._digits = len(str(lines[1]))
        self._text_columns = max(8, width - self._columns - self._digits - 6)
        self._runs = {
            number: run
            for run in answer.lines
            for number in range(max(run.start, lines[0]), min(run.end, lines[1]) + 1)
        }
        self._before: tuple[str, str] | None = None
        self._unsaid: list[str] = []

    def beside(self, number: int, text: str) -> str:
        """Return the next line with its margin."""
        run = self._runs.get(number)
        whose = self._turn_at(number)
        if whose != self._before:
            self._unsaid = self._words(number, run) if run else []
        self._before = whose
        said = self._unsaid.pop(0) if self._unsaid else ""
        sign = _SIGNS.get(run.confidence, "?") if run else " "
        left = _paint(_pad(fit(said, self._columns), self._columns), _YELLOW, self._color)
        rule = _paint(f"{sign} {number:>{self._digits}} │", _DIM, self._color)
        return f"{left} {rule} {fit(_plain(text).expandtabs(_TAB), self._text_columns)}".rstrip()

    def _words(self, number: int, run: "BlameLines") -> list[str]:
        """Return who, when and the ask, on as many lines as the turn has there, three at most."""
        whose = (run.session_id, run.turn_uuid)
        rows = 1
        while rows < _MOST_ROWS and self._turn_at(number + rows) == whose:
            rows += 1
        ask = one_line(self._asks.get(whose, ""), self._columns * _MOST_ROWS)
        said = f"{self._numbers.get(whose, '-')} {_who(run.ts, run.harness)} {ask}".rstrip()
        return _wrapped(said, self._columns, rows)

    def _turn_at(self, number: int) -> tuple[str, str] | None:
        run = self._runs.get(number)
        return (run.session_id, run.turn_uuid) if run else None


def _wrapped(text: str, columns: int, rows: int) -> list[str]:
    """Return a text on at most so many rows; what does not fit ends the last one with a mark."""
    lines: list[str] = []
    for word in text.split():
        if lines and columns_of(f"{lines[-1]} {word}") <= columns:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    if len(lines) > rows:
        lines[rows - 1 :] = [fit(" ".join(lines[rows - 1 :]), columns)]
    return lines


def _turn(turn: "BlameTurn", number: int, *, color: bool, width: int) -> Iterator[str]:
    head = f"{number} {_who(turn.ts, turn.harness)} {one_line(turn.title, width)}"
    yield _paint(fit(head, width), _YELLOW, color)
    for name, text in (("ask", turn.ask), ("why", turn.reason)):
        if text:
            yield fit(f"  {name}: {one_line(text, width)}", width)
    yield _paint(f"  {safe(turn.get)}", _DIM, color)


def _who(ts: str, harness: str) -> str:
    return f"{safe(ts)[:10] or '-'} {harness or '-'}"


def _paint(text: str, paint: str, color: bool) -> str:
    return f"{paint}{text}{_RESET}" if color and text.strip() else text


def fit(text: str, columns: int) -> str:
    """Return a text cut to so many columns of a terminal; wide characters take two."""
    if columns_of(text) <= columns:
        return text
    kept, used = "", 1
    for char in text:
        used += columns_of(char)
        if used > columns:
            break
        kept += char
    return f"{kept}…"


def columns_of(text: str) -> int:
    """Return how many columns a text takes: none for marks that stand over others."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def _pad(text: str, columns: int) -> str:
    return text + " " * (columns - columns_of(text))
